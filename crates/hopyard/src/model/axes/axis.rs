//! What an axis is.

use super::Axes;
use crate::model::{LoadKind, Peer, UnknownName};
use crate::units::NotAQuantity;

/// Why a value is not one of an axis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AxisError {
    /// Not a number, size or rate.
    #[error(transparent)]
    NotAQuantity(#[from] NotAQuantity),
    /// Not one of the names.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// Out of bounds.
    #[error("`{text}` is out of bounds: {axis} goes from {low} to {high}")]
    Bounds {
        /// The axis.
        axis: &'static str,
        /// What was asked.
        text: String,
        /// Least value.
        low: u32,
        /// Greatest value.
        high: u32,
    },
}

/// What depends on the value of an axis, beside the figures.
///
/// Every axis says so in its entry: what is tried out before a run is tried at every value that it depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decides {
    /// The lab: its devices, what they are set to, and the CPUs of its two ends.
    Lab,
    /// The lab, where the client is several processes or containers (axis `containers`); otherwise the traffic alone.
    LabOfProcesses,
    /// The size of what is sent by one call, on which the generator's own ceiling depends.
    Message,
    /// The traffic alone.
    Traffic,
}

/// One axis: how it is named, read, shown and where it applies.
pub struct Axis {
    /// Name on the command line and in plans.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// The values it takes, for people.
    pub values: &'static str,
    /// Sets it from text.
    pub set: fn(&mut Axes, &str) -> Result<(), AxisError>,
    /// Its value as text; `None` where it is left to the kernel or does not apply.
    pub show: fn(&Axes) -> Option<String>,
    /// Takes it out of a cell: absent, or its default where every cell has a value. Cells that differ in nothing else are
    /// equal then.
    pub clear: fn(&mut Axes),
    /// Does it mean anything for this load and peer?
    pub fits: fn(LoadKind, Peer) -> bool,
    /// Only paths that name it have it.
    pub of_path: bool,
    /// What depends on it.
    pub decides: Decides,
    /// Does it count something? Cells that differ in nothing else make a curve.
    pub counts: bool,
}

impl Axis {
    /// Does it mean anything for this load and peer, on a path with these axes of its `own`?
    #[must_use]
    pub fn applies(&self, load: LoadKind, peer: Peer, own: &[&str]) -> bool {
        (self.fits)(load, peer) && (!self.of_path || own.contains(&self.name))
    }
}
