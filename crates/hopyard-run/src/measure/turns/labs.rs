//! The labs of a block: the loads of a path follow one another in the same lab, with workers and connections of their own.

use std::collections::HashMap;
use std::rc::Rc;

use crate::lab::{self, Lab, LabKey};
use crate::measure::Error;
use crate::model::{Cell, LoadKind};

/// Existing labs. Building one takes longer than measuring in it, so a block builds each once.
#[derive(Debug, Default)]
pub struct Labs {
    standing: HashMap<LabKey, Vec<Rc<Lab>>>,
}

impl Labs {
    #[must_use]
    pub fn len(&self) -> usize {
        self.standing.values().map(Vec::len).sum()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all labs that these cells do not need.
    pub(super) fn keep_for(&mut self, cells: &[&Cell]) {
        let keys: Vec<LabKey> = cells.iter().map(|cell| LabKey::of(cell)).collect();
        self.standing.retain(|key, _| keys.contains(key));
    }

    /// A lab for a cell in which no other cell is being measured: an existing one, else a new one.
    pub(super) fn for_cell(&mut self, cell: &Cell) -> Result<Rc<Lab>, Error> {
        if !leaves_nothing(cell.load) {
            return Ok(Rc::new(build(cell)?));
        }
        let known = self.standing.entry(LabKey::of(cell)).or_default();
        known.retain(|lab| lab.death().is_none());
        if let Some(free) = known.iter().find(|lab| Rc::strong_count(lab) == 1) {
            return Ok(Rc::clone(free));
        }
        let lab = Rc::new(build(cell)?);
        forget_connections(&lab)?;
        known.push(Rc::clone(&lab));
        Ok(lab)
    }
}

/// Whether a load leaves no connections behind: one connection per transaction leaves thousands in TIME_WAIT.
fn leaves_nothing(load: LoadKind) -> bool {
    !load.connects_anew()
}

fn build(cell: &Cell) -> Result<Lab, Error> {
    let path = lab::path(&cell.path).map_err(lab::Error::from)?;
    Ok(Lab::build(path, cell.peer, &cell.axes)?)
}

/// Tells the kernel to keep nothing of a connection for the next one to the same address (`tcp_metrics`: congestion
/// window, round-trip time), so that each begins as in a new lab.
fn forget_connections(lab: &Lab) -> Result<(), Error> {
    const KEY: &str = "net/ipv4/tcp_no_metrics_save";
    for space in lab.spaces() {
        space
            .handle
            .set_sysctl(KEY, "1")
            .map_err(lab::Error::from)?;
    }
    Ok(())
}
