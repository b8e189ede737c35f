//! Machines and clocks of endpoints elsewhere, over all samples of a cell.

use std::collections::BTreeMap;

use super::count;
use crate::model::{ClocksCompared, ClocksReport, CpuUse, EndsOn, Measurement};

/// The least precise knowledge of the clocks.
pub(super) fn clocks(measured: &[&Measurement]) -> Option<ClocksReport> {
    let all: Vec<ClocksCompared> = measured.iter().filter_map(|m| m.clocks).collect();
    let most = |of: fn(&ClocksCompared) -> u64| all.iter().map(of).max();
    let told: Vec<bool> = all.iter().filter_map(|c| c.one_way_told).collect();
    Some(ClocksReport {
        bound_ns: most(|c| c.bound_ns)?,
        drift_ns: most(|c| c.drift_ns.unsigned_abs())?,
        edges_within_ns: most(|c| c.edges_within_ns)?,
        one_way_samples: (!told.is_empty())
            .then(|| (count(told.iter().filter(|told| **told)), count(told.iter()))),
    })
}

/// Steal on each machine.
pub(super) fn steal(measured: &[&Measurement]) -> BTreeMap<String, f64> {
    let ends = [
        ("client", EndsOn::Client),
        ("server", EndsOn::Server),
        ("both", EndsOn::Both),
    ];
    let of = |ends: EndsOn| {
        let machines = measured.iter().flat_map(|m| &m.machines);
        let uses = machines.filter(|m| m.ends == ends).filter_map(|m| m.cpu);
        let uses: Vec<CpuUse> = uses.collect();
        let whole: f64 = uses.iter().map(|u| u.elapsed_ns * f64::from(u.cpus)).sum();
        let stolen: f64 = uses.iter().map(|u| u.steal_ns).sum();
        (whole > 0.0).then(|| stolen / whole)
    };
    let known = ends
        .into_iter()
        .filter_map(|(name, ends)| Some((name.to_owned(), of(ends)?)));
    known.collect()
}
