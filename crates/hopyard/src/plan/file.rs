//! A plan as a TOML file: every error names file, line and key.

use std::ops::Range;
use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::published::{self, published};
use super::{Part, Paths, Plan};
use crate::lab;
use crate::model::{Axes, AxisError, Base, LoadKind, Peer, WINDOW, axis};
use crate::units;

/// What can be wrong with a plan's text.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is neither a plan nor a file of such a name.
    #[error("there is no plan `{name}`: choose {choices}, or name a .toml file")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// Names of all plans, for people.
        choices: String,
    },
    /// The file cannot be read.
    #[error("cannot read the plan {file}")]
    Read {
        /// Path of the file.
        file: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is not TOML, or has a key that plans do not have.
    #[error("{file}: {message}")]
    Toml {
        /// Name of the file or plan.
        file: String,
        /// The parser's words, with line, column and key.
        message: String,
    },
    /// A value is not one.
    #[error("{file}:{line}: {key}: {why}")]
    Value {
        /// Name of the file or plan.
        file: String,
        /// The line, from 1.
        line: usize,
        /// Key whose value is wrong.
        key: String,
        /// What is wrong with it, and what would be right.
        why: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: String,
    summary: String,
    paths: Vec<Spanned<String>>,
    peers: Vec<Spanned<String>>,
    loads: Vec<Spanned<String>>,
    #[serde(default)]
    set: toml::map::Map<String, toml::Value>,
    /// Parts that differ from what stands above; without any, that is the only one.
    #[serde(default)]
    cells: Vec<RawPart>,
    base: Option<Spanned<String>>,
    window: Spanned<String>,
    warm_up: Spanned<String>,
    blocks: Spanned<String>,
    half_width: Spanned<String>,
    confidence: Spanned<String>,
    margin: Spanned<String>,
    time_limit: Option<Spanned<String>>,
    turns: Option<bool>,
    #[serde(default)]
    published: Vec<published::Raw>,
}

/// `[[cells]]`: what it leaves out is as at the top.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPart {
    paths: Option<Vec<Spanned<String>>>,
    peers: Option<Vec<Spanned<String>>>,
    loads: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    set: toml::map::Map<String, toml::Value>,
}

pub(super) struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        self.text
            .as_bytes()
            .iter()
            .take(span.start)
            .filter(|b| **b == b'\n')
            .count()
            + 1
    }

    pub(super) fn read<T, E: std::fmt::Display>(
        &self,
        key: &str,
        value: &Spanned<String>,
        reader: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, Error> {
        reader(value.get_ref())
            .map_err(|e| self.wrong(key, self.line(&value.span()), e.to_string()))
    }

    fn read_all<T, E: std::fmt::Display>(
        &self,
        key: &str,
        values: &[Spanned<String>],
        reader: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Vec<T>, Error> {
        if values.is_empty() {
            return Err(self.wrong(key, self.line_of_key(key), "an empty list".to_owned()));
        }
        values
            .iter()
            .map(|value| self.read(key, value, &reader))
            .collect()
    }

    pub(super) fn wrong(&self, key: &str, line: usize, why: String) -> Error {
        Error::Value {
            file: self.file.to_owned(),
            line,
            key: key.to_owned(),
            why,
        }
    }

    /// The line on which a key is set; 1 where it cannot be found.
    fn line_of_key(&self, key: &str) -> usize {
        let sets_it = |line: &str| {
            line.trim_start()
                .strip_prefix(key)
                .is_some_and(|rest| rest.trim_start().starts_with('='))
        };
        self.text.lines().position(sets_it).map_or(1, |n| n + 1)
    }
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

/// Shortest time limit: a run begins with a window in which nothing runs, and anything shorter would measure nothing.
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

/// A path's name, or `all`.
pub(super) fn path_name(text: &str) -> Result<String, crate::model::UnknownName> {
    if text == "all" {
        Ok(text.to_owned())
    } else {
        lab::path(text).map(|p| p.name().to_owned())
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
        Base::Path(path) => lab::path(path)?.name().to_owned(),
    })
}

/// Reads a plan.
///
/// # Errors
/// Anything wrong with it, with file, line and key.
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
        settings: None,
        fail_on: None,
        needs: Vec::new(),
        window: source.read("window", &raw.window, window)?,
        warm_up: source.read("warm_up", &raw.warm_up, warm_up)?,
        turns: raw.turns.unwrap_or(true),
        decide: None,
        blocks: source.read("blocks", &raw.blocks, str::parse)?,
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

/// The whole plan, or each of its `[[cells]]` with what it leaves out from the top.
fn parts(source: &Source<'_>, raw: &Raw) -> Result<Vec<Part>, Error> {
    let paths = |names: &[Spanned<String>]| {
        let names = source.read_all("paths", names, path_name)?;
        Ok(Paths::from_names(&names))
    };
    let peers = |names: &[Spanned<String>]| source.read_all("peers", names, str::parse::<Peer>);
    let loads = |names: &[Spanned<String>]| source.read_all("loads", names, str::parse::<LoadKind>);
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
        for (axis, values) in sets(source, &own.set)? {
            part.set(&axis, &values);
        }
        parts.push(part);
    }
    if parts.is_empty() {
        parts.push(top);
    }
    Ok(parts)
}

/// `[set]`: axis = value, or axis = [values]; numbers and texts.
fn sets(
    source: &Source<'_>,
    raw: &toml::map::Map<String, toml::Value>,
) -> Result<Vec<(String, Vec<String>)>, Error> {
    let mut sets = Vec::new();
    for (key, value) in raw {
        let line = source.line_of_key(key);
        let axis = axis(key).map_err(|e| source.wrong(key, line, e.to_string()))?;
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
        for value in &values {
            (axis.set)(&mut Axes::default(), value)
                .map_err(|e| source.wrong(key, line, e.to_string()))?;
        }
        sets.push((key.clone(), values));
    }
    Ok(sets)
}

/// A number or text of TOML, as axes read it.
pub(super) fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
