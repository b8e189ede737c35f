//! Offloads by device, if they were switched device by device.

use std::collections::BTreeSet;

use crate::document::{Block, headed};
use crate::model::{CellReport, RunReport, grouped};
use crate::plain;

/// For each path, peer and switches: the flags by which devices differ, with the devices in each state.
pub(crate) fn blocks(report: &RunReport) -> Vec<Block> {
    let mut sentences: Vec<String> = Vec::new();
    for cell in &report.cells {
        sentences.extend(sentence(cell).filter(|said| !sentences.contains(said)));
    }
    headed("Offloads, device by device", sentences)
}

fn sentence(cell: &CellReport) -> Option<String> {
    let asked = cell.axes.device_offload.as_ref()?;
    let names: BTreeSet<&String> = cell
        .offloads_by_device
        .iter()
        .flat_map(|device| device.flags.keys())
        .collect();
    let flags: Vec<String> = names
        .into_iter()
        .filter_map(|flag| states(cell, flag))
        .collect();
    (!flags.is_empty()).then(|| {
        let place = format!("{} · {} · {asked}", plain::line(&cell.path), cell.peer);
        format!("{place}: {}", flags.join("; "))
    })
}

/// `gro off at hub/br0, on at a/eth0, b/eth0`; `None` if all devices are alike.
fn states(cell: &CellReport, flag: &str) -> Option<String> {
    let mut by_state = grouped(cell.offloads_by_device.iter().filter_map(|device| {
        let name = plain::line(&format!("{}/{}", device.namespace, device.name));
        Some((device.flags.get(flag)?, name))
    }));
    // The state that few devices have is the one that was switched.
    by_state.sort_by_key(|(_, names)| names.len());
    let said = by_state
        .iter()
        .map(|(state, names)| format!("{} at {}", plain::line(state), names.join(", ")));
    (by_state.len() > 1).then(|| {
        format!(
            "{} {}",
            plain::line(flag),
            said.collect::<Vec<_>>().join(", ")
        )
    })
}
