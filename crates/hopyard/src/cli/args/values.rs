//! Parsers of arguments, which check values early.

use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::model::{Feature, UnknownName, as_axis};
use crate::report::{EXPORTS, Export, export};

pub(super) fn base(text: &str) -> Result<String, String> {
    crate::plan::base(text).map_err(|e| e.to_string())
}

/// A command for `sh -c`.
pub(super) fn command(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("the command is empty: give `true` to change nothing".to_owned());
    }
    Ok(text.to_owned())
}

/// `--need`: something that a path must offer, or `none`, which removes the needs of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Nothing,
    Of(Feature),
}

impl FromStr for Need {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        match text {
            "none" => Ok(Self::Nothing),
            name => name.parse().map(Self::Of),
        }
    }
}

impl Need {
    /// The needs; `None` without the option.
    pub(crate) fn all(asked: &[Self]) -> Result<Option<Vec<Feature>>, String> {
        let of = |need: &Self| match need {
            Self::Nothing => None,
            Self::Of(feature) => Some(*feature),
        };
        let features: Vec<Feature> = asked.iter().filter_map(of).collect();
        if !features.is_empty() && features.len() < asked.len() {
            return Err(
                "--need none cannot be combined with other needs: leave it out, or give it alone"
                    .to_owned(),
            );
        }
        Ok((!asked.is_empty()).then_some(features))
    }
}

/// `--format`: the name of a format that has a certain part, such as a writer of comparisons; returns that part.
/// Choices and help come from the formats' descriptors.
pub(crate) fn format<T: Clone + Send + Sync + 'static>(
    part: fn(&'static Export) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    let offered = EXPORTS.iter().filter(|export| part(export).is_some());
    let choices = offered.map(|export| PossibleValue::new(export.name).help(export.summary));
    PossibleValuesParser::new(choices).try_map(move |name| {
        let format = export(&name).map_err(|error| error.to_string())?;
        part(format).ok_or_else(|| format!("this cannot be written as {}", format.title))
    })
}

/// `AXIS=v1,v2`, or `FLAG@DEVICE=v1,v2`.
pub(super) fn axis_values(text: &str) -> Result<(String, Vec<String>), String> {
    let (written, values) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not of the form AXIS=VALUE"))?;
    let (name, _) = as_axis(written.trim(), "");
    let axis = crate::model::axis(&name).map_err(|e| e.to_string())?;
    let mut all = Vec::new();
    for value in values.split(',').map(str::trim) {
        let (_, whole) = as_axis(written.trim(), value);
        if let Err(error) = (axis.set)(&mut crate::model::Axes::default(), &whole) {
            // Only values of device switches contain `=` themselves.
            let is_whole = axis.values.contains('=') && axis.name == written.trim();
            return Err(if value.contains('=') && !is_whole {
                format!("give each axis with a --set of its own: --set {value}")
            } else {
                error.to_string()
            });
        }
        all.push(whole);
    }
    Ok((axis.name.to_owned(), all))
}

/// `on` or `off`.
pub(super) fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{text}` is neither on nor off")),
    }
}
