//! What was compared, what else differs, and how to read it.

use crate::document::{Block, headed};
use crate::model::{
    DiffReport, DiffWarningCode, IntervalFrom, LeftOut, MeasuredIn, QuantityDiff, RunSummary,
    distinct,
};
use crate::number::{chosen, chosen_percent, percent};
use crate::plain;
use crate::units::counted;

use super::tables::Layout;

/// Title, machine and runs.
pub(super) fn runs(report: &DiffReport) -> Vec<Block> {
    let plans = distinct(sides(report).map(|(_, run)| plain::line(&run.plan)));
    let mut lines: Vec<String> = report.a.first().map(machine).into_iter().collect();
    lines.extend(sides(report).map(|(name, one)| run(name, one)));
    for group in &report.repeats {
        lines.push(format!(
            "for the scatter: {} of one thing, {}",
            counted(group.len(), "run"),
            group
                .iter()
                .map(|run| plain::line(&run.id))
                .collect::<Vec<_>>()
                .join(", ")
        ));
    }
    let shared = Layout::of(report).shared;
    if !shared.is_empty() {
        lines.push(format!("every cell: {}", shared.join(", ")));
    }
    vec![
        Block::Title(format!("hopyard diff: {}", plans.join(" and "))),
        Block::Facts(vec!["B against A".to_owned()]),
        Block::Notes(lines),
    ]
}

fn sides(report: &DiffReport) -> impl Iterator<Item = (&'static str, &RunSummary)> {
    let a = report.a.iter().map(|run| ("A", run));
    a.chain(report.b.iter().map(|run| ("B", run)))
}

/// The machine of A; if B's is another one, that is among the differences.
fn machine(run: &RunSummary) -> String {
    let env = &run.environment;
    let mut facts = vec![
        format!("Linux {}", plain::line(&env.kernel_release)),
        plain::line(&env.cpu_model),
        counted(env.cpus as usize, "CPU"),
    ];
    facts.extend(
        env.hypervisor
            .iter()
            .map(|name| format!("under {}", plain::line(name))),
    );
    if env.is_emulated() {
        facts.push("emulated: shape only".to_owned());
    }
    facts.join(", ")
}

fn run(name: &str, run: &RunSummary) -> String {
    format!(
        "{name}: {}, {} of {} s, begun {}{}",
        plain::line(&run.id),
        counted(run.blocks as usize, "block"),
        chosen(run.window_s),
        plain::line(&run.started),
        if run.complete { "" } else { ", cut short" }
    )
}

/// Differences besides the time, first of all.
pub(super) fn differences(report: &DiffReport) -> Vec<Block> {
    if report.differences.is_empty() {
        return vec![Block::Paragraph(
            "Of what was recorded, nothing differs between the two but the time.".to_owned(),
        )];
    }
    let shown = |text: &str| match plain::line(text) {
        text if text.is_empty() => "(nothing)".to_owned(),
        text => text,
    };
    let lines = report.differences.iter();
    let lines = lines.map(|d| {
        format!(
            "{}: {} -> {}",
            plain::line(&d.what),
            shown(&d.a),
            shown(&d.b)
        )
    });
    vec![
        Block::Heading("What differs, A -> B".to_owned()),
        Block::List(lines.collect()),
    ]
}

/// What intervals are based on, and what they do not contain.
pub(super) fn caution(report: &DiffReport) -> Vec<Block> {
    let scatter: Vec<f64> = all(report).filter_map(|q| q.run_scatter).collect();
    let mut said = Vec::new();
    if let Some(least) = scatter.iter().copied().reduce(f64::min) {
        let most = scatter.iter().copied().fold(least, f64::max);
        said.push(format!(
            "Intervals and verdicts come from how much runs of the same thing differ here: one standard deviation is {} in \
             the steadiest comparison, {} in the most uneven.",
            percent(least),
            percent(most)
        ));
    }
    if all(report).any(|q| q.interval_from == IntervalFrom::Blocks) {
        let which = if scatter.is_empty() {
            "Intervals are within these runs".to_owned()
        } else {
            "Where there is no verdict, the interval is within these runs".to_owned()
        };
        said.push(format!(
            "{which}; how much two runs of the same thing differ here is not known, so there is no verdict between runs: \
             repeat each at least three times, or compare both in one run with --a/--b."
        ));
    }
    if report.relative {
        said.push(
            "Ratios to the base within each run: what made the machine faster or slower as a whole cancels, and so does \
             whatever changed in the base and the cell alike."
                .to_owned(),
        );
    }
    said.into_iter().map(Block::Paragraph).collect()
}

pub(super) fn all(report: &DiffReport) -> impl Iterator<Item = &QuantityDiff> {
    report.cells.iter().flat_map(|c| c.comparisons.values())
}

/// How to read the verdicts.
pub(super) fn legend(report: &DiffReport) -> Block {
    let confidence = chosen_percent(report.confidence);
    let judged = all(report).filter(|q| q.verdict.is_some()).count();
    if judged == 0 {
        return Block::Paragraph(format!(
            "Intervals at {confidence}, within these runs only; no verdicts."
        ));
    }
    Block::Paragraph(format!(
        "Intervals at {confidence}, each by itself. worse, better: different after correction for all {judged} \
         comparisons (Benjamini-Hochberg). equivalent: within {}. ? x%: inconclusive; a difference of x % would have \
         been found with a probability of 80 %.",
        chosen_percent(report.margin),
    ))
}

/// Cells that are not compared, with the reason.
pub(super) fn left_out(report: &DiffReport) -> Vec<Block> {
    let layout = Layout::of(report);
    let kinds = [
        (MeasuredIn::A, "In A only"),
        (MeasuredIn::B, "In B only"),
        (MeasuredIn::Both, "In both, not compared"),
        (MeasuredIn::Neither, "In neither"),
    ];
    let mut blocks = Vec::new();
    for (kind, heading) in kinds {
        let name =
            |l: &LeftOut| format!("{}: {}", layout.full_name(&l.cell), plain::line(&l.cause));
        let cells = report.left_out.iter().filter(|l| l.measured_in == kind);
        let lines: Vec<String> = cells.map(name).collect();
        blocks.extend(headed(heading, lines));
    }
    blocks
}

/// Warnings as sentences.
pub(super) fn warnings(report: &DiffReport) -> Vec<String> {
    let all = report.warnings.iter();
    // ScatterUnknown is stated above the tables.
    let others = all.filter(|w| w.code != DiffWarningCode::ScatterUnknown);
    others.map(|w| plain::line(&w.message)).collect()
}
