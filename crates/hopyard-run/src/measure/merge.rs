//! Merges the counts of the processes of one end.

use crate::load::latency;
use crate::load::protocol::Tallied;
use crate::model::{Latency, Scheduling, TcpSummary};

/// All of them combined; the window is the mean of theirs.
pub(super) fn merged(parts: &[Tallied]) -> Result<Tallied, String> {
    let [first, others @ ..] = parts else {
        return Err("nobody counted anything".to_owned());
    };
    let mut all = first.clone();
    for part in others {
        all.window_ns += part.window_ns;
        all.late_ns = all.late_ns.max(part.late_ns);
        all.received = all.received.plus(part.received);
        all.sent = all.sent.plus(part.sent);
        all.send_errors += part.send_errors;
        all.timeouts += part.timeouts;
        for (sum, slice) in all.slices.iter_mut().zip(&part.slices) {
            *sum += slice;
        }
        all.due = all.due.zip(part.due).map(|(one, two)| one + two);
        all.finished = all.finished.zip(part.finished).map(|(one, two)| one + two);
        all.tcp = all
            .tcp
            .zip(part.tcp)
            .map(|(one, two)| TcpSummary::plus(one, two));
        all.zero_copy = all
            .zero_copy
            .zip(part.zero_copy)
            .map(|(one, two)| one.plus(two));
        all.flows.extend(&part.flows);
        all.scheduling = Scheduling::plus(all.scheduling, part.scheduling);
    }
    all.window_ns /= parts.len() as u64;
    if !others.is_empty() {
        let together = |of: fn(&Tallied) -> Option<&Latency>| {
            let times: Vec<_> = parts.iter().filter_map(of).collect();
            latency::together(&times)
        };
        all.latency = together(|part| part.latency.as_ref())?;
        all.first_packet = together(|part| part.first_packet.as_ref())?;
    }
    Ok(all)
}
