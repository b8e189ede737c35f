//! The instants at which a paced flow sends.

use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::spec::LoadSpec;
use hopyard_model::Distribution;

/// How far behind its time a paced stream may fall before the rest is let go. Without an end to it, what a slow
/// start or a lost packet held up would press on a path that is only a little faster for the whole window.
const ARREARS_NS: u64 = 2_000_000;

/// Most random instants that are gone through after the traffic to count what was not sent. More than so many behind, a sender does
/// not keep its rate anyway, and their mean number, which is less than one in a thousand off, counts in place of the rest.
const MOST_DRAWN: u32 = 10_000_000;

/// The instants of one flow, one after another.
#[derive(Clone)]
pub(crate) struct Schedule {
    start_ns: u64,
    /// After the start.
    due_ps: u64,
    interval_ps: u64,
    poisson: Option<ChaCha8Rng>,
    /// How long its sender sleeps at a time at least, ns.
    pause_ns: u64,
    /// An open loop lets nothing go: what it could not send in time is late, and its latency says so.
    open_loop: bool,
    /// Messages due in this span are counted as the schedule goes on.
    counting: Range<u64>,
    due: u64,
}

impl Schedule {
    /// Of the flow at that place among all, where the load is paced. Flows of an open loop take their turns within an
    /// interval, so that all together are as even as one.
    pub(crate) fn new(spec: &LoadSpec, start_ns: u64, place: u32) -> Option<Self> {
        let interval_ps = spec.interval_ps()?;
        let open_loop = spec.kind.keeps_instants();
        let flows = spec.all_flows().max(1);
        let turn = u64::from(if open_loop { place % flows } else { 0 });
        let poisson = open_loop && spec.distribution == Distribution::Poisson;
        Some(Self {
            start_ns,
            due_ps: interval_ps / u64::from(flows) * turn,
            interval_ps,
            // Other instants in every sample and flow.
            poisson: poisson.then(|| ChaCha8Rng::seed_from_u64(start_ns ^ u64::from(place) << 48)),
            pause_ns: if open_loop { 0 } else { spec.pace_pause_ns },
            open_loop,
            counting: 0..0,
            due: 0,
        })
    }

    /// The same, counting the messages that are due from one instant to before another.
    pub(crate) fn counting(self, from_ns: u64, to_ns: u64) -> Self {
        Self {
            counting: from_ns..to_ns,
            ..self
        }
    }

    /// When to send again, if the next message is not due yet.
    pub(crate) fn wakes_ns(&self) -> u64 {
        self.due_ns() + self.pause_ns
    }

    /// When the next message is due.
    pub(crate) fn due_ns(&self) -> u64 {
        self.start_ns + self.due_ps / 1000
    }

    /// How many messages are due in the span that it counts, those that it has not come to included; an open loop's alone, which
    /// nothing puts off. However many these are, it takes a fraction of a second.
    pub(crate) fn due(mut self) -> u64 {
        let Range { start, end } = self.counting;
        for _ in 0..MOST_DRAWN {
            if self.poisson.is_none() || self.due_ns() >= end {
                break;
            }
            self.advance(0);
        }
        self.due + self.left_before(end) - self.left_before(start.min(end))
    }

    /// How many messages from the next one on are due before an instant, with the mean time between them.
    fn left_before(&self, instant_ns: u64) -> u64 {
        let span_ps = u128::from(instant_ns.saturating_sub(self.start_ns)) * 1000;
        let left_ps = span_ps.saturating_sub(self.due_ps.into());
        let left = left_ps.div_ceil(self.interval_ps.max(1).into());
        u64::try_from(left).unwrap_or(u64::MAX)
    }

    /// Goes on to the message after it, which has gone now.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        let due_ns = self.due_ns();
        self.due += u64::from(self.counting.contains(&due_ns));
        let late_ns = now_ns.saturating_sub(due_ns);
        self.due_ps += match &mut self.poisson {
            Some(rng) => exponential(rng, self.interval_ps),
            None => self.interval_ps,
        };
        if !self.open_loop {
            let let_go_ns =
                late_ns.saturating_sub(self.pause_ns + ARREARS_NS.max(self.interval_ps / 1000));
            self.due_ps += let_go_ns * 1000;
        }
    }
}

/// A time between two events of a Poisson process, by inversion.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "intervals are at most 50 ms, and −ln is not negative"
)]
fn exponential(rng: &mut ChaCha8Rng, mean: u64) -> u64 {
    let uniform: f64 = rng.random();
    (-(1.0 - uniform).ln() * mean as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopyard_model::{Axes, LoadKind, Peer};

    fn spec(kind: LoadKind, distribution: Distribution, flows: u32) -> LoadSpec {
        let mut spec = LoadSpec::new(kind, &Axes::default().for_cell(kind, Peer::Local, &[]));
        spec.flows = flows;
        spec.message_size = 1000;
        // A message every ms, all flows together.
        spec.pace_bps = Some(8_000_000);
        spec.distribution = distribution;
        spec
    }

    /// Instants of a flow that is never late.
    fn instants(spec: &LoadSpec, flow: u32, count: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(spec, 1_000, flow).unwrap();
        let mut next = || {
            let due = schedule.due_ns();
            schedule.advance(due);
            due
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn flows_take_turns() {
        let spec = spec(LoadKind::UdpPaced, Distribution::Constant, 4);
        assert_eq!(instants(&spec, 0, 3), [1_000, 4_001_000, 8_001_000]);
        assert_eq!(instants(&spec, 3, 2), [3_001_000, 7_001_000]);
    }

    #[test]
    fn flows_of_several_processes_take_turns_too() {
        for distribution in [Distribution::Constant, Distribution::Poisson] {
            let whole = spec(LoadKind::UdpPaced, distribution, 4);
            for first in 0..4_u32 {
                let part = whole.part(first as usize, 1);
                let alike = instants(&part, first, 10) == instants(&whole, first, 10);
                assert!(alike, "{distribution:?} {first}");
            }
            assert_ne!(instants(&whole, 0, 10), instants(&whole, 1, 10));
        }
    }

    #[test]
    fn a_fast_schedule_keeps_its_rate() {
        let mut spec = spec(LoadKind::UdpPaced, Distribution::Constant, 1);
        // One every 333.333 ns: the ps that are left out are one in a million.
        spec.pace_bps = Some(24_000_000_000);
        let schedule = Schedule::new(&spec, 5_000, 0).unwrap();
        assert_eq!(schedule.counting(5_000, 1_000_005_000).due(), 3_000_004);
        spec.pace_bps = Some(8_000_000);
        let due = |from, to| {
            let schedule = Schedule::new(&spec, 5_000, 0).unwrap();
            schedule.counting(from, to).due()
        };
        assert_eq!(due(1_005_000, 3_005_000), 2);
        assert_eq!(due(1_005_001, 3_005_001), 2);
    }

    #[test]
    fn what_is_due_counts_however_far_the_sender_came() {
        const SPAN: [u64; 2] = [20_000_500, 80_000_500];
        for distribution in [Distribution::Constant, Distribution::Poisson] {
            let spec = spec(LoadKind::UdpPaced, distribution, 1);
            let instants = instants(&spec, 0, 200);
            let due = instants.iter().filter(|at| (SPAN[0]..SPAN[1]).contains(at));
            let due = due.count() as u64;
            for sent in [0, 1, 10, 50, 200] {
                let schedule = Schedule::new(&spec, 1_000, 0).unwrap();
                let mut schedule = schedule.counting(SPAN[0], SPAN[1]);
                (0..sent).for_each(|_| schedule.advance(u64::MAX));
                assert_eq!(schedule.due(), due, "{distribution:?}, {sent} sent");
            }
        }
    }

    /// An hour at a message every 8 ns, of which none was sent: nobody can go through these one by one.
    #[test]
    fn what_was_not_sent_is_counted_at_once() {
        const HOUR: u64 = 3_600_000_000_000;
        for (distribution, most_off) in [
            (Distribution::Constant, 0),
            (Distribution::Poisson, 1_000_000),
        ] {
            let mut spec = spec(LoadKind::UdpPaced, distribution, 1);
            spec.pace_bps = Some(1_000_000_000_000);
            let schedule = Schedule::new(&spec, 0, 0).unwrap();
            let due = schedule.counting(HOUR, 2 * HOUR).due();
            assert!(
                due.abs_diff(HOUR / 8) <= most_off,
                "{distribution:?}: {due}"
            );
        }
    }

    #[test]
    fn an_open_loop_lets_nothing_go() {
        let late = |kind| {
            let mut schedule = Schedule::new(&spec(kind, Distribution::Constant, 1), 0, 0).unwrap();
            schedule.advance(500_000_000);
            schedule.due_ns()
        };
        assert_eq!(late(LoadKind::UdpPaced), 1_000_000);
        assert_eq!(late(LoadKind::UdpStream), 1_000_000 + 498_000_000);
    }

    #[test]
    fn a_poisson_process_has_its_mean_and_its_spread() {
        let spec = spec(LoadKind::UdpPaced, Distribution::Poisson, 1);
        let instants = instants(&spec, 0, 100_001);
        let gaps: Vec<f64> = instants
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64 / 1e6)
            .collect();
        let mean = gaps.iter().sum::<f64>() / 1e5;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
        // Memoryless: a share of 1/e is longer than the mean.
        let longer = gaps.iter().filter(|gap| **gap > 1.0).count() as f64 / 1e5;
        assert!((longer - (-1.0f64).exp()).abs() < 0.01, "{longer}");
    }
}
