//! Labs that exist side by side, each with connected ends.

use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;

use hopyard_net::clock;

use super::Participant;
use super::round::Taken;
use crate::lab::{self, Lab};
use crate::measure::aux_counters::AuxCounters;
use crate::measure::connections;
use crate::measure::counts::read_devices;
use crate::measure::ends::Ends;
use crate::measure::{Error, Sampler, wait_until};
use crate::meter;
use crate::model::{Cell, DeviceCount};
use crate::units::ns;

/// A lab with connected ends, and its turns so far.
pub(super) struct Standing<'a> {
    pub(super) cell: &'a Cell,
    /// Before the lab, because fields are dropped in this order, and a lab's control group cannot be removed while it
    /// has processes.
    pub(super) ends: Ends,
    pub(super) lab: Rc<Lab>,
    /// Processes of the load and of user-space switches.
    pub(super) pids: Vec<u32>,
    pub(super) devices: Vec<DeviceCount>,
    pub(super) beside: AuxCounters,
    /// Time of its own traffic, ns, and what the machine's queues of received packets dropped in that time.
    pub(super) traffic_ns: u64,
    pub(super) backlog_drops: Option<u64>,
    pub(super) taken: Vec<Taken>,
    /// How many turns it has in each round.
    pub(super) turns_each_round: u32,
}

impl Standing<'_> {
    /// Turns taken so far, divided by its turns in a round.
    pub(super) fn taken_each(&self) -> u32 {
        let taken = u32::try_from(self.taken.len()).unwrap_or(u32::MAX);
        taken / self.turns_each_round.max(1)
    }

    /// Rounds in which it had an undisturbed turn.
    pub(super) fn quiet_rounds(&self) -> usize {
        let quiet = self.taken.iter().filter(|taken| taken.turn.is_quiet());
        let rounds: HashSet<u32> = quiet.map(|taken| taken.turn.round).collect();
        rounds.len()
    }

    /// Waits until the lab's processes rest. Otherwise, data in its sockets or in the queues of a user-space switch
    /// would take CPU time in the turn of the next lab. The wait is limited, because some programs never rest.
    pub(super) fn come_to_rest(&self, rest: Duration) -> Result<(), Error> {
        const AT_MOST: Duration = Duration::from_millis(60);
        /// Resting processes use less than this.
        const LITTLE: Duration = Duration::from_micros(50);
        let end_ns = clock::monotonic_ns() + ns(AT_MOST);
        let mut used = self.used_ns();
        loop {
            let now_ns = clock::monotonic_ns();
            wait_until(now_ns + ns(rest))?;
            let before = std::mem::replace(&mut used, self.used_ns());
            let used_little = used.saturating_sub(before) < ns(LITTLE);
            // A running thread's CPU clock lags by up to a tick.
            let rests = used_little && !self.pids.iter().any(|pid| meter::is_running(*pid));
            if rests || now_ns > end_ns {
                return Ok(());
            }
        }
    }

    /// CPU time of the processes, ns; 0 for one that has ended.
    fn used_ns(&self) -> u64 {
        let pids = self.pids.iter().filter_map(|pid| i32::try_from(*pid).ok());
        pids.filter_map(|pid| clock::process_cpu_ns(pid).ok()).sum()
    }
}

/// A working lab, or its failure.
pub(super) type Place<'a> = Result<Standing<'a>, Error>;

impl Sampler {
    /// Connects the ends of a cell's lab.
    pub(super) fn stand<'a>(
        &self,
        Participant { cell, turns }: Participant<'a>,
        lab: Rc<Lab>,
    ) -> Place<'a> {
        let ends = self.ends(&lab, cell).map_err(|error| behind(error, &lab))?;
        let mut pids = lab.daemons();
        pids.extend(ends.pids());
        Ok(Standing {
            cell,
            devices: read_devices(&lab)?,
            beside: AuxCounters::read(&lab, &[])?,
            traffic_ns: 0,
            backlog_drops: Some(0),
            lab,
            ends,
            pids,
            taken: Vec::new(),
            turns_each_round: turns,
        })
    }
}

/// Does something in a lab that has not failed. A failure stays with the lab; only an error that ends the whole
/// generation is returned.
pub(super) fn attempt<'a, T>(
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
            *place = Err(behind(error, &standing.lab));
            Ok(None)
        }
    }
}

/// The cause of a failure: a lab whose daemon died carries nothing, and its ends can only report that nothing arrived.
fn behind(error: Error, lab: &Lab) -> Error {
    if error.is_interrupt() {
        return error;
    }
    match lab.death() {
        Some(death) => lab::Error::from(death).into(),
        None => connections::cause_of(error, lab),
    }
}

/// Passes on an interrupt, which ends the generation; any other error stays with its cell.
pub(super) fn interrupts_only<T>(outcome: Result<T, Error>) -> Result<Result<T, Error>, Error> {
    match outcome {
        Err(error) if error.is_interrupt() => Err(error),
        other => Ok(other),
    }
}
