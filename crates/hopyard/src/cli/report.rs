//! `hopyard report`.

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
  hopyard report RUN --format html -o report.html    a page with pictures, in one file
  hopyard report RUN --format markdown -o result.md
  hopyard report RUN --format netperf
  hopyard report RUN --need filter,vlan         recommend a path that offers these
  hopyard report RUN --flame flames             a run with --profile: an SVG for each cell
  hopyard report RUN --functions=bridge,bpf     a run with --profile: a table of functions for each cell
  hopyard report RUN --published                what the plan's report of 2006 to 2014 printed, filled with this run")]
pub(super) struct ReportArgs {
    /// The run's directory
    run: PathBuf,
    /// What the recommended path must offer: filter, vlan, host-access, unprivileged, or none (default: as given with
    /// the run)
    #[arg(long, value_delimiter = ',', value_name = "NEED,…")]
    need: Vec<Need>,
    /// How to print it
    #[arg(long, default_value = "text", value_parser = args::format(Some))]
    format: &'static Export,
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Draw flame graphs of a run with profiles into a directory
    #[arg(long, value_name = "DIR")]
    flame: Option<PathBuf>,
    /// Instead of the report: the kernel functions of a run with profiles, with samples and shares, of what connects
    /// devices or of these subsystems
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "SUBSYSTEM,…",
        num_args = 0..,
        require_equals = true,
        conflicts_with_all = ["format", "flame", "need"]
    )]
    functions: Option<Vec<String>>,
    /// Instead of the report: the tables and figures that the report of the run's plan printed (2006 to 2014), in their
    /// layout and units, with the figures measured here beside each; as text, markdown, or html with pictures
    #[arg(long, conflicts_with_all = ["flame", "need", "functions"])]
    published: bool,
}

pub(super) fn report(args: &ReportArgs) -> Done {
    if args.format.is_binary() && args.output.is_none() && std::io::stdout().is_terminal() {
        return Err(Failure::request(format!(
            "{} is a binary format: name a file with -o, or redirect the output",
            args.format.title
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
