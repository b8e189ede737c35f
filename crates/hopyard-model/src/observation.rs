//! Observations: each sample with the value of every quantity, a row of one tidy table.

use std::collections::BTreeMap;

use super::{Cell, CellReport};

/// One sample with its figures: a row of the exported table.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The cell that was measured.
    pub cell: Cell,
    /// Block, from 0. The unit of pairing.
    pub block: u32,
    /// 0, or how often this block was repeated before.
    pub attempt: u32,
    /// Index of this sample in the order of the whole run.
    pub order: u32,
    /// When it began, ns since the run began.
    pub started_ns: u64,
    /// How long it took, building and removing the lab included, ns.
    pub took_ns: u64,
    /// Whether estimates use it. For a block that was repeated, they use the last complete attempt only.
    pub counted: bool,
    /// Why it failed, if it did.
    pub cause: Option<String>,
    /// Length of the window as the receiver saw it, ns.
    pub window_ns: Option<u64>,
    /// Result of the path proof.
    pub way_proved: Option<bool>,
    /// Name of the quantity (with its unit) → value; what was not measured is absent.
    pub values: BTreeMap<&'static str, f64>,
}

impl Observation {
    /// Whether it is a sample of this cell.
    #[must_use]
    pub fn is_of(&self, cell: &CellReport) -> bool {
        let own = &self.cell;
        (own.load, own.peer) == (cell.load, cell.peer)
            && own.path == cell.path
            && own.axes == cell.axes
    }
}
