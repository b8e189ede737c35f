//! Doubts about traces that were replayed.

use super::queues::found;
use crate::model::stored::Run;
use crate::model::{Measurement, Sample};
use crate::units::float;

/// The sender keeps up where no more than this share of what is due in a window is not sent in it, ...
const UNSENT: f64 = 0.01;
/// ... but for so many of each flow, which were due at its edges, ...
const AT_EDGES: u64 = 2;
/// ... and half of its datagrams no later than this, ns.
const LATE_NS: u64 = 1_000_000;

/// Is a trace longer than the windows that replay it?
pub(super) fn too_long(run: &Run) -> Option<String> {
    let window_ns = run.header.window_ns;
    let long: Vec<_> = run
        .header
        .traces
        .iter()
        .filter(|trace| trace.span_ns > window_ns)
        .collect();
    let longest_ns = long.iter().map(|trace| trace.span_ns).max()?;
    let names: Vec<_> = long.iter().map(|trace| &*trace.trace).collect();
    Some(format!(
        "Windows of {:.3} s have the first part of the trace alone: {} goes on to {:.3} s. Figures are of that part; \
         --window {}s has all of it.",
        float(window_ns) / 1e9,
        names.join(", "),
        float(longest_ns) / 1e9,
        longest_ns.div_ceil(1_000_000_000)
    ))
}

/// Could the sender not keep the instants of its trace?
pub(super) fn too_fast(run: &Run, samples: &[&Sample]) -> Option<String> {
    let is_behind = |m: &Measurement| {
        let due = m.open_loop.map_or(0, |open_loop| open_loop.due);
        let lateness = m.arrivals.as_ref().and_then(|a| a.lateness.as_ref());
        let median = lateness.and_then(|l| l.quantiles.iter().find(|(q, _)| *q == 0.5));
        let flows = m.arrivals.as_ref().map_or(1, |a| a.flows.len() as u64);
        let unsent = due.saturating_sub(m.sent.messages);
        let is_short = float(unsent) > UNSENT * float(due) && unsent > AT_EDGES * flows;
        let is_late = median.is_some_and(|(_, late_ns)| *late_ns > LATE_NS);
        (is_short || is_late).then(|| float(m.sent.messages) / float(due.max(1)))
    };
    let replays = |sample: &&&Sample| {
        let cell = run.header.cells.get(sample.cell);
        cell.is_some_and(|planned| planned.cell.load.replays())
    };
    let replayed: Vec<&Sample> = samples.iter().filter(replays).copied().collect();
    let (names, shares) = found(run, &replayed, is_behind)?;
    let least = shares.iter().copied().fold(1.0, f64::min);
    Some(format!(
        "The trace is too fast for the sender of {names}: it sent {:.0} % of what was due in time, and the rest late. Latency counts from \
         when a datagram was due, so it is the sender's, too (sender_late_p99_ns). Give it a CPU of its own, or a slower trace.",
        least * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LoadKind, OpenLoop, Outcome, Replay};
    use crate::testing;

    fn replayed(sent: u64, due: u64) -> Run {
        let mut run = testing::compared_over(8, 1.0);
        for planned in &mut run.header.cells {
            planned.cell.load = LoadKind::UdpTrace;
        }
        for sample in &mut run.samples {
            if let Outcome::Measured(m) = &mut sample.outcome {
                m.sent.messages = sent;
                m.open_loop = Some(OpenLoop { due, arrived: sent });
            }
        }
        run
    }

    #[test]
    fn a_sender_that_falls_behind_is_named() {
        let told = |run: &Run| {
            let samples: Vec<&Sample> = run.samples.iter().collect();
            too_fast(run, &samples)
        };
        assert_eq!(told(&replayed(1000, 1000)), None);
        let behind = told(&replayed(500, 1000)).unwrap();
        assert!(behind.contains("it sent 50 %"), "{behind}");
        let mut other = replayed(500, 1000);
        for planned in &mut other.header.cells {
            planned.cell.load = LoadKind::UdpPaced;
        }
        assert_eq!(told(&other), None);
    }

    #[test]
    fn a_trace_that_is_longer_than_a_window_is_named() {
        let mut run = replayed(1, 1);
        assert_eq!(too_long(&run), None);
        run.header.traces = vec![Replay::sample().summary("sample".into())];
        run.header.window_ns = 20_000_000;
        assert_eq!(too_long(&run), None);
        run.header.window_ns = 19_000_000;
        let long = too_long(&run).unwrap();
        assert!(
            long.contains("0.019 s") && long.contains("sample goes on to 0.020 s"),
            "{long}"
        );
    }
}
