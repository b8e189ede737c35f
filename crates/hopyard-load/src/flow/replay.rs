//! The datagrams of a trace, each at its instant.

use hopyard_net::clock;

use super::stream::{Sending, Step};
use super::{Context, Io, Message};
use crate::spec::LoadSpec;
use hopyard_model::{Datagram, Replay};

/// Longest sleep, ns: what tells a loop to stop does not wake it.
const LONGEST_SLEEP_NS: u64 = 20_000_000;

/// A trace that begins again after its last datagram; where a window opens, it is at its beginning.
#[derive(Clone)]
pub(crate) struct Replaying<'a> {
    replay: &'a Replay,
    /// When the present round began, ns: perhaps before the clock did.
    round_ns: i64,
    span_ns: i64,
    next: usize,
    /// Of the next datagram, after the beginning of the round.
    at_ns: i64,
}

/// Instants and traces are far below 2⁶³ ns, which is 292 years.
fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

impl<'a> Replaying<'a> {
    /// Of the flow at that place among all, from a start on; `None` where the load replays nothing. Several flows take their turns
    /// within the trace.
    pub(crate) fn new(spec: &'a LoadSpec, open_ns: u64, start_ns: u64, place: u32) -> Option<Self> {
        let replay = spec.replay.as_ref()?;
        let (span_ns, flows) = (replay.span_ns(), u64::from(spec.all_flows().max(1)));
        let zero_ns = signed(open_ns + span_ns / flows * (u64::from(place) % flows));
        let (start_ns, span) = (signed(start_ns), signed(span_ns));
        let mut replaying = Self {
            replay,
            // The last beginning before the start: what is due at a beginning is the end of the round before it.
            round_ns: start_ns - 1 - (start_ns - 1 - zero_ns).rem_euclid(span),
            span_ns: span,
            next: 0,
            at_ns: 0,
        };
        replaying.at_ns = replaying.gap_ns();
        while replaying.instant_ns() < start_ns {
            replaying.advance();
        }
        Some(replaying)
    }

    pub(crate) fn due_ns(&self) -> u64 {
        u64::try_from(self.instant_ns()).unwrap_or(0)
    }

    fn instant_ns(&self) -> i64 {
        self.round_ns + self.at_ns
    }

    fn gap_ns(&self) -> i64 {
        let datagrams = self.replay.datagrams();
        signed(
            datagrams
                .get(self.next)
                .map_or(0, |Datagram(gap_ns, _)| *gap_ns),
        )
    }

    fn bytes(&self) -> usize {
        let datagrams = self.replay.datagrams();
        datagrams.get(self.next).map_or(0, |one| one.1 as usize)
    }

    fn advance(&mut self) {
        self.next += 1;
        if self.next == self.replay.datagrams().len() {
            self.next = 0;
            self.round_ns += self.span_ns;
            self.at_ns = 0;
        }
        self.at_ns += self.gap_ns();
    }

    /// How many datagrams are due from one instant to before another.
    pub(crate) fn due_between(self, from_ns: u64, to_ns: u64) -> u64 {
        self.clone().due_before(to_ns) - self.due_before(from_ns.min(to_ns))
    }

    /// How many are due before an instant. Whole rounds are not gone through, so this takes no longer for a short trace.
    fn due_before(mut self, to_ns: u64) -> u64 {
        let mut count = 0;
        while self.due_ns() < to_ns {
            if self.next == 0 {
                let rounds = (signed(to_ns) - 1 - self.instant_ns()) / self.span_ns.max(1);
                self.round_ns += rounds * self.span_ns;
                count += rounds.unsigned_abs() * self.replay.datagrams().len() as u64;
            }
            count += 1;
            self.advance();
        }
        count
    }
}

/// Sends each datagram when it is due until told to stop. What could not go in its time goes as soon as it can; nothing is
/// left out.
///
/// # Errors
/// The socket failed before the window was over.
pub(crate) fn transmit_replayed(
    io: &impl Io,
    message: &mut Message,
    context: Context<'_>,
    mut replaying: Replaying<'_>,
) -> Result<(), String> {
    clock::sharp_timers().map_err(|e| format!("cannot make timers sharp: {e}"))?;
    let mut flow = Sending::new(io, context, message.count());
    while !context.stopped() {
        let (due_ns, now_ns) = (replaying.due_ns(), clock::monotonic_ns());
        if now_ns < due_ns {
            let until_ns = due_ns.min(now_ns + LONGEST_SLEEP_NS);
            clock::sleep_until_monotonic_ns(until_ns).map_err(|e| format!("cannot sleep: {e}"))?;
            if until_ns < due_ns {
                continue;
            }
        }
        let (number, bytes) = (flow.messages(), replaying.bytes());
        while flow.messages() == number && !context.stopped() {
            let message = message.ready(number, Some(due_ns));
            let datagram = message.get(..bytes).unwrap_or(message);
            if flow.step(datagram)? == Step::Over {
                return Ok(());
            }
        }
        replaying.advance();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopyard_model::{Axes, LoadKind, Peer};

    fn spec(text: &str, flows: u32) -> LoadSpec {
        let kind = LoadKind::UdpTrace;
        let mut axes = Axes::default().for_cell(kind, Peer::Local, &[]);
        axes.flows = flows;
        LoadSpec::new(kind, &axes).replaying(Replay::parse(text).unwrap())
    }

    /// Instants and sizes of the first datagrams.
    fn first(
        spec: &LoadSpec,
        [open, start]: [u64; 2],
        flow: u32,
        count: usize,
    ) -> Vec<(u64, usize)> {
        let mut replaying = Replaying::new(spec, open, start, flow).unwrap();
        let mut next = || {
            let one = (replaying.due_ns(), replaying.bytes());
            replaying.advance();
            one
        };
        (0..count).map(|_| next()).collect()
    }

    const TRACE: &str = "0.000000001,100\n0.000000003,200\n0.000000006,300\n0.000100000,400\n";
    const SPAN: u64 = 100_010;

    #[test]
    fn a_window_sees_the_trace_from_its_beginning() {
        let spec = spec(TRACE, 1);
        let (open, start) = (10 * SPAN, 10 * SPAN - 20);
        let seen = first(&spec, [open, start], 0, 4);
        let wanted = [
            (open, 400),
            (open + 1, 100),
            (open + 4, 200),
            (open + 10, 300),
        ];
        assert_eq!(seen, wanted);
        let seen = first(&spec, [open, open - SPAN], 0, 5);
        assert_eq!(seen[0], (open - SPAN, 400));
        assert_eq!(seen[1], (open - SPAN + 1, 100));
        assert_eq!(first(&spec, [open, open], 0, 1), [(open, 400)]);
        assert_eq!(first(&spec, [open, open + 2], 0, 1), [(open + 4, 200)]);
    }

    #[test]
    fn a_trace_may_be_longer_than_the_clock_has_gone() {
        let spec = spec(&"10,100\n".repeat(1000), 1);
        let open = 20_000_000_000;
        let seen = first(&spec, [open, open - 15_000_000_000], 0, 3);
        let at = |s: u64| (s * 1_000_000_000, 100);
        assert_eq!(seen, [at(10), at(20), at(30)]);
    }

    #[test]
    fn what_is_due_is_counted() {
        let spec = spec(TRACE, 1);
        let of = |from, to| {
            let replaying = Replaying::new(&spec, 10 * SPAN, 9 * SPAN, 0).unwrap();
            replaying.due_between(10 * SPAN + from, 10 * SPAN + to)
        };
        assert_eq!(of(0, SPAN), 4);
        assert_eq!(of(1, 1 + SPAN), 4);
        assert_eq!(of(1, 5), 2);
        assert_eq!(of(0, 3 * SPAN + 5), 14 + 1);
    }

    /// A stalled sender of a short trace leaves more behind than anybody can go through one by one.
    #[test]
    fn what_is_due_is_counted_at_once() {
        let spec = spec("0.0000001,100\n0.0000001,200\n", 1);
        let replaying = Replaying::new(&spec, 1_000, 1_000, 0).unwrap();
        let hour = 3_600_000_000_000;
        assert_eq!(replaying.due_between(2_000, 2_000 + hour), hour / 100);
    }

    #[test]
    fn flows_take_turns_within_the_trace() {
        let spec = spec(TRACE, 2);
        let open = 10 * SPAN;
        let shifted = first(&spec, [open, open + 11], 1, 2);
        assert_eq!(
            shifted,
            [(open + SPAN / 2, 400), (open + SPAN / 2 + 1, 100)]
        );
        assert_eq!(first(&spec.part(1, 1), [open, open + 11], 1, 2), shifted);
    }
}
