//! Carries a plan out: takes pairs from the schedule, gives them to whoever measures, and keeps what comes back.

use std::time::Duration;

use crate::dispatch::Dispatch;
use crate::error::Result;
use crate::outcome::{End, Outcome};
use crate::store::Store;

/// Failed pairs of a machine in a row, after each of which it did not answer, until it is lost.
pub const LOST_AFTER: u32 = 2;

/// A pair that is to be measured.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// Its place among the fleet's pairs.
    pub place: usize,
    /// Which attempt, from 1.
    pub attempt: u32,
}

/// A pair that ended.
#[derive(Debug)]
pub struct Ended {
    /// Its place among the fleet's pairs.
    pub place: usize,
    /// What became of it; `None` where it was stopped, which is no result.
    pub outcome: Option<Outcome>,
    /// What client and server said after it failed; `None` where nobody asked.
    pub answers: [Option<Answer>; 2],
}

/// Does a machine answer?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Its worker greeted, or `echo` said what it was told to.
    Yes,
    /// It does not, and this is how its command ended.
    No(String),
}

/// Who measures pairs: processes of this host, or a model in tests.
pub trait Engine {
    /// Begins a pair and returns at once.
    ///
    /// # Errors
    /// Nothing can be measured any more.
    fn start(&mut self, store: &Store, job: Job) -> Result<()>;

    /// Pairs that have ended; waits a moment if there are none.
    ///
    /// # Errors
    /// Nothing can be measured any more.
    fn ended(&mut self, store: &Store) -> Result<Vec<Ended>>;

    /// Has what runs end soon. Its pairs end without an outcome.
    fn stop(&mut self);

    /// Time since the engine was made.
    fn now(&self) -> Duration;
}

/// How far it is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Pairs that are measured, in earlier sessions too.
    pub measured: usize,
    /// Pairs that failed in this session.
    pub failed: usize,
    /// Pairs that are being measured now.
    pub running: usize,
    /// Machines that are lost.
    pub lost: usize,
    /// Pairs of the plan, whatever became of them.
    pub of: usize,
}

/// Measures what is missing or failed, until nothing is left, the time is over or `is_stopped` says so.
///
/// # Errors
/// The store cannot be written, or the engine cannot go on.
pub fn drive(
    store: &mut Store,
    engine: &mut impl Engine,
    time_limit: Option<Duration>,
    is_stopped: impl Fn() -> bool,
    mut watch: impl FnMut(Progress),
) -> Result<End> {
    let fleet = &store.fleet;
    let is_done = |place: usize| {
        let outcome = fleet.outcomes[place].as_ref();
        outcome.is_some_and(Outcome::is_measured)
    };
    let machines = fleet.plan.endpoints.len();
    let mut dispatch = Dispatch::new(machines, &fleet.pairs, is_done, fleet.plan.at_once);
    let mut silent = vec![0; machines];
    let mut progress = Progress {
        measured: fleet.pairs.len() - dispatch.left(),
        failed: 0,
        running: 0,
        lost: 0,
        of: fleet.pairs.len(),
    };
    let mut end = None;
    loop {
        if end.is_none() && is_stopped() {
            end = Some(End::Interrupted);
            engine.stop();
        }
        if end.is_none() && time_limit.is_some_and(|limit| engine.now() >= limit) {
            // What runs may end.
            end = Some(End::TimeLimit);
        }
        while end.is_none()
            && let Some(place) = dispatch.start()
        {
            let attempt = store.next_attempt(place);
            engine.start(store, Job { place, attempt })?;
        }
        progress.running = dispatch.running();
        watch(progress);
        if dispatch.running() == 0 {
            break;
        }
        for ended in engine.ended(store)? {
            dispatch.end(ended.place);
            let pair = store.fleet.pairs[ended.place];
            let Some(outcome) = ended.outcome else {
                continue;
            };
            let is_measured = outcome.is_measured();
            if is_measured {
                progress.measured += 1;
            } else {
                progress.failed += 1;
            }
            store.ended(ended.place, outcome)?;
            for (machine, answer) in pair.ends().into_iter().zip(ended.answers) {
                let silent: &mut u32 = &mut silent[usize::from(machine)];
                match answer {
                    Some(Answer::No(how)) if !is_measured => {
                        *silent += 1;
                        if *silent == LOST_AFTER {
                            dispatch.lose(machine);
                            progress.lost += 1;
                            store.lost(
                                machine,
                                format!(
                                    "no answer after {LOST_AFTER} failed pairs in a row: {how}"
                                ),
                            )?;
                        }
                    }
                    Some(_) => *silent = 0,
                    None if is_measured => *silent = 0,
                    None => {}
                }
            }
        }
    }
    // What was left when the time was over may have been nothing.
    let end = match end {
        Some(End::TimeLimit) if dispatch.left() == 0 => End::Complete,
        end => end.unwrap_or(End::Complete),
    };
    store.over(end)?;
    Ok(end)
}
