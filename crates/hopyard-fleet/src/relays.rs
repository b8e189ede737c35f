//! A tree of controllers: pairs are run by relays on other machines, each with some dozens of pairs, and this process has one pipe
//! to each of them. Who is next is decided here alone.
//!
//! A relay is `hopyard fleet relay`, started by a command of the user and spoken to in lines of JSON, as workers are. Each side takes
//! 15 s of silence for the end of the other.

mod home;
mod relay;
mod serve;
mod standing;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hopyard_lab::Prefix;
use hopyard_model::plain;
use serde::{Deserialize, Serialize};

use self::relay::{Relay, all_join, lost};
use self::standing::keep_what_all_say;
use crate::drive::{Answer, Ended, Engine, Job};
use crate::error::{Error, Result};
use crate::outcome::Outcome;
use crate::plan::{AT_ONCE, Plan};
use crate::samples::Sample;
use crate::store::Store;

pub use self::home::remove_abandoned;
pub use self::serve::serve;

/// Version of the messages below.
const VERSION: u32 = 3;
const BEAT: Duration = Duration::from_secs(3);
const SILENCE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(20);
/// Of a line: a plan of 2,048 machines, or a pair with a thousand blocks.
const LONGEST_LINE: u64 = 64 << 20;

/// What a relay is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    /// First of all.
    Plan { version: u32, plan: Box<Plan> },
    /// Measure a pair of the plan.
    Start { place: usize, attempt: u32 },
    /// End what runs.
    Stop,
    /// We live.
    Beat,
}

/// What a relay says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    /// It has the plan, of which each pair has these figures, in this order.
    Ready { version: u32, columns: Vec<String> },
    /// A pair has ended.
    Ended {
        place: usize,
        outcome: Option<Box<Outcome>>,
        answers: [Option<Answer>; 2],
        samples: Option<Vec<Sample>>,
    },
    /// It cannot go on, and why.
    Broken { why: String },
    /// It lives.
    Beat,
}

/// Runs pairs by relays.
#[derive(Debug)]
pub struct Relays {
    relays: Vec<Relay>,
    /// Most pairs of one relay: where others are gone, those that are left must not have to do what all did.
    most_each: usize,
    made: Instant,
    /// Samples of pairs that ended, until their round is written.
    samples: Mutex<HashMap<usize, Vec<Sample>>>,
    stopped: bool,
    /// Threads that wait for relays to end.
    leaving: Vec<JoinHandle<()>>,
}

impl Relays {
    /// Starts a relay by each of these commands, all at once.
    ///
    /// # Errors
    /// One cannot be started, or does not greet.
    pub fn start(prefixes: &[Prefix], plan: &Plan) -> Result<Self> {
        // The kernel ends children with the thread that started them.
        let relays = prefixes.iter().map(Relay::start);
        let mut relays: Vec<Relay> = relays.collect::<Result<_>>()?;
        all_join(&mut relays, plan)?;
        Ok(Self {
            most_each: plan.at_once.div_ceil(relays.len().max(1)).max(AT_ONCE),
            relays,
            made: Instant::now(),
            samples: Mutex::default(),
            stopped: false,
            leaving: Vec::new(),
        })
    }

    /// Ends a relay on a thread of its own: that takes some seconds, and the other relays have to hear from us meanwhile.
    fn let_go(&mut self, relay: Relay) {
        self.leaving.push(std::thread::spawn(move || drop(relay)));
    }

    fn samples_of_ended(&self) -> std::sync::MutexGuard<'_, HashMap<usize, Vec<Sample>>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Is there no relay with room? Each rests or not, and runs so many pairs. One that rests has room only where all do: otherwise it would
/// get the pair of each that ends, as soon as the others are full.
fn are_full(states: impl Iterator<Item = (bool, usize)> + Clone, most_each: usize) -> bool {
    let all_rest = states.clone().all(|(rests, _)| rests);
    let mut counted = states.filter(|(rests, _)| all_rest || !rests);
    counted.all(|(_, running)| running >= most_each)
}

impl Drop for Relays {
    fn drop(&mut self) {
        for relay in std::mem::take(&mut self.relays) {
            self.let_go(relay);
        }
        for leaving in self.leaving.drain(..) {
            // One whose end panicked has said so.
            let _panic = leaving.join();
        }
    }
}

impl Engine for Relays {
    fn start(&mut self, store: &Store, job: Job) -> Result<()> {
        let Job { place, attempt } = job;
        let (ends, now) = (store.fleet.pairs[place].ends(), Instant::now());
        // One whose pipe has just broken is noticed in the next look, with the pairs that it runs.
        let best = self
            .relays
            .iter_mut()
            .filter(|relay| relay.running.len() < self.most_each)
            // One that rests comes last (`Standing::cost`), and `is_full` leaves it alone while others work.
            .min_by_key(|relay| relay.standing.cost(ends, relay.running.len(), now));
        let relay = best.ok_or(Error::Internal {
            what: "measure a pair: no relay is left",
            source: std::io::ErrorKind::NotConnected.into(),
        })?;
        relay.running.insert(place, (attempt, now));
        let _broken = relay.tell(&Told::Start { place, attempt });
        Ok(())
    }

    fn ended(&mut self, store: &Store) -> Result<Vec<Ended>> {
        let columns = store.fleet.columns.len();
        let mut ended = Vec::new();
        let mut gone = Vec::new();
        let mut samples = Vec::new();
        for (at, relay) in self.relays.iter_mut().enumerate() {
            let (heard, mut end) = relay.hear();
            for said in heard {
                match relay.take(said, columns, self.stopped) {
                    Ok(taken) => {
                        let taken = taken.into_iter();
                        ended.extend(taken.map(|(pair, of_pair)| {
                            let ends = store.fleet.pairs[pair.place].ends();
                            relay.standing.note(ends, &pair, Instant::now());
                            samples.extend(of_pair.map(|of_pair| (pair.place, of_pair)));
                            pair
                        }));
                    }
                    Err(why) => end = end.or(Some(why)),
                }
            }
            if let Some(why) = end {
                gone.push((at, why));
            }
        }
        self.samples_of_ended().extend(samples);
        for (at, why) in gone.into_iter().rev() {
            let mut relay = self.relays.remove(at);
            let why = format!("{} is gone: {}", relay.name(), plain::line(&why));
            for (place, (attempt, began)) in std::mem::take(&mut relay.running) {
                let lost = lost(place, attempt, began, &why);
                ended.push(Ended {
                    // A relay may go because it was told to.
                    outcome: lost.outcome.filter(|_| !self.stopped),
                    ..lost
                });
            }
            self.let_go(relay);
        }
        let standings: Vec<_> = self.relays.iter().map(|relay| &relay.standing).collect();
        for pair in &mut ended {
            let ends = store.fleet.pairs[pair.place].ends();
            keep_what_all_say(&mut pair.answers, ends, &standings);
        }
        if ended.is_empty() {
            std::thread::sleep(LOOK);
        }
        Ok(ended)
    }

    fn is_full(&self) -> bool {
        let now = Instant::now();
        let all = self.relays.iter();
        let states = all.map(|relay| (relay.standing.rests(now), relay.running.len()));
        // Where none is left, the next start says so.
        !self.relays.is_empty() && are_full(states, self.most_each)
    }

    fn samples(&self, store: &Store, job: Job) -> std::result::Result<Vec<Sample>, String> {
        if let Some(found) = self.samples_of_ended().get(&job.place) {
            return Ok(found.clone());
        }
        // An earlier session may have measured it here.
        crate::children::samples(store, job)
            .map_err(|_| "a relay measured it, and no longer has its samples".to_owned())
    }

    fn kept(&mut self, places: &[usize]) {
        let mut samples = self.samples_of_ended();
        for place in places {
            samples.remove(place);
        }
    }

    fn stop(&mut self) {
        self.stopped = true;
        for relay in &mut self.relays {
            // One that is gone has nothing to stop.
            let _broken = relay.tell(&Told::Stop);
        }
    }

    fn now(&self) -> Duration {
        self.made.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::are_full;

    #[test]
    fn a_relay_that_rests_has_no_room_while_others_work() {
        let full = |states: &[(bool, usize)]| are_full(states.iter().copied(), 2);
        assert!(!full(&[(false, 1), (false, 2)]));
        assert!(full(&[(false, 2), (false, 2)]));
        assert!(full(&[(true, 0), (false, 2)]));
        assert!(!full(&[(true, 0), (false, 1)]));
        assert!(!full(&[(true, 0), (true, 2)]), "nobody else is there");
        assert!(full(&[(true, 2), (true, 2)]));
    }
}
