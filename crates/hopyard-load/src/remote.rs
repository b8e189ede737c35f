//! The controller's end of a worker's pipe.
//!
//! Whatever gives a process with a pipe will do: a fork in a namespace, `ssh`, `kubectl exec`, a
//! serial line. The lab starts the process; this speaks to it, with a deadline on every answer.

use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use hopyard_net::{clock, is_ending};

use super::lines;
use super::protocol::{Reply, Request, Tallied, Timetable, VERSION};
use hopyard_model::InvalidSample;

/// How long a worker may take to start and to answer what needs no waiting.
pub const PROMPT: Duration = Duration::from_secs(5);

/// What can go wrong with a worker.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be started.
    #[error("cannot start the worker at `{endpoint}`: {source}")]
    Start {
        /// Name of the endpoint: `a`, `b`, …
        endpoint: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The worker's process has ended.
    #[error("the worker at `{endpoint}` died while hopyard waited for it to {doing}: {how}")]
    Died {
        /// Name of the endpoint.
        endpoint: String,
        /// What it was asked.
        doing: &'static str,
        /// Exit status or signal.
        how: ExitStatus,
    },
    /// It lives, but cannot be spoken to any more.
    #[error(
        "the worker at `{endpoint}` closed its {stream} while hopyard waited for it to {doing}, though it still \
         runs: whatever starts it must leave that open until it ends"
    )]
    Closed {
        /// Name of the endpoint.
        endpoint: String,
        /// Which of its ends of the pipe.
        stream: &'static str,
        /// What it was asked.
        doing: &'static str,
    },
    /// It does not answer.
    #[error("the worker at `{endpoint}` did not {doing} within {after:?}")]
    Silent {
        /// Name of the endpoint.
        endpoint: String,
        /// What it was asked.
        doing: &'static str,
        /// The time it had.
        after: Duration,
    },
    /// It answered something else, or speaks another version.
    #[error("unexpected reply of the worker at `{endpoint}`: {answer}")]
    Protocol {
        /// Name of the endpoint.
        endpoint: String,
        /// The reply that came instead, for people.
        answer: String,
    },
    /// It counted what cannot be.
    #[error(
        "the worker at `{endpoint}` reports an impossible count; start the same version of \
         hopyard at both ends"
    )]
    InvalidSample {
        /// Name of the endpoint.
        endpoint: String,
        /// Which count is impossible, and why.
        #[source]
        source: InvalidSample,
    },
    /// It says that it cannot.
    #[error("at `{endpoint}`: {cause}")]
    Failed {
        /// Name of the endpoint.
        endpoint: String,
        /// Operation, object and way out, as the worker reports it.
        cause: String,
    },
    /// The run was interrupted by the user.
    #[error("interrupted")]
    Interrupted,
}

/// A running worker. Dropping it ends the process.
#[derive(Debug)]
pub struct Remote {
    endpoint: String,
    child: Child,
    stdin: Option<ChildStdin>,
    replies: Receiver<std::io::Result<Reply>>,
    /// What it was asked last.
    doing: &'static str,
    /// How far its clock is ahead of ours, ns; 0 on the same kernel.
    ahead_ns: i64,
}

/// Ends a wait early when it answers true.
pub type Interrupt<'a> = &'a dyn Fn() -> bool;

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
        Ok(Self {
            endpoint: endpoint.to_owned(),
            child,
            stdin,
            replies,
            doing: "start",
            ahead_ns: 0,
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
        self.stdin = None;
    }

    /// Process id of what was started.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
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
        let sent = match &mut self.stdin {
            Some(stdin) => lines::say(stdin, request),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        sent.map_err(|_| self.gone("input"))
    }

    /// Finds out how far its clock is from ours: the answer that came soonest tells best.
    ///
    /// # Errors
    /// As [`Remote::ask`].
    pub fn compare_clocks(&mut self) -> Result<(), Error> {
        const TIMES: usize = 10;
        let mut best: Option<(u64, i64)> = None;
        for _ in 0..TIMES {
            let asked_ns = clock::monotonic_ns();
            let reply = self.ask(&Request::Clock, "tell its clock")?;
            let took_ns = clock::monotonic_ns() - asked_ns;
            let Reply::Clock { monotonic_ns } = reply else {
                return Err(self.out_of_turn(&reply));
            };
            let ahead_ns = monotonic_ns
                .wrapping_sub(asked_ns + took_ns / 2)
                .cast_signed();
            if best.is_none_or(|(least, _)| took_ns < least) {
                best = Some((took_ns, ahead_ns));
            }
        }
        self.ahead_ns = best.map_or(0, |(_, ahead_ns)| ahead_ns);
        Ok(())
    }

    /// A timetable of ours, by its clock.
    #[must_use]
    pub fn by_its_clock(&self, timetable: Timetable) -> Timetable {
        timetable.ahead_by(self.ahead_ns)
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
        /// How often to look whether the user wants to stop.
        const LOOK: Duration = Duration::from_millis(100);
        self.doing = doing;
        let deadline = Instant::now() + patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.replies.recv_timeout(left.min(LOOK)) {
                Ok(Ok(Reply::Failed { cause })) => {
                    return Err(Error::Failed {
                        endpoint: self.endpoint.clone(),
                        cause: lines::excerpt(&cause),
                    });
                }
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(e)) => {
                    return Err(Error::Protocol {
                        endpoint: self.endpoint.clone(),
                        answer: lines::excerpt(&e.to_string()),
                    });
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone("output")),
                Err(RecvTimeoutError::Timeout) if interrupt() => return Err(Error::Interrupted),
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    return Err(Error::Silent {
                        endpoint: self.endpoint.clone(),
                        doing,
                        after: patience,
                    });
                }
                Err(RecvTimeoutError::Timeout) => {}
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
        Error::Protocol {
            endpoint: self.endpoint.clone(),
            answer: lines::excerpt(&format!("{reply:?}")),
        }
    }

    /// How it ended, if it did.
    ///
    /// Its pipes and sockets close a moment before its end can be seen, so this waits for a moment, and for longer where it
    /// is on its way out.
    pub fn death(&mut self) -> Option<Error> {
        const MOMENT: Duration = Duration::from_millis(200);
        let began = Instant::now();
        while began.elapsed() < MOMENT || (began.elapsed() < PROMPT && is_ending(self.child.id())) {
            if let Ok(Some(how)) = self.child.try_wait() {
                return Some(Error::Died {
                    endpoint: self.endpoint.clone(),
                    doing: self.doing,
                    how,
                });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        None
    }

    /// Why a stream of its is closed.
    fn gone(&mut self, stream: &'static str) -> Error {
        self.death().unwrap_or_else(|| Error::Closed {
            endpoint: self.endpoint.clone(),
            stream,
            doing: self.doing,
        })
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Closing stdin ends a worker at once; one that is stopped or stuck is killed.
        self.stdin = None;
        let deadline = Instant::now() + Duration::from_millis(500);
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        // Fails only if it ended meanwhile; either way it is reaped below.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
