//! The controller's end of a worker's pipe.
//!
//! Whatever gives a process with a pipe will do: a fork in a namespace, `ssh`, `kubectl exec`, a
//! serial line. The lab starts the process; this speaks to it, with a deadline on every answer.

mod attended;
mod carry;
mod clocks;
mod end;
mod error;
mod words;

use std::io::ErrorKind;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::attended::{Attended, SharedStdin};
pub use self::clocks::ClockOffset;
pub use self::error::Error;
pub use self::words::LastWords;
use self::words::Words;
use super::lines;
use super::protocol::{Numbered, Reply, Request, Tallied, Timetable, VERSION};

/// How long a worker may take to start and to answer what needs no waiting.
pub const PROMPT: Duration = Duration::from_secs(5);
/// How often to look whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(100);

/// A running worker. Dropping it ends the process.
#[derive(Debug)]
pub struct Remote {
    endpoint: String,
    child: Child,
    stdin: SharedStdin,
    replies: Receiver<std::io::Result<Numbered<Reply>>>,
    /// Number of the last request.
    asked: u64,
    /// An answer that came while nobody waited for it.
    early: Option<Reply>,
    /// What it was asked last.
    doing: &'static str,
    clock: ClockOffset,
    /// Where both ends say now and then that they live.
    attended: Option<Attended>,
    /// Its stderr, where it is heard.
    words: Option<Words>,
    /// The worker's own process on this machine, where what was started is something else.
    process: Option<u32>,
}

/// Ends a wait early when it answers true.
pub(crate) type Interrupt<'a> = &'a dyn Fn() -> bool;

impl Remote {
    /// Starts `command` (which must become `hopyard worker`) and hears its greeting.
    ///
    /// # Errors
    /// It cannot be started, does not greet, or speaks another version of the protocol.
    pub fn start(
        endpoint: &str,
        command: Command,
        interrupt: Interrupt<'_>,
    ) -> Result<Self, Error> {
        Self::start_within(endpoint, command, PROMPT, interrupt)
    }

    /// The same with a time of the caller's: a guest has to boot first.
    ///
    /// # Errors
    /// As [`Remote::start`].
    pub fn start_within(
        endpoint: &str,
        mut command: Command,
        patience: Duration,
        interrupt: Interrupt<'_>,
    ) -> Result<Self, Error> {
        let child = Self::piped(&mut command).spawn();
        let mut remote = Self::begin(endpoint, child)?;
        remote.greet(patience, interrupt)?;
        Ok(remote)
    }

    /// Has a command speak through a pipe.
    pub fn piped(command: &mut Command) -> &mut Command {
        command.stdin(Stdio::piped()).stdout(Stdio::piped())
    }

    /// What was started so; it has not been heard of yet ([`Remote::greet`]). Several start side by side.
    ///
    /// # Errors
    /// It could not be started.
    pub fn begin(endpoint: &str, child: std::io::Result<Child>) -> Result<Self, Error> {
        let cannot = |source| Error::Start {
            endpoint: endpoint.to_owned(),
            source,
        };
        let mut child = child.map_err(cannot)?;
        let stdin = child.stdin.take();
        let replies = match child.stdout.take() {
            Some(stdout) => lines::hear("worker output", stdout).map_err(cannot)?,
            None => channel().1,
        };
        let words = child.stderr.take().map(Words::of).transpose();
        let words = words.map_err(cannot)?;
        Ok(Self {
            endpoint: endpoint.to_owned(),
            child,
            stdin: Arc::new(Mutex::new(stdin)),
            replies,
            asked: 0,
            early: None,
            doing: "start",
            clock: ClockOffset::default(),
            attended: None,
            words,
            process: None,
        })
    }

    /// Hears the greeting.
    ///
    /// # Errors
    /// It does not greet, or speaks another version of the protocol; `Interrupted` when `interrupt` answers true.
    pub fn greet(&mut self, patience: Duration, interrupt: Interrupt<'_>) -> Result<(), Error> {
        match self.hear("start", patience, interrupt)? {
            Reply::Hello {
                protocol: VERSION, ..
            } => Ok(()),
            Reply::Hello { protocol, version } => Err(Error::Protocol {
                endpoint: self.endpoint.clone(),
                answer: format!(
                    "protocol {protocol} of hopyard {version}, not {VERSION}: use the same version at both ends"
                ),
            }),
            other => Err(self.out_of_turn(&other)),
        }
    }

    /// Tells it that it is over, and does not wait for it.
    pub fn dismiss(&mut self) {
        self.attended = None;
        // Somebody who writes to it and is not heard ends with the process.
        if let Ok(mut stdin) = self.stdin.try_lock() {
            // What starts it may never close its stdin, so it is told in words too. One that is gone does not care.
            if let Some(stdin) = &mut *stdin {
                let _ = lines::say_within(stdin, &Request::Quit, LOOK);
            }
            *stdin = None;
        }
    }

    fn stdin(&self) -> MutexGuard<'_, Option<ChildStdin>> {
        self.stdin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Process id of what was started.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Takes note of the worker's own process id on this machine.
    pub fn is_process(&mut self, pid: u32) {
        self.process = Some(pid);
    }

    /// The processes on this machine that work for it.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        let own = self.process.filter(|pid| *pid != self.pid());
        [self.pid()].into_iter().chain(own)
    }

    /// Is it spoken to by a command of the user?
    #[must_use]
    pub fn is_attended(&self) -> bool {
        self.attended.is_some()
    }

    /// Name of the endpoint that the worker acts for.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Asks something that needs no waiting and hears the answer.
    ///
    /// # Errors
    /// The worker died, is silent, or says that it cannot.
    pub fn ask(&mut self, request: &Request, doing: &'static str) -> Result<Reply, Error> {
        self.ask_within(request, doing, PROMPT)
    }

    /// The same with a time of the caller's.
    ///
    /// # Errors
    /// As [`Remote::ask`].
    pub fn ask_within(
        &mut self,
        request: &Request,
        doing: &'static str,
        patience: Duration,
    ) -> Result<Reply, Error> {
        self.tell(request, doing)?;
        self.hear(doing, patience, &|| false)
    }

    /// Sends a request; [`Remote::hear`] takes the answer.
    ///
    /// # Errors
    /// The worker died.
    pub fn tell(&mut self, request: &Request, doing: &'static str) -> Result<(), Error> {
        self.doing = doing;
        self.asked += 1;
        let numbered = Numbered {
            nr: Some(self.asked),
            message: request,
        };
        self.write(PROMPT, |stdin| lines::say_within(stdin, &numbered, PROMPT))
    }

    /// Writes something to it, which may take so long.
    fn write(
        &mut self,
        patience: Duration,
        write: impl FnOnce(&mut ChildStdin) -> std::io::Result<()>,
    ) -> Result<(), Error> {
        let mut stdin = self.stdin();
        let written = match &mut *stdin {
            Some(stdin) => write(stdin),
            None => Err(ErrorKind::BrokenPipe.into()),
        };
        if written.is_err() {
            // Half a message may be there: nothing that comes after it would be understood.
            *stdin = None;
        }
        drop(stdin);
        written.map_err(|error| match error.kind() {
            ErrorKind::TimedOut => self.silent(patience),
            _ => self.gone("input"),
        })
    }

    fn silent(&self, after: Duration) -> Error {
        Error::Silent {
            endpoint: self.endpoint.clone(),
            doing: self.doing,
            after,
        }
    }

    /// A timetable of ours, by its clock, with that of the other end beside it.
    #[must_use]
    pub fn by_its_clock(&self, timetable: Timetable, other: ClockOffset) -> Timetable {
        Timetable {
            other_behind_ns: self.clock.ahead_of(other),
            ..timetable.ahead_by(self.clock.ahead_ns)
        }
    }

    /// Hears the next answer.
    ///
    /// # Errors
    /// As [`Remote::ask`]; `Interrupted` when `interrupt` answers true.
    pub fn hear(
        &mut self,
        doing: &'static str,
        patience: Duration,
        interrupt: Interrupt<'_>,
    ) -> Result<Reply, Error> {
        self.doing = doing;
        if let Some(reply) = self.early.take() {
            return Ok(reply);
        }
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.replies.recv_timeout(left.min(LOOK)) {
                Ok(message) => {
                    if let Some(reply) = self.take_in(message)? {
                        return Ok(reply);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone("output")),
                Err(RecvTimeoutError::Timeout) => {}
            }
            // One that says again and again that it lives is not waited for any longer than a silent one.
            if interrupt() {
                return Err(Error::Interrupted);
            }
            if left.is_zero() {
                return Err(self.silent(patience));
            }
        }
    }

    /// A message as an answer; `None` where it only says that the worker lives.
    fn take_in(
        &mut self,
        message: std::io::Result<Numbered<Reply>>,
    ) -> Result<Option<Reply>, Error> {
        if let Some(attended) = &mut self.attended {
            attended.heard = Instant::now();
        }
        let Numbered { nr, message } = match message {
            Ok(heard) => heard,
            Err(e) => return Err(self.unbelievable(&e.to_string())),
        };
        match message {
            Reply::Beat => Ok(None),
            // Without a number it is of what came before any question.
            Reply::Failed { cause } if nr.is_none_or(|nr| nr == self.asked) => Err(Error::Failed {
                endpoint: self.endpoint.clone(),
                cause: lines::excerpt(&cause),
            }),
            // Before anything was asked. One that comes later fits no question.
            Reply::Hello { .. } | Reply::Send => Ok(Some(message)),
            reply if nr == Some(self.asked) => Ok(Some(reply)),
            reply => {
                let of = nr.map_or_else(|| "no request".to_owned(), |nr| format!("request {nr}"));
                Err(self.unbelievable(&format!(
                    "it answered {of} where request {} was to be answered (what carries the lines must pass on each once): \
                     {reply:?}",
                    self.asked
                )))
            }
        }
    }

    /// What it counted, from the answer that says so.
    ///
    /// # Errors
    /// It is another answer, or it cannot be.
    pub fn tallied(&self, reply: Reply) -> Result<Tallied, Error> {
        let Reply::Done(tallied) = reply else {
            return Err(self.out_of_turn(&reply));
        };
        match tallied.check() {
            Ok(()) => Ok(*tallied),
            Err(source) => Err(Error::InvalidSample {
                endpoint: self.endpoint.clone(),
                source,
            }),
        }
    }

    /// An answer that does not fit the question.
    #[must_use]
    pub fn out_of_turn(&self, reply: &Reply) -> Error {
        let answer = match reply {
            Reply::Hello { .. } => {
                "it greeted twice: what starts it must start one worker (of `srun`: --ntasks=1)"
                    .to_owned()
            }
            other => lines::excerpt(&format!("{other:?}")),
        };
        Error::Protocol {
            endpoint: self.endpoint.clone(),
            answer,
        }
    }

    /// An answer that cannot be.
    #[must_use]
    pub fn unbelievable(&self, why: &str) -> Error {
        Error::Protocol {
            endpoint: self.endpoint.clone(),
            answer: lines::excerpt(why),
        }
    }
}
