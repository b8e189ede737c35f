//! Labs that stand side by side, each with connected ends.

use std::rc::Rc;

use super::round::Taken;
use crate::lab::{self, Lab};
use crate::measure::aux_counters::AuxCounters;
use crate::measure::ends::Ends;
use crate::measure::{Error, Sampler};
use crate::meter::devices;
use crate::model::{Cell, DeviceCount};

/// A lab with connected ends, and what became of its turns.
pub(super) struct Standing<'a> {
    pub(super) cell: &'a Cell,
    /// Before the lab: fields are dropped in this order, and a lab's control group cannot go while processes are in it.
    pub(super) ends: Ends,
    pub(super) lab: Rc<Lab>,
    /// Of the load and of switches that are programs.
    pub(super) pids: Vec<u32>,
    pub(super) devices: Vec<DeviceCount>,
    pub(super) beside: AuxCounters,
    pub(super) taken: Vec<Taken>,
}

/// A lab that stands, or what befell it.
pub(super) type Place<'a> = Result<Standing<'a>, Error>;

impl Sampler {
    /// Connects the ends of a cell's lab.
    pub(super) fn stand<'a>(&self, cell: &'a Cell, lab: Rc<Lab>) -> Place<'a> {
        let ends = self.ends(&lab, cell).map_err(|error| behind(error, &lab))?;
        let mut pids = lab.daemons();
        pids.extend(ends.pids());
        Ok(Standing {
            cell,
            devices: devices::read(lab.spaces().iter().map(|s| (s.role, &s.handle)))?,
            beside: AuxCounters::read(&lab, &[])?,
            lab,
            ends,
            pids,
            taken: Vec::new(),
        })
    }
}

/// Does something at a place that nothing befell before. What befalls it now stays there; only what ends the whole
/// generation is given back.
pub(super) fn attempt<'a, T>(
    place: &mut Place<'a>,
    work: impl FnOnce(&mut Standing<'a>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let Ok(standing) = place else {
        return Ok(None);
    };
    match work(standing) {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.is_interrupt() => Err(error),
        Err(error) => {
            let error = standing.ends.cause_of(error);
            *place = Err(behind(error, &standing.lab));
            Ok(None)
        }
    }
}

/// What lies behind a failure: a lab whose daemon died carries nothing, of which its ends can only tell that nothing arrived.
fn behind(error: Error, lab: &Lab) -> Error {
    if error.is_interrupt() {
        return error;
    }
    let death = lab.death();
    death.map_or(error, |death| lab::Error::from(death).into())
}

/// Passes an interrupt on, which ends the generation; any other error stays with its cell.
pub(super) fn interrupts_only<T>(outcome: Result<T, Error>) -> Result<Result<T, Error>, Error> {
    match outcome {
        Err(error) if error.is_interrupt() => Err(error),
        other => Ok(other),
    }
}
