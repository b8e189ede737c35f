//! Sweeps of offloads.

use super::{measured, push, run};
use crate::model::stored::Run;
use crate::model::{
    Axes, FixedOffload, LoadKind, OffloadChange, OffloadCombination, OffloadFlag, OffloadSurvey,
    Outcome, Peer, Switch,
};
use crate::offload_changes;
use OffloadFlag::{Gro, Gso, Lro, Tso, TxChecksum};

/// The speed of a combination: from the flags that are off to the factor on goodput.
pub type Speed = fn(&[OffloadFlag]) -> f64;

/// The flags that are off, if these can be changed, on a kernel where TSO needs checksums.
fn off(flags: &[OffloadFlag], change: &OffloadChange) -> Vec<OffloadFlag> {
    let asked = |flag| change.flags.contains(&flag) == (change.rest == Switch::On);
    let is_off = |flag: &&OffloadFlag| {
        asked(**flag) || **flag == Tso && flags.contains(&TxChecksum) && asked(TxChecksum)
    };
    flags.iter().filter(is_off).copied().collect()
}

fn survey(flags: &[OffloadFlag]) -> OffloadSurvey {
    let mut combinations: Vec<OffloadCombination> = Vec::new();
    for change in offload_changes(flags) {
        let changed = off(flags, &change);
        let same = combinations
            .iter()
            .find(|c| c.same_as.is_none() && c.changed == changed);
        combinations.push(OffloadCombination {
            same_as: same.map(|c| c.change.clone()),
            change,
            changed,
            refused: None,
        });
    }
    let fixed = OffloadFlag::ALL.into_iter().filter(|f| !flags.contains(f));
    OffloadSurvey {
        now: Vec::new(),
        fixed: fixed
            .map(|flag| FixedOffload {
                flag,
                state: if flag == Lro { "off" } else { "on" }.to_owned(),
            })
            .collect(),
        combinations,
    }
}

/// A sweep with `blocks` blocks of every combination, its goodput spread by `noise` around `speed`.
pub fn sweep(flags: &[OffloadFlag], blocks: u32, noise: f64, speed: Speed) -> Run {
    let survey = survey(flags);
    let mut run = run(&[]);
    let template = super::run(&["bridge"]).header.cells.remove(0);
    let (load, peer) = (LoadKind::TcpStream, Peer::Local);
    let mut factors = Vec::new();
    for combination in survey.combinations.iter().filter(|c| c.is_measured()) {
        let mut planned = template.clone();
        let axes = combination.change.with(&Axes::default());
        planned.cell.axes = axes.for_cell(load, peer, &[]);
        run.header.cells.push(planned);
        factors.push(speed(&combination.changed));
    }
    run.header.base = Some("offload".to_owned());
    run.header.offloads = Some(survey);
    for block in 0..blocks {
        for (cell, factor) in factors.iter().enumerate() {
            let turn = u32::try_from(cell).unwrap() * 3 + block * 5;
            let wobble = 1.0 + noise * (f64::from(turn % 7) - 3.0);
            let bytes = 4e8 * factor * wobble;
            push(&mut run, block, 0, cell, measured_bytes(bytes));
        }
    }
    run
}

fn measured_bytes(bytes: f64) -> Outcome {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count"
    )]
    Outcome::Measured(Box::new(measured(bytes as u64)))
}

pub const VETH: [OffloadFlag; 4] = [TxChecksum, Tso, Gso, Gro];

/// Without segmentation, GRO joins segments again.
pub fn segments(off: &[OffloadFlag]) -> f64 {
    let tso = if off.contains(&Tso) { 0.4 } else { 1.0 };
    let gro = off.contains(&Tso) && off.contains(&Gro);
    let checksum = if off.contains(&TxChecksum) { 0.9 } else { 1.0 };
    tso * if gro { 0.7 } else { 1.0 } * checksum
}
