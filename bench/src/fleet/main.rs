//! What fleets cost: a worker behind ssh beside one behind `nsenter`, the pairs of eight machines against their ideal, and the report
//! of ten million samples.
//!
//! Machines are namespaces on one bridge, each with an sshd of its own. All is measured with the real program.

mod remote;
mod site;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;

use site::Site;

/// Measures what remote control, fleets and their reports cost (root; Debian's openssh-server).
#[derive(Debug, Parser)]
struct Options {
    #[command(subcommand)]
    part: Part,
    /// The program under test.
    #[arg(long, default_value = "target/release/hopyard", global = true)]
    hopyard: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// A cell between two namespaces with the server's worker behind ssh, and behind `nsenter`: runs in pairs, in random order
    Remote {
        /// Pairs of runs.
        #[arg(long, default_value_t = 24)]
        pairs: u32,
    },
    /// All 28 pairs of eight machines by ssh, in wall-clock, against four at a time without any pause
    Pairs,
    /// The report of a fleet's samples: time and memory of hopyard and DuckDB together
    Samples {
        /// Directory of the fleet.
        fleet: PathBuf,
        /// DuckDB, as for `hopyard report`.
        #[arg(long)]
        duckdb: Option<PathBuf>,
    },
}

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let options = Options::parse();
    let done = std::path::absolute(&options.hopyard)
        .map_err(Failure::from)
        .and_then(|hopyard| match &options.part {
            Part::Remote { pairs } => remote::compare(&hopyard, *pairs),
            Part::Pairs => pairs(&hopyard),
            Part::Samples { fleet, duckdb } => samples(&hopyard, fleet, duckdb.as_deref()),
        });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            hopyard::note(format_args!("{error}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "results")]
fn tell(text: &str) {
    println!("{text}");
}

/// CPU time of all children that ended, with theirs.
fn of_children() -> Result<Duration, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = |t: nix::sys::time::TimeVal| {
        Duration::from_secs(t.tv_sec().unsigned_abs())
            + Duration::from_micros(t.tv_usec().unsigned_abs())
    };
    Ok(time(usage.user_time()) + time(usage.system_time()))
}

fn pairs(hopyard: &Path) -> Result<(), Failure> {
    const MACHINES: usize = 8;
    let site = Site::new(MACHINES, hopyard)?;
    let lines: String = (1..=MACHINES)
        .map(|n| format!("n{n} {}\n", site.login(n)))
        .collect();
    let file = site.file("endpoints", &lines)?;
    let out = site.path("out");
    let began = Instant::now();
    let done = Command::new(hopyard)
        .args(["fleet", "run", &file, "-o"])
        .arg(&out)
        .args([
            "--at-once",
            "4",
            "--window",
            "500ms",
            "--blocks",
            "4",
            "--json",
        ])
        .output()?;
    let took = began.elapsed();
    let document: Value = serde_json::from_slice(&done.stdout)?;
    let pairs = document["pairs"]
        .as_array()
        .ok_or("the document has no pairs")?;
    let measured = pairs
        .iter()
        .filter(|pair| pair["state"] == "measured")
        .count();
    let spent: u64 = pairs
        .iter()
        .filter_map(|pair| pair["took_ms"].as_u64())
        .sum();
    let in_windows = measured as f64 * 4.0 * 2.0 * 0.7;
    tell(&format!(
        "{measured} of {} pairs of {MACHINES} machines by ssh, four at a time: {:.1} s; what the pairs took, by four: {:.1} s; windows and \
         warm-ups alone, by four: {:.1} s",
        pairs.len(),
        took.as_secs_f64(),
        spent as f64 / 4e3,
        in_windows / 4.0
    ));
    if !done.status.success() || measured < pairs.len() {
        return Err("not every pair was measured: the time is of something else".into());
    }
    Ok(())
}

fn samples(hopyard: &Path, fleet: &Path, duckdb: Option<&Path>) -> Result<(), Failure> {
    for format in ["text", "html"] {
        let mut command = Command::new(hopyard);
        command
            .arg("report")
            .arg(fleet)
            .args(["--format", format, "-o", "/dev/null"]);
        command.args(
            duckdb
                .map(|program| ["--duckdb".into(), program.as_os_str().to_owned()])
                .into_iter()
                .flatten(),
        );
        let (began, cpu) = (Instant::now(), of_children()?);
        let mut child = command.spawn()?;
        let mut most_kb = 0;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            most_kb = most_kb.max(resident_kb(child.id()));
            std::thread::sleep(Duration::from_millis(20));
        };
        tell(&format!(
            "{format}: {status} after {:.1} s, {:.1} s of CPU, {} MiB at most with DuckDB's",
            began.elapsed().as_secs_f64(),
            (of_children()? - cpu).as_secs_f64(),
            most_kb >> 10
        ));
        if !status.success() {
            return Err(format!("the report as {format} failed: {status}").into());
        }
    }
    Ok(())
}

/// Memory that a process and its children have now, kB.
fn resident_kb(pid: u32) -> u64 {
    let own = |pid: u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
            .unwrap_or(0)
    };
    let children = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let children = children.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |other: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{other}/stat")).unwrap_or_default();
        let after = stat
            .rsplit_once(") ")
            .map_or("", |(_, rest)| rest)
            .to_owned();
        after.split(' ').nth(1) == Some(&pid.to_string())
    };
    own(pid) + children.filter(is_child).map(own).sum::<u64>()
}
