//! Carries a plan out: takes pairs from the schedule, gives them to whoever measures, and keeps what comes back.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::dispatch::Dispatch;
use crate::error::Result;
use crate::fleet::Fleet;
use crate::outcome::{End, Outcome};
use crate::samples::Sample;
use crate::store::Store;

/// Failed pairs of a machine in a row, after each of which it did not answer, until it is lost.
pub(crate) const LOST_AFTER: u32 = 2;

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

    /// Does it run as many pairs as it can?
    fn is_full(&self) -> bool {
        false
    }

    /// The samples of an attempt at a pair that was measured.
    ///
    /// # Errors
    /// They are not there any more, or damaged; why, in words.
    fn samples(&self, store: &Store, job: Job) -> std::result::Result<Vec<Sample>, String>;

    /// The samples of these pairs are in a file, and not asked for again.
    fn kept(&mut self, _places: &[usize]) {}

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

/// Pairs of each round that may still end.
struct Rounds(Vec<usize>);

impl Rounds {
    fn new(fleet: &Fleet, is_done: impl Fn(usize) -> bool) -> Self {
        let open = |round| fleet.places(round).filter(|place| !is_done(*place)).count();
        Self((0..fleet.rounds()).map(open).collect())
    }

    /// A pair will not end any more, or has. Gives its round where that was the last one.
    fn without(&mut self, fleet: &Fleet, place: usize) -> Option<usize> {
        let round = fleet.round_of(place);
        self.0[round] -= 1;
        (self.0[round] == 0).then_some(round)
    }
}

fn last_job(store: &Store, place: usize) -> Job {
    let attempt = store.attempt_of(place);
    Job { place, attempt }
}

/// Writes the samples of a round that are in no file yet. Those that are not to be had are told and left out.
fn keep(store: &mut Store, engine: &mut impl Engine, round: usize) -> Result<()> {
    let mut samples = Vec::new();
    let places = store.fleet.not_kept(round);
    if places.is_empty() {
        return Ok(());
    }
    for place in places {
        match engine.samples(store, last_job(store, place)) {
            Ok(of_pair) => samples.push((place, of_pair)),
            Err(why) => store.missing.push((place, why)),
        }
    }
    store.keep(round, &samples)?;
    let places: Vec<usize> = samples.iter().map(|(place, _)| *place).collect();
    engine.kept(&places);
    Ok(())
}

/// Pairs that an earlier session measured, and whose samples are nowhere: relays have them in memory until their round is whole.
fn without_samples(store: &Store, engine: &impl Engine) -> BTreeSet<usize> {
    let rounds = 0..store.fleet.rounds();
    let not_kept = rounds.flat_map(|round| store.fleet.not_kept(round));
    let is_lost = |place: &usize| engine.samples(store, last_job(store, *place)).is_err();
    not_kept.filter(is_lost).collect()
}

/// Measures what is missing or failed, until nothing is left, the time is over or `is_stopped` says so.
///
/// # Errors
/// The store cannot be written, or the engine cannot go on. What was measured until then is kept.
pub fn drive(
    store: &mut Store,
    engine: &mut impl Engine,
    time_limit: Option<Duration>,
    is_stopped: impl Fn() -> bool,
    watch: impl FnMut(Progress),
) -> Result<End> {
    let measured = measure(store, engine, time_limit, is_stopped, watch);
    // What an earlier session measured and could not keep, what is missing of this one, and rounds that were broken off.
    store.missing.clear();
    let kept = (0..store.fleet.rounds()).try_for_each(|round| keep(store, engine, round));
    if measured.is_err() {
        // The error is the one to report.
        let _ = store.over(End::Broken);
    }
    let end = measured?;
    kept?;
    store.over(end)?;
    Ok(end)
}

fn measure(
    store: &mut Store,
    engine: &mut impl Engine,
    time_limit: Option<Duration>,
    is_stopped: impl Fn() -> bool,
    mut watch: impl FnMut(Progress),
) -> Result<End> {
    let fleet = &store.fleet;
    let without_samples = without_samples(store, engine);
    let is_done = |place: usize| {
        let outcome = fleet.outcomes[place].as_ref();
        outcome.is_some_and(Outcome::is_measured) && !without_samples.contains(&place)
    };
    let machines = fleet.plan.endpoints.len();
    let mut dispatch = Dispatch::new(machines, &fleet.pairs, is_done, fleet.plan.at_once);
    let mut rounds = Rounds::new(fleet, is_done);
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
        if end != Some(End::Interrupted) && is_stopped() {
            end = Some(End::Interrupted);
            engine.stop();
        }
        if end.is_none() && time_limit.is_some_and(|limit| engine.now() >= limit) {
            // What runs may end.
            end = Some(End::TimeLimit);
        }
        while end.is_none()
            && !engine.is_full()
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
        // Rounds of which nothing runs or is left.
        let mut whole = Vec::new();
        for ended in engine.ended(store)? {
            dispatch.end(ended.place);
            whole.extend(rounds.without(&store.fleet, ended.place));
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
            // A pair whose samples are lost still has its figures: a failure does not replace them.
            if is_measured || !without_samples.contains(&ended.place) {
                store.ended(ended.place, outcome)?;
            }
            for (machine, answer) in pair.ends().into_iter().zip(ended.answers) {
                let silent: &mut u32 = &mut silent[usize::from(machine)];
                match answer {
                    Some(Answer::No(how)) if !is_measured => {
                        *silent += 1;
                        if *silent == LOST_AFTER {
                            for place in dispatch.lose(machine) {
                                whole.extend(rounds.without(&store.fleet, place));
                            }
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
        for round in whole {
            keep(store, engine, round)?;
        }
    }
    // What was left when the time was over may have been nothing.
    Ok(match end {
        Some(End::TimeLimit) if dispatch.left() == 0 => End::Complete,
        end => end.unwrap_or(End::Complete),
    })
}
