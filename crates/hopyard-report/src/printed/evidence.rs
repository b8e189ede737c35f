//! The cells of a run that a printed table needs, and why others are missing.

use super::cells::Cells;
use super::file::{BaseOf, File, Stand};
use crate::assess::PER_GHZ;
use crate::model::stored::Run;
use crate::model::{
    AXES, CellReport, CellStatus, DatapathKind, OPEN_VSWITCH, Observation, RunReport,
};
use crate::quantity::EFFICIENCY;
use crate::stats::{Estimate, mean, paired_ratio};

/// A figure of this host.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// It was measured.
    Measured(Estimate),
    /// It is between the ends: a number of senders.
    Between(Estimate),
    /// It was set by the plan.
    Set(f64),
}

/// A figure, or the reason why there is none.
pub(super) type Answer<T> = Result<T, String>;

/// The data that fill tables.
pub(super) struct Evidence<'a> {
    pub(super) file: &'a File,
    /// The plan of the run.
    pub(super) stand: &'a Stand,
    pub(super) report: &'a RunReport,
    pub(super) run: &'a Run,
    pub(super) seen: &'a [Observation],
}

impl Evidence<'_> {
    /// The measured cell that matches.
    pub(super) fn cell(&self, wanted: &Cells) -> Answer<&CellReport> {
        let wanted = self.played(wanted)?;
        let mut cells = self.report.cells.iter();
        let Some(cell) = cells.find(|cell| has(cell, &wanted)) else {
            return Err(self.why_none(&wanted));
        };
        let cause = || {
            cell.cause
                .clone()
                .unwrap_or_else(|| "no cause recorded".to_owned())
        };
        match cell.status {
            _ if cell.is_measured() && is_in_user_space(cell) => Err(
                "the openvswitch kernel module is missing, and its userspace datapath does not count"
                    .to_owned(),
            ),
            _ if cell.is_unproved() => {
                Err("its path proof failed: the traffic went another way".to_owned())
            }
            _ if cell.is_measured() => Ok(cell),
            CellStatus::Unsupported => Err(format!("not on this machine: {}", cause())),
            CellStatus::Failed | CellStatus::Ok => Err(format!("it failed: {}", cause())),
        }
    }

    /// The selection without an axis that the plan's cells represent.
    fn played(&self, wanted: &Cells) -> Answer<Cells> {
        let mut wanted = wanted.clone();
        let Some(plays) = &self.stand.plays else {
            return Ok(wanted);
        };
        let asked = wanted.set.remove(&plays.axis);
        let Some(cpus) = asked.and_then(|value| value.parse::<u32>().ok()) else {
            return Ok(wanted);
        };
        let own = self.report.run.environment.cpus;
        if cpus == plays.value {
            return Ok(wanted);
        }
        Err(if cpus > own {
            format!("takes {cpus} CPUs; this machine has {own}")
        } else {
            format!(
                "this plan plays {} of {} CPUs and no other; `hopyard run {}` has others",
                plays.what, plays.value, plays.otherwise
            )
        })
    }

    /// Why no cell matches.
    fn why_none(&self, wanted: &Cells) -> String {
        let path = wanted.path.as_deref().unwrap_or("the path");
        let of_path = |cell: &&CellReport| wanted.path.as_ref().is_none_or(|p| *p == cell.path);
        let cells: Vec<&CellReport> = self.report.cells.iter().filter(of_path).collect();
        if cells.is_empty() {
            let left_out = &self.run.header.left_out;
            let reason = left_out.iter().find(|(name, _)| name == path);
            return match reason {
                Some((_, why)) => format!("{path} was left out: {why}"),
                None => format!("{path} is not in this run"),
            };
        }
        let kinds = cells.iter().filter(|cell| {
            wanted.load.is_none_or(|load| load == cell.load)
                && wanted.peer.is_none_or(|peer| peer == cell.peer)
        });
        let kinds: Vec<&CellReport> = kinds.copied().collect();
        if kinds.is_empty() {
            let load = wanted.load.map(|load| load.to_string());
            let peer = wanted.peer.map(|peer| peer.to_string());
            let words: Vec<String> = load.into_iter().chain(peer).collect();
            return format!("{path} {} is not in this run", words.join(" "));
        }
        let absent = wanted.set.iter().find(|(name, value)| {
            let is = |cell: &&CellReport| value_of(cell, name).as_ref() == Some(value);
            !kinds.iter().any(is)
        });
        match absent {
            Some((name, value)) => format!("{name}={value} is not in this run"),
            None => "this combination is not in this run".to_owned(),
        }
    }

    /// A quantity of a cell over that of the cell on the base, paired within blocks.
    pub(super) fn over_base(&self, name: &str, wanted: &Cells, base: &BaseOf) -> Option<Estimate> {
        let cell = self.cell(wanted).ok()?;
        let other = self.cell(&wanted.clone().with(&base.cells)).ok()?;
        let judged = crate::published::verdict(cell, name);
        if let Some(judged) = judged.filter(|judged| judged.base == base.text()) {
            return Some(judged.ratio.clone());
        }
        let name = if name == PER_GHZ { EFFICIENCY } else { name };
        let blocks = 0..=self.seen.iter().map(|o| o.block).max()?;
        let pairs = blocks.filter_map(|block| {
            Some((
                self.in_block(cell, name, block)?,
                self.in_block(other, name, block)?,
            ))
        });
        let (own, others): (Vec<f64>, Vec<f64>) = pairs.unzip();
        paired_ratio(&own, &others, self.report.run.confidence)
    }

    /// The value of a quantity in a block; the mean, if the cell had several turns.
    pub(super) fn in_block(&self, cell: &CellReport, name: &str, block: u32) -> Option<f64> {
        let own = |o: &&Observation| o.counted && o.block == block && o.is_of(cell);
        let values: Vec<f64> = self
            .seen
            .iter()
            .filter(own)
            .filter_map(|o| o.values.get(name).copied())
            .collect();
        mean(&values)
    }
}

pub(super) fn has(cell: &CellReport, wanted: &Cells) -> bool {
    wanted.path.as_ref().is_none_or(|path| *path == cell.path)
        && wanted.load.is_none_or(|load| load == cell.load)
        && wanted.peer.is_none_or(|peer| peer == cell.peer)
        && (wanted.set.iter()).all(|(name, value)| value_of(cell, name).as_ref() == Some(value))
}

fn value_of(cell: &CellReport, name: &str) -> Option<String> {
    let axis = AXES.iter().find(|axis| axis.name == name)?;
    (axis.show)(&cell.axes)
}

/// Open vSwitch in user space does not count: no report had it.
fn is_in_user_space(cell: &CellReport) -> bool {
    let datapath = cell.datapath.as_ref();
    datapath.is_some_and(|d| d.kind == DatapathKind::Userspace && d.switch == OPEN_VSWITCH)
}

pub(super) fn scaled(estimate: &Estimate, factor: f64) -> Estimate {
    Estimate {
        value: estimate.value * factor,
        low: estimate.low * factor,
        high: estimate.high * factor,
        ..estimate.clone()
    }
}
