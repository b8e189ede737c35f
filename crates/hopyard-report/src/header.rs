//! What was done on which machine: stated once.

use super::document::Block;
use super::group;
use super::number::{chosen, chosen_percent};
use super::quantity;
use crate::model::{
    CpuAccounting, RunReport, SettingsReport, SwitchedBetween, TraceSummary, TurnsReport,
};
use crate::plain;
use crate::units::{counted, float};

/// The title of the report.
pub(super) fn title(report: &RunReport) -> Vec<Block> {
    let plan = plain::line(&report.run.plan);
    vec![Block::Title(format!("hopyard run: {plan}"))]
}

/// Facts, and what a reader must know first.
pub(super) fn blocks(report: &RunReport) -> Vec<Block> {
    let run = &report.run;
    let mut blocks = vec![
        Block::Facts(measuring(report)),
        Block::Facts(machine(report)),
    ];
    if let Some(elsewhere) = &run.elsewhere {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let foreign = match run.environment.others_hidden {
            None => percent(elsewhere.foreign_ratio),
            Some(_) => "not known".to_owned(),
        };
        blocks.push(Block::Facts(vec![
            format!("while measuring: other processes {foreign}"),
            format!("steal {}", percent(elsewhere.steal_ratio)),
            format!("quiet machine {}", percent(elsewhere.baseline_ratio)),
        ]));
    }
    blocks.extend(
        run.turns
            .as_ref()
            .map(|turns| Block::Facts(turns_taken(turns))),
    );
    blocks.extend(run.settings.as_ref().map(|s| Block::Facts(settings(s))));
    blocks.extend(run.traces.iter().map(|one| Block::Facts(trace(one))));
    let shared = group::shared(&report.cells);
    if !shared.is_empty() {
        blocks.push(Block::Facts(vec![format!(
            "every cell: {}",
            shared.join(", ")
        )]));
    }
    let visits = counted(run.blocks as usize, "block");
    if !run.complete {
        blocks.push(Block::Paragraph(format!(
            "Cut short after {visits}: the figures below are from those."
        )));
    }
    if report.cells.is_empty() {
        blocks.push(Block::Paragraph(
            "There are no figures: the run has no cells.".to_owned(),
        ));
    }
    blocks
}

/// What was compared, and when the host was switched.
fn settings(settings: &SettingsReport) -> Vec<String> {
    let commands = &settings.commands;
    let named = [
        ("A", Some(&commands.a)),
        ("B", Some(&commands.b)),
        ("restored by", commands.restore.as_ref()),
    ];
    let mut facts: Vec<String> = named
        .iter()
        .filter_map(|(name, command)| Some(format!("{name}: `{}`", plain::line((*command)?))))
        .collect();
    let when = match settings.switched_between {
        SwitchedBetween::Turns => "between turns",
        SwitchedBetween::Generations => "once in each block",
    };
    facts.push(format!(
        "switched {when} (a switch took {:.1} ms)",
        settings.switch_s * 1e3
    ));
    facts
}

/// What was replayed.
fn trace(trace: &TraceSummary) -> Vec<String> {
    let sizes = match (trace.smallest_bytes, trace.largest_bytes) {
        (least, most) if least == most => format!("{most} B each"),
        (least, most) => format!("{least} to {most} B each"),
    };
    vec![
        format!("trace {}", plain::line(&trace.trace)),
        format!(
            "{} within {}",
            counted(
                usize::try_from(trace.datagrams).unwrap_or(usize::MAX),
                "datagram"
            ),
            quantity::show_all("span_ns", &[float(trace.span_ns)]),
        ),
        sizes,
        format!(
            "{} of payload",
            quantity::show_all("payload_bps", &[trace.bps()])
        ),
    ]
}

/// What was measured in turns, and what disturbed them.
fn turns_taken(turns: &TurnsReport) -> Vec<String> {
    let (fewest, most) = turns.rounds;
    let rounds = if fewest == most {
        counted(most as usize, "round")
    } else {
        format!("{fewest} to {most} rounds")
    };
    let shortest = turns.shortest_window_s.map_or(String::new(), |shortest_s| {
        format!("{:.0} to ", shortest_s * 1e3)
    });
    let mut facts = vec![format!(
        "measured in turns of {shortest}{:.0} ms, side by side, {rounds} a block",
        turns.window_s * 1e3
    )];
    let disturbed: u32 = turns.disturbed.values().sum();
    if disturbed > 0 {
        let causes = turns
            .disturbed
            .iter()
            .map(|(cause, count)| format!("{} {count}", cause.name()));
        facts.push(format!(
            "{disturbed} of {} turns were disturbed ({}); rounds with such turns are taken again while time allows",
            turns.taken,
            causes.collect::<Vec<_>>().join(", ")
        ));
    }
    facts
}

/// How long each cell was measured in a block: as asked for, or less where a time limit came first.
fn windows(report: &RunReport) -> String {
    const AS_ASKED: f64 = 0.9;
    let asked = report.run.window_s;
    let each = report.cells.iter().filter_map(|cell| cell.window_s);
    let (least, most) = each.fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), window| {
        (least.min(window), most.max(window))
    });
    if !least.is_finite() || least >= AS_ASKED * asked {
        return format!("{} s", chosen(asked));
    }
    let [least, most] = [least, most].map(|window| format!("{window:.2}"));
    let measured = if least == most {
        most
    } else {
        format!("{least} to {most}")
    };
    format!("{measured} s ({} s asked for)", chosen(asked))
}

fn measuring(report: &RunReport) -> Vec<String> {
    let run = &report.run;
    let base = group::Layout::of(&report.cells).base.map(plain::line);
    let mut facts = vec![
        format!(
            "{} × {}",
            counted(run.blocks as usize, "block"),
            windows(report)
        ),
        format!("{} confidence", chosen_percent(run.confidence)),
        format!("seed {}", run.seed),
    ];
    facts.extend(if report.offloads.is_some() {
        Some("compared with all offloads on, or all off".to_owned())
    } else {
        base.map(|path| format!("compared with {path}"))
    });
    facts
}

fn machine(report: &RunReport) -> Vec<String> {
    let env = &report.run.environment;
    let cpus = counted(env.cpus as usize, "CPU");
    let mut facts = vec![
        format!("Linux {}", plain::line(&env.kernel_release)),
        format!("{}, {cpus}", plain::line(&env.cpu_model)),
    ];
    facts.extend(
        env.hypervisor
            .as_deref()
            .map(|name| format!("under {}", plain::line(name))),
    );
    if env.is_emulated() {
        facts.push("emulated: shape only".to_owned());
    }
    if env.cpu_accounting == CpuAccounting::KeptAwake {
        facts.push("CPUs kept awake".to_owned());
    }
    facts.push(plain::line(&report.run.started));
    facts
}
