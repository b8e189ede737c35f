//! hopyard's generator beside iperf3, iperf2, nuttcp and sockperf.
//!
//! The same veth path, sizes, congestion control and CPUs for all; a fresh lab per sample; randomised blocks, paired
//! ratios. Every tool is measured by the kernel's counters and the machine's idle time. Its own report is only compared
//! with them.
//!
//! `peers decide` compares complete methods that answer which of two paths is slower: see [`decide`].

mod bed;
mod decide;
mod error;
mod process;
mod report;
mod run;
mod sample;
mod scenario;
mod tools;
mod verdict;
mod window;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, SystemTime};

use clap::{Parser, Subcommand};
use hopyard::meter::CpuMeter;
use hopyard::{note, signals};
use serde_json::json;

use error::{Error, Result};
use scenario::{SCENARIOS, Scenario};
use tools::Tool;
use verdict::Target;

/// Compare hopyard's generator with other tools on one veth path (root; a few minutes).
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    other: Option<Other>,
    /// Blocks: every tool of every scenario once in each.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=200))]
    blocks: u32,
    /// Length of a window, ms.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u64).range(100..=10_000))]
    window: u64,
    /// Only these scenarios (with commas between; `*` at the end stands for anything).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Seed of the order; random by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Write every sample and ratio to this file.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// The other comparison.
#[derive(Debug, Subcommand)]
enum Other {
    /// How many comparisons of paths are decided per minute, and how many wrongly, by four methods
    Decide(decide::Decide),
}

fn main() -> ExitCode {
    // This program is also the worker at the endpoints, as hopyard itself is.
    if std::env::args().nth(1).as_deref() == Some("worker") {
        return match hopyard::load::worker::main() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let options = Options::parse();
    let done = match &options.other {
        Some(Other::Decide(decide)) => decide::run(decide),
        None => bench(&options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(_) if signals::interrupted() => ExitCode::from(signals::INTERRUPTED),
        Err(error) => {
            note(format_args!("{}", hopyard::chain(&error)));
            ExitCode::from(2)
        }
    }
}

/// Runs everything; true if no target was missed.
fn bench(options: &Options) -> Result<bool> {
    let io = |doing| move |source| Error::Io { doing, source };
    signals::listen().map_err(io("cannot listen to signals"))?;
    // Leftovers of an earlier run that was killed.
    hopyard::lab::clean::clean(false)?;
    let scenarios = chosen(&options.only)?;
    let versions = versions(&scenarios)?;
    let seed = options.seed.unwrap_or_else(seed_of_now);
    let sampler = sample::Sampler {
        meter: CpuMeter::new()?,
        window: Duration::from_millis(options.window),
        program: std::env::current_exe().map_err(io("cannot find the own program"))?,
    };
    note(format_args!(
        "{} scenarios, {} blocks, windows of {} ms, seed {seed}",
        scenarios.len(),
        options.blocks,
        options.window
    ));
    let taken = run::run(&sampler, &scenarios, options.blocks, seed)?;
    let tables = verdict::tables(&scenarios, &taken);

    let mut out = io::stdout().lock();
    let mut print = || {
        for (tool, version) in &versions {
            writeln!(out, "{tool}: {version}")?;
        }
        writeln!(
            out,
            "{} blocks, windows of {} ms, seed {seed}; intervals at {:.0} %, paired within blocks\n",
            options.blocks,
            options.window,
            verdict::CONFIDENCE * 100.0
        )?;
        for table in &tables {
            writeln!(out, "{}", report::text(table))?;
        }
        out.flush()
    };
    print().map_err(io("cannot print"))?;
    if let Some(file) = &options.json {
        let whole = json!({
            "seed": seed,
            "blocks": options.blocks,
            "window_ms": options.window,
            "versions": versions.iter().map(|(t, v)| json!({"tool": t, "version": v})).collect::<Vec<_>>(),
            "tables": tables,
            "samples": taken,
        });
        fs::write(file, format!("{whole:#}\n")).map_err(io("cannot write the JSON file"))?;
    }
    // With enough blocks, a table without a verdict means that hopyard or a peer could not be measured.
    let judges = usize::try_from(options.blocks).is_ok_and(|n| n >= verdict::LEAST_BLOCKS);
    Ok(!tables.iter().any(|table| match table.target {
        Target::Missed { .. } => true,
        Target::NotJudged { .. } => judges,
        Target::Met { .. } => false,
    }))
}

fn chosen(only: &[String]) -> Result<Vec<&'static Scenario>> {
    let fits = |name: &str, pattern: &String| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    };
    let wanted =
        |s: &&Scenario| only.is_empty() || only.iter().any(|pattern| fits(s.name, pattern));
    let chosen: Vec<_> = SCENARIOS.iter().filter(wanted).collect();
    if chosen.is_empty() {
        return Err(hopyard::model::UnknownName::new(
            "scenario",
            &only.join(","),
            SCENARIOS.iter().map(|s| s.name),
        )
        .into());
    }
    Ok(chosen)
}

/// First line of each needed tool's version; an error if one is missing.
fn versions(scenarios: &[&'static Scenario]) -> Result<Vec<(Tool, String)>> {
    let mut versions: Vec<(Tool, String)> = vec![(Tool::Hopyard, env!("CARGO_PKG_VERSION").into())];
    for tool in scenarios.iter().flat_map(|s| s.tools) {
        let Some(peer) = tool.peer() else { continue };
        if versions.iter().any(|(known, _)| known == tool) {
            continue;
        }
        let [program, option] = peer.version();
        let output = Command::new(program)
            .arg(option)
            .stdin(Stdio::null())
            .output()
            .map_err(|source| Error::Start {
                program: format!(
                    "{program} (Debian: apt-get install iperf3 iperf nuttcp sockperf)"
                ),
                source,
            })?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().next().unwrap_or_default().trim();
        versions.push((*tool, line.to_owned()));
    }
    Ok(versions)
}

fn seed_of_now() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choosing() {
        assert_eq!(chosen(&[]).unwrap().len(), SCENARIOS.len());
        let names: Vec<_> = chosen(&["udp*".to_owned()])
            .unwrap()
            .iter()
            .map(|s| s.name)
            .collect();
        let all = ["udp_rr", "udp_rr_same", "udp_stream_64", "udp_flood_64"];
        assert_eq!(names, all);
        assert_eq!(chosen(&["tcp_rr".to_owned()]).unwrap().len(), 1);
        assert!(chosen(&["sctp".to_owned()]).is_err());
    }

    #[test]
    fn the_command_line_holds_together() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }
}
