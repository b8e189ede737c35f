//! Warnings: full sentences with advice, each with a code for scripts.

mod cells;
mod machine;
mod queues;
mod traces;
mod turns;

use super::base;
use super::cells::measurements;
use super::quantities::decides_width;
use crate::model::stored::{End, Run, left_out_in_words};
use crate::model::{CellReport, FOR_A_VERDICT, RunSummary, Sample, Warning, WarningCode, distinct};
use crate::stats::{self, Dependence};
use crate::units::counted;
use cells::{
    ceiling, connections, datapath, emulated_guest, ends_differ, failed, offload, pace, receiver,
    search, shared_cpu, silent_flows, two_modes, unsettled, way, zero_copy,
};
use machine::{
    accounting, closure, congestion, cpu_unknown, debug_kernel, emulated, foreign_cpu,
    foreign_forks, frequency, missed_windows, steal,
};

/// Everything a reader must know before trusting a figure.
pub(super) fn all(
    run: &Run,
    summary: &RunSummary,
    cells: &[CellReport],
    samples: &[&Sample],
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code, message: Option<String>| {
        warnings.extend(message.map(|message| Warning { code, message }));
    };
    warn(WarningCode::CutShort, cut_short(run, summary, samples));
    warn(
        WarningCode::LeftOut,
        left_out_in_words(&run.header.left_out),
    );
    warn(WarningCode::NotCompared, not_compared(run));
    warn(WarningCode::Failed, failed(cells));
    warn(WarningCode::Way, way(cells));
    warn(WarningCode::QuickLook, quick_look(summary));
    warn(
        WarningCode::Width,
        match run.header.decide {
            Some(difference) => unseen(run, summary, samples, difference),
            None => width(summary, cells),
        },
    );
    warn(WarningCode::ForeignCpu, foreign_cpu(summary));
    warn(WarningCode::ForeignForks, foreign_forks(samples));
    warn(WarningCode::Steal, steal(summary));
    warn(
        WarningCode::DisturbedTurns,
        turns::disturbed(cells, samples),
    );
    warn(WarningCode::CpuUnknown, cpu_unknown(run, samples));
    warn(WarningCode::MissedWindows, missed_windows(run, samples));
    warn(WarningCode::Closure, closure(summary));
    warn(WarningCode::CpuAccounting, accounting(summary, cells));
    warn(WarningCode::TwoModes, two_modes(cells));
    warn(WarningCode::Unsettled, unsettled(cells));
    warn(WarningCode::Dependent, dependent(run, summary, samples));
    warn(WarningCode::GeneratorCeiling, ceiling(run, cells));
    warn(WarningCode::Pace, pace(cells));
    warn(WarningCode::Pace, connections(cells));
    warn(WarningCode::Pace, traces::too_fast(run, samples));
    warn(WarningCode::Trace, traces::too_long(run));
    warn(WarningCode::Search, search(cells));
    warn(WarningCode::Tracking, queues::tracking(run, samples));
    warn(WarningCode::Backlog, queues::backlog(run, samples));
    warn(WarningCode::Receiver, receiver(cells));
    warn(WarningCode::ZeroCopy, zero_copy(cells));
    warn(WarningCode::SilentFlows, silent_flows(cells));
    warn(WarningCode::SharedCpu, shared_cpu(summary, cells));
    if run.header.offloads.is_none() {
        warn(WarningCode::Offload, offload(cells));
    }
    warn(WarningCode::Datapath, datapath(cells));
    warn(WarningCode::EndsDiffer, ends_differ(cells));
    warn(WarningCode::CongestionControl, congestion(summary, cells));
    warn(WarningCode::FrequencyScaling, frequency(summary));
    warn(WarningCode::DebugKernel, debug_kernel(summary));
    warn(
        WarningCode::Emulated,
        emulated(summary).or_else(|| emulated_guest(cells)),
    );
    warnings
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The names of some of the cells.
fn named(cells: &[&CellReport]) -> String {
    const SHOWN: usize = 4;
    let name = |cell: &&CellReport| format!("{}/{}/{}", cell.path, cell.peer, cell.load);
    // Cells of a sweep share their name.
    let mut names = distinct(cells.iter().map(name));
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

fn with(cells: &[CellReport], filter: impl Fn(&CellReport) -> bool) -> Option<Vec<&CellReport>> {
    let found: Vec<&CellReport> = cells.iter().filter(|cell| filter(cell)).collect();
    (!found.is_empty()).then_some(found)
}

/// Cells that lack the base.
fn not_compared(run: &Run) -> Option<String> {
    let why = base::missing(&run.header)?;
    let (first, rest) = why.split_at_checked(1)?;
    Some(format!("{}{rest}.", first.to_uppercase()))
}

fn cut_short(run: &Run, summary: &RunSummary, samples: &[&Sample]) -> Option<String> {
    let why = match run.end {
        Some(End::Complete | End::TimeLimit) => return lost(run, summary, samples),
        Some(End::Interrupted) => "it was interrupted",
        // A run that compares settings is not finished before the host is restored.
        None if run.header.settings.is_some() => {
            "the program ended before all was measured and the host restored (or is still measuring)"
        }
        None => "the program ended without finishing it (or is still measuring)",
    };
    Some(format!(
        "This run is not whole: {why} after {} complete blocks. Figures come from what there is.",
        summary.blocks
    ))
}

/// What a run that ended well has no samples of: nothing but its file of samples tells how many there were.
fn lost(run: &Run, summary: &RunSummary, samples: &[&Sample]) -> Option<String> {
    let begun = samples.iter().map(|sample| sample.block + 1).max();
    let begun = begun.unwrap_or(0);
    let whole = match run.end {
        Some(End::Complete) => begun.max(run.header.blocks_min),
        // It ends within a block.
        _ => begun.saturating_sub(1),
    };
    (summary.blocks < whole).then(|| {
        format!(
            "This run is not whole: {} of {} are complete though it ended well. Lines of samples.jsonl were lost, or it could not become \
             larger. Figures come from what there is.",
            summary.blocks,
            counted(whole as usize, "block")
        )
    })
}

fn quick_look(summary: &RunSummary) -> Option<String> {
    summary.quick_look.then(|| {
        format!(
            "Quick look: {}. A verdict needs at least {FOR_A_VERDICT}; raise --blocks or the time limit.",
            counted(summary.blocks as usize, "block")
        )
    })
}

fn width(summary: &RunSummary, cells: &[CellReport]) -> Option<String> {
    if summary.half_width_reached || summary.blocks == 0 {
        return None;
    }
    let wide = with(cells, |cell| {
        cell.estimates
            .iter()
            .filter(|(name, _)| decides_width(name, cell.load, &cell.axes))
            .any(|(_, e)| e.half_width_ratio() > summary.half_width)
    })?;
    let of_them = match (wide.len(), cells.len()) {
        (1, 1) => "The cell is".to_owned(),
        (1, all) => format!("1 of {all} cells is"),
        (some, all) => format!("{some} of {all} cells are"),
    };
    Some(format!(
        "{of_them} known less well than the {} half-width asked for: {}. More blocks (--blocks, --time-limit) make {} \
         narrower.",
        percent(summary.half_width),
        named(&wide),
        if wide.len() == 1 { "it" } else { "them" }
    ))
}

/// Comparisons that a run with `--decide` could not decide.
fn unseen(run: &Run, summary: &RunSummary, samples: &[&Sample], difference: f64) -> Option<String> {
    let all = super::decided(&run.header, samples);
    let open = all
        .iter()
        .filter(|smallest| **smallest > difference)
        .count();
    (open > 0 && summary.blocks > 0).then(|| {
        format!(
            "{open} of {} could not show a difference of {} %, which --decide asks for. More blocks (--blocks, \
             --time-limit) show smaller differences.",
            counted(all.len(), "comparison"),
            (difference * 1e6).round() / 1e4
        )
    })
}

/// Whether neighbouring blocks resemble each other. Judged over all paired differences together, because single cells
/// are too short.
fn dependent(run: &Run, summary: &RunSummary, samples: &[&Sample]) -> Option<String> {
    if summary.quick_look {
        return None;
    }
    let series = super::verdicts::series(&run.header, samples);
    let sign = match stats::dependence(&series)? {
        Dependence::Alike(lag1) => {
            format!("Neighbouring blocks are alike (correlation {lag1:.2})")
        }
        Dependence::Trend => "Figures drift from the first block to the last".to_owned(),
        Dependence::Unseen => {
            return Some(format!(
                "{} blocks of so few cells do not show whether neighbouring blocks are alike; if they are, \
                 intervals are narrower than they should be. 15 blocks show it (--blocks 15..20).",
                summary.blocks
            ));
        }
    };
    Some(format!(
        "{sign}: something changes slowly while measuring, and intervals are narrower than they should be. \
         A longer run averages it out."
    ))
}
