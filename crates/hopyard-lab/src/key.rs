//! What tells labs apart.

use crate::model::{Axes, Cell, Peer};

/// What decides which lab a cell needs: cells with the same key have the same lab.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LabKey {
    path: String,
    peer: Peer,
    axes: Axes,
}

impl LabKey {
    /// That of a cell.
    #[must_use]
    pub fn of(cell: &Cell) -> Self {
        Self {
            path: cell.path.clone(),
            peer: cell.peer,
            axes: cell.axes.of_lab(),
        }
    }
}
