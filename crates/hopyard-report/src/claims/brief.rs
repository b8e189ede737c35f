//! Each claim in one row: for a page that shows all of them.

use super::{Page, effect, figure, interval, of_run, sentence, tally};
use crate::document::{Block, Cell, Column, Row, Table};
use crate::model::{CheckReport, ClaimReport, ClaimsReport, FIRST_LOOK, distinct};
use crate::number::ABSENT;
use crate::plain;

/// Under a heading of its own: machine and date, and a row for each claim. A terminal is too narrow for such rows and
/// gets the sentences.
pub(super) fn compose(report: &ClaimsReport, page: Page) -> Vec<Block> {
    let mut blocks = opening(report, &tally(report));
    for one in &report.reports {
        if report.reports.len() > 1 {
            blocks.push(Block::Subheading(format!("{} ({})", one.title, one.report)));
        }
        blocks.push(match page {
            Page::Terminal => Block::List(one.claims.iter().map(sentence).collect()),
            Page::Wide => Block::Table(table(&one.claims)),
        });
    }
    blocks
}

/// How many there are of each kind, where and when that was measured, and by which plans.
pub(super) fn opening(report: &ClaimsReport, tally: &str) -> Vec<Block> {
    let mut blocks = vec![Block::Paragraph(format!(
        "{tally}. {}.",
        where_and_when(report)
    ))];
    let plans: Vec<String> = report.runs.iter().map(of_run).collect();
    if !plans.is_empty() {
        blocks.push(Block::Paragraph(format!(
            "Measured by {}.",
            plans.join("; ")
        )));
    }
    blocks
}

/// `Linux 6.18 · CPU, 2 CPUs · hopyard 0.1.0, 2026-11-22`.
fn where_and_when(report: &ClaimsReport) -> String {
    let day = |started: &String| started.split('T').next().unwrap_or_default().to_owned();
    let mut days: Vec<String> = report.runs.iter().map(|run| day(&run.started)).collect();
    days.sort();
    days.dedup();
    let machine = report.machine.as_deref().map(plain::line);
    let when = match days.as_slice() {
        [first, .., last] => Some(format!("{first} to {last}")),
        [day] => Some(day.clone()),
        [] => None,
    };
    let known: Vec<String> = machine.into_iter().chain(when).collect();
    if known.is_empty() {
        "No plan was run".to_owned()
    } else {
        known.join(", ")
    }
}

fn table(claims: &[ClaimReport]) -> Table {
    Table {
        columns: vec![
            Column::left(&["claim"]),
            Column::left(&["what is claimed"]),
            Column::left(&["published"]),
            Column::left(&["measured here"]),
            Column::left(&["verdict"]),
        ],
        keys: 1,
        rows: claims.iter().map(row).collect(),
    }
}

fn row(claim: &ClaimReport) -> Row {
    let measured = measured(claim);
    let texts = [
        claim.id.as_str(),
        &claim.statement,
        &claim.published,
        &measured,
        claim.verdict.words(),
    ];
    Row::Cells(texts.map(|text| Cell::lone(plain::line(text))).into())
}

/// The figure that decides each part of the rule, or why there is none.
fn measured(claim: &ClaimReport) -> String {
    if !claim.was_tested() {
        let verdict = format!("{} {}: ", claim.id, claim.verdict.words());
        let why = claim.sentence.strip_prefix(&verdict);
        return why.unwrap_or(ABSENT).trim_end_matches('.').to_owned();
    }
    let mut parts: Vec<String> = claim.checks.iter().filter_map(of_check).collect();
    let untested = claim.checks.iter().flat_map(|check| &check.untested);
    let untested = distinct(untested.map(String::as_str));
    if !untested.is_empty() {
        parts.push(format!("not tested: {}", untested.join("; ")));
    }
    let first_look = claim.remarks.iter().find(|r| r.starts_with(FIRST_LOOK));
    parts.extend(first_look.map(|remark| remark.trim_end_matches('.').to_owned()));
    parts.join("; ")
}

fn of_check(check: &CheckReport) -> Option<String> {
    if let Some(seen) = &check.seen {
        return Some(seen.clone());
    }
    let point = check.points.get(check.deciding?)?;
    let at = if point.at.is_empty() {
        String::new()
    } else {
        format!(" ({})", point.at)
    };
    let would_show = check.smallest_effect.map_or_else(String::new, |share| {
        format!(", {} off a bound would have shown", effect(share))
    });
    Some(format!(
        "{}{at}: {} ({}){would_show}",
        check.what,
        figure(check, point.measured.value),
        interval(check, &point.measured)
    ))
}
