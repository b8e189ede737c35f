//! V13: the cost of a kernel part by profile, compared with what leaving the part out saves.
//!
//! Leaving it out is the reference (docs/profile.md). Requests and responses are used because none is lost: the cost of
//! a packet in a flood also depends on how many packets are dropped.

use std::collections::BTreeMap;

use hopyard::lab;
use hopyard::measure::Sampler;
use hopyard::model::{Cell, LoadKind, Peer, Placement, ProfileWindow};
use hopyard::profile::subsystems::{Place, place};
use hopyard::stats::{self, Estimate, Samples};
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::bench::Bench;
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};
use crate::generation::{generation, lab_of};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V13",
    title: "profile and ablation: netfilter by its share, and by what a bridge costs less without",
    only_when_named: false,
    run,
};

const LOAD: LoadKind = LoadKind::UdpRr;
const PART: &str = "netfilter";
const CONFIDENCE: f64 = 0.95;

/// Cells by name: without netfilter, with its calls, and with a hundred rules on top.
const CELLS: [(&str, &str, u32); 3] = [
    ("bridge", "bridge", 0),
    ("bridge-nf", "bridge-nf", 0),
    ("bridge-nf with 100 rules", "bridge-nf", 100),
];

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    lab::path("bridge-nf")?.available()?;
    let mut blocks = Vec::new();
    let mut rng = bench.rng(13);
    let sampler = bench.sampler(500, 100)?;
    for _ in 0..bench.pick(20, 6) {
        blocks.push(block(&sampler, &mut rng)?);
    }
    let mut all = rows(&blocks, CELLS[0].0, CELLS[1].0)?;
    all.extend(rows(&blocks, CELLS[1].0, CELLS[2].0)?);
    Ok(all)
}

/// The three cells by turns, in labs built in random order; then a profile of each, in a lab and windows of its own.
fn block(sampler: &Sampler, rng: &mut ChaCha8Rng) -> Result<Block, Failure> {
    let mut order = CELLS;
    order.shuffle(rng);
    let asked = order.map(|(_, path, rules)| requests(path, rules));
    let quiet_cores = sampler.quiet_cores()?;
    let labs: Result<Vec<_>, Failure> =
        asked.iter().map(|cell| Ok((cell, lab_of(cell)?))).collect();
    let measured = generation(sampler, labs?, quiet_cores, rng)?;
    let mut block = BTreeMap::new();
    for (((name, ..), cell), m) in order.iter().zip(&asked).zip(&measured) {
        let shares = shares(&sampler.profile(cell)?)?;
        block.insert(*name, (cells::demand_ns(LOAD, m), shares));
    }
    Ok(block)
}

/// Cost in ns per transaction and shares of it, by cell.
type Block = BTreeMap<&'static str, (f64, BTreeMap<&'static str, f64>)>;

/// All on one CPU: this shows best what a packet costs, and nothing waits.
fn requests(path: &str, rules: u32) -> Cell {
    cells::cell(path, Peer::Local, LOAD, |axes| {
        axes.placement = Placement::Same;
        axes.rules = Some(rules);
    })
}

/// Shares of the busy samples by subsystem.
fn shares(window: &ProfileWindow) -> Result<BTreeMap<&'static str, f64>, Failure> {
    let mut shares: BTreeMap<&'static str, f64> = BTreeMap::new();
    let mut busy = 0.0;
    for (stack, samples) in window.stacks() {
        if let Place::Busy { subsystem, .. } = place(&stack) {
            *shares.entry(subsystem).or_default() += samples as f64;
            busy += samples as f64;
        }
    }
    if busy == 0.0 {
        return Err(Failure::NoFigure("a profile without a busy sample"));
    }
    for share in shares.values_mut() {
        *share /= busy;
    }
    Ok(shares)
}

/// Whether the cost that two ways of measuring find is the same: their intervals meet. Wide ones meet whatever the costs are.
fn meet(saved: &Estimate, profiled: &Estimate) -> Verdict {
    /// Largest half-width at which intervals are judged, as a share of what is saved.
    const WIDEST: f64 = 0.15;
    let half = |e: &Estimate| (e.high - e.low) / 2.0;
    if [saved, profiled]
        .iter()
        .any(|e| half(e) > WIDEST * saved.value)
    {
        return Verdict::Failed(
            "an interval is wider than ± 15 %, so it decides nothing".to_owned(),
        );
    }
    Verdict::of(profiled.low <= saved.high && saved.low <= profiled.high)
}

fn rows(blocks: &[Block], without: &str, with: &str) -> Result<Vec<Row>, Failure> {
    let cost = |block: &Block, cell| block.get(cell).map_or(f64::NAN, |(ns, _)| *ns);
    let part = |block: &Block, cell, name| {
        let share = |(ns, shares): &(f64, BTreeMap<_, f64>)| ns * shares.get(name).unwrap_or(&0.0);
        block.get(cell).map_or(f64::NAN, share)
    };
    let saved = over(blocks, |b| cost(b, with) - cost(b, without))?;
    let profiled = over(blocks, |b| part(b, with, PART) - part(b, without, PART))?;
    let unknown = over(blocks, |b| part(b, with, "unclassified") / cost(b, with))?;
    let row = |what: String, promised: String, seen: String, verdict: Verdict| Row {
        id: "V13",
        what,
        promised,
        seen,
        verdict,
    };
    let blocks = blocks.len();
    Ok(vec![
        row(
            format!(
                "netfilter of {with} by its share, less {without}; udp_rr on one CPU, {blocks} blocks"
            ),
            format!(
                "{} ns/transaction saved without it: the intervals meet",
                show(&saved)
            ),
            show(&profiled),
            meet(&saved, &profiled),
        ),
        row(
            format!("share of busy samples that belong to no subsystem, {with}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_intervals_meet_and_tell_nothing() {
        let of = |value, low, high| Estimate {
            value,
            low,
            high,
            confidence: CONFIDENCE,
            n: 20,
        };
        let saved = of(1253.0, 1180.0, 1330.0);
        assert_eq!(meet(&saved, &of(1147.0, 1053.0, 1240.0)), Verdict::Within);
        assert_eq!(meet(&saved, &of(900.0, 850.0, 950.0)), Verdict::Missed);
        let wide = of(1253.0, 649.0, 1856.0);
        for (one, other) in [(&saved, &wide), (&wide, &saved)] {
            assert!(matches!(meet(one, other), Verdict::Failed(_)));
        }
    }
}
