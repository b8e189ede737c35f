//! `hopyard diff`.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::{Done, Failure, by_gate, deliver};
use crate::assess::diff::{Ask, diff as compare};
use crate::report::Form;
use crate::report::diff::render;
use crate::{store, units};

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  hopyard diff before after                        two run directories, cell by cell
  hopyard diff before after --relative             ratios to the base of each run: drift of the machine cancels
  hopyard diff before after --fail-on 3%           a gate: exit status 1 where a cell is shown to be worse by more
  hopyard diff before after --format json | jq '.cells[] | select(.comparisons[].change == \"worse\") | .path'

Exit status: 0 fine, 1 the gate failed, 2 the runs cannot be compared, 4 the gate could not see such a loss.
docs/diff.md has more.")]
pub(super) struct DiffArgs {
    /// Directory of run A, the base of the comparison
    #[arg(value_name = "RUN_A")]
    a: PathBuf,
    /// Directory of run B, which is compared with A
    #[arg(value_name = "RUN_B")]
    b: PathBuf,
    /// Compare each cell's ratio to the base of its own run
    #[arg(long)]
    relative: bool,
    /// Fail where a cell is shown to be worse in B by more than this
    #[arg(long, value_name = "LOSS", value_parser = units::parse_loss)]
    fail_on: Option<f64>,
    /// How to print it
    #[arg(long, default_value = "text")]
    format: Form,
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn diff(args: &DiffArgs) -> Done {
    let [a, b] = [store::load(&args.a)?, store::load(&args.b)?];
    refuse_twice(&args.a, &args.b)?;
    let ask = Ask {
        relative: args.relative,
        fail_on: args.fail_on,
    };
    let report = compare(&a, &b, &ask)?;
    deliver(&render(&report, args.format), args.output.as_deref())?;
    Ok(by_gate(report.gate.as_ref()))
}

fn refuse_twice(a: &Path, b: &Path) -> Result<(), Failure> {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(one), Ok(other)) if one == other => Err(Failure::request(format!(
            "{} and {} are the same directory: name two different runs",
            a.display(),
            b.display()
        ))),
        _ => Ok(()),
    }
}
