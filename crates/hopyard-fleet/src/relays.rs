//! A tree of controllers: pairs are run by relays on other machines, each with some dozens of pairs, and this process has one pipe
//! to each of them. Who is next is decided here alone.
//!
//! A relay is `hopyard fleet relay`, started by a command of the user and spoken to in lines of JSON, as workers are. Each side takes
//! 15 s of silence for the end of the other.

mod home;
mod serve;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hopyard_host::bounded::lines_as_they_come;
use hopyard_lab::Prefix;
use hopyard_model::plain;
use hopyard_net::end_with_starter;
use serde::{Deserialize, Serialize};

use crate::drive::{Answer, Ended, Engine, Job};
use crate::error::{Error, Result};
use crate::fleet::{check, column_names};
use crate::outcome::{Outcome, State};
use crate::plan::Plan;
use crate::samples::Sample;
use crate::store::Store;

pub use self::home::remove_abandoned;
pub use self::serve::serve;

/// Version of the messages below.
const VERSION: u32 = 2;
const BEAT: Duration = Duration::from_secs(3);
const SILENCE: Duration = Duration::from_secs(15);
/// For a login.
const GREETING: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);
/// For a relay that was told to end, which ends what it runs and removes its directory.
const LEAVING: Duration = Duration::from_secs(5);
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
    made: Instant,
    /// Samples of pairs that ended, until their round is written.
    samples: Mutex<HashMap<usize, Vec<Sample>>>,
    stopped: bool,
    /// Those that are gone or no longer needed, as they end.
    leaving: Vec<JoinHandle<()>>,
}

/// A pair that a relay says has ended, with its samples if it has any.
type ToldPair = (Ended, Option<Vec<Sample>>);

#[derive(Debug)]
struct Relay {
    prefix: String,
    child: Child,
    /// Until it is told to end.
    to: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Pairs that it runs: attempt and begin of each.
    running: BTreeMap<usize, (u32, Instant)>,
    heard: Instant,
    told: Instant,
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
            relays,
            made: Instant::now(),
            samples: Mutex::default(),
            stopped: false,
            leaving: Vec::new(),
        })
    }

    /// Lets a relay go. It may take some seconds to end, in which others want to hear of us.
    fn let_go(&mut self, relay: Relay) {
        self.leaving.push(std::thread::spawn(move || drop(relay)));
    }

    fn samples_of_ended(&self) -> std::sync::MutexGuard<'_, HashMap<usize, Vec<Sample>>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

/// Gives all relays the plan and hears their greetings, side by side: a login may take long, and who has greeted hears of us meanwhile.
fn all_join(relays: &mut [Relay], plan: &Plan) -> Result<()> {
    let pids: Vec<u32> = relays.iter().map(|relay| relay.child.id()).collect();
    let has_come: Vec<AtomicBool> = relays.iter().map(|_| AtomicBool::new(false)).collect();
    let all_have = || has_come.iter().all(|it| it.load(Relaxed));
    let deadline = Instant::now() + GREETING;
    std::thread::scope(|scope| {
        let joining: Vec<_> = relays
            .iter_mut()
            .zip(&has_come)
            .map(|(relay, has_come)| {
                scope.spawn(move || {
                    let joined = relay.joins(plan);
                    has_come.store(true, Relaxed);
                    while joined.is_ok() && !all_have() && relay.beats().is_ok() {
                        std::thread::sleep(LOOK);
                    }
                    joined
                })
            })
            .collect();
        while !all_have() && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
        for (pid, has_come) in pids.into_iter().zip(&has_come) {
            if !has_come.load(Relaxed) {
                // Its pipe may be full of the plan. Nobody has waited for it yet, so the number is its own.
                let pid = i32::try_from(pid).map(nix::unistd::Pid::from_raw);
                let _gone =
                    pid.map(|pid| nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL));
            }
        }
        let mut joined = joining.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.try_for_each(|joined| joined)
    })
}

impl Relay {
    fn start(prefix: &Prefix) -> Result<Self> {
        let mut command: Command = prefix.command(&["hopyard", "fleet", "relay"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        end_with_starter(&mut command);
        let failed = |why: &str| Error::Wrong(format!("relay `{prefix}`: {why}"));
        let mut child = command
            .spawn()
            .map_err(|e| failed(&format!("cannot be started: {e}")))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("it has no pipes"));
        };
        Ok(Self {
            prefix: prefix.to_string(),
            child,
            to: Some(to),
            lines: lines_as_they_come(from, LONGEST_LINE),
            running: BTreeMap::new(),
            heard: Instant::now(),
            told: Instant::now(),
        })
    }

    fn failed(&self, why: &str) -> Error {
        Error::Wrong(format!("{}: {}", self.name(), plain::line(why)))
    }

    fn joins(&mut self, plan: &Plan) -> Result<()> {
        let told = self.tell(&Told::Plan {
            version: VERSION,
            plan: Box::new(plan.clone()),
        });
        // A command that is no relay may have ended by now: that it did not greet tells more than a broken pipe.
        self.greets(plan)?;
        told.map_err(|error| self.failed(&error.to_string()))
    }

    /// Says that we live, if it is time.
    fn beats(&mut self) -> std::io::Result<()> {
        if self.told.elapsed() < BEAT {
            return Ok(());
        }
        self.tell(&Told::Beat)
    }

    fn greets(&mut self, plan: &Plan) -> Result<()> {
        let line = self.lines.recv_timeout(GREETING).map_err(|_| {
            self.failed(
                "`hopyard fleet relay` did not greet: is hopyard in PATH there, in this version?",
            )
        })?;
        self.heard = Instant::now();
        match serde_json::from_str(&line) {
            Ok(Said::Ready {
                version: VERSION,
                columns,
            }) if columns == column_names(&plan.columns()) => Ok(()),
            Ok(Said::Ready { .. }) => {
                Err(self.failed("it has other figures: use the same hopyard everywhere"))
            }
            Ok(Said::Broken { why }) => Err(self.failed(&why)),
            _ => Err(self.failed(&format!(
                "it was expected to greet, not to say `{}`",
                line.trim()
            ))),
        }
    }

    fn tell(&mut self, what: &Told) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        self.told = Instant::now();
        let mut to = self.to.as_ref().ok_or(std::io::ErrorKind::BrokenPipe)?;
        to.write_all(&line)
    }

    /// A pair that it says has ended, with its samples if there are any; nothing if that is not news.
    fn take(
        &mut self,
        said: Said,
        columns: usize,
        stopped: bool,
    ) -> std::result::Result<Option<ToldPair>, String> {
        let Said::Ended {
            place,
            outcome,
            answers,
            samples,
        } = said
        else {
            return Ok(None);
        };
        let Some(&(attempt, began)) = self.running.get(&place) else {
            return Ok(None);
        };
        if let Some(outcome) = &outcome {
            check(outcome, columns)?;
            let values = samples.iter().flatten().flat_map(|sample| &sample.values);
            if outcome.attempt != attempt || values.into_iter().any(|v| usize::from(v.0) >= columns)
            {
                return Err("it told of an attempt or of figures that nobody asked for".to_owned());
            }
        }
        self.running.remove(&place);
        let ended = match outcome {
            None if !stopped => lost(
                place,
                attempt,
                began,
                &format!("{} broke it off", self.name()),
            ),
            outcome => Ended {
                place,
                outcome: outcome.map(|outcome| *outcome),
                answers,
            },
        };
        Ok(Some((ended, samples)))
    }

    fn name(&self) -> String {
        format!("relay `{}`", plain::line(&self.prefix))
    }

    /// What it has said meanwhile; why it is no relay any more, if so.
    fn hear(&mut self) -> (Vec<Said>, Option<String>) {
        let mut heard = Vec::new();
        loop {
            match self.lines.try_recv() {
                Ok(line) => match serde_json::from_str(&line) {
                    Ok(Said::Broken { why }) => return (heard, Some(why)),
                    Ok(said) => {
                        self.heard = Instant::now();
                        heard.push(said);
                    }
                    Err(e) => return (heard, Some(format!("it said what is no message: {e}"))),
                },
                Err(TryRecvError::Disconnected) => {
                    return (heard, Some("its connection ended".to_owned()));
                }
                Err(TryRecvError::Empty) => break,
            }
        }
        if self.beats().is_err() {
            return (heard, Some("its connection ended".to_owned()));
        }
        let is_silent = self.heard.elapsed() >= SILENCE;
        (
            heard,
            is_silent.then(|| format!("it said nothing for {} s", SILENCE.as_secs())),
        )
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _told = self.tell(&Told::Stop);
        self.to = None;
        let told = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && told.elapsed() < LEAVING {
            std::thread::sleep(LOOK);
        }
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// A pair whose relay is gone: nobody knows anything of its machines.
fn lost(place: usize, attempt: u32, began: Instant, why: &str) -> Ended {
    let took = began.elapsed();
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let now_ms = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0);
    Ended {
        place,
        outcome: Some(Outcome {
            state: State::Failed,
            attempt,
            began_ms: now_ms.saturating_sub(took_ms),
            took_ms,
            cause: Some(why.into()),
            figures: Vec::new(),
        }),
        answers: [None, None],
    }
}

impl Engine for Relays {
    fn start(&mut self, _: &Store, job: Job) -> Result<()> {
        let Job { place, attempt } = job;
        // One whose pipe has just broken is noticed in the next look, with the pairs that it runs.
        let free = self
            .relays
            .iter_mut()
            .min_by_key(|relay| relay.running.len());
        let relay = free.ok_or(Error::Internal {
            what: "measure a pair: no relay is left",
            source: std::io::ErrorKind::NotConnected.into(),
        })?;
        relay.running.insert(place, (attempt, Instant::now()));
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
        if ended.is_empty() {
            std::thread::sleep(LOOK);
        }
        Ok(ended)
    }

    fn samples(&self, store: &Store, job: Job) -> std::result::Result<Vec<Sample>, String> {
        if let Some(found) = self.samples_of_ended().remove(&job.place) {
            return Ok(found);
        }
        // An earlier session may have measured it here.
        crate::children::samples(store, job).map_err(|_| {
            "a relay measured it in a session that was killed before its round was whole".to_owned()
        })
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
