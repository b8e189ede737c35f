//! Observations: each sample with what every quantity comes to in it, a row of one tidy table.

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
    /// Place of this sample in the order of the whole run.
    pub order: u32,
    /// When it began, ns since the run began.
    pub started_ns: u64,
    /// How long it took, building and tearing down included, ns.
    pub took_ns: u64,
    /// Do estimates rest on it? Of a block that was repeated, they do on the last whole attempt alone.
    pub counted: bool,
    /// Why it failed, where it did.
    pub cause: Option<String>,
    /// Length of the window as the receiver saw it, ns.
    pub window_ns: Option<u64>,
    /// Was the way proved?
    pub way_proved: Option<bool>,
    /// Name of the quantity (with its unit) → value; what was not measured is absent.
    pub values: BTreeMap<&'static str, f64>,
}

impl Observation {
    /// Is it a sample of this cell?
    #[must_use]
    pub fn is_of(&self, cell: &CellReport) -> bool {
        let own = &self.cell;
        (own.load, own.peer) == (cell.load, cell.peer)
            && own.path == cell.path
            && own.axes == cell.axes
    }
}
