//! Pairs as processes: `hopyard run --paths as-is` for each, so that one that crashes or hangs costs its own pair only.
//!
//! After a pair that failed both machines are asked whether they answer, since the cause of a failure says what broke, in
//! words for people, and not which machine it was. Meanwhile they are still taken by their pair.

mod command;
mod probe;
mod result;
mod samples;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hopyard_lab::Prefix;
use hopyard_model::units;
use hopyard_net::end_with_starter;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use self::command::run_between;
use self::probe::Probe;
pub(crate) use self::probe::{ECHO, is_echo};
use self::result::Finding;
pub(crate) use self::result::last_words;
use crate::drive::{Answer, Ended, Engine, Job};
use crate::error::{Error, Result};
use crate::outcome::{Outcome, State};
use crate::plan::Plan;
use crate::samples::Sample;
use crate::store::Store;

/// How often to look who has ended.
const LOOK: Duration = Duration::from_millis(20);
/// How long a run may take to end by itself: its workers are at other machines.
const GRACE: Duration = Duration::from_secs(10);

/// Runs pairs as children of this process. Use it from one thread that lives as long as the process: the children are
/// killed when that thread ends.
#[derive(Debug)]
pub struct Children {
    program: PathBuf,
    made: Instant,
    running: Vec<Running>,
    stopped: bool,
}

/// A pair that is measured, or whose machines are asked afterwards.
#[derive(Debug)]
struct Running {
    job: Job,
    directory: PathBuf,
    began: Instant,
    began_ms: u64,
    child: Child,
    phase: Phase,
    deadline: Instant,
    /// SIGTERM has been sent, so that SIGKILL is next.
    is_terminated: bool,
    found: Finding,
    answers: [Option<Answer>; 2],
}

#[derive(Debug)]
enum Phase {
    Measuring,
    Probing(Probe),
}

impl Children {
    /// With the program that measures, which is this one.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        Self {
            program,
            made: Instant::now(),
            running: Vec::new(),
            stopped: false,
        }
    }
}

/// Starts a process that leads a group of its own, which Ctrl-C at the terminal does not reach, and ends with this thread. It reads
/// `input`, which has to fit a pipe.
fn spawn(mut command: Command, input: &str, output: File, said: File) -> std::io::Result<Child> {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
    let stdin = match input {
        "" => Stdio::null(),
        _ => Stdio::piped(),
    };
    command.stdin(stdin).stdout(output).stderr(said);
    end_with_starter(&mut command);
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that has ended reads nothing.
        let _gone = stdin.write_all(input.as_bytes());
    }
    Ok(child)
}

impl Engine for Children {
    fn start(&mut self, store: &Store, job: Job) -> Result<()> {
        let directory = store.place_of(job.place, job.attempt);
        std::fs::create_dir_all(&directory).map_err(|e| Error::file("make", &directory, e))?;
        let create = |name: &str| {
            let file = directory.join(name);
            File::create(&file).map_err(|e| Error::file("make", &file, e))
        };
        let plan = &store.fleet.plan;
        let ends = store.fleet.pairs[job.place].ends();
        let ends = ends.map(|machine| &plan.endpoints[usize::from(machine)]);
        let command = run_between(ends, plan, &self.program, &directory);
        let spawned = spawn(command, "", create(result::REPORT)?, create(result::SAID)?);
        let child = spawned.map_err(|source| Error::Internal {
            what: "start a process for a pair (with --at-once fewer run side by side)",
            source,
        })?;
        let began = Instant::now();
        let now_ms = jiff::Timestamp::now().as_millisecond();
        self.running.push(Running {
            job,
            directory,
            began,
            began_ms: u64::try_from(now_ms).unwrap_or(0),
            child,
            phase: Phase::Measuring,
            deadline: began + Duration::from_secs(plan.deadline_s),
            is_terminated: false,
            found: Finding::default(),
            answers: [None, None],
        });
        Ok(())
    }

    fn ended(&mut self, store: &Store) -> Result<Vec<Ended>> {
        let (now, stopped) = (Instant::now(), self.stopped);
        let mut ended = Vec::new();
        let mut place = 0;
        while place < self.running.len() {
            match self.running[place].step(&store.fleet.plan, store, now, stopped)? {
                Some(one) => {
                    ended.push(one);
                    self.running.swap_remove(place);
                }
                None => place += 1,
            }
        }
        // Only these processes count: the first process of a container has zombies of others among its children.
        if ended.is_empty() {
            std::thread::sleep(LOOK);
        }
        Ok(ended)
    }

    fn samples(&self, store: &Store, job: Job) -> std::result::Result<Vec<Sample>, String> {
        samples(store, job)
    }

    fn stop(&mut self) {
        self.stopped = true;
        for running in &mut self.running {
            running.end();
        }
    }

    fn now(&self) -> Duration {
        self.made.elapsed()
    }
}

/// The samples of an attempt that was measured by this machine.
pub(crate) fn samples(store: &Store, job: Job) -> std::result::Result<Vec<Sample>, String> {
    let directory = store.place_of(job.place, job.attempt).join("run");
    samples::read(&directory, &store.fleet.columns)
}

impl Running {
    /// Goes on if its process has ended or its time is over. `Some` when the pair is over.
    fn step(
        &mut self,
        plan: &Plan,
        store: &Store,
        now: Instant,
        stopped: bool,
    ) -> Result<Option<Ended>> {
        let waited = self.child.try_wait();
        let status = waited.map_err(|source| Error::Internal {
            what: "wait for the process of a pair",
            source,
        })?;
        let Some(status) = status else {
            if now >= self.deadline {
                self.too_late(plan, stopped);
            }
            return Ok(None);
        };
        if stopped {
            return Ok(Some(self.over(None)));
        }
        let prefixes = || -> [Option<Prefix>; 2] {
            let ends = store.fleet.pairs[self.job.place].ends();
            ends.map(|m| plan.endpoints[usize::from(m)].connect.parse().ok())
        };
        let next = match &self.phase {
            Phase::Measuring => {
                let found = std::mem::take(&mut self.found);
                self.found = found.read(&self.directory, status, &store.fleet.columns);
                self.found.cause.as_ref().map(|_| Probe::first())
            }
            Phase::Probing(probe) => {
                if probe.is_answered(&self.directory) {
                    self.answers[probe.end()] = Some(Answer::Yes);
                    probe.next_machine()
                } else if self.is_terminated || probe.is_last() {
                    let late = self.is_terminated.then_some(probe::PATIENCE);
                    let how = self.complaint(*probe, status, late);
                    self.answers[probe.end()].get_or_insert(Answer::No(how));
                    probe.next_machine()
                } else {
                    Some(probe.by_echo())
                }
            }
        };
        match next {
            Some(probe) => {
                let prefixes = prefixes();
                self.probe(probe, &prefixes);
                Ok(None)
            }
            None => {
                let outcome = self.outcome(store);
                Ok(Some(self.over(Some(outcome))))
            }
        }
    }

    /// Asks a machine. One whose command cannot even be started does not answer, which its exit shows.
    fn probe(&mut self, mut probe: Probe, prefixes: &[Option<Prefix>; 2]) {
        loop {
            let spawned = prefixes[probe.end()]
                .as_ref()
                .ok_or(std::io::ErrorKind::InvalidInput.into())
                .and_then(|prefix| {
                    let [output, said] = probe.files(&self.directory);
                    spawn(
                        probe.command(prefix),
                        probe.input(),
                        File::create(output)?,
                        File::create(said)?,
                    )
                });
            let error = match spawned {
                Ok(child) => {
                    self.child = child;
                    self.deadline = Instant::now() + probe::PATIENCE;
                    self.is_terminated = false;
                    self.phase = Phase::Probing(probe);
                    return;
                }
                Err(error) => error,
            };
            self.answers[probe.end()] = Some(Answer::No(format!("cannot start it: {error}")));
            let Some(next) = probe.next_machine() else {
                // The process that has ended stays the pair's; the next look finds that nobody is left to ask.
                self.phase = Phase::Probing(probe.last());
                return;
            };
            probe = next;
        }
    }

    /// How a command ended that brought no answer.
    fn complaint(&self, probe: Probe, status: ExitStatus, late: Option<Duration>) -> String {
        if let Some(late) = late {
            return format!("nothing within {}", units::show_duration(late));
        }
        let [_, said] = probe.files(&self.directory);
        result::last_words(&said).map_or_else(|| how(status), |words| result::short(&words))
    }

    /// Its time is over.
    fn too_late(&mut self, plan: &Plan, stopped: bool) {
        if matches!(self.phase, Phase::Measuring) && !self.is_terminated && !stopped {
            self.found.late = Some(Duration::from_secs(plan.deadline_s));
        }
        self.end();
    }

    /// Has its process end, the second time at once. A process of a group that has ended is not ours any more, so it is
    /// asked for first.
    fn end(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let Ok(pid) = i32::try_from(self.child.id()).map(Pid::from_raw) else {
            return;
        };
        let sent = match self.phase {
            Phase::Measuring if !self.is_terminated => kill(pid, Signal::SIGTERM),
            Phase::Measuring => kill(pid, Signal::SIGKILL),
            // What a prefix started is of its group.
            Phase::Probing(_) => killpg(pid, Signal::SIGKILL),
        };
        // One that has just ended is waited for in the next look.
        let _gone = sent;
        self.is_terminated = true;
        self.deadline = Instant::now() + GRACE;
    }

    fn outcome(&mut self, store: &Store) -> Outcome {
        let found = std::mem::take(&mut self.found);
        let ends = store.fleet.pairs[self.job.place].ends();
        let silent: Vec<String> = ends
            .iter()
            .zip(&self.answers)
            .filter_map(|(machine, answer)| match answer {
                Some(Answer::No(how)) => Some(format!(
                    "{} does not answer ({how})",
                    store.fleet.name(*machine)
                )),
                Some(Answer::Yes) | None => None,
            })
            .collect();
        let cause = found.cause.map(|cause| match &silent[..] {
            [] => cause,
            // It would say the same again, in more words; `said.txt` has them.
            all if cause.starts_with("cannot reach the ") => all.join(", "),
            all => format!("{}; the run ended by: {cause}", all.join(", ")),
        });
        Outcome {
            state: match cause {
                None => State::Measured,
                Some(_) => State::Failed,
            },
            attempt: self.job.attempt,
            began_ms: self.began_ms,
            took_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            cause: cause.map(String::into_boxed_str),
            figures: found.figures,
        }
    }

    fn over(&self, outcome: Option<Outcome>) -> Ended {
        Ended {
            place: self.job.place,
            outcome,
            answers: self.answers.clone(),
        }
    }
}

/// How a process ended, for people.
pub(crate) fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => format!("it was killed by signal {signal}"),
        None => format!("it ended with status {}", status.code().unwrap_or(-1)),
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};

    use super::*;
    use crate::Settings;
    use crate::plan::tests::machines;

    #[test]
    fn children_of_others_that_ended_do_not_keep_it_awake() {
        let mut other = Command::new("true").spawn().unwrap();
        let pid = Pid::from_raw(other.id().try_into().unwrap());
        waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
        let home = tempfile::tempdir().unwrap();
        let plan = Plan::new(machines(2), &Settings::default()).unwrap();
        let store = Store::create(&home.path().join("fleet"), plan).unwrap();
        let began = Instant::now();
        let ended = Children::new("true".into()).ended(&store).unwrap();
        assert!(ended.is_empty());
        assert!(began.elapsed() >= LOOK);
        other.wait().unwrap();
    }
}
