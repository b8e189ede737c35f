//! V13: what a profile says a part of the kernel costs, beside what leaving the part out saves.
//!
//! Leaving out is the authority (docs/profile.md). The two need not be the same: what netfilter calls in other
//! subsystems is theirs in a profile, and goes with it when it is left out.

use std::collections::BTreeMap;

use hopyard::lab;
use hopyard::model::{Cell, LoadKind, Peer, Placement, ProfileWindow};
use hopyard::profile::subsystems::{Place, place};
use hopyard::stats::{self, Estimate, Samples};
use rand::seq::SliceRandom;

use crate::bench::{Bench, undisturbed};
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) struct ProfileAblation;

const PATHS: [&str; 2] = ["bridge", "bridge-nf"];
const CONFIDENCE: f64 = 0.95;

impl Experiment for ProfileAblation {
    fn id(&self) -> &'static str {
        "V13"
    }

    fn title(&self) -> &'static str {
        "profile and ablation: netfilter's share of bridge-nf, and what bridge costs less"
    }

    fn run(&self, bench: &Bench) -> Result<Vec<Row>, Failure> {
        lab::path("bridge-nf")?.available()?;
        let mut blocks = Vec::new();
        let mut rng = bench.rng(13);
        let sampler = bench.sampler(500, 100)?;
        for _ in 0..bench.pick(20, 6) {
            let mut order = PATHS;
            order.shuffle(&mut rng);
            let quiet_cores = sampler.quiet_cores()?;
            let mut block = BTreeMap::new();
            for path in order {
                let cell = flood(path);
                let m = undisturbed(&sampler, &cell, quiet_cores, 0.0)?;
                let shares = shares(&sampler.profile(&cell)?);
                let cost_ns = cells::demand_ns(LoadKind::UdpStream, &m);
                block.insert(path, (cost_ns, shares));
            }
            blocks.push(block);
        }
        rows(&blocks)
    }
}

/// Cost in ns per packet and shares of it, by path.
type Block = BTreeMap<&'static str, (f64, BTreeMap<&'static str, f64>)>;

/// Small datagrams, all on one CPU: what a packet costs shows best, and nothing waits.
fn flood(path: &str) -> Cell {
    cells::cell(path, Peer::Local, LoadKind::UdpStream, |axes| {
        axes.placement = Placement::Same;
        axes.message_size_bytes = Some(64);
    })
}

/// Shares of the busy samples by subsystem.
fn shares(window: &ProfileWindow) -> BTreeMap<&'static str, f64> {
    let mut shares: BTreeMap<&'static str, f64> = BTreeMap::new();
    let mut busy = 0.0;
    for (stack, samples) in window.stacks() {
        if let Place::Busy { subsystem, .. } = place(&stack) {
            *shares.entry(subsystem).or_default() += samples as f64;
            busy += samples as f64;
        }
    }
    for share in shares.values_mut() {
        *share /= busy;
    }
    shares
}

fn rows(blocks: &[Block]) -> Result<Vec<Row>, Failure> {
    let cost = |block: &Block, path| block.get(path).map_or(f64::NAN, |(ns, _)| *ns);
    let part = |block: &Block, path, name| {
        let share = |(ns, shares): &(f64, BTreeMap<_, f64>)| ns * shares.get(name).unwrap_or(&0.0);
        block.get(path).map_or(f64::NAN, share)
    };
    let [without, with] = PATHS;
    let removed = over(blocks, |b| cost(b, with) - cost(b, without))?;
    let netfilter = over(blocks, |b| {
        part(b, with, "netfilter") - part(b, without, "netfilter")
    })?;
    let whole = over(blocks, |b| part(b, with, "netfilter"))?;
    let unknown = over(blocks, |b| part(b, with, "unclassified") / cost(b, with))?;
    let row = |what: &str, promised: String, seen: String, verdict| Row {
        id: "V13",
        what: format!(
            "{what}, udp_stream 64 B on one CPU, {} blocks",
            blocks.len()
        ),
        promised,
        seen,
        verdict,
    };
    Ok(vec![
        row(
            "netfilter's ns/packet by the profile, bridge-nf less bridge",
            format!("{} by leaving it out", show(&removed)),
            format!("{}; {} in bridge-nf alone", show(&netfilter), show(&whole)),
            Verdict::Stated,
        ),
        row(
            "share of busy samples that belong to no subsystem, bridge-nf",
            "less than 5 %".to_owned(),
            format!("{:.2} %", unknown.value * 100.0),
            Verdict::of(unknown.value < 0.05),
        ),
    ])
}

fn over(blocks: &[Block], of: impl Fn(&Block) -> f64) -> Result<Estimate, Failure> {
    let values: Vec<f64> = blocks.iter().map(of).collect();
    Samples::try_from(values)
        .ok()
        .and_then(|values| stats::mean_interval(&values, CONFIDENCE))
        .ok_or(Failure::NoFigure("a profile"))
}

fn show(e: &Estimate) -> String {
    format!("{:.0} ({:.0} to {:.0})", e.value, e.low, e.high)
}
