//! Published figures, to be shown beside measured ones.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Axes, Base, LoadKind, Peer, axis};

/// What a report published about the paths of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// Author, title, place and date.
    pub source: String,
    /// hopyard's quantity that corresponds to it.
    pub quantity: String,
    /// Meaning of the values, with their unit.
    pub what: String,
    /// What a reader must know before comparing.
    pub remark: String,
    /// The figures that were published.
    pub figures: Vec<PublishedFigure>,
}

/// One published figure, with the cell that it is compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PublishedFigure {
    /// The path that corresponds to what was measured then.
    pub path: String,
    /// The load that corresponds to it.
    pub load: LoadKind,
    /// The peer, if figures differ by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
    /// Axis → value, as axes show it, for what was varied.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Its name in the report.
    pub called: String,
    /// In the unit of [`Published::what`].
    pub value: f64,
    /// Half-width of its interval, if one was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_width: Option<f64>,
}

impl PublishedFigure {
    /// Whether it belongs to such a cell.
    #[must_use]
    pub fn is_of(&self, (path, peer, load): (&str, Peer, LoadKind), axes: &Axes) -> bool {
        let varied = |(name, value): (&String, &String)| {
            axis(name).is_ok_and(|axis| (axis.show)(axes).as_ref() == Some(value))
        };
        let with = self.peer.is_none_or(|with| with == peer);
        self.path == path && self.load == load && with && self.set.iter().all(varied)
    }

    /// Whether others are compared with it.
    #[must_use]
    pub fn is_base(&self, base: &Base<'_>) -> bool {
        match base {
            Base::Path(path) => self.path == *path,
            Base::Value(axis, value) => self.set.get(axis.name).is_some_and(|v| v == value),
            Base::Offload => false,
        }
    }

    /// Whether `other` is compared with it.
    #[must_use]
    pub fn is_base_of(&self, other: &Self, base: &Base<'_>) -> bool {
        let mut theirs = other.clone();
        match base {
            Base::Path(_) => theirs.path.clone_from(&self.path),
            Base::Value(axis, value) => {
                theirs.set.insert(axis.name.to_owned(), (*value).to_owned());
            }
            Base::Offload => return false,
        }
        let place = |f: &Self| (f.path.clone(), f.load, f.peer, f.set.clone());
        self.is_base(base) && place(self) == place(&theirs)
    }
}
