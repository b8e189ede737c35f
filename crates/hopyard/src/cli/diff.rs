//! `hopyard diff`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::{Done, Failure, args, by_gate, deliver};
use crate::assess::diff::{Ask, diff as compare};
use crate::model::DiffReport;
use crate::store::{self, Run};
use crate::units;

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  for side in before after after before before after; do      # three runs of each, in turn
      ./switch-to $side && hopyard run --paths veth,bridge --loads tcp_rr --out $side/$((i += 1))
  done
  hopyard diff before after                        # all runs in two directories, cell by cell
  hopyard diff old1,old2,old3 new1,new2,new3       # the same, run by run
  hopyard diff before after --relative             # ratios to the base of each run: drift of the machine cancels
  hopyard diff before after --fail-on 3%           # a gate: exit status 1 where a cell is shown to be worse by more
  hopyard diff old new --repeats same              # one run of each; `same` has runs of one thing, for the scatter
  hopyard diff before after --format json | jq '.cells[] | select(.comparisons[].change == \"worse\") | .path'

Two runs of the same thing differ by more than the blocks of either show. Verdicts therefore need repeated runs:
three of each side, or five of one side, or five others of one thing (--repeats).

Exit status: 0 fine, 1 the gate failed, 2 the runs cannot be compared, 4 undecided: the gate could not see such a loss.
docs/diff.md has more.")]
pub(super) struct DiffArgs {
    /// The base side, runs of one thing: run directories, or a directory that contains some
    #[arg(value_name = "RUNS_A")]
    a: OsString,
    /// The runs compared with it, likewise
    #[arg(value_name = "RUNS_B")]
    b: OsString,
    /// More runs of one thing, made here with the same plan, to show how much such runs differ; may be repeated, once
    /// for each thing
    #[arg(long, value_name = "RUNS")]
    repeats: Vec<OsString>,
    /// Compare each cell's ratio to the base of its own run
    #[arg(long)]
    relative: bool,
    /// Fail if a cell is shown to be worse in B by more than this
    #[arg(long, value_name = "LOSS", value_parser = units::parse_loss)]
    fail_on: Option<f64>,
    /// How to print it
    #[arg(long, default_value = "text", value_parser = args::format(|export| export.diff))]
    format: fn(&DiffReport) -> String,
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn diff(args: &DiffArgs) -> Done {
    let (a, b) = (directories(&args.a)?, directories(&args.b)?);
    let repeats: Vec<Vec<PathBuf>> = args
        .repeats
        .iter()
        .map(|named| directories(named))
        .collect::<Result<_, _>>()?;
    refuse_twice(a.iter().chain(&b).chain(repeats.iter().flatten()))?;
    let (a, b) = (load(&a)?, load(&b)?);
    let repeats: Vec<Vec<Run>> = repeats
        .iter()
        .map(|named| load(named))
        .collect::<Result<_, _>>()?;
    let ask = Ask {
        relative: args.relative,
        fail_on: args.fail_on,
    };
    let report = compare(&a, &b, &repeats, &ask)?;
    deliver(&(args.format)(&report), args.output.as_deref())?;
    Ok(by_gate(report.gate.as_ref()))
}

/// The run directories of an argument: itself, or its parts between commas, each with the runs in it.
fn directories(named: &OsStr) -> Result<Vec<PathBuf>, Failure> {
    let is_one = Path::new(named).exists();
    let names: Vec<&OsStr> = if is_one {
        vec![named]
    } else {
        let names = named.as_bytes().split(|byte| *byte == b',');
        names.map(OsStr::from_bytes).collect()
    };
    if names
        .iter()
        .any(|name| name.as_bytes().trim_ascii().is_empty())
    {
        return Err(Failure::request(format!(
            "`{}` has no name before, between or after its commas: leave the comma out",
            named.display()
        )));
    }
    let runs: Vec<Vec<PathBuf>> = names
        .into_iter()
        .map(|name| store::runs_in(name.as_ref()))
        .collect::<Result<_, store::Error>>()?;
    Ok(runs.concat())
}

fn load(directories: &[PathBuf]) -> Result<Vec<Run>, store::Error> {
    directories
        .iter()
        .map(|directory| store::load(directory))
        .collect()
}

/// A directory with two names is one run.
fn refuse_twice<'a>(directories: impl Iterator<Item = &'a PathBuf>) -> Result<(), Failure> {
    let mut known: Vec<(PathBuf, &PathBuf)> = Vec::new();
    for directory in directories {
        let Ok(real) = directory.canonicalize() else {
            // Loading it reports the error.
            continue;
        };
        if let Some((_, other)) = known.iter().find(|(path, _)| *path == real) {
            return Err(Failure::request(format!(
                "{} and {} are the same directory: name each run once",
                other.display(),
                directory.display()
            )));
        }
        known.push((real, directory));
    }
    Ok(())
}
