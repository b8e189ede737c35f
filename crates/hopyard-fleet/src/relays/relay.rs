//! One relay: its process, the pipe to it, and the pairs that it runs.

use std::collections::BTreeMap;
use std::process::{Child, ChildStderr, ChildStdin, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use hopyard_host::bounded::lines_as_they_come;
use hopyard_host::note;
use hopyard_lab::Prefix;
use hopyard_model::plain;
use hopyard_net::{end_with_starter, kill_group, pipe};

use super::standing::Standing;
use super::{BEAT, LONGEST_LINE, LOOK, SILENCE, Said, Told, VERSION};
use crate::drive::{Answer, Ended};
use crate::error::{Error, Result};
use crate::fleet::{check, column_names};
use crate::outcome::{Outcome, State};
use crate::plan::Plan;
use crate::samples::Sample;

/// How long a login may take.
const GREETING: Duration = Duration::from_secs(30);
/// Messages of a relay that are taken before the next relay is looked at.
const MOST_AT_ONCE: usize = 1000;
/// Of a pair's failure and of why a machine does not answer, bytes: it becomes a part of a line of the journal, and relays of this
/// version say less.
const LONGEST_CAUSE: usize = 64 << 10;
/// Of a line that a relay says to people, bytes.
const LONGEST_WORDS: u64 = 4 << 10;
/// For the last words of a relay that has ended; whoever it started may hold the stream.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// For a relay that was told to end, which ends what it runs and removes its directory.
const LEAVING: Duration = Duration::from_secs(5);

/// A pair that a relay says has ended, with its samples if it has any.
pub(super) type ToldPair = (Ended, Option<Vec<Sample>>);

#[derive(Debug)]
pub(super) struct Relay {
    prefix: String,
    child: Child,
    /// Closes when all that it says to people is printed.
    words: Option<Receiver<()>>,
    /// Until it is told to end.
    to: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Pairs that it runs: attempt and begin of each.
    pub(super) running: BTreeMap<usize, (u32, Instant)>,
    pub(super) standing: Standing,
    heard: Instant,
    told: Instant,
}

/// Gives all relays the plan and waits for their greetings, side by side. A login may take long, and a relay that has greeted ends
/// if it hears nothing meanwhile.
pub(super) fn all_join(relays: &mut [Relay], plan: &Plan) -> Result<()> {
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
                    if joined.is_err() {
                        // It may go on to print, and nobody reads that.
                        kill_group(relay.child.id());
                    }
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
                // It may not read the plan, which then fills the pipe. Its process id is not another's, because nobody has waited
                // for it.
                kill_group(pid);
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

/// Prints stderr of a relay, or of the command that starts it, without control characters: it comes from another machine. What is
/// returned closes at its end.
fn pass_on(prefix: String, words: ChildStderr) -> Receiver<()> {
    let (end, ended) = channel();
    thread::spawn(move || {
        for line in lines_as_they_come(words, LONGEST_WORDS) {
            let line = plain::line(&line);
            let line = line.strip_prefix("hopyard: ").unwrap_or(&line);
            if !line.is_empty() {
                note(format_args!("relay `{prefix}`: {line}"));
            }
        }
        drop(end);
    });
    ended
}

impl Relay {
    pub(super) fn start(prefix: &Prefix) -> Result<Self> {
        let mut command: Command = prefix.command(&["hopyard", "fleet", "relay"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        end_with_starter(&mut command);
        let failed = |why: &str| Error::Wrong(format!("relay `{prefix}`: {why}"));
        let mut child = command
            .spawn()
            .map_err(|e| failed(&format!("cannot be started: {e}")))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("it has no pipes"));
        };
        let words = child.stderr.take();
        let words = words.map(|words| pass_on(prefix.to_string(), words));
        Ok(Self {
            prefix: prefix.to_string(),
            child,
            words,
            to: Some(to),
            lines: lines_as_they_come(from, LONGEST_LINE),
            running: BTreeMap::new(),
            standing: Standing::default(),
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
        // A command that is no relay may have ended by now. Then the missing greeting is a better error than the broken pipe.
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

    pub(super) fn tell(&mut self, what: &Told) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        self.told = Instant::now();
        let to = self.to.as_mut().ok_or(std::io::ErrorKind::BrokenPipe)?;
        pipe::write_within(to, &line, LEAVING)
    }

    /// The pair that a message says has ended; nothing if the message is another, or about a pair that the relay does not run.
    ///
    /// # Errors
    /// The message cannot be true; why.
    pub(super) fn take(
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
            let cause = outcome.cause.as_ref().map_or(0, |cause| cause.len());
            if cause > LONGEST_CAUSE {
                return Err(format!("it told a cause of {cause} bytes"));
            }
        }
        let mut silent = answers.iter().flatten().filter_map(|answer| match answer {
            Answer::No(how) => Some(how.len()),
            Answer::Yes => None,
        });
        if let Some(long) = silent.find(|bytes| *bytes > LONGEST_CAUSE) {
            return Err(format!("it told of no answer in {long} bytes"));
        }
        let is_another = outcome.as_ref().is_some_and(|o| o.attempt != attempt);
        let mut values = samples.iter().flatten().flat_map(|sample| &sample.values);
        if is_another || values.any(|(column, _)| usize::from(*column) >= columns) {
            return Err("it told of an attempt or of figures that nobody asked for".to_owned());
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

    pub(super) fn name(&self) -> String {
        format!("relay `{}`", plain::line(&self.prefix))
    }

    /// What it has said meanwhile; why it is no relay any more, if so.
    pub(super) fn hear(&mut self) -> (Vec<Said>, Option<String>) {
        let mut heard = Vec::new();
        // One that says more has its turn again, after the others.
        for _ in 0..MOST_AT_ONCE {
            match self.lines.try_recv() {
                Ok(line) => match serde_json::from_str(&line) {
                    Ok(Said::Broken { why }) => return (heard, Some(why)),
                    Ok(said) => {
                        self.heard = Instant::now();
                        if !matches!(said, Said::Beat) {
                            heard.push(said);
                        }
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
            // So that it can say its last and go.
            while self.lines.try_recv().is_ok() && told.elapsed() < LEAVING {}
            std::thread::sleep(LOOK);
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            kill_group(self.child.id());
        }
        let _waited = self.child.wait();
        if let Some(words) = &self.words {
            // Nothing is sent: it waits for the end.
            let _ended = words.recv_timeout(LAST_WORDS);
        }
    }
}

/// A pair whose relay is gone: nobody knows anything of its machines.
pub(super) fn lost(place: usize, attempt: u32, began: Instant, why: &str) -> Ended {
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
