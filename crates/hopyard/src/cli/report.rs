//! `hopyard report`.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;

use super::args::Need;
use super::{Done, Failure, deliver, shows_colours};
use crate::assess::{assess_for, observations};
use crate::report::{Format, coloured, flame, render};
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
    #[arg(long, default_value = "text")]
    format: Format,
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Draw flame graphs of a run with profiles into a directory
    #[arg(long, value_name = "DIR")]
    flame: Option<PathBuf>,
}

pub(super) fn report(args: &ReportArgs) -> Done {
    if args.format == Format::Parquet && args.output.is_none() && std::io::stdout().is_terminal() {
        let message = "Parquet is a binary format: name a file with -o, or redirect the output";
        return Err(Failure::request(message));
    }
    let needs = Need::all(&args.need).map_err(Failure::request)?;
    let run = store::load(&args.run)?;
    if let Some(directory) = &args.flame {
        let pictures = flame::draw(&run, directory)?;
        let shown: Vec<_> = pictures.iter().map(|p| p.display().to_string()).collect();
        crate::note(format_args!("drawn: {}", shown.join(", ")));
    }
    let report = assess_for(&run, needs.as_ref().unwrap_or(&run.header.needs));
    let text = if args.format == Format::Text && args.output.is_none() && shows_colours() {
        coloured(&report).into_bytes()
    } else {
        render(&report, &observations(&run), args.format)?
    };
    deliver(&text, args.output.as_deref())
}
