//! Warnings about the machine and its other users.

use std::collections::BTreeSet;

use super::{measurements, percent};
use crate::cells::CLOSURE;
use crate::model::stored::Run;
use crate::model::{CellReport, CpuAccounting, CpuTolerance, Measurement, RunSummary, Sample};
use crate::units::float;

/// Foreign CPU above this share of the machine gets a warning.
const FOREIGN: f64 = 0.02;
/// Steal above this share of the machine gets a warning.
const STEAL: f64 = 0.01;
/// Processes started by others, per second, above which their CPU time may be missed.
const FORKS_PER_S: f64 = 20.0;
/// The most causes for unreadable CPU time that the warning names.
const CAUSES: usize = 4;
/// Shortest window for which `/proc/stat` is fine enough, s.
const COARSE_WINDOW_S: f64 = 10.0;

pub(super) fn foreign_cpu(summary: &RunSummary) -> Option<String> {
    if let Some(why) = &summary.environment.others_hidden {
        return Some(format!(
            "What other processes of this machine used is not known: {why}. Their CPU time is in the costs, and nothing was measured \
             again because of them. On the host, or with its PID namespace (docker run --pid=host, hostPID of a pod), it is known."
        ));
    }
    let share = summary.elsewhere?.foreign_ratio;
    (share > FOREIGN).then(|| {
        format!(
            "Other processes used {} of the machine while measuring. It is subtracted from CPU costs, but \
             they took caches and CPUs from the load: stop them for figures to rely on.",
            percent(share)
        )
    })
}

pub(super) fn foreign_forks(samples: &[&Sample]) -> Option<String> {
    let (mut forks, mut seconds) = (0u64, 0.0);
    for m in measurements(samples) {
        forks += m.cpu.forks;
        seconds += m.cpu.elapsed_ns / 1e9;
    }
    let rate = float(forks) / seconds;
    (seconds > 0.0 && rate > FORKS_PER_S).then(|| {
        format!(
            "{rate:.0} processes a second were started by others while measuring; CPU time of those that \
             also ended in a window cannot be told from the load's."
        )
    })
}

pub(super) fn steal(summary: &RunSummary) -> Option<String> {
    let share = summary.elsewhere?.steal_ratio;
    let without_figures = ", and no CPU figures of the samples in which it took much";
    let (costs, way_out) = match summary.environment.cpu_accounting {
        CpuAccounting::IdleClock => (
            without_figures,
            " --keep-awake avoids what it takes as CPUs wake.",
        ),
        // Busy time is exact there.
        CpuAccounting::KeptAwake => ("", ""),
        CpuAccounting::ProcStat => (without_figures, ""),
    };
    (share > STEAL).then(|| {
        format!(
            "The hypervisor took {} of the machine's time away: expect wide intervals{costs}.{way_out}",
            percent(share)
        )
    })
}

/// Samples without figures of CPU time, by reason.
pub(super) fn cpu_unknown(run: &Run, samples: &[&Sample]) -> Option<String> {
    let tolerance = run.header.cpu_tolerance();
    let all: Vec<&Measurement> = measurements(samples).collect();
    let unknown = |m: &&&Measurement| m.cpu.net_ns(tolerance).is_none();
    let partial: Vec<&&Measurement> = all.iter().filter(|m| m.cpu.is_partial).collect();
    let elsewhere = partial.len();
    let (apart, cannot_be): (Vec<&Measurement>, Vec<&Measurement>) = all
        .iter()
        .filter(unknown)
        .filter(|m| !m.cpu.is_partial)
        .partition(|m| m.cpu.steal_ns > 0.0 || m.cpu.baseline_most_ns.is_some());
    let mut causes = Vec::new();
    if elsewhere > 0 {
        let machines = partial.iter().flat_map(|m| &m.machines);
        let unread = machines.filter_map(|machine| Some((machine.ends, machine.unknown.as_ref()?)));
        let mut whys: Vec<String> = Vec::new();
        for (ends, why) in unread {
            let why = format!("of {} ({why})", ends.words());
            if !whys.contains(&why) && whys.len() < CAUSES {
                whys.push(why);
            }
        }
        causes.push(match &whys[..] {
            [] => format!(
                "in {elsewhere} an endpoint was on another machine than hopyard, and its CPU time was not read"
            ),
            _ => format!(
                "in {elsewhere} the CPU time could not be read {}",
                whys.join(" and ")
            ),
        });
    }
    if !apart.is_empty() {
        causes.push(format!(
            "in {} the hypervisor took time away, and time that is both idle and stolen leaves CPU time between two bounds \
             more than {} apart",
            apart.len(),
            percent(tolerance.0)
        ));
    }
    if !cannot_be.is_empty() {
        causes.push(format!(
            "in {} the load shows no CPU time beside that of others, or less than its own processes used",
            cannot_be.len()
        ));
    }
    let of_an_end = all.iter().filter(|m| lacks_one_end(m, tolerance)).count();
    if of_an_end > 0 {
        causes.push(format!(
            "in {of_an_end} those of one end are missing: its machine shows no CPU time of the load beside that of others, \
             less than its own processes used, or bounds more than {} apart",
            percent(tolerance.0)
        ));
    }
    (!causes.is_empty()).then(|| {
        format!(
            "{} of {} samples lack CPU figures, only their others count: {}.{}",
            elsewhere + apart.len() + cannot_be.len() + of_an_end,
            all.len(),
            causes.join("; "),
            if apart.is_empty() && cannot_be.is_empty() && of_an_end == 0 {
                ""
            } else {
                " A quieter machine helps, or more blocks."
            }
        )
    })
}

/// Is the CPU time of both ends together known, but not that of each?
fn lacks_one_end(m: &Measurement, tolerance: CpuTolerance) -> bool {
    let mut each = m.machines.iter().filter_map(|machine| machine.cpu.as_ref());
    m.cpu.net_ns(tolerance).is_some() && each.any(|cpu| cpu.net_ns(tolerance).is_none())
}

pub(super) fn missed_windows(run: &Run, samples: &[&Sample]) -> Option<String> {
    let missed: u64 = measurements(samples)
        .map(|m| u64::from(m.missed_windows))
        .sum();
    let planned_ns = run.header.window_ns;
    let longer = measurements(samples)
        .filter(|m| m.missed_windows > 0 && m.window_ns > planned_ns.saturating_mul(3) / 2)
        .count();
    let longer = match longer {
        0 => String::new(),
        some => format!(
            " A missed window is repeated for longer; samples with a window longer than the planned {:.0} ms: {some}.",
            float(planned_ns) / 1e6
        ),
    };
    (missed > 0).then(|| {
        format!(
            "{} measured again: the hypervisor or other processes used the machine in them, there was no CPU for hopyard when they \
             opened or closed, or nothing arrived while others had a CPU for half of them.{longer} A quieter machine spares that.",
            match missed {
                1 => "1 window was".to_owned(),
                some => format!("{some} windows were"),
            }
        )
    })
}

pub(super) fn closure(summary: &RunSummary) -> Option<String> {
    let q = summary.elsewhere?.closure;
    ((q - 1.0).abs() > CLOSURE).then(|| {
        format!(
            "The columns of /proc/stat add up to {:.1} % of the time that passed, so there is no split into \
             user, system and softirq. Totals come from the idle clock and are not affected.",
            q * 100.0
        )
    })
}

pub(super) fn accounting(summary: &RunSummary, cells: &[CellReport]) -> Option<String> {
    let is_coarse = |accounting| accounting == CpuAccounting::ProcStat;
    let coarse = is_coarse(summary.environment.cpu_accounting);
    let endpoints = cells.iter().filter_map(|cell| cell.endpoints.as_ref());
    let ends = endpoints.flat_map(|ends| [("client", &ends.client), ("server", &ends.server)]);
    let elsewhere: BTreeSet<&str> = ends
        .filter(|(_, end)| !end.is_on_this_kernel)
        .filter_map(|(role, end)| Some((role, end.machine.as_ref()?)))
        .filter(|(_, machine)| is_coarse(machine.cpu_accounting))
        .map(|(role, _)| role)
        .collect();
    let whose = match elsewhere.into_iter().collect::<Vec<_>>()[..] {
        _ if coarse => String::new(),
        [] => return None,
        ref roles => format!(" of the {}", roles.join(" and the ")),
    };
    (summary.window_s < COARSE_WINDOW_S).then(|| {
        format!(
            "CPU time{whose} comes from /proc/stat in steps of 10 ms, since /proc/timer_list cannot be read: with windows \
             under 10 s costs are uncertain by 5 to 10 %. Run as root, or use --window 10s."
        )
    })
}

pub(super) fn congestion(summary: &RunSummary, cells: &[CellReport]) -> Option<String> {
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

pub(super) fn frequency(summary: &RunSummary) -> Option<String> {
    let governor = summary.environment.frequency_governor.as_ref()?;
    (governor != "performance").then(|| {
        format!(
            "CPU frequency follows governor `{governor}`, so it varies and ns of CPU are not comparable. \
             `cpupower frequency-set -g performance` holds it still."
        )
    })
}

pub(super) fn debug_kernel(summary: &RunSummary) -> Option<String> {
    let features = &summary.environment.debug_features;
    (!features.is_empty()).then(|| {
        format!(
            "The kernel runs with {}: everything costs more than on a production kernel.",
            features.join(", ")
        )
    })
}

pub(super) fn emulated(summary: &RunSummary) -> Option<String> {
    summary.environment.is_emulated().then(|| {
        format!(
            "Emulated: shape only. This machine's CPU is a program ({}), so no absolute figure means \
             anything, and what costs more here need not do so on a CPU.",
            summary.environment.cpu_model
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::assess;
    use crate::model::{Outcome, WarningCode};
    use crate::testing::compared;

    #[test]
    fn windows_that_were_repeated_for_longer_are_counted() {
        let said = |factors: [u64; 2]| {
            let mut run = compared(1.0);
            let planned_ns = run.header.window_ns;
            for (sample, factor) in run.samples.iter_mut().zip(factors) {
                if let Outcome::Measured(m) = &mut sample.outcome {
                    m.missed_windows = 1;
                    m.window_ns = planned_ns * factor;
                }
            }
            let mut warnings = assess(&run).warnings;
            warnings.retain(|w| w.code == WarningCode::MissedWindows);
            warnings.pop().unwrap().message
        };
        assert!(said([1, 1]).starts_with("2 windows were measured again"));
        assert!(!said([1, 1]).contains("repeated for longer"));
        assert!(said([4, 1]).contains("a window longer than the planned 200 ms: 1."));
    }
}
