//! Printing: the table, or one JSON object.

use std::io::{self, Write};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use crate::bench::Bench;
use crate::experiment::{Experiment, Failure, Row, Verdict};

/// Width of the table. The output is not always a terminal.
const WIDTH: u16 = 150;

#[derive(Serialize)]
struct Document<'a> {
    seed: u64,
    quick: bool,
    rows: &'a [Row],
}

pub(crate) fn json(bench: &Bench, rows: &[Row]) -> Result<(), Failure> {
    let document = Document {
        seed: bench.seed,
        quick: bench.quick,
        rows,
    };
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &document)?;
    writeln!(out)?;
    Ok(())
}

pub(crate) fn print(bench: &Bench, rows: &[Row]) -> Result<(), Failure> {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header(["id", "what", "promised", "seen", "verdict"]);
    for row in rows {
        table.add_row([
            row.id,
            &row.what,
            &row.promised,
            &row.seen,
            &verdict(&row.verdict),
        ]);
    }
    let count = |wanted: fn(&Verdict) -> bool| rows.iter().filter(|r| wanted(&r.verdict)).count();
    let mut out = io::stdout().lock();
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "{} within, {} missed, {} cannot run here, {} failed; seed {}{}",
        count(|v| *v == Verdict::Within),
        count(|v| *v == Verdict::Missed),
        count(|v| matches!(v, Verdict::CannotRun(_))),
        count(|v| matches!(v, Verdict::Failed(_))),
        bench.seed,
        bench.pick("", "; a quick look, not a proof"),
    )?;
    Ok(())
}

pub(crate) fn list(experiments: &[&Experiment]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    for experiment in experiments {
        writeln!(out, "{:<4} {}", experiment.id, experiment.title)?;
    }
    Ok(())
}

fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Within => "within".to_owned(),
        Verdict::Missed => "MISSED".to_owned(),
        Verdict::Stated => "(stated)".to_owned(),
        Verdict::CannotRun(why) => format!("cannot run here: {why}"),
        Verdict::Failed(why) => format!("FAILED: {why}"),
    }
}
