//! V9: a receiver that is stopped for a known time. An open loop must show it in its quantiles; a closed loop waits
//! too, and only one transaction shows it.

use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

use hopyard::lab::{self, Lab, role};
use hopyard::model::{Cell, LoadKind, Measurement, Peer, Rate};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bench::{Bench, on_its_way};
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V9",
    title: "the receiver is stopped for 200 ms in mid-window, under an open and under a closed loop",
    only_when_named: false,
    run,
};

const STOP: Duration = Duration::from_millis(200);
const WARM_UP_MS: u64 = 200;
/// 500 B each: 2,000 messages a second, so that p99.9 has enough of them.
const PACE_BPS: u64 = 8_000_000;
/// Tolerance of a quantile, for waking up and for the distance between messages.
const TOLERANCE_MS: f64 = 5.0;

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let window_ms = bench.pick(10_000, 6_000);
    let open = cells::cell("veth", Peer::Local, LoadKind::UdpPaced, |axes| {
        axes.message_size_bytes = Some(500);
        axes.pace_bps = Some(Rate(Some(PACE_BPS)));
    });
    let closed = cells::cell("veth", Peer::Local, LoadKind::TcpRr, |_| {});
    Ok(vec![
        open_loop(&stopped(bench, &open, window_ms)?)?,
        closed_loop(&stopped(bench, &closed, window_ms)?)?,
    ])
}

/// A measurement, and how long its receiver was stopped.
struct Stopped {
    m: Measurement,
    for_ms: f64,
}

fn stopped(bench: &Bench, cell: &Cell, window_ms: u64) -> Result<Stopped, Failure> {
    let sampler = bench.sampler(window_ms, WARM_UP_MS)?;
    let lab = Lab::build(lab::path(&cell.path)?, cell.peer, &cell.axes)?;
    let namespace = lab.space(role::B)?.handle.ns();
    let inode = namespace
        .run(|| std::fs::metadata("/proc/thread-self/ns/net").map(|file| file.ino()))??;
    thread::scope(|scope| {
        let wait = Duration::from_millis(WARM_UP_MS + window_ms / 2);
        let stopper = scope.spawn(move || stop_once(inode, wait));
        let m = on_its_way(sampler.measure_in(&lab, cell, 0.0)?)?;
        let for_ms = stopper
            .join()
            .map_err(|_| Failure::NoFigure("a stop whose thread panicked"))??;
        Ok(Stopped { m, for_ms })
    })
}

/// Waits for the worker of a namespace, waits some more, and stops it once; returns for how long, ms.
fn stop_once(namespace: u64, wait: Duration) -> Result<f64, Failure> {
    const PATIENCE: Duration = Duration::from_secs(5);
    const LOOK: Duration = Duration::from_millis(2);
    let began = Instant::now();
    let worker = loop {
        if let Some(worker) = worker_in(namespace)? {
            break worker;
        }
        if began.elapsed() > PATIENCE {
            return Err(Failure::NoFigure("a receiver that never came"));
        }
        thread::sleep(LOOK);
    };
    thread::sleep(wait);
    let signal = |signal| kill(worker, signal).map_err(std::io::Error::from);
    let stopped = Instant::now();
    signal(Signal::SIGSTOP)?;
    thread::sleep(STOP);
    signal(Signal::SIGCONT)?;
    Ok(stopped.elapsed().as_secs_f64() * 1e3)
}

/// A process in that network namespace.
fn worker_in(namespace: u64) -> Result<Option<Pid>, Failure> {
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else {
            continue;
        };
        // A process that ended meanwhile is not the one.
        let there = std::fs::metadata(entry.path().join("ns/net"));
        if there.is_ok_and(|file| file.ino() == namespace) && pid != own_pid() {
            return Ok(Some(Pid::from_raw(pid)));
        }
    }
    Ok(None)
}

fn own_pid() -> i32 {
    Pid::this().as_raw()
}

fn quantile_ms(m: &Measurement, q: f64) -> Result<f64, Failure> {
    cells::latency_us(m, q)
        .map(|us| us / 1e3)
        .ok_or(Failure::NoFigure("the latency of a load"))
}

/// Messages that were due during the stop had to wait for the rest of it. They are a share s of all, so the quantile q
/// is T (1 − (1 − q) / s).
fn open_loop(Stopped { m, for_ms }: &Stopped) -> Result<Row, Failure> {
    let share = for_ms * 1e6 / m.window_ns as f64;
    let wanted = |q: f64| for_ms * (1.0 - (1.0 - q) / share);
    let mut kept = true;
    let mut seen = Vec::new();
    for q in [0.99, 0.999] {
        let ms = quantile_ms(m, q)?;
        kept &= (ms - wanted(q)).abs() <= TOLERANCE_MS;
        seen.push(format!("p{} {ms:.1} ms", q * 100.0));
    }
    Ok(Row {
        id: "V9",
        what: format!(
            "udp_paced, stopped for {for_ms:.1} ms of {:.0} s",
            m.window_ns as f64 / 1e9
        ),
        promised: format!(
            "p99 {:.1}, p99.9 {:.1}, ± {TOLERANCE_MS:.0} ms",
            wanted(0.99),
            wanted(0.999)
        ),
        seen: seen.join(", "),
        verdict: Verdict::of(kept),
    })
}

fn closed_loop(Stopped { m, for_ms }: &Stopped) -> Result<Row, Failure> {
    let latency = m.latency.as_ref().ok_or(Failure::NoFigure("tcp_rr"))?;
    Ok(Row {
        id: "V9",
        what: format!("tcp_rr, stopped for {for_ms:.1} ms"),
        promised: String::new(),
        seen: format!(
            "p99.9 {:.3} ms, greatest {:.1} ms: one of {} transactions",
            quantile_ms(m, 0.999)?,
            latency.max_ns as f64 / 1e6,
            latency.count
        ),
        verdict: Verdict::Stated,
    })
}
