//! V16: labs of 200 containers, one after the other for half an hour, every sender at its full rate. The controller's
//! memory, files and threads and the host's network namespaces do not grow, and the cost of a datagram does not drift.
//!
//! Memory is checked in two ways: allocated memory, which a leak grows, and private resident memory, which includes
//! what the allocator keeps for reuse. Pages of the program's file, which are loaded when its code first runs, are not
//! private.

use std::fs;
use std::time::{Duration, Instant};

use hopyard::model::{Cell, Containers, LoadKind, Peer};
use hopyard::stats::linear_slope;

use crate::bench::Bench;
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V16",
    title: "200 containers for half an hour: nothing leaks, nothing drifts (runs only when named)",
    only_when_named: true,
    run,
};

const CONTAINERS: u32 = 200;
/// Memory that an allocator may keep, KiB.
const SPARE_KIB: u64 = 2048;
/// Memory for the samples' own figures, and for differences between two moments of one program, KiB.
const SPARE_ASKED_FOR_KIB: u64 = 256;
/// The first samples fill caches.
const SETTLING: usize = 3;
/// Namespaces that the kernel may have beyond those of one lab: it removes them in the background, and its count
/// includes free objects that a CPU keeps.
const SPARE_NAMESPACES: u64 = CONTAINERS as u64;
/// On a busy CPU, one sender of 200 may not run for as long as a window lasts; then its path is not proved.
const LEAST_PROVED: f64 = 0.95;
/// Confidence of the test for drift.
const CONFIDENCE: f64 = 0.99;

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let length = Duration::from_secs(bench.pick(1_800, 60));
    let sampler = bench.sampler(bench.pick(10_000, 2_000), 300)?;
    let cell = cell();
    let began = Instant::now();
    let mut samples = Vec::new();
    while began.elapsed() < length || samples.len() < 2 * SETTLING {
        let m = sampler.measure(&cell, 0.0)?;
        samples.push(Taken {
            at_h: began.elapsed().as_secs_f64() / 3600.0,
            demand_ns: cells::demand_ns(cell.load, &m),
            is_proved: m.way.proved,
            held: Held::now()?,
        });
    }
    Ok(vec![leaks(&samples)?, drift(bench, &samples)?])
}

fn cell() -> Cell {
    cells::cell("bridge", Peer::Local, LoadKind::UdpFlood, |axes| {
        axes.containers = Some(Containers::Own);
        axes.flows = CONTAINERS;
        axes.message_size_bytes = Some(256);
    })
}

/// State after a sample, with its lab removed.
struct Taken {
    at_h: f64,
    demand_ns: f64,
    is_proved: bool,
    held: Held,
}

/// What this process holds, and the network namespaces that the kernel has by its own count of objects.
#[derive(Debug, Clone, Copy)]
struct Held {
    asked_for_kib: u64,
    resident_kib: u64,
    files: u64,
    threads: u64,
    namespaces: u64,
}

impl Held {
    fn now() -> Result<Self, Failure> {
        let count = |directory| Ok::<_, Failure>(fs::read_dir(directory)?.count() as u64);
        Ok(Self {
            asked_for_kib: asked_for_kib(),
            resident_kib: figure("/proc/self/status", "RssAnon:")?,
            files: count("/proc/self/fd")?,
            threads: count("/proc/self/task")?,
            namespaces: figure("/proc/slabinfo", "net_namespace ")?,
        })
    }
}

/// Memory that the allocator has handed out and not got back, all arenas together, KiB (`mallinfo(3)`).
fn asked_for_kib() -> u64 {
    // SAFETY: takes no argument and returns a structure of numbers by value.
    let info = unsafe { libc::mallinfo2() };
    ((info.uordblks + info.hblkhd) / 1024) as u64
}

/// The first number of the line of a file that begins with `key`.
fn figure(file: &str, key: &'static str) -> Result<u64, Failure> {
    let text = fs::read_to_string(file)?;
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.ok_or(Failure::NoFigure(key))
}

fn leaks(samples: &[Taken]) -> Result<Row, Failure> {
    let (Some(first), Some(last)) = (samples.get(SETTLING), samples.last()) else {
        return Err(Failure::NoFigure("what is held"));
    };
    let (first, last) = (first.held, last.held);
    let proved = samples.iter().filter(|sample| sample.is_proved).count();
    let within = last.asked_for_kib <= first.asked_for_kib + SPARE_ASKED_FOR_KIB
        && last.resident_kib <= first.resident_kib + SPARE_KIB
        && last.files <= first.files
        && last.threads <= first.threads
        && last.namespaces <= first.namespaces + SPARE_NAMESPACES
        && proved as f64 >= LEAST_PROVED * samples.len() as f64;
    Ok(Row {
        id: "V16",
        what: format!("{} labs of {CONTAINERS} containers", samples.len()),
        promised: format!(
            "memory asked for + {SPARE_ASKED_FOR_KIB} KiB and resident + {SPARE_KIB} KiB at most, files and threads as before, \
             namespaces + {SPARE_NAMESPACES} at most, way proved in {:.0} %",
            100.0 * LEAST_PROVED
        ),
        seen: format!(
            "asked for {} KiB and resident {} KiB by quarters, files {} to {}, threads {} to {}, namespaces {} to {}, way proved in {proved}",
            by_quarters(&samples[SETTLING..], |held| held.asked_for_kib),
            by_quarters(&samples[SETTLING..], |held| held.resident_kib),
            first.files,
            last.files,
            first.threads,
            last.threads,
            first.namespaces,
            last.namespaces
        ),
        verdict: Verdict::of(within),
    })
}

/// Memory at the start and at the end of each quarter: a leak continues, while what an allocator keeps stops growing.
fn by_quarters(samples: &[Taken], kib: impl Fn(&Held) -> u64) -> String {
    let last = samples.len() - 1;
    let at = (0..=4).map(|quarter| kib(&samples[quarter * last / 4].held).to_string());
    at.collect::<Vec<_>>().join(", ")
}

/// Largest half-width at which a drift is judged, % an hour.
const WIDEST: f64 = 5.0;

fn drift(bench: &Bench, samples: &[Taken]) -> Result<Row, Failure> {
    let samples = &samples[SETTLING..];
    let at_h: Vec<f64> = samples.iter().map(|sample| sample.at_h).collect();
    let demand_ns: Vec<f64> = samples.iter().map(|sample| sample.demand_ns).collect();
    let mean = demand_ns.iter().sum::<f64>() / demand_ns.len() as f64;
    let slope = linear_slope(&at_h, &demand_ns, CONFIDENCE);
    let slope = slope.ok_or(Failure::NoFigure("the drift of the cost"))?;
    let percent = |ns: f64| 100.0 * ns / mean;
    Ok(Row {
        id: "V16",
        what: format!("cost of a datagram, {mean:.0} ns"),
        promised: "no drift beyond its interval".into(),
        seen: format!(
            "{:+.1} % an hour ({:+.1} to {:+.1} %)",
            percent(slope.value),
            percent(slope.low),
            percent(slope.high)
        ),
        // A wide interval contains 0 and large drifts.
        verdict: if bench.quick {
            // A minute says nothing of an hour.
            Verdict::Stated
        } else if percent(slope.high - slope.low) / 2.0 > WIDEST {
            Verdict::Failed(format!("the interval is wider than ± {WIDEST} % an hour"))
        } else {
            Verdict::of(slope.low <= 0.0 && slope.high >= 0.0)
        },
    })
}
