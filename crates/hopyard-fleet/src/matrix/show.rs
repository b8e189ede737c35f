//! What is known of a matrix, as a table and as a document.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use hopyard_model::{plain, units};
use hopyard_stats::Verdict;
use serde::Serialize;

use super::cell::{self, Outcome};
use super::{Matrix, MatrixCell};
use crate::error::Result;

/// Name and version of [`MatrixDocument`].
pub(crate) const MATRIX_SCHEMA: &str = "hopyard/matrix/1";

/// All cells of a matrix.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct MatrixDocument {
    /// [`MATRIX_SCHEMA`].
    schema: &'static str,
    /// Number of cells.
    of: usize,
    /// Cells that were measured, or tried and failed.
    cells: Vec<Outcome>,
    /// Cells that nobody has tried yet.
    missing: Vec<MatrixCell>,
}

/// What the directory of a matrix has.
///
/// # Errors
/// A cell's file is damaged.
pub fn read(matrix: &Matrix, directory: &Path) -> Result<MatrixDocument> {
    let all = matrix.cells();
    let mut document = MatrixDocument {
        schema: MATRIX_SCHEMA,
        of: all.len(),
        cells: Vec::new(),
        missing: Vec::new(),
    };
    for cell in all {
        match cell::read(directory, cell.number)? {
            // Whoever changed the matrix meanwhile has other cells by the same numbers.
            Some(outcome) if outcome.cell == cell => document.cells.push(outcome),
            _ => document.missing.push(cell),
        }
    }
    Ok(document)
}

impl MatrixDocument {
    /// Is every cell measured?
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.cells.iter().all(|cell| cell.cause.is_none())
    }
}

/// Each path against the base on the same node: a table for each kind of machine.
#[must_use]
pub fn text(document: &MatrixDocument) -> String {
    let measured = document
        .cells
        .iter()
        .filter(|cell| cell.cause.is_none())
        .count();
    let mut out = format!(
        "{measured} of {} measured\n",
        units::counted(document.of, "cell")
    );
    let kinds: BTreeSet<&Option<String>> = document
        .cells
        .iter()
        .map(|outcome| &outcome.cell.kind)
        .collect();
    for kind in kinds {
        let own: Vec<&Outcome> = document
            .cells
            .iter()
            .filter(|outcome| outcome.cell.kind == *kind)
            .collect();
        table(&mut out, kind.as_deref(), &own);
    }
    let failed: Vec<&Outcome> = document
        .cells
        .iter()
        .filter(|outcome| outcome.cause.is_some())
        .collect();
    if !failed.is_empty() {
        out.push_str("\nfailed\n");
    }
    for outcome in failed {
        let cell = &outcome.cell;
        let cause = outcome.cause.as_deref().unwrap_or_default();
        let _ = writeln!(
            out,
            "  cell {}, {} · {} · {} on {}: {cause}",
            cell.number, cell.kernel, cell.path, cell.load, outcome.node
        );
    }
    if !document.missing.is_empty() {
        let numbers: Vec<String> = document
            .missing
            .iter()
            .take(20)
            .map(|cell| cell.number.to_string())
            .collect();
        let more = if document.missing.len() > 20 {
            ", …"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "\nnot measured yet: {} {}{more}",
            units::counted(document.missing.len(), "cell"),
            numbers.join(", ")
        );
    }
    let out: String = out
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    plain::document(&out).into_owned()
}

fn table(out: &mut String, kind: Option<&str>, own: &[&Outcome]) {
    let Some(first) = own.first() else { return };
    let mut loads = Vec::new();
    let mut rows: Vec<(&str, &str)> = Vec::new();
    for outcome in own {
        if !loads.contains(&outcome.cell.load) {
            loads.push(outcome.cell.load);
        }
        let row = (&outcome.cell.kernel[..], &outcome.cell.path[..]);
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let cpus: BTreeSet<&str> = own
        .iter()
        .filter_map(|outcome| outcome.cpu.as_deref())
        .collect();
    let cpus: Vec<&str> = cpus.into_iter().collect();
    let of = kind.map_or_else(String::new, |kind| format!("{kind}: "));
    let _ = writeln!(
        out,
        "\n{of}against {}, each on the node that it was measured on ({})",
        first.cell.base,
        cpus.join("; ")
    );
    let mut table = comfy_table::Table::new();
    let heads = ["kernel".to_owned(), "path".to_owned()].into_iter();
    table
        .load_style(comfy_table::presets::NOTHING)
        .set_header(heads.chain(loads.iter().map(ToString::to_string)));
    for (kernel, path) in rows {
        let field = |load: &hopyard_model::LoadKind| {
            let mut all = own.iter();
            let found = all.find(|o| {
                (&o.cell.kernel[..], &o.cell.path[..], o.cell.load) == (kernel, path, *load)
            });
            found.map_or_else(|| "–".to_owned(), |outcome| ratio(outcome))
        };
        let fields = [kernel.to_owned(), path.to_owned()]
            .into_iter()
            .chain(loads.iter().map(field));
        table.add_row(fields);
    }
    let _ = writeln!(out, "{table}");
}

fn ratio(outcome: &Outcome) -> String {
    if outcome.cause.is_some() {
        return format!("failed ({})", outcome.node);
    }
    let main = outcome.cell.load.info().main_figure;
    let Some(judged) = outcome.verdicts.get(main) else {
        return format!("no comparison ({})", outcome.node);
    };
    let sign = match judged.verdict {
        Some(Verdict::Different) => "≠",
        Some(Verdict::Equivalent) => "=",
        Some(Verdict::Inconclusive) => "?",
        // Too few blocks for one.
        None => "",
    };
    format!("{:.2}{sign} ({})", judged.ratio.value, outcome.node)
}

/// The JSON schema (2020-12) of the document.
#[must_use]
pub fn matrix_schema() -> serde_json::Value {
    hopyard_model::named_schema(schemars::schema_for!(MatrixDocument), MATRIX_SCHEMA)
}
