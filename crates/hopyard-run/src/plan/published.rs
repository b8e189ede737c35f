//! `[[published]]` of a plan: figures that a report published for its cells.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::source::{Error, Source, path_name, plain};
use crate::assess;
use crate::model::{Axes, LoadKind, Peer, Published, PublishedFigure, axis};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    source: String,
    quantity: Spanned<String>,
    what: String,
    remark: String,
    figures: Vec<RawFigure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFigure {
    path: Spanned<String>,
    load: Spanned<String>,
    peer: Option<Spanned<String>>,
    called: String,
    #[serde(default)]
    set: toml::map::Map<String, toml::Value>,
    value: f64,
    half_width: Option<f64>,
}

/// `[[published]]` with its names checked.
pub(super) fn published(source: &Source<'_>, raw: Raw) -> Result<Published, Error> {
    let quantity = source.read("quantity", &raw.quantity, |name| {
        if name == assess::PER_GHZ {
            return Ok(name.to_owned());
        }
        assess::quantity(name).map(|q| q.name.to_owned())
    })?;
    let figure = |figure: RawFigure| {
        // TOML allows NaN and infinities.
        let numbers = [Some(figure.value), figure.half_width];
        if !numbers.into_iter().flatten().all(f64::is_finite) {
            let line = source.line(&figure.path.span());
            let why = "a figure that is no number: write what was published, or leave it out";
            return Err(source.wrong("figures", line, why.to_owned()));
        }
        Ok(PublishedFigure {
            path: source.read("path", &figure.path, path_name)?,
            load: source.read("load", &figure.load, str::parse::<LoadKind>)?,
            peer: match &figure.peer {
                Some(peer) => Some(source.read("peer", peer, str::parse::<Peer>)?),
                None => None,
            },
            set: varied(source, &figure)?,
            called: figure.called,
            value: figure.value,
            half_width: figure.half_width,
        })
    };
    Ok(Published {
        source: raw.source,
        quantity,
        what: raw.what,
        remark: raw.remark,
        figures: raw
            .figures
            .into_iter()
            .map(figure)
            .collect::<Result<_, Error>>()?,
    })
}

/// The varied settings of a published figure: one value of each axis, as the axis prints it.
fn varied(source: &Source<'_>, figure: &RawFigure) -> Result<BTreeMap<String, String>, Error> {
    let line = source.line(&figure.path.span());
    let mut set = BTreeMap::new();
    for (name, value) in &figure.set {
        let wrong = |why: String| source.wrong(name, line, why);
        let axis = axis(name).map_err(|e| wrong(e.to_string()))?;
        let value = plain(value).ok_or_else(|| wrong(format!("takes {}", axis.values)))?;
        let mut axes = Axes::default();
        (axis.set)(&mut axes, &value).map_err(|e| wrong(e.to_string()))?;
        set.extend((axis.show)(&axes).map(|shown| (name.clone(), shown)));
    }
    Ok(set)
}
