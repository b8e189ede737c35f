//! One round: a turn of each cell, in random order.

use std::time::Duration;

use hopyard_net::{clock, cpu};

use super::lengths::Lengths;
use super::standing::{Place, Standing, attempt};
use crate::load::protocol::Timetable;
use crate::measure::counts::receiver_and_sender;
use crate::measure::disturbance::by_clocks;
use crate::measure::used_cpus::UsedCpus;
use crate::measure::{Error, QuietCores, Sampler, merge, wait_until};
use crate::meter::{CpuReading, OwnProcesses, PossiblyForeign, backlog};
use crate::model::{BusyCpus, CpuUse, Disturbance, Latency, Turn, takes_again};
use crate::units::{float, ns};

/// Time in which both ends receive the order for their next turn and wake up.
const LEAD: Duration = Duration::from_micros(1_500);

/// An edge that is read this much too late disturbs a turn, as a share of the window.
const LATE: f64 = 0.05;

/// A turn with figures that are combined once per generation.
pub(super) struct Taken {
    pub(super) turn: Turn,
    pub(super) latency: Option<Latency>,
    pub(super) first_packet: Option<Latency>,
    pub(super) busy: UsedCpus<Option<BusyCpus>>,
}

/// What the controller read at the edges of a turn.
struct Seen {
    opened: CpuReading,
    closed: CpuReading,
    late_ns: u64,
}

/// What all turns of a round have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    /// `None` for the first round, which does not count.
    pub(super) number: Option<u32>,
    pub(super) quiet: QuietCores,
    /// Rounds with an undisturbed turn that each cell needs in the generation.
    pub(super) wanted: u32,
}

impl Sampler {
    /// A turn of each place in this order, one after another.
    pub(super) fn round(
        &self,
        places: &mut [Place<'_>],
        order: &[usize],
        round: Round,
    ) -> Result<(), Error> {
        let mut known = PossiblyForeign::list()?;
        // The load fills the CPUs, and edges must be read in time.
        let _prompt = cpu::RealtimeGuard::new();
        for &at in order {
            let taking =
                |standing: &mut Standing<'_>| self.undisturbed_turn(standing, round, &mut known);
            attempt(&mut places[at], taking)?;
        }
        Ok(())
    }

    /// A turn of a lab, repeated at once if it was disturbed.
    fn undisturbed_turn(
        &self,
        standing: &mut Standing<'_>,
        round: Round,
        known: &mut PossiblyForeign,
    ) -> Result<(), Error> {
        let mut attempt = 1;
        loop {
            known.renew()?;
            self.turn(standing, round, known)?;
            let is_quiet = standing.taken.last().is_none_or(|t| t.turn.is_quiet());
            if is_quiet || !takes_again(attempt, standing.taken_each(), round.wanted) {
                return Ok(());
            }
            attempt += 1;
        }
    }

    /// A turn of a lab, which ends when its traffic has drained.
    fn turn(
        &self,
        standing: &mut Standing<'_>,
        round: Round,
        known: &mut PossiblyForeign,
    ) -> Result<(), Error> {
        let lengths = match round.number {
            None => Lengths::of_first(standing.cell),
            Some(_) => Lengths::of(standing.cell),
        };
        let timetable = lengths.from(clock::monotonic_ns() + ns(LEAD));
        let drops = backlog::drops();
        standing.ends.turn(timetable)?;
        let seen = self.watch_turn(standing, timetable, known)?;
        let others_started = known.renew()?;
        standing.hear(round, timetable, &seen, others_started)?;
        standing.come_to_rest(lengths.rest)?;
        standing.note_traffic(timetable, drops);
        Ok(())
    }

    /// Reads the CPUs at the two edges of a turn.
    fn watch_turn(
        &self,
        standing: &Standing<'_>,
        timetable: Timetable,
        known: &PossiblyForeign,
    ) -> Result<Seen, Error> {
        let ours = OwnProcesses {
            pids: &standing.pids,
            cgroup: standing.lab.cgroup(),
        };
        self.meter.stand_by();
        wait_until(timetable.open_ns)?;
        let opened_ns = clock::monotonic_ns();
        let opened = self.meter.open_among(known, ours)?;
        self.meter.stand_by();
        wait_until(timetable.close_ns)?;
        let closed_ns = clock::monotonic_ns();
        let closed = self.meter.close_among(known, ours)?;
        Ok(Seen {
            opened,
            closed,
            late_ns: timetable.lateness(opened_ns, closed_ns),
        })
    }
}

impl Standing<'_> {
    /// Adds a turn's time, and the packets that the whole machine dropped in it, to those of the turns before.
    fn note_traffic(&mut self, timetable: Timetable, drops_before: Option<u64>) {
        self.traffic_ns += timetable.stop_ns - timetable.start_ns;
        let passed = backlog::drops().zip(drops_before);
        let passed = passed.map(|(now, then)| now.saturating_sub(then));
        self.backlog_drops = self.backlog_drops.zip(passed).map(|(all, turn)| all + turn);
    }

    /// Records what the ends counted in a turn.
    fn hear(
        &mut self,
        round: Round,
        timetable: Timetable,
        seen: &Seen,
        others_started: bool,
    ) -> Result<(), Error> {
        let (clients, server) = self.ends.done()?;
        let client = merge::merged(&clients).map_err(Error::Merge)?;
        let mut cpu = seen.closed.since(&seen.opened);
        round.quiet.note_in(&mut cpu);
        let late_ns = seen.late_ns.max(client.late_ns).max(server.late_ns);
        let (receiver, sender) = receiver_and_sender(self.cell.load, &client, &server);
        let windows = float(receiver.window_ns) / float(sender.window_ns.max(1));
        let sent = match self.cell.load {
            load if load.is_udp_stream() => sender.sent.times(windows),
            load if load.is_stream() => sender.sent,
            _ => Default::default(),
        };
        let disturbance = disturbance(&cpu, others_started, late_ns, timetable.window_ns());
        let before = self.taken.iter().map(|taken| taken.turn.disturbance);
        let disturbance =
            disturbance.filter(|by| *by != Disturbance::Late || !makes_itself_late(before.clone()));
        self.taken.push(Taken {
            turn: Turn {
                round: round.number.unwrap_or_default(),
                window_ns: receiver.window_ns,
                received: receiver.received,
                sent,
                cpu,
                disturbance,
            },
            latency: receiver.latency.clone(),
            first_packet: client.first_packet.clone(),
            busy: (self.ends.cpus).map(|cpus| seen.closed.busy(&seen.opened, cpus)),
        });
        Ok(())
    }
}

/// Whether the first turns of a lab were mostly late, and for no other reason: then its own load fills the CPUs that read the edges,
/// and being late says nothing about others.
fn makes_itself_late(turns: impl Iterator<Item = Option<Disturbance>>) -> bool {
    const FIRST: usize = 8;
    let first: Vec<Option<Disturbance>> = turns.take(FIRST).collect();
    let late = first.iter().flatten();
    let late = late.filter(|by| **by == Disturbance::Late).count();
    let disturbed = first.iter().flatten().count();
    first.len() == FIRST && late > FIRST / 2 && late == disturbed
}

/// What disturbed the turn, if anything. It does not look at what the load counted.
fn disturbance(
    cpu: &CpuUse,
    others_started: bool,
    late_ns: u64,
    window_ns: u64,
) -> Option<Disturbance> {
    let is_late = float(late_ns) > LATE * float(window_ns);
    by_clocks(cpu)
        .or(others_started.then_some(Disturbance::Foreign))
        .or(is_late.then_some(Disturbance::Late))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TickSplit;
    use proptest::prelude::*;

    /// The test for a disturbance gets neither counts nor a measurement.
    const SIGNS_ONLY: fn(&CpuUse, bool, u64, u64) -> Option<Disturbance> = disturbance;

    const WINDOW_NS: u64 = 25_000_000;

    fn cpu(steal_ns: f64, foreign_ns: f64, load_ns: f64) -> CpuUse {
        CpuUse {
            elapsed_ns: 25e6,
            cpus: 2,
            busy_ns: load_ns + foreign_ns,
            steal_ns,
            workers_ns: Some(load_ns),
            foreign_ns,
            controller_ns: 0.001 * load_ns,
            closure: 1.0,
            split: TickSplit {
                user_ns: load_ns,
                softirq_ns: load_ns,
                ..TickSplit::default()
            },
            ..CpuUse::default()
        }
    }

    #[test]
    fn each_disturbance_is_told_by_its_own_sign() {
        let of = |steal, foreign, started, late| {
            SIGNS_ONLY(&cpu(steal, foreign, 1e6), started, late, WINDOW_NS)
        };
        assert_eq!(of(0.0, 0.0, false, 0), None);
        assert_eq!(of(0.4e6, 0.9e6, false, 1_000_000), None);
        assert_eq!(of(0.6e6, 0.0, false, 0), Some(Disturbance::Steal));
        assert_eq!(of(0.0, 1.1e6, false, 0), Some(Disturbance::Foreign));
        assert_eq!(of(0.0, 0.0, true, 0), Some(Disturbance::Foreign));
        assert_eq!(of(0.0, 0.0, false, 1_300_000), Some(Disturbance::Late));
    }

    #[test]
    fn a_load_that_fills_the_cpus_is_late_by_itself() {
        let late = Some(Disturbance::Late);
        let of = |signs: &[Option<Disturbance>]| makes_itself_late(signs.iter().copied());
        assert!(of(&[late, late, None, late, late, None, late, late]));
        // What comes later does not matter: nothing is late any more, by this rule.
        let mut long = vec![late; 8];
        long.extend([None; 100]);
        assert!(of(&long));
        assert!(!of(&[late; 7]));
        assert!(!of(&[late, late, None, late, None, None, late, None]));
        assert!(!of(&[
            late,
            late,
            Some(Disturbance::Steal),
            late,
            late,
            late,
            late,
            late
        ]));
        let mut seldom = vec![None; 8];
        seldom.extend([late; 100]);
        assert!(!of(&seldom));
    }

    proptest! {
        #[test]
        fn the_cost_of_the_load_disturbs_nothing(
            steal in 0.0..1e6_f64,
            foreign in 0.0..2e6_f64,
            started in proptest::bool::ANY,
            late in 0..2_000_000_u64,
            loads in [0.0..50e6_f64, 0.0..50e6_f64],
        ) {
            let [one, other] = loads.map(|load| SIGNS_ONLY(&cpu(steal, foreign, load), started, late, WINDOW_NS));
            prop_assert_eq!(one, other);
        }
    }
}
