//! What was compared, what else differs, and how to read it.

use crate::model::{DiffReport, LeftOut, MeasuredIn, Pairing, RunSummary};
use crate::plain;
use crate::report::document::Block;
use crate::report::header::trimmed;
use crate::report::number::chosen_percent;
use crate::units::counted;

use super::tables::Layout;

/// Title, machine and runs.
pub(super) fn runs(report: &DiffReport) -> Vec<Block> {
    let (a, b) = (&report.a, &report.b);
    let plan = if a.plan == b.plan {
        plain::line(&a.plan)
    } else {
        format!("{} and {}", plain::line(&a.plan), plain::line(&b.plan))
    };
    let mut lines = vec![machine(a), run("A", a), run("B", b)];
    let shared = Layout::of(report).shared;
    if !shared.is_empty() {
        lines.push(format!("every cell: {}", shared.join(", ")));
    }
    vec![
        Block::Title(format!("hopyard diff: {plan}")),
        Block::Facts(vec!["B against A".to_owned()]),
        Block::Notes(lines),
    ]
}

/// The machine of A; where B's is another, that is among what differs.
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
        trimmed(run.window_s),
        plain::line(&run.started),
        if run.complete { "" } else { ", cut short" }
    )
}

/// What differs beside the time, first of all.
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

/// What a comparison of two runs cannot know.
pub(super) fn caution(report: &DiffReport) -> Block {
    let Pairing::Unpaired = report.pairing;
    let text = if report.relative {
        "Unpaired, of ratios to the base within each run: a machine that was faster or slower as a whole \
         cancels, and so does whatever changed in the base and the cell alike."
    } else {
        "Unpaired: the runs were made at different times, and intervals know the scatter within each run \
         only. Two runs of one thing differ by more than that where the machine as a whole was faster or \
         slower; --relative takes that out."
    };
    Block::Paragraph(text.to_owned())
}

/// How to read the verdicts.
pub(super) fn legend(report: &DiffReport) -> Block {
    let confidence = chosen_percent(report.confidence);
    if report.quick_look {
        return Block::Paragraph(format!(
            "Intervals at {confidence}; a quick look has no verdicts."
        ));
    }
    Block::Paragraph(format!(
        "Intervals at {confidence}, each by itself. worse, better: different after correction for all {} \
         comparisons (Benjamini-Hochberg). equivalent: within {}. ? x%: inconclusive; a difference of x % \
         would have shown four times out of five.",
        report
            .cells
            .iter()
            .map(|c| c.comparisons.len())
            .sum::<usize>(),
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
        if !lines.is_empty() {
            blocks.push(Block::Heading(heading.to_owned()));
            blocks.push(Block::List(lines));
        }
    }
    blocks
}
