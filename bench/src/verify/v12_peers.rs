//! V12: on the same path, sizes, congestion control and CPUs, the generator is not slower than other tools.
//!
//! Being faster needs an explanation too. iperf3's server calls `select` before each read and waits for the whole 128
//! KiB. So it sleeps some 30 000 times a second (counted with perf and strace), and its sender must wake it on the
//! other CPU each time. A receiver that takes what is there sleeps less. The bytes per skb are printed beside the
//! figures to show that both make the same packets.
//!
//! Kept small on purpose: bulk TCP against iperf3 and request/response against sockperf, each in a fresh lab per
//! sample, alternating in random order. The full comparison is the `peers` benchmark.

use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use hopyard::lab::{self, Lab};
use hopyard::measure;
use hopyard::meter::devices;
use hopyard::model::{Cell, LoadKind, Peer, Placement};
use hopyard::{signals, stats};
use hopyard_net::cpu;
use rand::seq::SliceRandom;

use crate::bench::{Bench, measure};
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V12",
    title: "throughput against iperf3 and sockperf on the same path, sizes and CPUs",
    only_when_named: false,
    run,
};

const CONFIDENCE: f64 = 0.95;
const AT_LEAST: f64 = 0.95;
/// Numbers of blocks after which the width is checked; it ends after the last one. Bulk TCP differs by a half from connection to connection.
const LOOKS: [usize; 2] = [10, 40];
/// Half-width that leaves room for the true ratio above what is promised.
const ENOUGH: f64 = 0.05;
const BULK_BYTES: u32 = 128 * 1024;
/// The smallest message that sockperf sends.
const REQUEST_BYTES: u32 = 14;

/// Another tool's program.
struct Program {
    name: &'static str,
    package: &'static str,
    server: fn(&str) -> Vec<String>,
    client: fn(&str) -> Vec<String>,
    /// Payload bits per second, or transactions per second.
    figure: fn(&str) -> Option<f64>,
}

const IPERF3: Program = Program {
    name: "iperf3",
    package: "iperf3",
    server: |address| words(&format!("-s -1 -B {address}")),
    client: |address| {
        words(&format!(
            "-c {address} -J -O 1 -t 1 -l {BULK_BYTES} -C cubic"
        ))
    },
    figure: |json| {
        let report: serde_json::Value = serde_json::from_str(json).ok()?;
        report["end"]["sum_received"]["bits_per_second"].as_f64()
    },
};

const SOCKPERF: Program = Program {
    name: "sockperf",
    package: "sockperf",
    server: |address| words(&format!("server --tcp -i {address}")),
    client: |address| {
        words(&format!(
            "ping-pong --tcp -i {address} -t 2 -m {REQUEST_BYTES} --full-rtt"
        ))
    },
    figure: sockperf_rate,
};

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let bulk = cells::cell("veth", Peer::Local, LoadKind::TcpStream, |axes| {
        axes.message_size_bytes = Some(BULK_BYTES);
    });
    let exchange = cells::cell("veth", Peer::Local, LoadKind::TcpRr, |axes| {
        axes.request_size_bytes = Some(REQUEST_BYTES);
        axes.response_size_bytes = Some(REQUEST_BYTES);
        axes.placement = Placement::Same;
    });
    let mut rows = Vec::new();
    for (program, cell) in [(&IPERF3, &bulk), (&SOCKPERF, &exchange)] {
        match side_by_side(bench, program, cell) {
            Ok(row) => rows.push(row),
            Err(failure) if failure.is_unsupported() => rows.push(Row::without_figures(
                "V12",
                format!("{cell} against {}", program.name),
                Verdict::CannotRun(hopyard::chain(&failure)),
            )),
            Err(failure) => return Err(failure),
        }
    }
    Ok(rows)
}

fn side_by_side(bench: &Bench, program: &Program, cell: &Cell) -> Result<Row, Failure> {
    // As iperf3: after one second, for one second. A younger flow has less in flight and more of it in the cache.
    let sampler = bench.sampler(1000, 1000)?;
    let mut rng = bench.rng(12);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut our_skb, mut their_skb) = (Vec::new(), Vec::new());
    let ratio = loop {
        let mut order = [true, false];
        order.shuffle(&mut rng);
        for own in order {
            if own {
                // Not repeated if disturbed, because the other program is not either.
                let m = measure(&sampler, cell, 0.0)?;
                let factor = if cell.load.is_stream() { 8.0 } else { 1.0 };
                ours.push(factor * cells::throughput(cell.load, &m));
                our_skb.extend(m.arrived.map(|a| a.bytes as f64 / a.skbs.max(1) as f64));
            } else {
                let (figure, skb) = peer(program, cell)?;
                theirs.push(figure);
                their_skb.push(skb);
            }
        }
        let blocks = ours.len();
        if !LOOKS.contains(&blocks) {
            continue;
        }
        let ratio = stats::compare(&ours, &theirs, CONFIDENCE)
            .ok_or(Failure::NoFigure("ours against a peer"))?
            .ratio;
        // Only the width of the interval decides, never its position.
        if ratio.half_width_ratio() <= ENOUGH || blocks >= bench.pick(LOOKS[1], LOOKS[0]) {
            break ratio;
        }
    };
    let (scale, unit) = if cell.load.is_stream() {
        (1e9, "Gbit/s")
    } else {
        (1e3, "thousand transactions/s")
    };
    let mean = |x: &[f64]| stats::geometric_mean(x).unwrap_or(0.0) / scale;
    Ok(Row {
        id: "V12",
        what: format!(
            "{cell}, placement {}, ours / {}, {} blocks",
            cell.axes.placement,
            program.name,
            ours.len()
        ),
        promised: "lower end of the 95 % interval ≥ 0.95".to_owned(),
        seen: format!(
            "{:.3} ({:.3} to {:.3}): {:.2} against {:.2} {unit}{}",
            ratio.value,
            ratio.low,
            ratio.high,
            mean(&ours),
            mean(&theirs),
            match (stats::mean(&our_skb), stats::mean(&their_skb)) {
                (Some(ours), Some(theirs)) =>
                    format!(", {ours:.0} against {theirs:.0} bytes per skb"),
                _ => String::new(),
            }
        ),
        verdict: Verdict::of(ratio.low >= AT_LEAST),
    })
}

/// One sample of another tool in a lab of its own, with the same placement: its figure, and the bytes per skb that its
/// server's device received.
fn peer(program: &Program, cell: &Cell) -> Result<(f64, f64), Failure> {
    const PATIENCE: Duration = Duration::from_secs(15);
    /// Time until the server listens; none of these programs reports it.
    const SETTLING: Duration = Duration::from_millis(200);
    let lab = Lab::build(lab::path(&cell.path)?, cell.peer, &cell.axes)?;
    let places = measure::places(cell.axes.placement, &cpu::current_affinity()?)?;
    let (near, far) = (&lab.topology.client, &lab.topology.server);
    let address = far.addresses.of(cell.axes.family).to_string();
    let _server = start(
        &lab,
        far.role,
        &places.server,
        program,
        (program.server)(&address),
    )?;
    std::thread::sleep(SETTLING);
    let mut client = start(
        &lab,
        near.role,
        &places.client,
        program,
        (program.client)(&address),
    )?;
    let output = client.finish(program, PATIENCE)?;
    let seen = devices::read(lab.spaces().iter().map(|s| (s.role, &s.handle)))?;
    let skb = seen
        .iter()
        .find(|d| d.namespace == far.role && d.name == far.device)
        .map_or(0.0, |d| d.rx_bytes as f64 / d.rx_packets.max(1) as f64);
    let text = String::from_utf8_lossy(&output.stdout);
    let figure = (program.figure)(&text).ok_or_else(|| {
        Failure::Peer(format!(
            "{} said no rate: {} {}",
            program.name,
            text.trim(),
            String::from_utf8_lossy(&output.stderr).trim()
        ))
    })?;
    Ok((figure, skb))
}

/// A process of another tool, which ends when this value is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only if it has ended by itself; it is reaped in either case.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn finish(&mut self, program: &Program, patience: Duration) -> Result<Output, Failure> {
        let deadline = Instant::now() + patience;
        let status = loop {
            if signals::interrupted() {
                return Err(Failure::Interrupted);
            }
            if let Some(status) = self.0.try_wait()? {
                break status;
            }
            if Instant::now() >= deadline {
                return Err(Failure::Peer(format!(
                    "{} did not end within {patience:?}",
                    program.name
                )));
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let read = |pipe: Option<&mut dyn Read>| -> Result<Vec<u8>, Failure> {
            let mut bytes = Vec::new();
            if let Some(pipe) = pipe {
                pipe.read_to_end(&mut bytes)?;
            }
            Ok(bytes)
        };
        Ok(Output {
            status,
            stdout: read(self.0.stdout.as_mut().map(|p| p as &mut dyn Read))?,
            stderr: read(self.0.stderr.as_mut().map(|p| p as &mut dyn Read))?,
        })
    }
}

fn start(
    lab: &Lab,
    role: &str,
    cpus: &[usize],
    program: &Program,
    arguments: Vec<String>,
) -> Result<Running, Failure> {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(program.name);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    // The thread exists only for this; processes that it starts keep its CPUs.
    let child = lab.space(role)?.handle.ns().run(|| {
        cpu::pin_current_thread(cpus)?;
        Ok::<_, hopyard_net::Error>(command.spawn())
    })??;
    match child {
        Ok(child) => Ok(Running(child)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(Failure::NoProgram {
            program: program.name,
            package: program.package,
        }),
        Err(e) => Err(e.into()),
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// `[Valid Duration] RunTime=1.000 sec; SentMessages=100; ReceivedMessages=100`: round trips per second.
fn sockperf_rate(text: &str) -> Option<f64> {
    let line = text.lines().find(|l| l.contains("[Valid Duration]"))?;
    let number = |name: &str| -> Option<f64> {
        let (_, rest) = line.split_once(name)?;
        let end = rest
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    let (seconds, messages) = (number(" RunTime=")?, number(" ReceivedMessages=")?);
    (seconds > 0.0 && messages > 0.0).then(|| messages / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockperf_says_messages_and_seconds() {
        let text = "sockperf: Test end\nsockperf: [Valid Duration] RunTime=0.500 sec; \
                    SentMessages=1001; ReceivedMessages=1000\n";
        assert_eq!(sockperf_rate(text), Some(2000.0));
        assert_eq!(sockperf_rate("sockperf: ERROR"), None);
    }

    #[test]
    fn iperf3_says_bits() {
        let text = r#"{"end": {"sum_received": {"bits_per_second": 2.5e9}}}"#;
        assert_eq!((IPERF3.figure)(text), Some(2.5e9));
        assert_eq!((IPERF3.figure)("{\"error\": \"x\"}"), None);
    }
}
