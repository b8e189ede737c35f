//! One plan under several kernels: what works where, what else differs, and figures of kernels that were not emulated.

use serde_json::Value;

use super::document::{Block, Cell, Column, Row, Table, headed};
use super::exports::text::page;
use super::group::with_peer;
use super::number::percent;
use super::quantity::show_all;
use crate::assess::main_figure;
use crate::model::{
    Axes, KERNELS_SCHEMA, KernelFinding, KernelRun, KernelsReport, KernelsRow, LoadKind, Works,
    distinct, named_schema,
};
use crate::plain;

/// The JSON schema (2020-12) of runs under several kernels.
#[must_use]
pub fn schema() -> Value {
    named_schema(schemars::schema_for!(KernelsReport), KERNELS_SCHEMA)
}

/// Text for a terminal.
#[must_use]
pub fn text(report: &KernelsReport) -> String {
    page(blocks(report))
}

fn blocks(report: &KernelsReport) -> Vec<Block> {
    let mut blocks = vec![Block::Title("hopyard kernels".to_owned())];
    blocks.push(Block::Heading("What works on each kernel".to_owned()));
    blocks.push(Block::Table(works(report)));
    blocks.extend(headed("Why not", causes(report)));
    blocks.extend(speed(report));
    blocks.extend(differences(report));
    let runs = report.kernels.iter().map(of_run).collect();
    blocks.push(Block::Heading("Runs".to_owned()));
    blocks.push(Block::List(runs));
    blocks
}

/// A row for each path, a column for each kernel.
fn works(report: &KernelsReport) -> Table {
    let row = |row: &KernelsRow| {
        let findings = row.findings.iter().map(|finding| finding.works.words());
        Row::Cells(
            std::iter::once(place(row))
                .chain(findings.map(str::to_owned))
                .map(Cell::lone)
                .collect(),
        )
    };
    Table {
        columns: columns(&report.kernels.iter().collect::<Vec<_>>()),
        keys: 1,
        rows: report.rows.iter().map(row).collect(),
    }
}

fn columns(kernels: &[&KernelRun]) -> Vec<Column> {
    let names = kernels.iter().map(|kernel| Column::left(&[&name(kernel)]));
    std::iter::once(Column::left(&["path"]))
        .chain(names)
        .collect()
}

/// Each reason once, with its kernel and paths.
fn causes(report: &KernelsReport) -> Vec<String> {
    let mut all: Vec<(String, String, Vec<String>)> = Vec::new();
    for (index, kernel) in report.kernels.iter().enumerate() {
        for row in &report.rows {
            let finding = &row.findings[index];
            let (Some(cause), false) = (&finding.cause, finding.works == Works::Proved) else {
                continue;
            };
            let cause = plain::line(cause);
            let known = all
                .iter_mut()
                .find(|(of, why, _)| *of == name(kernel) && *why == cause);
            match known {
                Some((.., places)) => places.push(place(row)),
                None => all.push((name(kernel), cause, vec![place(row)])),
            }
        }
    }
    let words = |(kernel, why, places): (String, String, Vec<String>)| {
        format!("{kernel}: {}: {why}", places.join(", "))
    };
    all.into_iter().map(words).collect()
}

/// A table for each load with the kernels that were not emulated, and a note that names the emulated ones.
fn speed(report: &KernelsReport) -> Vec<Block> {
    let is_real = |kernel: &KernelRun| kernel.release.is_some() && !kernel.is_emulated;
    let real: Vec<usize> = (0..report.kernels.len())
        .filter(|index| is_real(&report.kernels[*index]))
        .collect();
    let kernels: Vec<&KernelRun> = real.iter().map(|index| &report.kernels[*index]).collect();
    let findings = || {
        let rows = report.rows.iter();
        rows.flat_map(|row| real.iter().map(|index| &row.findings[*index]))
    };
    let loads: Vec<LoadKind> = distinct(findings().flat_map(|found| found.figures.keys().copied()));
    let mut blocks = Vec::new();
    for load in loads {
        let quantity = main_figure(load, &Axes::default());
        let figure = |finding: &KernelFinding| {
            let estimate = finding.figures.get(&load);
            estimate.map_or_else(
                || "–".to_owned(),
                |it| {
                    let half = (it.high - it.low) / 2.0 / it.value.abs();
                    format!("{} ±{}", show_all(quantity, &[it.value]), percent(half))
                },
            )
        };
        let row = |row: &KernelsRow| {
            let figures = real.iter().map(|index| figure(&row.findings[*index]));
            let cells = std::iter::once(place(row)).chain(figures).map(Cell::lone);
            Row::Cells(cells.collect())
        };
        blocks.push(Block::Subheading(load.to_string()));
        blocks.push(Block::Table(Table {
            columns: columns(&kernels),
            keys: 1,
            rows: report.rows.iter().map(row).collect(),
        }));
    }
    if !blocks.is_empty() {
        let heading = "Speed, in runs one after the other".to_owned();
        blocks.insert(0, Block::Heading(heading));
    }
    let emulated: Vec<String> = report
        .kernels
        .iter()
        .filter(|kernel| kernel.is_emulated)
        .map(name)
        .collect();
    if !emulated.is_empty() {
        blocks.push(Block::Paragraph(format!(
            "No figures of {}: the CPU was emulated, so speed there says nothing.",
            emulated.join(", ")
        )));
    }
    blocks
}

fn differences(report: &KernelsReport) -> Vec<Block> {
    let first = report
        .kernels
        .iter()
        .find(|kernel| kernel.release.is_some());
    let first = first.map(name);
    let mut blocks = Vec::new();
    for (other, differences) in &report.differences {
        let lines = differences.iter().map(|found| {
            let [a, b] = [&found.a, &found.b].map(|text| match plain::line(text) {
                text if text.is_empty() => "(nothing)".to_owned(),
                text => text,
            });
            format!("{}: {a} → {b}", plain::line(&found.what))
        });
        blocks.push(Block::Heading(format!(
            "What differs, {} → {}",
            first.as_deref().unwrap_or_default(),
            plain::line(other)
        )));
        blocks.push(Block::List(lines.collect()));
    }
    blocks
}

fn of_run(kernel: &KernelRun) -> String {
    let failure = kernel.failure.as_deref().map(plain::line);
    let failure = failure.map_or_else(String::new, |why| format!(" ({why})"));
    format!(
        "{}: {}{failure}",
        name(kernel),
        plain::line(&kernel.directory)
    )
}

fn name(kernel: &KernelRun) -> String {
    plain::line(&kernel.name)
}

fn place(row: &KernelsRow) -> String {
    row.peer
        .map_or_else(|| plain::line(&row.path), |peer| with_peer(&row.path, peer))
}
