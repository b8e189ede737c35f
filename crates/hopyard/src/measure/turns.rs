//! Turns: the labs of several cells stand side by side, and each has a short window in every round.
//!
//! Neighbours in time are alike, so cells are compared within a round (docs/method.md, "Turns"). What a lab and its
//! connections keep is replicated by the next generation, which makes them anew.

mod variants;

use std::time::{Duration, Instant};

use hopyard_net::{clock, cpu};
use rand::Rng;
use rand::seq::SliceRandom;

use self::variants::{Variant, variants};
use super::beside::Beside;
use super::counts::{Counts, Observed, assemble, receiver_and_sender};
use super::ends::Ends;
use super::{Error, QuietCores, Sampler, merge, wait_until};
use crate::lab::{self, Lab};
use crate::load::latency;
use crate::load::protocol::{Tallied, Timetable};
use crate::meter::{self, CpuReading, Ours, devices};
use crate::model::DeviceCount;
use crate::model::{
    BusyCpus, Cell, CpuAccounting, CpuUse, Disturbance, Latency, LoadKind, Measurement, Rate, Turn,
    kept, scaled, takes_another,
};
use crate::settings::Host;
use crate::units::{float, ns};

/// Length of a turn's window: long against the reading of the clocks, short against bursts of steal.
pub const WINDOW: Duration = Duration::from_millis(25);
/// Labs that stand side by side at most: more would make a round longer than the bursts it is to avoid.
pub const MOST_CELLS: usize = 24;

/// Traffic of a turn before its window.
const WARM_UP: Duration = Duration::from_millis(6);
/// Traffic of the first round, which counts for nothing: what connections learn at their beginning.
const FIRST: Duration = Duration::from_millis(25);
/// Traffic after the window, so that both ends are busy for all of it.
const TAIL: Duration = Duration::from_millis(2);
/// What was sent has arrived after so long.
const DRAIN: Duration = Duration::from_millis(2);
/// A turn with all that goes with it, roughly.
const EACH: Duration = Duration::from_micros(35_500);
/// All ends have been told of their next turn after so long, and so much longer for each cell.
const LEAD: Duration = Duration::from_millis(1);
const LEAD_EACH: Duration = Duration::from_micros(400);

/// More steal than this share of the machine disturbs a turn: less than the smallest step in which the kernel tells of it.
const STEAL: f64 = 0.01;
/// As does more use by other processes than this.
const FOREIGN: f64 = 0.02;
/// And an edge that was read so much later than planned, as a share of the window.
const LATE: f64 = 0.05;

/// Can a cell take turns with others? Its labs have to stand side by side, its connections to pause, and short windows to
/// tell what it is about.
#[must_use]
pub fn takes_turns(cell: &Cell) -> bool {
    let axes = &cell.axes;
    let pauses = !cell.load.is_numbered();
    let is_small = axes.containers.is_none() && axes.ports.is_none_or(|ports| ports <= 64);
    let is_plain = axes.search.is_none() && axes.start.is_none() && axes.scheduler.is_none();
    // What waits before a slow wire when a turn ends would run into the turns of others.
    let is_drained = axes.rate_bps.is_none_or(|Rate(limit)| limit.is_none());
    let on_this_kernel = lab::path(&cell.path).is_ok_and(|path| path.extra_time().is_zero());
    pauses && is_small && is_plain && is_drained && on_this_kernel
}

/// Fewest and most rounds of a generation, whatever would be best: fewer leave nothing to choose from where some are
/// disturbed, more are seldom worth their time.
pub const ROUNDS: std::ops::RangeInclusive<u32> = 4..=64;

/// How many rounds make up a window of the length that was asked for.
#[must_use]
pub fn rounds(window: Duration) -> u32 {
    let rounds = u32::try_from(window.as_nanos().div_ceil(WINDOW.as_nanos()));
    rounds.map_or(u32::MAX, |n| n.max(*ROUNDS.start()))
}

/// How many rounds a generation is to have.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// Undisturbed turns that each cell is to have.
    pub wanted: u32,
    /// No round begins after it but the first.
    pub deadline: Option<Instant>,
}

/// How many rounds a generation is to have where so many were asked for and so many would serve best: the best, within a
/// factor of what was asked for. Those that were asked for where nothing tells better, or where they are beyond [`ROUNDS`].
#[must_use]
pub fn chosen_rounds(asked: u32, worth: Option<f64>) -> u32 {
    const FACTOR: f64 = 2.0;
    let Some(worth) = worth.filter(|_| asked <= *ROUNDS.end()) else {
        return asked;
    };
    let asked = f64::from(asked);
    let chosen = worth.clamp(asked / FACTOR, asked * FACTOR);
    (chosen.round() as u32).clamp(*ROUNDS.start(), *ROUNDS.end())
}

/// A lab with connected ends, and what became of its turns.
struct Standing<'a> {
    cell: &'a Cell,
    /// Before the lab: fields are dropped in this order, and a lab's control group cannot go while processes are in it.
    ends: Ends,
    lab: Lab,
    /// Of the load and of switches that are programs.
    pids: Vec<u32>,
    devices: Vec<DeviceCount>,
    beside: Beside,
    taken: Vec<Taken>,
}

/// A turn with what is put together once.
struct Taken {
    turn: Turn,
    latency: Option<Latency>,
    client_cpus: Option<BusyCpus>,
    allowed_cpus: Option<BusyCpus>,
}

/// What the controller read at the edges of a turn.
struct Seen {
    opened: CpuReading,
    closed: CpuReading,
    late_ns: u64,
}

type Place<'a> = Result<Standing<'a>, Error>;

impl Sampler {
    /// Can this machine's clocks tell the CPU time of a turn?
    #[must_use]
    pub fn has_turns(&self) -> bool {
        self.meter.accounting() == CpuAccounting::IdleClock
    }

    /// What a generation of some cells costs beyond its rounds, in rounds.
    #[must_use]
    pub fn generation_cost(cells: &[&Cell]) -> f64 {
        let around: Duration = cells.iter().map(|cell| Self::around(cell) + FIRST).sum();
        let round = EACH * u32::try_from(cells.len()).unwrap_or(u32::MAX);
        around.as_secs_f64() / round.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// How long one sample of a cell takes by turns, roughly.
    #[must_use]
    pub fn turns_estimate(&self, cell: &Cell) -> Duration {
        Self::around(cell) + FIRST + EACH * rounds(self.window)
    }

    /// Measures cells by turns in so many rounds, in labs of their own that stand side by side; fewer, but one at least, where
    /// a deadline comes first. The order of the results is that of the cells. Where they are of two settings, `host` is
    /// switched before the labs of each are made and before their turns of each round.
    ///
    /// # Errors
    /// The meter or a switch fails, or the user wants to stop; a cell that failed has its error in its place.
    pub fn generation(
        &self,
        cells: &[&Cell],
        rounds: Rounds,
        quiet: impl Into<QuietCores>,
        order: &mut impl Rng,
        mut host: Option<&mut Host>,
    ) -> Result<Vec<Result<Measurement, Error>>, Error> {
        let quiet = quiet.into();
        let mut variants = variants(cells);
        variants.shuffle(order);
        let mut places: Vec<Place<'_>> = cells.iter().map(|_| Err(Error::Interrupted)).collect();
        for variant in &variants {
            variant.switch(host.as_deref_mut(), &places)?;
            for &at in &variant.cells {
                let cell = cells[at];
                let standing = self.build(cell).and_then(|lab| self.stand(cell, lab));
                places[at] = interrupts_only(standing)?;
            }
        }
        self.take_turns(places, variants, rounds, quiet, order, host)
    }

    /// The same in labs that were built before, whatever was changed in them since. Each is a cell's own, all of one setting.
    ///
    /// # Errors
    /// As [`Sampler::generation`].
    pub fn generation_in(
        &self,
        labs: Vec<(&Cell, Lab)>,
        rounds: Rounds,
        quiet: impl Into<QuietCores>,
        order: &mut impl Rng,
    ) -> Result<Vec<Result<Measurement, Error>>, Error> {
        let quiet = quiet.into();
        let cells: Vec<&Cell> = labs.iter().map(|(cell, _)| *cell).collect();
        let mut places: Vec<Place<'_>> = Vec::with_capacity(labs.len());
        for (cell, lab) in labs {
            places.push(interrupts_only(self.stand(cell, lab))?);
        }
        self.take_turns(places, variants(&cells), rounds, quiet, order, None)
    }

    /// Takes as many rounds as it needs, and concludes.
    fn take_turns(
        &self,
        mut places: Vec<Place<'_>>,
        mut variants: Vec<Variant>,
        Rounds { wanted, deadline }: Rounds,
        quiet: QuietCores,
        order: &mut impl Rng,
        mut host: Option<&mut Host>,
    ) -> Result<Vec<Result<Measurement, Error>>, Error> {
        let mut take = |places: &mut [Place<'_>],
                        variants: &[Variant],
                        round: u32,
                        lengths: Lengths|
         -> Result<(), Error> {
            for variant in variants {
                variant.switch(host.as_deref_mut(), places)?;
                self.round(places, &variant.cells, round, lengths, quiet)?;
            }
            Ok(())
        };
        for variant in &mut variants {
            variant.cells.shuffle(order);
        }
        take(&mut places, &variants, 0, Lengths::FIRST)?;
        for place in places.iter_mut().flatten() {
            place.taken.clear();
        }
        let mut round = 0;
        while places.iter().any(Result::is_ok)
            && takes_another(round, wanted, fewest_quiet(&places))
        {
            if round > 0 && deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break;
            }
            variants.shuffle(order);
            for variant in &mut variants {
                variant.cells.shuffle(order);
            }
            take(&mut places, &variants, round, Lengths::EACH)?;
            round += 1;
        }
        let concluded = |place: Place<'_>| place.and_then(|standing| standing.conclude(quiet));
        places
            .into_iter()
            .map(|place| interrupts_only(concluded(place)))
            .collect()
    }

    fn build(&self, cell: &Cell) -> Result<Lab, Error> {
        let path = lab::path(&cell.path).map_err(lab::Error::from)?;
        Ok(Lab::build(path, cell.peer, &cell.axes)?)
    }

    /// Connects the ends of a cell's lab.
    fn stand<'a>(&self, cell: &'a Cell, lab: Lab) -> Place<'a> {
        let ends = self.ends(&lab, cell)?;
        let mut pids = lab.daemons();
        pids.extend(ends.pids());
        Ok(Standing {
            cell,
            devices: devices::read(lab.spaces().iter().map(|s| (s.role, &s.handle)))?,
            beside: Beside::read(&lab, &[])?,
            lab,
            ends,
            pids,
            taken: Vec::new(),
        })
    }

    /// A turn of each place, one after another.
    fn round(
        &self,
        places: &mut [Place<'_>],
        order: &[usize],
        round: u32,
        lengths: Lengths,
        quiet: QuietCores,
    ) -> Result<(), Error> {
        let known = meter::possibly_foreign()?;
        // The load fills the CPUs, and edges are to be read in time.
        let prompt = cpu::Prompt::new();
        let lead = LEAD + LEAD_EACH * u32::try_from(order.len()).unwrap_or(u32::MAX);
        let mut start_ns = clock::monotonic_ns() + ns(lead);
        let mut told = Vec::with_capacity(order.len());
        for &at in order {
            let timetable = lengths.from(start_ns);
            let telling = |standing: &mut Standing<'_>| standing.ends.turn(timetable);
            if attempt(&mut places[at], telling)?.is_some() {
                start_ns = timetable.stop_ns + ns(DRAIN);
                told.push((at, timetable));
            }
        }
        let mut seen = Vec::with_capacity(told.len());
        for (at, timetable) in told {
            let watching =
                |standing: &mut Standing<'_>| self.watch_turn(standing, timetable, &known);
            seen.push((at, timetable, attempt(&mut places[at], watching)?));
        }
        drop(prompt);
        for (at, timetable, seen) in seen {
            let hearing =
                |standing: &mut Standing<'_>| standing.hear(round, timetable, seen, quiet);
            attempt(&mut places[at], hearing)?;
        }
        Ok(())
    }

    /// Reads the CPUs at the two edges of a turn.
    fn watch_turn(
        &self,
        standing: &Standing<'_>,
        timetable: Timetable,
        known: &[i32],
    ) -> Result<Seen, Error> {
        let ours = Ours {
            pids: &standing.pids,
            cgroup: standing.lab.cgroup(),
        };
        wait_until(timetable.open_ns)?;
        let opened_ns = clock::monotonic_ns();
        let opened = self.meter.open_among(known, ours)?;
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

/// The undisturbed turns of the cell that has fewest of them.
fn fewest_quiet(places: &[Place<'_>]) -> usize {
    let quiet = |place: &Standing<'_>| place.taken.iter().filter(|t| t.turn.is_quiet()).count();
    let standing = places.iter().flatten();
    standing.map(quiet).min().unwrap_or(usize::MAX)
}

/// Does something at a place that nothing befell before. What befalls it now stays there; only what ends the whole
/// generation is given back.
fn attempt<'a, T>(
    place: &mut Place<'a>,
    work: impl FnOnce(&mut Standing<'a>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let Ok(standing) = place else {
        return Ok(None);
    };
    match work(standing) {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.is_interrupt() => Err(error),
        Err(error) => {
            let error = standing.ends.cause_of(error);
            let death = standing.lab.death();
            *place = Err(death.map_or(error, |death| lab::Error::from(death).into()));
            Ok(None)
        }
    }
}

/// Passes an interrupt on, which ends the generation; any other error stays with its cell.
fn interrupts_only<T>(outcome: Result<T, Error>) -> Result<Result<T, Error>, Error> {
    match outcome {
        Err(error) if error.is_interrupt() => Err(error),
        other => Ok(other),
    }
}

/// How long the parts of a turn are.
#[derive(Debug, Clone, Copy)]
struct Lengths {
    warm_up: Duration,
    window: Duration,
}

impl Lengths {
    const EACH: Self = Self {
        warm_up: WARM_UP,
        window: WINDOW,
    };
    const FIRST: Self = Self {
        warm_up: Duration::from_millis(20),
        window: Duration::from_millis(5),
    };

    fn from(self, start_ns: u64) -> Timetable {
        let open_ns = start_ns + ns(self.warm_up);
        let close_ns = open_ns + ns(self.window);
        Timetable {
            start_ns,
            open_ns,
            close_ns,
            stop_ns: close_ns + ns(TAIL),
            slices: 1,
        }
    }
}

impl Standing<'_> {
    /// Hears what the ends counted in a turn and keeps it.
    fn hear(
        &mut self,
        round: u32,
        timetable: Timetable,
        seen: Option<Seen>,
        quiet: QuietCores,
    ) -> Result<(), Error> {
        let (clients, server) = self.ends.done()?;
        let client = merge::merged(&clients).map_err(Error::Merge)?;
        let Some(seen) = seen else {
            return Ok(());
        };
        let mut cpu = seen.closed.since(&seen.opened);
        quiet.note_in(&mut cpu);
        let late_ns = seen.late_ns.max(client.late_ns).max(server.late_ns);
        let (receiver, sender) = receiver_and_sender(self.cell.load, &client, &server);
        let windows = float(receiver.window_ns) / float(sender.window_ns.max(1));
        let sent = match self.cell.load {
            load if load.is_udp_stream() => sender.sent.times(windows),
            load if load.is_stream() => sender.sent,
            _ => Default::default(),
        };
        let busy = |cpus: &[usize]| seen.closed.busy(&seen.opened, cpus);
        self.taken.push(Taken {
            turn: Turn {
                round,
                window_ns: receiver.window_ns,
                received: receiver.received,
                sent,
                cpu,
                disturbance: disturbance(&cpu, late_ns, timetable.window_ns()),
            },
            latency: receiver.latency.clone(),
            client_cpus: busy(&self.ends.client_cpus),
            allowed_cpus: busy(&self.ends.allowed_cpus),
        });
        Ok(())
    }

    /// Puts the turns together, and proves the way by all traffic there was.
    fn conclude(self, quiet: QuietCores) -> Result<Measurement, Error> {
        let Standing {
            cell,
            lab,
            mut ends,
            devices: before,
            beside,
            taken,
            ..
        } = self;
        let after = devices::read(lab.spaces().iter().map(|s| (s.role, &s.handle)))?;
        let passed = Beside::read(&lab, &[])?.since(beside);
        let finished = ends.finish().map_err(|error| ends.cause_of(error));
        if let Some(death) = lab.death() {
            return Err(lab::Error::from(death).into());
        }
        let (clients, server) = finished?;
        let mut client = merge::merged(&clients).map_err(Error::Merge)?;
        // Both ends counted everything that passed the devices.
        let span_ns = client.window_ns;
        let whole = |end: Tallied| Tallied {
            window_ns: span_ns,
            ..end
        };
        client = whole(client);
        let turns: Vec<Turn> = taken.iter().map(|taken| taken.turn.clone()).collect();
        let taken = kept(taken, |taken| taken.turn.is_quiet());
        let cpu = taken
            .iter()
            .map(|taken| taken.turn.cpu)
            .reduce(CpuUse::plus);
        let cpu = cpu.ok_or_else(|| Error::Missed("none of its turns was measured".to_owned()))?;
        let counts = Counts {
            observed: Observed {
                cpu,
                devices: devices::since(&after, &before),
                devices_ns: span_ns,
                late_ns: 0,
                beside: passed,
                client_cpus: BusyCpus::mean(taken.iter().filter_map(|taken| taken.client_cpus)),
                allowed_cpus: BusyCpus::mean(taken.iter().filter_map(|taken| taken.allowed_cpus)),
            },
            client,
            clients: clients.into_iter().map(whole).collect(),
            server: whole(server),
            planned_ns: span_ns,
        };
        let whole = assemble(cell, &lab, counts, quiet)?;
        put_together(cell.load, whole, &taken, turns)
    }
}

/// A measurement of some turns, from that of all traffic.
fn put_together(
    load: LoadKind,
    whole: Measurement,
    taken: &[Taken],
    turns: Vec<Turn>,
) -> Result<Measurement, Error> {
    let sum = |of: fn(&Turn) -> crate::model::Counted| {
        let all = taken.iter().map(|taken| of(&taken.turn));
        all.fold(Default::default(), crate::model::Counted::plus)
    };
    let received = sum(|turn| turn.received);
    let units = |counted: crate::model::Counted| {
        float(if load.is_stream() {
            counted.bytes
        } else {
            counted.transactions
        })
    };
    let share = units(received) / units(whole.received).max(1.0);
    let latencies: Vec<&Latency> = taken.iter().filter_map(|t| t.latency.as_ref()).collect();
    Ok(Measurement {
        window_ns: taken.iter().map(|taken| taken.turn.window_ns).sum(),
        received,
        sent: sum(|turn| turn.sent),
        slices: taken
            .iter()
            .map(|taken| {
                let Turn { received, .. } = taken.turn;
                if load.is_stream() {
                    received.bytes
                } else {
                    received.transactions
                }
            })
            .collect(),
        latency: latency::together(&latencies).map_err(Error::Merge)?,
        client_scheduling: whole.client_scheduling.times(share),
        arrived: whole.arrived.map(|arrived| crate::model::Arrived {
            bytes: scaled(arrived.bytes, share),
            skbs: scaled(arrived.skbs, share),
        }),
        turns,
        ..whole
    })
}

/// What else used the CPUs, where it was too much. It looks at nothing that the load counted.
fn disturbance(cpu: &CpuUse, late_ns: u64, window_ns: u64) -> Option<Disturbance> {
    let machine_ns = cpu.elapsed_ns * f64::from(cpu.cpus);
    if cpu.steal_ns > STEAL * machine_ns {
        Some(Disturbance::Steal)
    } else if cpu.foreign_ns > FOREIGN * machine_ns {
        Some(Disturbance::Foreign)
    } else if float(late_ns) > LATE * float(window_ns) {
        Some(Disturbance::Late)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TickSplit;
    use proptest::prelude::*;

    /// What tells of a disturbance is given neither counts nor a measurement.
    const SIGNS_ONLY: fn(&CpuUse, u64, u64) -> Option<Disturbance> = disturbance;

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
            baseline_ns: 0.0,
            baseline_most_ns: None,
            closure: 1.0,
            split: TickSplit {
                user_ns: load_ns,
                system_ns: 0.0,
                irq_ns: 0.0,
                softirq_ns: load_ns,
            },
            forks: 0,
        }
    }

    #[test]
    fn each_disturbance_is_told_by_its_own_sign() {
        let of = |steal, foreign, late| SIGNS_ONLY(&cpu(steal, foreign, 1e6), late, WINDOW_NS);
        assert_eq!(of(0.0, 0.0, 0), None);
        assert_eq!(of(0.4e6, 0.9e6, 1_000_000), None);
        assert_eq!(of(0.6e6, 0.0, 0), Some(Disturbance::Steal));
        assert_eq!(of(0.0, 1.1e6, 0), Some(Disturbance::Foreign));
        assert_eq!(of(0.0, 0.0, 1_300_000), Some(Disturbance::Late));
    }

    proptest! {
        #[test]
        fn the_cost_of_the_load_disturbs_nothing(
            steal in 0.0..1e6_f64,
            foreign in 0.0..2e6_f64,
            late in 0..2_000_000_u64,
            loads in [0.0..50e6_f64, 0.0..50e6_f64],
        ) {
            let [one, other] = loads.map(|load| SIGNS_ONLY(&cpu(steal, foreign, load), late, WINDOW_NS));
            prop_assert_eq!(one, other);
        }
    }
}
