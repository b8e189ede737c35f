//! What profiles taken beside samples say: shares of subsystems, and of softirqs.

use crate::model::{Measurement, ProfileWindow, Sample};
use crate::profile::subsystems::{Place, place, plain_name};
use crate::store::Run;
use crate::units::float;

pub(super) fn share(part: u64, rest: u64) -> Option<f64> {
    let whole = part + rest;
    (whole > 0).then(|| float(part) / float(whole))
}

/// The window of profiling taken beside a sample.
fn window_beside<'a>(run: &'a Run, sample: &Sample) -> Option<&'a ProfileWindow> {
    let key = |block, attempt, cell| (block, attempt, cell);
    run.profiles.iter().find(|window| {
        key(window.block, window.attempt, window.cell)
            == key(sample.block, sample.attempt, sample.cell)
    })
}

/// CPUs in softirq over all CPUs where ticks do not add up: the share of busy samples whose chain of calls has a softirq in it, of
/// the time in which CPUs were busy.
pub(super) fn softirq_by_profile(run: &Run, sample: &Sample, m: &Measurement) -> Option<f64> {
    const SOFTIRQ: [&str; 2] = ["handle_softirqs", "__do_softirq"];
    let window = window_beside(run, sample)?;
    let (mut inside, mut outside) = (0, 0);
    for (stack, samples) in window.stacks() {
        if let Place::Idle = place(&stack) {
            continue;
        }
        if stack
            .iter()
            .any(|frame| SOFTIRQ.contains(&plain_name(frame)))
        {
            inside += samples;
        } else {
            outside += samples;
        }
    }
    let busy =
        m.cpu.net_ns(run.header.cpu_tolerance())? / (m.cpu.elapsed_ns * f64::from(m.cpu.cpus));
    Some(share(inside, outside)? * busy)
}

/// The share of subsystems in the window taken beside a sample, as if at least so many samples had been within them.
pub(super) fn profile_share(
    run: &Run,
    sample: &Sample,
    names: &[String],
    least: u64,
) -> Option<f64> {
    let window = window_beside(run, sample)?;
    let (mut inside, mut outside) = (0, 0);
    for (stack, samples) in window.stacks() {
        match place(&stack) {
            Place::Busy { subsystem, .. } if names.iter().any(|name| name == subsystem) => {
                inside += samples;
            }
            Place::Busy { .. } => outside += samples,
            Place::Idle => {}
        }
    }
    let seen = inside.max(least);
    share(seen, (inside + outside).checked_sub(seen)?)
}
