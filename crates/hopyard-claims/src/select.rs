//! Which cells are meant: what a path, peer, load and axes may be.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::lab;
use crate::model::{Axes, Cell, LoadKind, Peer, axis};

/// The value of an axis that is left to the kernel or the load.
const DEFAULT: &str = "default";

/// Cells whose properties are among those listed; what is not listed may be anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    paths: Vec<String>,
    peers: Vec<Peer>,
    loads: Vec<LoadKind>,
    axes: BTreeMap<String, Vec<String>>,
}

impl Selection {
    /// Is it one of these cells?
    #[must_use]
    pub fn has(&self, cell: &Cell) -> bool {
        (self.paths.is_empty() || self.paths.contains(&cell.path))
            && (self.peers.is_empty() || self.peers.contains(&cell.peer))
            && (self.loads.is_empty() || self.loads.contains(&cell.load))
            && self.has_axes(&cell.axes, false)
    }

    /// Is it one of these, as far as it has the axes at all?
    #[must_use]
    pub fn allows(&self, cell: &Cell) -> bool {
        self.has_axes(&cell.axes, true)
    }

    fn has_axes(&self, axes: &Axes, or_absent: bool) -> bool {
        self.axes.iter().all(|(name, values)| {
            let shown = axis(name).ok().and_then(|axis| (axis.show)(axes));
            match shown {
                Some(shown) => values.contains(&shown),
                None => or_absent || values.iter().any(|value| value == DEFAULT),
            }
        })
    }

    /// Does it name that value of an axis?
    pub(super) fn asks(&self, axis: &str, value: &str) -> bool {
        let named = self.axes.get(axis);
        named.is_some_and(|values| values.iter().any(|one| one == value))
    }

    /// The paths named.
    #[must_use]
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// The same of some of its paths alone; `None` where it names none of them.
    pub(super) fn of_paths(&self, wanted: &dyn Fn(&str) -> bool) -> Option<Self> {
        let paths: Vec<String> = self
            .paths
            .iter()
            .filter(|path| wanted(path))
            .cloned()
            .collect();
        (!paths.is_empty()).then(|| Self {
            paths,
            ..self.clone()
        })
    }

    /// In words: `flows 1, 4, 16`.
    #[must_use]
    pub(crate) fn axes_in_words(&self) -> String {
        let one = |(name, values): (&String, &Vec<String>)| {
            format!("{} {}", name.replace('_', " "), values.join(", "))
        };
        self.axes.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

/// A value or a list of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    Number(i64),
    Text(String),
    List(Vec<Values>),
}

impl Values {
    fn flat(self) -> Vec<String> {
        match self {
            Self::Number(number) => vec![number.to_string()],
            Self::Text(text) => vec![text],
            Self::List(values) => values.into_iter().flat_map(Self::flat).collect(),
        }
    }
}

impl<'de> Deserialize<'de> for Selection {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let mut selection = Self::default();
        for (key, values) in BTreeMap::<String, Values>::deserialize(input)? {
            selection
                .add(&key, &values.flat())
                .map_err(|why| D::Error::custom(format!("{key}: {why}")))?;
        }
        Ok(selection)
    }
}

impl Selection {
    fn add(&mut self, key: &str, values: &[String]) -> Result<(), String> {
        fn all<T, E: std::fmt::Display>(
            values: &[String],
            read: impl Fn(&str) -> Result<T, E>,
        ) -> Result<Vec<T>, String> {
            let read = values.iter().map(|value| read(value));
            read.map(|value| value.map_err(|e| e.to_string())).collect()
        }
        match key {
            "path" => {
                self.paths = all(values, |name| {
                    lab::path(name).map(|path| path.name.to_owned())
                })?;
            }
            "peer" => self.peers = all(values, str::parse)?,
            "load" => self.loads = all(values, str::parse)?,
            name => {
                let shown = all(values, |value| shown(name, value))?;
                self.axes.insert(name.to_owned(), shown);
            }
        }
        Ok(())
    }
}

/// A value of an axis as the axis shows it.
fn shown(name: &str, value: &str) -> Result<String, String> {
    let axis = axis(name).map_err(|e| e.to_string())?;
    if value == DEFAULT {
        return Ok(value.to_owned());
    }
    let mut axes = Axes::default();
    (axis.set)(&mut axes, value).map_err(|e| e.to_string())?;
    Ok((axis.show)(&axes).unwrap_or_else(|| DEFAULT.to_owned()))
}
