//! Warnings about full tables and queues of the kernel.

use crate::model::stored::Run;
use crate::model::{Measurement, Outcome, Sample, TrackingCounts};

/// Whether connection tracking of the hub rejected packets or connections.
pub(super) fn tracking(run: &Run, samples: &[&Sample]) -> Option<String> {
    let of = |m: &Measurement| m.tracking.filter(|counts| counts.has_losses());
    let (names, counts) = found(run, samples, of)?;
    let sum = |of: fn(&TrackingCounts) -> u64| counts.iter().map(of).sum::<u64>();
    let (dropped, early, failed) = (
        sum(|c| c.dropped),
        sum(|c| c.early_dropped),
        sum(|c| c.insert_failed),
    );
    let full = counts.iter().find(|counts| counts.is_full());
    let (cause, advice) = match full {
        Some(counts) => (
            format!(
                "the table of connections is full ({} of {} entries)",
                counts.entries, counts.limit
            ),
            "raise net.netfilter.nf_conntrack_max, or shorten the time-outs below net.netfilter.nf_conntrack_",
        ),
        None => (
            "entries of connections clashed".to_owned(),
            "packets of one connection were handled on two CPUs at once, or its ports are in use",
        ),
    };
    Some(format!(
        "Connection tracking lost packets of {names}: {cause}. It dropped {dropped}, removed {early} entries to make room \
         and could not insert {failed}: {advice}."
    ))
}

/// Whether a CPU's queue of received packets overflowed.
pub(super) fn backlog(run: &Run, samples: &[&Sample]) -> Option<String> {
    let of = |m: &Measurement| m.backlog_drops.filter(|drops| *drops > 0);
    let (names, drops) = found(run, samples, of)?;
    Some(format!(
        "A CPU's queue of received packets was full in windows of {names}: this machine dropped {} packets there. The \
         senders are faster than the CPU that receives; net.core.netdev_max_backlog is the length of the queue.",
        drops.iter().sum::<u64>()
    ))
}

/// What some measurements have, and the names of their cells, a few of them.
pub(super) fn found<T>(
    run: &Run,
    samples: &[&Sample],
    of: impl Fn(&Measurement) -> Option<T>,
) -> Option<(String, Vec<T>)> {
    const SHOWN: usize = 4;
    let (mut names, mut values) = (Vec::<String>::new(), Vec::new());
    for sample in samples {
        let Outcome::Measured(measurement) = &sample.outcome else {
            continue;
        };
        let Some(value) = of(measurement) else {
            continue;
        };
        values.push(value);
        let cell = run.header.cells.get(sample.cell);
        let name = cell
            .map(|planned| &planned.cell)
            .map(|cell| format!("{}/{}/{}", cell.path, cell.peer, cell.load));
        names.extend(name.filter(|name| !names.contains(name)));
    }
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    (!values.is_empty()).then(|| (names.join(", "), values))
}
