//! Selection of cells: path, load, peer, and values of axes.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::model::{Axes, AxisError, LoadKind, Peer, axis};

/// What the cells have in common. Values of axes are in the form that the axis prints.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cells {
    pub(super) path: Option<String>,
    pub(super) load: Option<LoadKind>,
    pub(super) peer: Option<Peer>,
    #[serde(default, deserialize_with = "settings")]
    pub(super) set: BTreeMap<String, String>,
}

impl Cells {
    /// Both selections; `other` takes precedence.
    pub(super) fn with(mut self, other: &Self) -> Self {
        self.path = other.path.clone().or(self.path);
        self.load = other.load.or(self.load);
        self.peer = other.peer.or(self.peer);
        self.set.extend(other.set.clone());
        self
    }
}

/// Axis → value, in the form that the axis prints.
pub(super) fn settings<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Value {
        Number(u64),
        Text(String),
    }
    let values = BTreeMap::<String, Value>::deserialize(input)?;
    let shown = values.into_iter().map(|(name, value)| {
        let text = match value {
            Value::Number(number) => number.to_string(),
            Value::Text(text) => text,
        };
        let value = shown(&name, &text)?;
        Ok((name, value))
    });
    let shown: Result<_, AxisError> = shown.collect();
    shown.map_err(serde::de::Error::custom)
}

/// A value in the form that its axis prints.
pub(super) fn shown(name: &str, text: &str) -> Result<String, AxisError> {
    let axis = axis(name)?;
    let mut axes = Axes::default();
    (axis.set)(&mut axes, text)?;
    Ok((axis.show)(&axes).unwrap_or_else(|| text.to_owned()))
}
