//! V17: a thousand endpoints on a bridge and on the direct switch, built and removed. The floor for comparison is the
//! same number of namespaces and pairs on a bridge made by `ip -batch`, without addresses or other settings.

use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use hopyard::lab::{self, Lab};
use hopyard::model::{Containers, LoadKind, Peer};
use hopyard::stats;
use rand::seq::SliceRandom;

use crate::bench::Bench;
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V17",
    title: "a thousand endpoints on a bridge and on the direct switch, beside `ip -batch`",
    only_when_named: false,
    run,
};

const ENDPOINTS: u32 = 1000;
const MOST_RATIO: f64 = 2.0;
const MOST_S: f64 = 3.0;
const CONFIDENCE: f64 = 0.95;
/// The last namespaces are removed in the background.
const DUST: Duration = Duration::from_secs(2);

/// Who builds.
#[derive(Clone, Copy)]
enum Builder {
    /// hopyard, with this path.
    Hopyard(&'static str),
    Ip,
}

const BUILDERS: [Builder; 3] = [
    Builder::Hopyard("bridge"),
    Builder::Hopyard("direct"),
    Builder::Ip,
];

/// Duration, s, one value for each round.
#[derive(Default)]
struct Took {
    up: Vec<f64>,
    down: Vec<f64>,
}

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let mut rng = bench.rng(17);
    let mut all: [Took; BUILDERS.len()] = Default::default();
    for _ in 0..bench.pick(8, 3) {
        let mut order: Vec<_> = BUILDERS.into_iter().enumerate().collect();
        order.shuffle(&mut rng);
        for (n, builder) in order {
            let (up, down) = match builder {
                Builder::Hopyard(path) => by_hopyard(path)?,
                Builder::Ip => by_ip()?,
            };
            all[n].up.push(up);
            all[n].down.push(down);
            std::thread::sleep(DUST);
        }
    }
    let [bridge, direct, floor] = &all;
    Ok(vec![
        row("on a bridge built", &bridge.up, &floor.up)?,
        row("on a bridge removed", &bridge.down, &floor.down)?,
        row("on direct built", &direct.up, &floor.up)?,
        row("on direct removed", &direct.down, &floor.down)?,
    ])
}

fn row(what: &str, own: &[f64], floor: &[f64]) -> Result<Row, Failure> {
    let none = || Failure::NoFigure("a thousand endpoints");
    let (own_s, floor_s) = stats::mean(own).zip(stats::mean(floor)).ok_or_else(none)?;
    let ratio = stats::paired_ratio(own, floor, CONFIDENCE).ok_or_else(none)?;
    Ok(Row {
        id: "V17",
        what: format!("{ENDPOINTS} endpoints {what}, {} rounds", own.len()),
        promised: format!("at most {MOST_RATIO} of the floor, and {MOST_S} s"),
        seen: format!(
            "{own_s:.2} s, {:.2} ({:.2} to {:.2}) of {floor_s:.2} s",
            ratio.value, ratio.low, ratio.high
        ),
        verdict: Verdict::of(ratio.value <= MOST_RATIO && own_s <= MOST_S),
    })
}

/// With addresses, neighbours, sysctls and routes.
fn by_hopyard(path: &str) -> Result<(f64, f64), Failure> {
    let cell = cells::cell(path, Peer::Local, LoadKind::UdpStream, |axes| {
        axes.flows = ENDPOINTS;
        axes.containers = Some(Containers::Own);
    });
    let began = Instant::now();
    let lab = Lab::build(lab::path(path)?, Peer::Local, &cell.axes)?;
    let up = began.elapsed().as_secs_f64();
    let began = Instant::now();
    drop(lab);
    Ok((up, began.elapsed().as_secs_f64()))
}

/// Prints the instants around the two batches, ns. Links are removed in one request by their group, because the kernel
/// waits once for each request. Namespaces and their names belong to the command, and end with it.
const FLOOR: &str = r"set -e
mount -t tmpfs tmpfs /run
{
    printf 'link add br0 type bridge\nlink set br0 up\n'
    seq $1 | sed 's/.*/netns add c&\nlink add v& type veth peer name eth0 netns c&\nlink set v& group 7 master br0 up/'
} > /run/up
{
    printf 'link del group 7\n'
    seq $1 | sed 's/.*/netns del c&/'
} > /run/down
began=$(date +%s%N)
ip -batch /run/up
stood=$(date +%s%N)
ip -batch /run/down
echo $began $stood $(date +%s%N)";

fn by_ip() -> Result<(f64, f64), Failure> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "sh", "-c", FLOOR, "sh"]);
    let output = command.arg(ENDPOINTS.to_string()).output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::NoProgram {
            program: "unshare",
            package: "util-linux",
        },
        _ => error.into(),
    })?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if !output.status.success() {
        return Err(Failure::Peer(format!(
            "ip -batch: {}",
            said(&output.stderr)
        )));
    }
    let text = said(&output.stdout);
    let instants: Vec<u64> = text.split(' ').filter_map(|ns| ns.parse().ok()).collect();
    let [began, stood, gone] = instants[..] else {
        return Err(Failure::Peer(format!("not three instants: {text}")));
    };
    let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
    Ok((seconds(began, stood), seconds(stood, gone)))
}
