//! Cells: one combination of path, peer, load and axis values.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Axes, LoadKind, Peer};

/// One combination of path, peer, load and axis values; the unit that is measured and compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Name of the path.
    pub path: String,
    /// Where the other end is.
    pub peer: Peer,
    /// The load.
    pub load: LoadKind,
    /// The values of every axis that matters for this load.
    pub axes: Axes,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.path, self.peer, self.load)
    }
}
