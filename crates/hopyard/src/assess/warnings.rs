//! Doubts: full sentences with advice, each with a code for scripts.

use std::collections::BTreeSet;

use super::cells::CLOSURE;
use super::quantities::quantity;
use crate::model::{
    CellReport, CellStatus, CpuAccounting, DatapathKind, LoadKind, Measurement, OPEN_VSWITCH,
    Outcome, Placement, RunSummary, Sample, Warning, WarningCode,
};
use crate::plan::FOR_A_VERDICT;
use crate::stats::{self, Dependence};
use crate::store::{End, Run};
use crate::units::show_duration;

/// Foreign CPU above this share of the machine is a doubt.
const FOREIGN: f64 = 0.02;
/// Steal above this share of the machine is a doubt, and repeats its block.
const STEAL: f64 = 0.01;
/// A result this near to what the generator can do at all is a doubt.
const CEILING: f64 = 0.9;
/// Processes started by others, per second, above which their CPU time may be missed.
const FORKS_PER_S: f64 = 20.0;
/// Shortest window for which `/proc/stat` is fine enough, s.
const COARSE_WINDOW_S: f64 = 10.0;

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
    warn(WarningCode::CutShort, cut_short(run.end, summary));
    warn(WarningCode::LeftOut, left_out(run));
    warn(WarningCode::Failed, failed(cells));
    warn(WarningCode::Way, way(cells));
    warn(WarningCode::QuickLook, quick_look(summary));
    warn(WarningCode::Width, width(summary, cells));
    warn(WarningCode::ForeignCpu, foreign_cpu(summary));
    warn(WarningCode::ForeignForks, foreign_forks(samples));
    warn(WarningCode::Steal, steal(summary));
    warn(WarningCode::Closure, closure(summary));
    warn(WarningCode::CpuAccounting, accounting(summary));
    warn(WarningCode::TwoModes, two_modes(cells));
    warn(WarningCode::Unsettled, unsettled(cells));
    warn(WarningCode::Dependent, dependent(run, summary, samples));
    warn(WarningCode::GeneratorCeiling, ceiling(run, cells));
    warn(WarningCode::SharedCpu, shared_cpu(summary, cells));
    warn(WarningCode::Offload, offload(cells));
    warn(WarningCode::Datapath, datapath(cells));
    warn(WarningCode::CongestionControl, congestion(summary, cells));
    warn(WarningCode::FrequencyScaling, frequency(summary));
    warn(WarningCode::DebugKernel, debug_kernel(summary));
    warn(WarningCode::Emulated, emulated(summary));
    warnings
}

fn measurements<'a>(samples: &'a [&Sample]) -> impl Iterator<Item = &'a Measurement> {
    samples.iter().filter_map(|s| match &s.outcome {
        Outcome::Measured(m) => Some(&**m),
        Outcome::Failed { .. } => None,
    })
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Names of cells, a few of them.
fn named(cells: &[&CellReport]) -> String {
    const SHOWN: usize = 4;
    let mut names: Vec<String> = cells
        .iter()
        .take(SHOWN)
        .map(|cell| format!("{}/{}/{}", cell.path, cell.peer, cell.load))
        .collect();
    if cells.len() > SHOWN {
        names.push(format!("and {} more", cells.len() - SHOWN));
    }
    names.join(", ")
}

fn with(cells: &[CellReport], filter: impl Fn(&CellReport) -> bool) -> Option<Vec<&CellReport>> {
    let found: Vec<&CellReport> = cells.iter().filter(|cell| filter(cell)).collect();
    (!found.is_empty()).then_some(found)
}

fn cut_short(end: Option<End>, summary: &RunSummary) -> Option<String> {
    let why = match end {
        Some(End::Complete | End::TimeLimit) => return None,
        Some(End::Interrupted) => "it was interrupted",
        None => "the program ended without finishing it (or is still measuring)",
    };
    Some(format!(
        "This run is not whole: {why} after {} complete blocks. Figures come from what there is.",
        summary.blocks
    ))
}

fn left_out(run: &Run) -> Option<String> {
    let names: Vec<&str> = run
        .header
        .left_out
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "This host cannot build {}: left out. `hopyard doctor` says what is missing.",
            names.join(", ")
        )
    })
}

fn failed(cells: &[CellReport]) -> Option<String> {
    let found = with(cells, |cell| cell.status == CellStatus::Failed)?;
    let samples: u32 = found.iter().map(|cell| cell.failed_samples).sum();
    Some(format!(
        "{} failed ({samples} samples in all); the causes stand below the tables.",
        named(&found)
    ))
}

fn way(cells: &[CellReport]) -> Option<String> {
    let found = with(cells, |cell| {
        cell.status == CellStatus::Ok && !cell.way.proved
    })?;
    let problem = found.iter().find_map(|cell| cell.way.problems.first())?;
    Some(format!(
        "The way could not be proved for {}: {problem}. Do not trust these cells before you know why.",
        named(&found)
    ))
}

fn quick_look(summary: &RunSummary) -> Option<String> {
    summary.quick_look.then(|| {
        format!(
            "Quick look: {} blocks. A verdict needs at least {FOR_A_VERDICT}; raise --blocks or the time limit.",
            summary.blocks
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
            .filter(|(name, _)| quantity(name).is_ok_and(|q| q.decides_width))
            .any(|(_, e)| e.half_width_ratio() > summary.half_width)
    })?;
    Some(format!(
        "{} of {} cells are known less well than the {} half-width asked for: {}. More blocks \
         (--blocks, --time-limit) make them narrower.",
        wide.len(),
        cells.len(),
        percent(summary.half_width),
        named(&wide)
    ))
}

fn foreign_cpu(summary: &RunSummary) -> Option<String> {
    let share = summary.elsewhere?.foreign_ratio;
    (share > FOREIGN).then(|| {
        format!(
            "Other processes used {} of the machine while measuring. It is subtracted from CPU costs, but \
             they took caches and CPUs from the load: stop them for figures to rely on.",
            percent(share)
        )
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "forks of a run are far below 2^53"
)]
fn foreign_forks(samples: &[&Sample]) -> Option<String> {
    let (mut forks, mut seconds) = (0u64, 0.0);
    for m in measurements(samples) {
        forks += m.cpu.forks;
        seconds += m.cpu.elapsed_ns / 1e9;
    }
    let rate = forks as f64 / seconds;
    (seconds > 0.0 && rate > FORKS_PER_S).then(|| {
        format!(
            "{rate:.0} processes a second were started by others while measuring; CPU time of those that \
             also ended in a window cannot be told from the load's."
        )
    })
}

fn steal(summary: &RunSummary) -> Option<String> {
    let share = summary.elsewhere?.steal_ratio;
    (share > STEAL).then(|| {
        format!(
            "The hypervisor took {} of the machine's time away. It is subtracted, but what remains \
             is not a quiet machine: expect wide intervals.",
            percent(share)
        )
    })
}

fn closure(summary: &RunSummary) -> Option<String> {
    let q = summary.elsewhere?.closure;
    ((q - 1.0).abs() > CLOSURE).then(|| {
        format!(
            "The columns of /proc/stat add up to {:.1} % of the time that passed, so there is no split into \
             user, system and softirq. Totals come from the idle clock and are not affected.",
            q * 100.0
        )
    })
}

fn accounting(summary: &RunSummary) -> Option<String> {
    let coarse = summary.environment.cpu_accounting == CpuAccounting::ProcStat;
    (coarse && summary.window_s < COARSE_WINDOW_S).then(|| {
        "CPU time comes from /proc/stat in steps of 10 ms, since /proc/timer_list cannot be read: with \
         windows under 10 s costs are uncertain by 5 to 10 %. Run as root, or use --window 10s."
            .to_owned()
    })
}

fn two_modes(cells: &[CellReport]) -> Option<String> {
    let found = with(cells, |cell| !cell.two_modes.is_empty())?;
    Some(format!(
        "{} show two modes: their mean describes neither. Look for what differs between samples \
         (placement, steal, queue choice).",
        named(&found)
    ))
}

fn unsettled(cells: &[CellReport]) -> Option<String> {
    let found = with(cells, |cell| cell.unsettled_samples > 0)?;
    // A rare unsettled window is chance; a fifth of them is the cell's nature.
    let often: Vec<&CellReport> = found
        .into_iter()
        .filter(|cell| {
            let n = cell.estimates.values().map(|e| e.n).max().unwrap_or(0);
            f64::from(cell.unsettled_samples)
                > 0.2 * f64::from(u32::try_from(n).unwrap_or(u32::MAX))
        })
        .collect();
    (!often.is_empty()).then(|| {
        format!(
            "{} did not settle within many of their windows: use a longer --window, or a longer warm-up \
             in the plan.",
            named(&often)
        )
    })
}

/// Are neighbouring blocks alike? Judged over all paired differences together: single cells are too short.
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

fn ceiling(run: &Run, cells: &[CellReport]) -> Option<String> {
    let near: Vec<&CellReport> = run
        .header
        .cells
        .iter()
        .zip(cells)
        .filter(|(planned, cell)| {
            let (name, unit) = match cell.load {
                LoadKind::TcpStream | LoadKind::TcpMaerts => ("goodput_bps", 8.0),
                LoadKind::UdpStream => ("packets_per_s", 1.0),
                LoadKind::TcpRr | LoadKind::TcpCrr | LoadKind::UdpRr => ("transactions_per_s", 1.0),
            };
            let flows = f64::from(cell.axes.flows.min(run.header.environment.cpus));
            match (planned.ceiling_per_s, cell.estimates.get(name)) {
                (Some(most), Some(seen)) => seen.value > CEILING * most * unit * flows,
                _ => false,
            }
        })
        .map(|(_, cell)| cell)
        .collect();
    (!near.is_empty()).then(|| {
        format!(
            "{} are within 10 % of what the load generator itself can do with no path at all: the path may \
             be faster than shown.",
            named(&near)
        )
    })
}

fn shared_cpu(summary: &RunSummary, cells: &[CellReport]) -> Option<String> {
    let free = with(cells, |cell| cell.axes.placement == Placement::Free)?;
    let one = if summary.environment.cpus < 2 {
        "had to share the one CPU"
    } else {
        "may have shared a CPU"
    };
    Some(format!(
        "With placement `free` the two ends of {} {one}, which changes request/response figures several \
         times over: use placement `same` or `split`.",
        named(&free)
    ))
}

fn offload(cells: &[CellReport]) -> Option<String> {
    let found = with(cells, |cell| {
        cell.offloads.values().any(|state| state == "differs")
    })?;
    let flags: BTreeSet<&str> = found
        .iter()
        .flat_map(|cell| cell.offloads.iter().filter(|(_, s)| *s == "differs"))
        .map(|(flag, _)| flag.as_str())
        .collect();
    Some(format!(
        "{} of {} are not what was asked for: another flag they depend on does not allow it.",
        flags.into_iter().collect::<Vec<_>>().join(", "),
        named(&found)
    ))
}

fn datapath(cells: &[CellReport]) -> Option<String> {
    // Other switches in user space have no other datapath.
    let userspace = |cell: &&CellReport| {
        let datapath = cell.datapath.as_ref();
        datapath.is_some_and(|d| d.kind == DatapathKind::Userspace && d.switch == OPEN_VSWITCH)
    };
    let found: Vec<&CellReport> = cells.iter().filter(userspace).collect();
    let datapath = found.first()?.datapath.as_ref()?;
    let paths: BTreeSet<&str> = found.iter().map(|cell| cell.path.as_str()).collect();
    Some(format!(
        "{} forwarded in userspace for {}, since this kernel has no module `openvswitch`: every frame \
         crossed into its process and back. The figures say nothing about its kernel datapath.",
        datapath.switch,
        paths.into_iter().collect::<Vec<_>>().join(", ")
    ))
}

fn congestion(summary: &RunSummary, cells: &[CellReport]) -> Option<String> {
    let default = summary
        .environment
        .sysctls
        .get("net.ipv4.tcp_congestion_control")?;
    let used: BTreeSet<&str> = cells
        .iter()
        .filter_map(|cell| cell.axes.congestion.as_deref())
        .collect();
    (!used.is_empty() && !used.contains(default.as_str())).then(|| {
        format!(
            "These figures are for {}, while connections on this host use {default} unless told otherwise; \
             --set congestion={default} measures that.",
            used.into_iter().collect::<Vec<_>>().join(", ")
        )
    })
}

fn frequency(summary: &RunSummary) -> Option<String> {
    let governor = summary.environment.frequency_governor.as_ref()?;
    (governor != "performance").then(|| {
        format!(
            "CPU frequency follows governor `{governor}`, so ns of CPU are not always worth the same. \
             `cpupower frequency-set -g performance` holds it still."
        )
    })
}

fn debug_kernel(summary: &RunSummary) -> Option<String> {
    let features = &summary.environment.debug_features;
    (!features.is_empty()).then(|| {
        format!(
            "The kernel runs with {}: everything costs more than on a production kernel.",
            features.join(", ")
        )
    })
}

fn emulated(summary: &RunSummary) -> Option<String> {
    let model = &summary.environment.cpu_model;
    (model.contains("QEMU TCG") || model.contains("QEMU Virtual CPU")).then(|| {
        format!(
            "This machine's CPU is emulated ({model}, windows of {}): only the shape of results means \
             something, no absolute figure does.",
            show_duration(std::time::Duration::from_secs_f64(summary.window_s))
        )
    })
}
