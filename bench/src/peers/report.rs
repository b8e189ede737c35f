//! The printed report.

use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, Table as Grid};
use hopyard::stats::{Estimate, Verdict};

use crate::scenario::Unit;
use crate::verdict::{Against, Line, Table, Target};

/// The text of a scenario's table.
pub(crate) fn text(table: &Table) -> String {
    let scenario = table.scenario;
    let unit = scenario.unit();
    let datagrams = table.lines.iter().any(differs);
    let mut grid = Grid::new();
    let mut header = vec![
        "tool".to_owned(),
        unit.rate.to_owned(),
        "±".to_owned(),
        "hopyard / tool".to_owned(),
        "verdict".to_owned(),
        unit.cost.to_owned(),
        "CPU hopyard / tool".to_owned(),
    ];
    if datagrams {
        header.push("sent".to_owned());
    }
    grid.set_header(header);
    for line in &table.lines {
        let mut row = cells(line, unit);
        if datagrams {
            row.push(optional(line.sent.map(|sent| sent / unit.per_rate)));
        }
        grid.add_row(row.into_iter().enumerate().map(|(column, text)| {
            let right = [1, 2, 5, 7].contains(&column);
            Cell::new(text).set_alignment(if right {
                CellAlignment::Right
            } else {
                CellAlignment::Left
            })
        }));
    }
    let mut out = format!("{}: {}\n{grid}\n", scenario.name, scenario.summary());
    if !scenario.remark.is_empty() {
        push(&mut out, &format!("note: {}", scenario.remark));
    }
    for line in &table.lines {
        if line.failed > 0 {
            push(
                &mut out,
                &format!("warning: {}: {} samples failed", line.tool, line.failed),
            );
        }
        for flag in &line.flags {
            push(&mut out, &format!("warning: {}: {flag}", line.tool));
        }
    }
    push(
        &mut out,
        &match &table.target {
            Target::Met { why, .. } => format!("target: met ({why})"),
            Target::Missed { why, .. } => format!("target: missed ({why})"),
            Target::NotJudged { why } => format!("target: not judged ({why})"),
        },
    );
    out
}

fn push(out: &mut String, line: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{line}");
}

fn differs(line: &Line) -> bool {
    match (&line.rate, line.sent) {
        (Some(rate), Some(sent)) => (sent / rate.value - 1.0).abs() > 1e-9,
        _ => false,
    }
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), number)
}

fn cells(line: &Line, unit: Unit) -> Vec<String> {
    let (rate, width) = line
        .rate
        .as_ref()
        .map_or(("-".to_owned(), "-".to_owned()), |rate| {
            let half = (rate.high - rate.low) / 2.0;
            (
                number(rate.value / unit.per_rate),
                format!("{:.1} %", half / rate.value * 100.0),
            )
        });
    let (ratio, verdict, cpu) = match &line.against {
        None => (String::new(), String::new(), String::new()),
        Some(Against { rate, cost }) => (
            interval(&rate.ratio),
            name(rate.verdict).to_owned(),
            interval(&cost.ratio),
        ),
    };
    vec![
        line.tool.to_string(),
        rate,
        width,
        ratio,
        verdict,
        optional(line.cost_ns.map(|cost| cost / unit.per_cost)),
        cpu,
    ]
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Different => "different",
        Verdict::Equivalent => "equivalent",
        Verdict::Inconclusive => "inconclusive",
    }
}

fn interval(ratio: &Estimate) -> String {
    format!("{:.3} ({:.3} to {:.3})", ratio.value, ratio.low, ratio.high)
}

/// About four significant digits.
fn number(value: f64) -> String {
    if value >= 1000.0 {
        format!("{value:.0}")
    } else if value >= 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits() {
        assert_eq!(
            [12345.6, 123.45, 12.345].map(number),
            ["12346", "123.5", "12.35"]
        );
    }
}
