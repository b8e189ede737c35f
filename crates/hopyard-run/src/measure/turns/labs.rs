//! The labs of a block: the loads of a path follow one another in the same lab, with workers and connections of their own.

use std::collections::HashMap;
use std::rc::Rc;

use crate::lab::{self, Lab, LabKey};
use crate::measure::Error;
use crate::model::{Cell, LoadKind};

/// Labs that stand. To make one costs more time than to measure in it, so that a block makes each once.
#[derive(Debug, Default)]
pub struct Labs {
    standing: HashMap<LabKey, Vec<Rc<Lab>>>,
}

impl Labs {
    /// How many stand.
    #[must_use]
    pub fn len(&self) -> usize {
        self.standing.values().map(Vec::len).sum()
    }

    /// Does none stand?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all that these cells do not need.
    pub(super) fn keep_for(&mut self, cells: &[&Cell]) {
        let keys: Vec<LabKey> = cells.iter().map(|cell| LabKey::of(cell)).collect();
        self.standing.retain(|key, _| keys.contains(key));
    }

    /// A lab for a cell that no other cell is measured in at the moment: one that stands, else a new one.
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

/// A connection for each transaction leaves thousands of them behind in TIME_WAIT.
fn leaves_nothing(load: LoadKind) -> bool {
    !load.connects_anew()
}

fn build(cell: &Cell) -> Result<Lab, Error> {
    let path = lab::path(&cell.path).map_err(lab::Error::from)?;
    Ok(Lab::build(path, cell.peer, &cell.axes)?)
}

/// Has the kernel keep nothing of a connection for the next one to the same address (`tcp_metrics`: congestion window,
/// round-trip time), so that each begins as in a new lab.
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
