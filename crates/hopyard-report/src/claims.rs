//! Claims beside the measured figures: a table for each report, and a sentence for each claim.

mod brief;
mod questions;

use serde_json::Value;

use super::document::{Block, Cell, Column, Part, Row, Table, headed, shorten};
use super::number::{ABSENT, chosen_percent, percent as short_percent, significant};
use super::quantity;
use crate::model::{
    BoundPosition, CheckReport, ClaimReport, ClaimVerdict, ClaimsReport, ClaimsRun, PointReport,
    ReportOfClaims, named_schema,
};
use crate::plain;
use crate::stats::Estimate;

/// Name and version of the document that [`schema`] describes.
pub const SCHEMA: &str = "hopyard/claims/1";

/// Width of the column that names what is measured; the sentence below the table has the full text.
const WHAT: usize = 32;

/// Level of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Each claim in a row.
    Brief,
    /// Each part of its rule, with the point that decides.
    Parts,
    /// Every point that its rule covers.
    Points,
}

/// Where claims are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    /// On a terminal, which is too narrow for a row with everything about a claim.
    Terminal,
    /// In a file, whose lines may have any length.
    Wide,
}

/// Claims with their verdicts, as text for people.
pub(super) fn blocks(report: &ClaimsReport, detail: Detail, page: Page) -> Vec<Block> {
    if report.reports.iter().any(|one| !one.questions.is_empty()) {
        return questions::compose(report, detail, page);
    }
    match detail {
        Detail::Brief => brief::compose(report, page),
        Detail::Parts => compose(report, false),
        Detail::Points => compose(report, true),
    }
}

/// The JSON schema (2020-12) of judged claims.
#[must_use]
pub fn schema() -> Value {
    named_schema(schemars::schema_for!(ClaimsReport), SCHEMA)
}

/// The text for a quantity in claims.
#[must_use]
pub fn words(name: &str) -> String {
    match name {
        "busy_cores" => "busy CPU".to_owned(),
        "busy_ratio" => "busy share of all CPUs".to_owned(),
        "softirq_ratio" => "softirq time".to_owned(),
        "send_error_ratio" => "refused sends".to_owned(),
        "skbs_per_s" => "skbs per second".to_owned(),
        "settling_s" => "time to settle, s".to_owned(),
        "client_cpu_busy_ratio" => "the senders' CPU".to_owned(),
        "server_cpu_busy_ratio" => "the receiver's CPU".to_owned(),
        "interarrival_sd_ns" => "jitter".to_owned(),
        "bytes_per_skb" => "bytes per skb".to_owned(),
        name => match name.strip_suffix(" share_ratio") {
            Some(subsystems) => format!("profile share of {subsystems}"),
            None => match name.strip_prefix("cost of ") {
                Some(subsystems) => format!("CPU cost of {subsystems}"),
                None => quantity::words(name),
            },
        },
    }
}

/// A figure of a check with its unit; a ratio has none.
#[must_use]
pub fn figure(check: &CheckReport, value: f64) -> String {
    alone(check.quantity.as_deref(), value)
}

/// `0.971 to 0.985`.
#[must_use]
pub fn interval(check: &CheckReport, estimate: &Estimate) -> String {
    span(check.quantity.as_deref(), estimate)
}

/// A figure without its interval; a ratio has no quantity.
#[must_use]
pub fn alone(quantity: Option<&str>, value: f64) -> String {
    match quantity {
        Some(name) => figure_of(name, value),
        None => significant(value),
    }
}

/// A figure with its interval: `49.5 % (48.7 to 50.4 %)`; a ratio has no quantity.
#[must_use]
pub fn quoted(quantity: Option<&str>, estimate: &Estimate) -> String {
    let value = alone(quantity, estimate.value);
    format!("{value} ({})", span(quantity, estimate))
}

fn span(quantity: Option<&str>, estimate: &Estimate) -> String {
    let (low, high) = (estimate.low, estimate.high);
    match quantity {
        Some(name) => {
            let scale = quantity::scale(name, low.abs().max(high.abs()));
            let text = format!("{} to {} {}", scale.show(low), scale.show(high), scale.unit);
            text.trim_end().to_owned()
        }
        None => format!("{} to {}", significant(low), significant(high)),
    }
}

/// What the rule requires of a check: `0.95 to 1.05`, `at least 913 Mbit/s`.
#[must_use]
pub fn bounds(check: &CheckReport) -> String {
    // As in the rule, not rounded.
    let show = |bound: f64| match &check.quantity {
        Some(name) => figure_of(name, bound),
        None => bound.to_string(),
    };
    match (check.at_least, check.at_most) {
        (Some(low), Some(high)) if check.beyond => {
            format!("below {} or above {}", show(low), show(high))
        }
        (Some(low), Some(high)) => match &check.quantity {
            Some(name) => quantity::show_all(name, &[low, high]).replace(" and ", " to "),
            None => format!("{} to {}", show(low), show(high)),
        },
        (Some(low), None) => format!("at least {}", show(low)),
        (None, Some(high)) => format!("at most {}", show(high)),
        (None, None) => "it does".to_owned(),
    }
}

/// The same for a table: `0.95…1.05`, `≥ 913 Mbit/s`.
fn short_bounds(check: &CheckReport) -> String {
    bounds(check)
        .replace("at least", "≥")
        .replace("at most", "≤")
        .replace("below ", "< ")
        .replace("above ", "> ")
        .replace(" to ", "…")
}

fn figure_of(name: &str, value: f64) -> String {
    quantity::show_all(name, &[value])
}

/// A share as a percentage.
#[must_use]
pub fn percent(share: f64) -> String {
    short_percent(share).replace('%', " %")
}

/// An effect as a share of a bound, in words. Of a wide spread, how wide is of no use to anybody.
#[must_use]
pub fn effect(share: f64) -> String {
    const VAST: f64 = 10.0;
    match 1.0 + share {
        factor if factor > VAST => format!("not even a factor of {VAST:.0}"),
        factor if factor >= 2.0 => format!("a factor of {factor:.1}"),
        _ => percent(share),
    }
}

fn compose(report: &ClaimsReport, every_point: bool) -> Vec<Block> {
    let mut blocks = vec![Block::Title("hopyard claims".to_owned())];
    blocks.push(Block::Facts(vec![tally(report)]));
    blocks.extend(
        report
            .machine
            .as_deref()
            .map(|m| Block::Facts(vec![plain::line(m)])),
    );
    for run in &report.runs {
        blocks.push(Block::Facts(vec![of_run(run)]));
    }
    for one in &report.reports {
        blocks.extend(of_report(one, every_point));
    }
    blocks.push(Block::Notes(legend(every_point)));
    blocks.extend(of_warnings(report));
    blocks
}

/// `69 claims: 30 hold, 8 fail, 12 undecided, 19 cannot be tested here`.
fn tally(report: &ClaimsReport) -> String {
    let all: Vec<&ClaimReport> = report.reports.iter().flat_map(|r| &r.claims).collect();
    let count = |verdict| all.iter().filter(|claim| claim.verdict == verdict).count();
    format!(
        "{}: {} hold, {} fail, {} undecided, {} cannot be tested here",
        crate::units::counted(all.len(), "claim"),
        count(ClaimVerdict::Holds),
        count(ClaimVerdict::Fails),
        count(ClaimVerdict::Undecided),
        count(ClaimVerdict::Untestable)
    )
}

fn of_run(run: &ClaimsRun) -> String {
    let further = run.further.as_ref().map_or_else(String::new, |further| {
        let cells = crate::units::counted(further.cells as usize, "cell");
        format!(" and {} of {cells} only", further.blocks)
    });
    format!(
        "plan {}: {}{further} × {} s, {} confidence{}",
        plain::line(&run.plan),
        crate::units::counted(run.blocks as usize, "block"),
        super::number::chosen(run.window_s),
        chosen_percent(run.confidence),
        if run.complete { "" } else { ", cut short" }
    )
}

/// The warnings of all runs under a heading; nothing if there are none.
fn of_warnings(report: &ClaimsReport) -> Vec<Block> {
    let warnings: Vec<String> = report.runs.iter().flat_map(warnings).collect();
    headed("Warnings", warnings)
}

fn warnings(run: &ClaimsRun) -> impl Iterator<Item = String> {
    let plan = plain::line(&run.plan);
    run.warnings
        .iter()
        .map(move |text| format!("{plan}: {}", plain::line(text)))
}

fn of_report(report: &ReportOfClaims, every_point: bool) -> Vec<Block> {
    let rows: Vec<Row> = report
        .claims
        .iter()
        .flat_map(|claim| rows(claim, every_point))
        .collect();
    let mut blocks = vec![
        Block::Heading(format!("{} ({})", report.title, report.report)),
        Block::Table(Table {
            columns: vec![
                Column::left(&["claim"]),
                Column::left(&["verdict"]),
                Column::left(&["what is measured"]),
                Column::left(&["rule"]),
                Column::left(&["published"]),
                Column::left(&["measured"]),
            ],
            keys: 1,
            rows,
        }),
        Block::List(report.claims.iter().map(sentence).collect()),
    ];
    let stand_in = report
        .stand_in
        .as_deref()
        .map(|text| format!("Stand-in: {}", plain::line(text)));
    blocks.extend(stand_in.map(Block::Paragraph));
    blocks.push(Block::Paragraph(format!(
        "Published: {}.",
        plain::line(&report.source)
    )));
    blocks
}

/// The claim, its verdict, and remarks.
fn sentence(claim: &ClaimReport) -> String {
    let mut text = format!(
        "{}. {}",
        plain::line(&claim.statement),
        plain::line(&claim.sentence)
    );
    for remark in &claim.remarks {
        text.push(' ');
        text.push_str(&plain::line(remark));
    }
    text
}

/// A row for each part of the rule, or for each point of it.
fn rows(claim: &ClaimReport, every_point: bool) -> Vec<Row> {
    if !claim.was_tested() {
        return vec![Row::Instead {
            keys: vec![claim.id.clone()],
            text: claim.verdict.words().to_owned(),
        }];
    }
    let mut rows = Vec::new();
    for check in &claim.checks {
        let places: Vec<Option<&PointReport>> = match (every_point, check.points.as_slice()) {
            (_, []) => vec![None],
            (true, points) => points.iter().map(Some).collect(),
            (false, points) => vec![check.deciding.and_then(|at| points.get(at))],
        };
        for point in places {
            // A claim is named once, with its verdict; its further rows have verdicts of their own.
            let first = rows.is_empty();
            let verdict = if first { claim.verdict.words() } else { "" };
            let id = if first { claim.id.as_str() } else { "" };
            rows.push(row(id, verdict, check, point));
        }
    }
    rows
}

fn row(id: &str, verdict: &str, check: &CheckReport, point: Option<&PointReport>) -> Row {
    let absent = || Cell::lone(ABSENT);
    let mut what = vec![plain::line(&check.what)];
    what.extend(
        point
            .map(|p| plain::line(&p.at))
            .filter(|at| !at.is_empty()),
    );
    let published = point.and_then(|p| p.published);
    Row::Cells(vec![
        Cell::lone(id),
        Cell::lone(verdict),
        Cell::lone(shorten(&what.join(": "), WHAT)),
        Cell::lone(short_bounds(check)),
        published.map_or_else(absent, |value| {
            Cell(vec![Part::Point(figure(check, value))])
        }),
        point.map_or_else(
            || {
                Cell::lone(if check.verdict == ClaimVerdict::Untestable {
                    ABSENT
                } else {
                    check.verdict.words()
                })
            },
            |p| {
                Cell(vec![
                    Part::Point(figure(check, p.measured.value)),
                    Part::Left(format!("({})", interval(check, &p.measured))),
                    Part::Left(mark(p.lies).to_owned()),
                ])
            },
        ),
    ])
}

/// The sign for the position of an interval relative to the rule.
fn mark(lies: BoundPosition) -> &'static str {
    match lies {
        BoundPosition::Inside => "✓",
        BoundPosition::Outside => "✗",
        BoundPosition::Across => "?",
    }
}

fn legend(every_point: bool) -> Vec<String> {
    let shown = if every_point {
        "every place that a rule covers"
    } else {
        "of the places that a rule covers, the one that decides; --points shows all"
    };
    vec![format!(
        "measured: {shown} · ✓ the interval is within the rule · ✗ wholly outside · ? across a bound, or too few blocks"
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_are_shares_factors_or_vast() {
        assert_eq!(effect(0.036), "3.6 %");
        assert_eq!(effect(2.4), "a factor of 3.4");
        assert_eq!(effect(1030.0), "not even a factor of 10");
    }
}
