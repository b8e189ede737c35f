//! What is read at a window's edges beside the load itself: the device of its data, and the CPU time of the machine.

use hopyard_model::CpuUse;

use crate::endpoint::DeviceMeter;
use crate::meter::{CpuReading, MachineMeter};

/// What to read, where somebody asked for it.
#[derive(Default, Clone, Copy)]
pub(crate) struct Beside<'a> {
    pub(crate) device: Option<&'a DeviceMeter>,
    /// Or why the CPU time of this machine cannot be read.
    pub(crate) machine: Option<&'a Result<MachineMeter, String>>,
}

/// CPU time of the machine from one edge to the other.
pub(super) struct CpuWindow<'a> {
    meter: Option<&'a Result<MachineMeter, String>>,
    opened: Option<CpuReading>,
    /// What came of it, once the window is over or cannot be read: a load does not fail for want of it.
    pub(super) used: Option<Result<CpuUse, String>>,
}

impl<'a> CpuWindow<'a> {
    pub(super) fn new(meter: Option<&'a Result<MachineMeter, String>>) -> Self {
        Self {
            meter,
            opened: None,
            used: None,
        }
    }

    /// To be called when the window opens, and when it closes.
    pub(super) fn at_edge(&mut self) {
        match (self.meter, &self.opened) {
            (None, _) => {}
            (Some(Err(why)), _) => self.used = Some(Err(why.clone())),
            (Some(Ok(meter)), Some(opened)) => self.used = Some(meter.close(opened)),
            (Some(Ok(meter)), None) => match meter.open() {
                Ok(opened) => self.opened = Some(opened),
                Err(why) => self.used = Some(Err(why)),
            },
        }
    }
}
