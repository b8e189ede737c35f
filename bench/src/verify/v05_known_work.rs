//! V5: the service demand grows by the known cost of work on every packet.
//!
//! A tc program spends a set time on each packet that one end or both send. The kernel's own record of the program (two
//! readings of its clock around each run) says how much it was in the same sample. The record costs something itself,
//! and so does entering the program; both are also there at level 0, so the slope does not contain them. A block has a
//! lab for each level, side by side, and the levels take turns. There is one slope per block, with the interval across
//! blocks.
//!
//! Request/response with both ends on one CPU leaves that CPU no idle time. Work at the client alone, at the server
//! alone and at both have rows of their own, so that a mean hides none of them. The ends run as `SCHED_RR`, under which
//! each runs until it waits and nobody accounts for how much it has used. Otherwise the system under test changes with
//! the work: under `SCHED_OTHER`, a woken end interrupts the other one sooner if that one has used more time, and 2 µs
//! at the client were seen as 1.8; under `SCHED_BATCH`, work at one end alone is seen as a tenth more than it is. The
//! stream is paced so that both CPUs go idle after each packet at every level. The cost of waking them varies by far
//! more than 5 µs, so the stream has more work.

use hopyard::measure::Sampler;
use hopyard::model::{Cell, LoadKind, Peer, Placement, Rate};
use hopyard::stats::{self, Estimate, Samples};
use hopyard_bench::Scheduled;
use hopyard_net::cpu::Policy;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::bench::{Bench, quiet_cores};
use crate::burn::{Burn, Ends};
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};
use crate::generation::{generation, lab_of};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V5",
    title: "a tc program spends a known time on every packet",
    only_when_named: false,
    run,
};

const LEVELS: usize = 5;
const PACKETS_PER_S: u64 = 5000;
const DATAGRAM_BYTES: u64 = 1400;
const TOLERANCE: f64 = 0.05;
const CONFIDENCE: f64 = 0.95;
/// Numbers of blocks after which the width is checked; it ends after the last one.
const LOOKS: [usize; 2] = [16, 32];
/// Half-width that leaves room for the true slope within the tolerance.
const ENOUGH: f64 = TOLERANCE / 2.0;

/// Work on a packet of request/response and of the stream, ns.
const SHORT_NS: [u64; LEVELS] = [0, 500, 1250, 2500, 5000];
const LONG_NS: [u64; LEVELS] = [0, 7000, 17_500, 35_000, 70_000];

/// A load, and the ends with work. Each end sends a packet for a unit of it, except the stream's server, which sends
/// none.
struct Trial {
    load: LoadKind,
    ends: Ends,
}

const TRIALS: [Trial; 6] = [
    Trial::new(LoadKind::UdpRr, Ends::Client),
    Trial::new(LoadKind::UdpRr, Ends::Server),
    Trial::new(LoadKind::UdpRr, Ends::Both),
    Trial::new(LoadKind::TcpRr, Ends::Client),
    Trial::new(LoadKind::TcpRr, Ends::Both),
    Trial::new(LoadKind::UdpStream, Ends::Client),
];

/// One block: for each level, the known work and the service demand, ns per unit.
#[derive(Default)]
struct Block {
    work: [f64; LEVELS],
    demand: [f64; LEVELS],
}

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let _real_time = Scheduled::new(Policy::RoundRobin)?;
    let mut rows = Vec::new();
    for (stream, trial) in (0..).zip(&TRIALS) {
        if trial.placement() == Placement::Split
            && let Err(why) = bench.two_cpus()
        {
            let verdict = Verdict::CannotRun(why.to_string());
            rows.push(Row::without_figures("V5", trial.load.to_string(), verdict));
            continue;
        }
        rows.extend(trial.rows(&trial.blocks(bench, stream)?)?);
    }
    Ok(rows)
}

impl Trial {
    const fn new(load: LoadKind, ends: Ends) -> Self {
        Self { load, ends }
    }

    fn placement(&self) -> Placement {
        if self.load.is_stream() {
            Placement::Split
        } else {
            Placement::Same
        }
    }

    /// Packets with work for a unit of the load.
    fn packets(&self) -> f64 {
        match self.ends {
            Ends::Client | Ends::Server => 1.0,
            Ends::Both => 2.0,
        }
    }

    fn burns(&self) -> Result<Vec<Burn>, Failure> {
        let levels = if self.load.is_stream() {
            LONG_NS
        } else {
            SHORT_NS
        };
        levels.into_iter().map(Burn::load).collect()
    }

    /// The trial as text for people.
    fn name(&self) -> String {
        let whose = match self.ends {
            Ends::Client => "the client's packets",
            Ends::Server => "the server's packets",
            Ends::Both => "both ends' packets",
        };
        let paced = if self.load.is_stream() {
            format!(" of {PACKETS_PER_S} packets/s")
        } else {
            String::new()
        };
        let placement = self.placement();
        format!(
            "veth {}{paced}, placement {placement}, turns by waiting, work on {whose}",
            self.load
        )
    }

    fn cell(&self) -> Cell {
        cells::cell("veth", Peer::Local, self.load, |axes| {
            axes.placement = self.placement();
            axes.pace_bps = Some(Rate(Some(PACKETS_PER_S * DATAGRAM_BYTES * 8)));
        })
    }

    /// As many blocks as needed.
    fn blocks(&self, bench: &Bench, stream: u64) -> Result<Vec<Block>, Failure> {
        let sampler = bench.sampler(300, 100)?;
        let mut burns = self.burns()?;
        let mut rng = bench.rng(500 + stream);
        let mut blocks = Vec::new();
        // Only the width of the interval decides, never its position.
        while !LOOKS.contains(&blocks.len()) || half_width(&blocks)? > ENOUGH {
            if blocks.len() >= bench.pick(LOOKS[1], 6) {
                break;
            }
            blocks.push(self.block(&sampler, &mut burns, &mut rng)?);
        }
        Ok(blocks)
    }

    /// Labs of all levels, built in random order, which take turns.
    fn block(
        &self,
        sampler: &Sampler,
        burns: &mut [Burn],
        rng: &mut ChaCha8Rng,
    ) -> Result<Block, Failure> {
        let cell = self.cell();
        let quiet = quiet_cores(sampler)?;
        let mut order: Vec<usize> = (0..LEVELS).collect();
        order.shuffle(rng);
        let (mut labs, mut attached, mut before) = (Vec::new(), Vec::new(), Vec::new());
        for level in &order {
            let lab = lab_of(&cell)?;
            attached.push(burns[*level].attach(&lab, self.ends)?);
            before.push(burns[*level].account()?);
            labs.push((&cell, lab));
        }
        let measured = generation(sampler, labs, quiet, rng)?;
        let mut block = Block::default();
        for ((level, before), m) in order.iter().zip(before).zip(&measured) {
            let per_run_ns = burns[*level].account()?.per_run_since(before);
            block.work[*level] = per_run_ns * self.packets();
            block.demand[*level] = cells::demand_ns(self.load, m);
        }
        Ok(block)
    }

    fn rows(&self, blocks: &[Block]) -> Result<[Row; 2], Failure> {
        let slope = slope(blocks)?;
        let base = interval(blocks.iter().map(|b| b.demand[0]).collect())?;
        Ok([
            Row {
                id: "V5",
                what: format!(
                    "{}, {} blocks of {LEVELS} levels: slope of service demand against it",
                    self.name(),
                    blocks.len()
                ),
                promised: "1.00 ± 0.05, with all of the 95 % interval".to_owned(),
                seen: format!("{:.3} ({:.3} to {:.3})", slope.value, slope.low, slope.high),
                verdict: Verdict::of(slope.low >= 1.0 - TOLERANCE && slope.high <= 1.0 + TOLERANCE),
            },
            Row {
                id: "V5",
                what: format!(
                    "the same level by level, beyond the {:.0} ns of level 0",
                    base.value
                ),
                promised: String::new(),
                seen: levels(blocks)?,
                verdict: Verdict::Stated,
            },
        ])
    }
}

/// The slope of demand against work: one per block, the interval across them.
fn slope(blocks: &[Block]) -> Result<Estimate, Failure> {
    let slopes = blocks
        .iter()
        .filter_map(|b| stats::linear_slope(&b.work, &b.demand, CONFIDENCE))
        .map(|slope| slope.value);
    interval(slopes.collect())
}

fn half_width(blocks: &[Block]) -> Result<f64, Failure> {
    let slope = slope(blocks)?;
    Ok((slope.high - slope.low) / 2.0)
}

/// How much more work there was at each level than at level 0, and how much more was measured.
fn levels(blocks: &[Block]) -> Result<String, Failure> {
    let more = |level: usize, of: fn(&Block) -> &[f64; LEVELS]| {
        interval(blocks.iter().map(|b| of(b)[level] - of(b)[0]).collect())
    };
    let mut texts = Vec::new();
    for level in 1..LEVELS {
        let (work, demand) = (more(level, |b| &b.work)?, more(level, |b| &b.demand)?);
        texts.push(format!(
            "{:+.0} ns seen as {:+.0} ± {:.0}",
            work.value,
            demand.value,
            (demand.high - demand.low) / 2.0
        ));
    }
    Ok(texts.join(", "))
}

fn interval(values: Vec<f64>) -> Result<Estimate, Failure> {
    Samples::try_from(values)
        .ok()
        .and_then(|samples| stats::mean_interval(&samples, CONFIDENCE))
        .ok_or(Failure::NoFigure("work of known cost"))
}
