//! `hopyard report`.

mod of_fleet;

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;

use super::args::{self, Need};
use super::{Done, Failure, deliver, shows_colours};
use crate::assess::{assess_for, observations};
use crate::model::{Observation, RunReport};
use crate::report::{Export, flame, functions, printed};
use crate::store;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopyard report hopyard-runs/20260301-101500-paths
  hopyard report RUN --format html -o report.html    # a page with pictures, in one file
  hopyard report RUN --format markdown -o result.md
  hopyard report RUN --format netperf
  hopyard report RUN --need filter,vlan         # recommend a path that offers these
  hopyard report RUN --flame flames             # a run with --profile: an SVG for each cell
  hopyard report RUN --functions=bridge,bpf     # a run with --profile: a table of functions for each cell
  hopyard report FLEET --format html -o fleet.html      # a fleet: heat map of pairs, worst machines, distribution
  hopyard report RUN --published                # what the plan's report of 2006 to 2014 printed, filled with this run")]
pub(super) struct ReportArgs {
    /// The run's directory, or a fleet's
    pub(super) run: PathBuf,
    /// What the recommended path must offer: filter, vlan, host-access, unprivileged, learning, or none (default: what the run
    /// was asked for)
    #[arg(long, value_delimiter = ',', value_name = "NEED,…")]
    pub(super) need: Vec<Need>,
    /// How to print it
    #[arg(long, default_value = "text", value_parser = args::format(Some))]
    pub(super) format: &'static Export,
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Of a fleet: DuckDB, which reads its samples: the program, or a Python that has the module (default: `duckdb`, else
    /// `python3`)
    #[arg(long, value_name = "PROGRAM")]
    pub(super) duckdb: Option<PathBuf>,
    /// Of a fleet, as a page: directories of fleets before it, for a line over time with change points
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub(super) history: Vec<PathBuf>,
    /// Of a fleet: how far from the median a pair may be to be equivalent to it (default: 2%)
    #[arg(long, value_name = "SHARE", value_parser = crate::units::parse_margin)]
    pub(super) margin: Option<f64>,
    /// Draw flame graphs of a run with profiles into a directory
    #[arg(long, value_name = "DIR")]
    pub(super) flame: Option<PathBuf>,
    /// Instead of the report: the kernel functions of a run with profiles, with samples and shares, of what connects devices
    /// or of these subsystems
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SUBSYSTEM,…",
        num_args = 0..,
        require_equals = true,
        conflicts_with_all = ["format", "flame", "need"]
    )]
    pub(super) functions: Option<Vec<String>>,
    /// Instead of the report: the tables and figures that the report of the run's plan printed (2006 to 2014), in their layout and
    /// units, with what is measured here beside each; as text, markdown, or html with pictures
    #[arg(long, conflicts_with_all = ["flame", "need", "functions"])]
    pub(super) published: bool,
}

pub(super) fn report(args: &ReportArgs) -> Done {
    if args.format.is_binary() && args.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::request(format!(
            "{} is a binary format: name a file with -o, or redirect the output",
            args.format.title
        )));
    }
    if hopyard_fleet::is_fleet(&args.run) {
        return of_fleet::report(args);
    }
    if args.duckdb.is_some() || !args.history.is_empty() || args.margin.is_some() {
        return Err(Failure::request(format!(
            "{} is no fleet's directory: --duckdb, --history and --margin are of reports of fleets",
            args.run.display()
        )));
    }
    let needs = Need::all(&args.need).map_err(Failure::request)?;
    let run = store::load(&args.run)?;
    if let Some(subsystems) = &args.functions {
        let table = functions::text(&run, subsystems)?;
        return deliver(table.as_bytes(), args.output.as_deref());
    }
    if let Some(directory) = &args.flame {
        let pictures = flame::draw(&run, directory)?;
        let shown: Vec<_> = pictures.iter().map(|p| p.display().to_string()).collect();
        crate::note(format_args!("drawn: {}", shown.join(", ")));
    }
    let report = assess_for(&run, needs.as_ref().unwrap_or(&run.header.needs));
    let seen = observations(&run);
    if args.published {
        let tables = printed::render(args.format, &run, &report, &seen)?;
        return deliver(&tables, args.output.as_deref());
    }
    let text = match args.output {
        Some(_) => args.format.render(&report, &seen)?,
        None => for_stdout(args.format, &report, &seen)?,
    };
    deliver(&text, args.output.as_deref())
}

/// A report for stdout: coloured if the format has colours and the terminal shows them.
pub(super) fn for_stdout(
    format: &Export,
    report: &RunReport,
    seen: &[Observation],
) -> Result<Vec<u8>, Failure> {
    match format.coloured {
        Some(coloured) if shows_colours() => Ok(coloured(report).into_bytes()),
        _ => Ok(format.render(report, seen)?),
    }
}
