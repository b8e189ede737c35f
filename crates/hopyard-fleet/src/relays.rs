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
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hopyard_host::bounded::lines_as_they_come;
use hopyard_lab::Prefix;
use hopyard_model::plain;
use hopyard_net::end_with_starter;
use serde::{Deserialize, Serialize};

use crate::drive::{Answer, Ended, Engine, Job};
use crate::error::{Error, Result};
use crate::outcome::{Outcome, State};
use crate::plan::Plan;
use crate::samples::Sample;
use crate::store::Store;

pub use self::home::remove_abandoned;
pub use self::serve::serve;

/// Version of the messages below.
const VERSION: u32 = 1;
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
    /// It has the plan.
    Ready { version: u32 },
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
}

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
        let mut relays = Vec::new();
        for prefix in prefixes {
            relays.push(Relay::start(prefix)?);
        }
        for relay in &mut relays {
            let plan = Box::new(plan.clone());
            let told = relay.tell(&Told::Plan {
                version: VERSION,
                plan,
            });
            if let Err(error) = told {
                // A command that is no relay may have ended by now: that it did not greet tells more.
                relay.greets()?;
                return Err(relay.failed(&error.to_string()));
            }
        }
        for relay in &mut relays {
            relay.greets()?;
        }
        Ok(Self {
            relays,
            made: Instant::now(),
            samples: Mutex::default(),
            stopped: false,
        })
    }

    fn samples_of_ended(&self) -> std::sync::MutexGuard<'_, HashMap<usize, Vec<Sample>>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        Error::Wrong(format!(
            "relay `{}`: {}",
            plain::line(&self.prefix),
            plain::line(why)
        ))
    }

    fn greets(&mut self) -> Result<()> {
        let line = self.lines.recv_timeout(GREETING).map_err(|_| {
            self.failed(
                "`hopyard fleet relay` did not greet: is hopyard in PATH there, in this version?",
            )
        })?;
        self.heard = Instant::now();
        match serde_json::from_str(&line) {
            Ok(Said::Ready { version: VERSION }) => Ok(()),
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
        if self.told.elapsed() >= BEAT && self.tell(&Told::Beat).is_err() {
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

    fn ended(&mut self, _: &Store) -> Result<Vec<Ended>> {
        let mut ended = Vec::new();
        let mut gone = Vec::new();
        for (at, relay) in self.relays.iter_mut().enumerate() {
            let (heard, end) = relay.hear();
            for said in heard {
                let Said::Ended {
                    place,
                    outcome,
                    answers,
                    samples,
                } = said
                else {
                    continue;
                };
                if relay.running.remove(&place).is_none() {
                    continue;
                }
                let samples = samples.into_iter().map(|samples| (place, samples));
                self.samples
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend(samples);
                ended.push(Ended {
                    place,
                    outcome: outcome.map(|outcome| *outcome),
                    answers,
                });
            }
            if let Some(why) = end {
                gone.push((at, why));
            }
        }
        for (at, why) in gone.into_iter().rev() {
            let mut relay = self.relays.remove(at);
            let why = format!(
                "relay `{}` is gone: {}",
                plain::line(&relay.prefix),
                plain::line(&why)
            );
            let running = std::mem::take(&mut relay.running);
            ended.extend(
                running
                    .into_iter()
                    .map(|(place, (attempt, began))| lost(place, attempt, began, &why)),
            );
        }
        if ended.is_empty() {
            std::thread::sleep(LOOK);
        }
        Ok(ended)
    }

    fn samples(&self, _: &Store, job: Job) -> std::result::Result<Vec<Sample>, String> {
        let found = self.samples_of_ended().remove(&job.place);
        found.ok_or_else(|| {
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
