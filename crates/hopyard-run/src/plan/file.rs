//! A plan as a TOML file: every error names file, line and key.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::endpoints;
use super::published::{self, published};
use super::source::{Error, Source, path_name, plain};
use super::{Part, Paths, Plan};
use crate::lab;
use crate::model::{
    Axes, AxisError, Base, Blocks, LoadKind, Peer, WINDOW, as_axis, axis, together,
};
use crate::profile;
use crate::units;

/// `[set]`, with where each axis is named.
type Set = BTreeMap<Spanned<String>, toml::Value>;

/// A list of names, with where it begins.
type Names = Spanned<Vec<Spanned<String>>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: String,
    summary: String,
    paths: Names,
    peers: Names,
    loads: Names,
    #[serde(default)]
    set: Set,
    /// Parts that differ from the values at the top; without any, those are the only part.
    #[serde(default)]
    cells: Vec<RawPart>,
    base: Option<Spanned<String>>,
    window: Spanned<String>,
    warm_up: Spanned<String>,
    profile_window: Option<Spanned<String>>,
    blocks: Spanned<toml::Value>,
    half_width: Spanned<String>,
    confidence: Spanned<String>,
    margin: Spanned<String>,
    time_limit: Option<Spanned<String>>,
    turns: Option<bool>,
    /// Whether paths that this host cannot build are left out.
    #[serde(default)]
    where_installed: bool,
    #[serde(default)]
    endpoint: Option<endpoints::Raw>,
    #[serde(default)]
    published: Vec<published::Raw>,
}

/// `[[cells]]`: missing keys have the values at the top.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPart {
    paths: Option<Names>,
    peers: Option<Names>,
    loads: Option<Names>,
    #[serde(default)]
    set: Set,
}

/// A window's length within its bounds.
///
/// # Errors
/// Not a time, or out of bounds.
pub fn window(text: &str) -> Result<Duration, String> {
    let window = units::parse_duration(text).map_err(|e| e.to_string())?;
    if WINDOW.contains(&window) {
        Ok(window)
    } else {
        Err(format!(
            "a window of {text} is out of bounds: from 50ms to 10m"
        ))
    }
}

/// Length of a profile's window within its bounds.
fn profile_window(text: &str) -> Result<Duration, String> {
    let window = units::parse_duration(text).map_err(|e| e.to_string())?;
    if profile::WINDOW.contains(&window) {
        Ok(window)
    } else {
        Err(format!(
            "a profile's window of {text} is out of bounds: from 500ms to 5s"
        ))
    }
}

/// Traffic before a window: none, or as much as the longest window has.
///
/// # Errors
/// Not a time, or out of bounds.
pub fn warm_up(text: &str) -> Result<Duration, String> {
    let warm_up = units::parse_duration(text).map_err(|e| e.to_string())?;
    if warm_up <= *WINDOW.end() {
        Ok(warm_up)
    } else {
        Err(format!(
            "a warm-up of {text} is out of bounds: from 0s to 10m"
        ))
    }
}

/// Shortest time limit: a run begins with a window in which nothing runs, so a shorter one would measure nothing.
const LEAST_TIME: Duration = Duration::from_millis(500);

/// How long a run may take.
///
/// # Errors
/// Not a time, or too short to measure anything.
pub fn time_limit(text: &str) -> Result<Duration, String> {
    let limit = units::parse_duration(text).map_err(|e| e.to_string())?;
    if limit >= LEAST_TIME {
        Ok(limit)
    } else {
        Err(format!(
            "a time limit of {text} is out of bounds: from 500ms, since less measures nothing"
        ))
    }
}

/// What others are compared with: a path, `AXIS=VALUE`, or `offload`.
///
/// # Errors
/// There is no such path, axis or value.
pub fn base(text: &str) -> Result<String, AxisError> {
    Ok(match Base::parse(text)? {
        Base::Value(axis, value) => format!("{}={value}", axis.name),
        Base::Offload => Base::OFFLOAD.to_owned(),
        Base::Path(path) => lab::path(path)?.name.to_owned(),
    })
}

/// Reads a plan.
///
/// # Errors
/// Any mistake in it, with file, line and key.
pub fn parse(file: &str, text: &str) -> Result<Plan, Error> {
    let raw: Raw = toml::from_str(text).map_err(|e: toml::de::Error| Error::Toml {
        file: file.to_owned(),
        message: e.to_string().trim_end().to_owned(),
    })?;
    let source = Source { file, text };
    Ok(Plan {
        parts: parts(&source, &raw)?,
        base: raw
            .base
            .as_ref()
            .map(|b| source.read("base", b, base))
            .transpose()?,
        base_asked: false,
        limit_asked: false,
        settings: None,
        endpoints: raw
            .endpoint
            .as_ref()
            .map(|raw| endpoints::endpoints(&source, raw))
            .transpose()?,
        fail_on: None,
        needs: Vec::new(),
        window: source.read("window", &raw.window, window)?,
        warm_up: source.read("warm_up", &raw.warm_up, warm_up)?,
        profile_window: raw
            .profile_window
            .as_ref()
            .map(|t| source.read("profile_window", t, profile_window))
            .transpose()?,
        turns: raw.turns.unwrap_or(true),
        where_installed: raw.where_installed,
        keep_awake: false,
        decide: None,
        blocks: blocks(&source, &raw.blocks)?,
        half_width: source.read("half_width", &raw.half_width, units::parse_half_width)?,
        confidence: source.read("confidence", &raw.confidence, units::parse_confidence)?,
        margin: source.read("margin", &raw.margin, units::parse_margin)?,
        time_limit: raw
            .time_limit
            .as_ref()
            .map(|t| source.read("time_limit", t, time_limit))
            .transpose()?,
        published: raw
            .published
            .into_iter()
            .map(|p| published(&source, p))
            .collect::<Result<_, Error>>()?,
        name: raw.name,
        summary: raw.summary,
    })
}

/// A range, or a number, with quotes or without.
fn blocks(source: &Source<'_>, value: &Spanned<toml::Value>) -> Result<Blocks, Error> {
    let wrong = |why: String| source.wrong("blocks", source.line(&value.span()), why);
    let text = plain(value.get_ref());
    let text =
        text.ok_or_else(|| wrong("neither a range such as \"8..16\" nor a number".to_owned()))?;
    text.parse::<Blocks>()
        .map_err(|error| wrong(error.to_string()))
}

/// The whole plan, or each of its `[[cells]]` with missing keys from the top.
fn parts(source: &Source<'_>, raw: &Raw) -> Result<Vec<Part>, Error> {
    let paths = |names: &Names| {
        let names = source.read_all("paths", names, path_name)?;
        Ok(Paths::from_names(&names))
    };
    let peers = |names: &Names| source.read_all("peers", names, str::parse::<Peer>);
    let loads = |names: &Names| source.read_all("loads", names, str::parse::<LoadKind>);
    let top = Part {
        paths: paths(&raw.paths)?,
        peers: peers(&raw.peers)?,
        loads: loads(&raw.loads)?,
        set: sets(source, &raw.set)?,
    };
    let mut parts = Vec::new();
    for own in &raw.cells {
        let mut part = top.clone();
        if let Some(names) = &own.paths {
            part.paths = paths(names)?;
        }
        if let Some(names) = &own.peers {
            part.peers = peers(names)?;
        }
        if let Some(names) = &own.loads {
            part.loads = loads(names)?;
        }
        for (axis, values) in sets(source, &with_switches(&raw.set, &own.set))? {
            part.set(&axis, &values);
        }
        parts.push(part);
    }
    if parts.is_empty() {
        parts.push(top);
    }
    Ok(parts)
}

/// What a part sets, and the switches of single devices at the top that it does not name: all of these are one axis.
fn with_switches(top: &Set, own: &Set) -> Set {
    let is_switch = |key: &Spanned<String>| as_axis(key.get_ref(), "").0 != *key.get_ref();
    let mut all = own.clone();
    if own.keys().any(is_switch) {
        let others = top.iter().filter(|(key, _)| is_switch(key));
        let others = others.filter(|(key, _)| !own.contains_key(key.get_ref().as_str()));
        all.extend(others.map(|(key, value)| (key.clone(), value.clone())));
    }
    all
}

/// `[set]`: axis = value, or axis = [values]; numbers and texts.
fn sets(source: &Source<'_>, raw: &Set) -> Result<Vec<(String, Vec<String>)>, Error> {
    let mut sets = Vec::new();
    for (key, value) in raw {
        let (line, key) = (source.line(&key.span()), key.get_ref());
        // The key may be a switch of one device.
        let (name, _) = as_axis(key, "");
        let axis = axis(&name).map_err(|e| source.wrong(key, line, e.to_string()))?;
        let values = match value {
            toml::Value::Array(values) => values.iter().map(plain).collect::<Option<Vec<_>>>(),
            one => plain(one).map(|one| vec![one]),
        };
        let values = values.filter(|v| !v.is_empty()).ok_or_else(|| {
            source.wrong(
                key,
                line,
                format!("takes {}, or a list of them", axis.values),
            )
        })?;
        let values: Vec<String> = values.iter().map(|value| as_axis(key, value).1).collect();
        for value in &values {
            (axis.set)(&mut Axes::default(), value)
                .map_err(|e| source.wrong(key, line, e.to_string()))?;
        }
        sets.push((name, values));
    }
    Ok(together(&sets))
}

#[cfg(test)]
mod tests;
