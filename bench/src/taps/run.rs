//! The run: programs and paths alternating, and the table.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use comfy_table::{Table, presets};
use hopyard::lab::tap::set_program;
use hopyard::measure::Sampler;
use hopyard::model::{Cell, Join, LoadKind, Peer};
use hopyard::{signals, stats};
use hopyard_bench::cells;
use hopyard_net::clock;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::Failure;

const WARM_UP: Duration = Duration::from_millis(150);
const CONFIDENCE: f64 = 0.95;

/// A method to carry the load.
struct Way {
    name: &'static str,
    path: &'static str,
    /// The program that moves its frames; `None` is hopyard.
    copier: Option<&'static str>,
    join: Option<Join>,
}

const fn way(name: &'static str, path: &'static str) -> Way {
    Way {
        name,
        path,
        copier: None,
        join: None,
    }
}

/// All are compared with the first.
const WAYS: [Way; 7] = [
    Way {
        join: Some(Join::Off),
        ..way("tap switch, not joining", "tap-mq")
    },
    Way {
        join: Some(Join::Packets),
        ..way("tap switch, as GRO", "tap-mq")
    },
    Way {
        join: Some(Join::Stream),
        ..way("tap switch", "tap-mq")
    },
    Way {
        copier: Some("poll"),
        ..way("copier, read and write", "tap-mq")
    },
    Way {
        copier: Some("threads"),
        ..way("copier, two threads", "tap-mq")
    },
    way("bridge", "bridge"),
    way("veth", "veth"),
];

/// A load, its message size, and the unit of what it moves.
struct Load {
    kind: LoadKind,
    size: Option<u32>,
    name: &'static str,
    unit: &'static str,
    per_unit: f64,
    cost: &'static str,
}

const fn bulk(size: u32, name: &'static str) -> Load {
    Load {
        kind: LoadKind::TcpStream,
        size: Some(size),
        name,
        unit: "Gbit/s",
        per_unit: 1e9 / 8.0,
        cost: "ns/byte",
    }
}

const LOADS: [Load; 4] = [
    bulk(16_384, "TCP, 16 KiB"),
    bulk(131_072, "TCP, 128 KiB"),
    Load {
        kind: LoadKind::UdpStream,
        size: Some(64),
        name: "UDP, 64 B",
        unit: "thousand/s",
        per_unit: 1e3,
        cost: "ns/datagram",
    },
    Load {
        kind: LoadKind::TcpRr,
        size: None,
        name: "TCP_RR",
        unit: "thousand/s",
        per_unit: 1e3,
        cost: "ns/transaction",
    },
];

/// For every block: units per second, and CPU ns per unit.
#[derive(Debug, Default, Clone)]
struct Figures {
    rates: Vec<f64>,
    costs: Vec<f64>,
}

pub(crate) fn main(blocks: u32, window_ms: u64, seed: u64) -> Result<(), Failure> {
    let io = |what| move |source| Failure::Io { what, source };
    signals::listen().map_err(io("listen to signals"))?;
    clock::sharp_timers().map_err(io("have exact timers"))?;
    let own = std::env::current_exe().map_err(io("find the own program"))?;
    let hopyard = own.with_file_name("hopyard");
    if !hopyard.is_file() {
        return Err(Failure::NoProgram(hopyard.display().to_string()));
    }
    let mut sampler = Sampler::new(Duration::from_millis(window_ms), WARM_UP)?;
    sampler.program.clone_from(&hopyard);
    let scripts = tempfile::tempdir().map_err(io("make a directory"))?;
    let programs = WAYS
        .iter()
        .map(|way| match way.copier {
            None => Ok(hopyard.clone()),
            Some(by) => script(scripts.path(), &own, by).map_err(io("write a script")),
        })
        .collect::<Result<Vec<PathBuf>, Failure>>()?;
    let quiet_cores = sampler.quiet_cores()?;
    let mut order: Vec<(usize, usize)> = (0..LOADS.len())
        .flat_map(|load| (0..WAYS.len()).map(move |way| (load, way)))
        .collect();
    let mut figures = vec![vec![Figures::default(); WAYS.len()]; LOADS.len()];
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for block in 1..=blocks {
        hopyard::note(format_args!("block {block} of {blocks}"));
        order.shuffle(&mut rng);
        for (load, way) in &order {
            if signals::interrupted() {
                return Err(Failure::Interrupted);
            }
            set_program(programs[*way].clone());
            let cell = cell(&LOADS[*load], &WAYS[*way]);
            let m = sampler.measure(&cell, quiet_cores)?;
            if !m.way.proved {
                return Err(Failure::Way(m.way.problems.join("; ")));
            }
            let figures = &mut figures[*load][*way];
            figures.rates.push(cells::throughput(cell.load, &m));
            figures.costs.push(cells::demand_ns(cell.load, &m));
        }
    }
    let mut out = io::stdout().lock();
    for (load, figures) in LOADS.iter().zip(&figures) {
        let table = table(load, figures)?;
        writeln!(
            out,
            "{}, {blocks} blocks of {window_ms} ms, seed {seed}\n{table}\n",
            load.name
        )
        .map_err(io("print"))?;
    }
    Ok(())
}

/// A program that a lab can start instead of the tap switch.
fn script(directory: &Path, own: &Path, by: &str) -> io::Result<PathBuf> {
    let file = directory.join(by);
    let text = format!(
        "#!/bin/sh\nexec '{}' copier --by {by} -- \"$@\"\n",
        own.display()
    );
    fs::write(&file, text)?;
    fs::set_permissions(&file, Permissions::from_mode(0o755))?;
    Ok(file)
}

fn cell(load: &Load, way: &Way) -> Cell {
    cells::cell(way.path, Peer::Local, load.kind, |axes| {
        axes.message_size_bytes = load.size;
        axes.join = way.join;
        if way.path == "tap-mq" {
            axes.queues = Some(1);
        }
    })
}

fn table(load: &Load, figures: &[Figures]) -> Result<Table, Failure> {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_header([
        "way",
        load.unit,
        "to the first",
        load.cost,
        "to the first",
    ]);
    for (way, own) in WAYS.iter().zip(figures) {
        let mut row = vec![way.name.to_owned()];
        let pairs = [
            (&own.rates, &figures[0].rates, load.per_unit),
            (&own.costs, &figures[0].costs, 1.0),
        ];
        for (values, base, unit) in pairs {
            row.extend(columns(values, base, unit).ok_or(Failure::NoFigure(way.name))?);
        }
        table.add_row(row);
    }
    Ok(table)
}

/// A value with its interval, and its ratio to another one's of the same blocks.
fn columns(values: &[f64], base: &[f64], unit: f64) -> Option<[String; 2]> {
    let value = stats::mean_interval(&stats::Samples::new(values).ok()?, CONFIDENCE)?;
    let half = 100.0 * value.half_width_ratio();
    let shown = format!("{:.3} ±{half:.1} %", value.value / unit);
    let ratio = stats::paired_ratio(values, base, CONFIDENCE)?;
    let ratio = format!("{:.3} ({:.3}–{:.3})", ratio.value, ratio.low, ratio.high);
    Some([shown, ratio])
}
