//! `hopyard report`.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;

use super::args::{self, Need};
use super::{Done, Failure, deliver, shows_colours};
use crate::assess::{assess_for, observations};
use crate::model::{Observation, RunReport};
use crate::report::{Export, flame};
use crate::store;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopyard report hopyard-runs/20260301-101500-paths
  hopyard report RUN --format html -o report.html    a page with pictures, in one file
  hopyard report RUN --format markdown -o result.md
  hopyard report RUN --format netperf
  hopyard report RUN --need filter,vlan         recommend a path that offers these
  hopyard report RUN --flame flames             a run with --profile: an SVG for each cell")]
pub(super) struct ReportArgs {
    /// The run's directory
    run: PathBuf,
    /// What the recommended path must offer: filter, vlan, host-access, unprivileged, or none (default: what the run
    /// was asked for)
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
    if let Some(directory) = &args.flame {
        let pictures = flame::draw(&run, directory)?;
        let shown: Vec<_> = pictures.iter().map(|p| p.display().to_string()).collect();
        crate::note(format_args!("drawn: {}", shown.join(", ")));
    }
    let report = assess_for(&run, needs.as_ref().unwrap_or(&run.header.needs));
    let seen = observations(&run);
    let text = match args.output {
        Some(_) => args.format.render(&report, &seen)?,
        None => for_stdout(args.format, &report, &seen)?,
    };
    deliver(&text, args.output.as_deref())
}

/// A report as it is printed: in colours where the format has them and a terminal shows them.
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
