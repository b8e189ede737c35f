//! The controller's half of [`attend`](crate::attend): says that it lives, and notices when the worker does not.

use std::process::ChildStdin;
use std::sync::mpsc::{RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Error, PROMPT, Remote};
use crate::endpoint::Attendance;
use crate::lines;
use crate::protocol::{Reply, Request};

/// A worker's stdin, for whoever asks and for the thread that beats.
pub(super) type SharedStdin = Arc<Mutex<Option<ChildStdin>>>;

/// A worker that is watched.
#[derive(Debug)]
pub(super) struct Attended {
    /// When something was heard of it last.
    pub(super) heard: Instant,
    silence: Duration,
    /// The beats end with it.
    _beats: Sender<()>,
}

impl Remote {
    /// Has both ends say now and then that they live, and take long silence for a cut connection.
    ///
    /// # Errors
    /// As [`Remote::ask`].
    pub fn attend(&mut self, attendance: Attendance) -> Result<(), Error> {
        match self.ask(&Request::Attend(attendance), "watch the connection")? {
            Reply::Attending => {}
            other => return Err(self.out_of_turn(&other)),
        }
        let (end, ended) = channel();
        let stdin = Arc::clone(&self.stdin);
        let beat = Duration::from_millis(attendance.beat_ms);
        thread::Builder::new()
            .name("beat".to_owned())
            .spawn(move || {
                while ended.recv_timeout(beat) == Err(RecvTimeoutError::Timeout) {
                    let mut stdin = stdin.lock().unwrap_or_else(PoisonError::into_inner);
                    let said = stdin
                        .as_mut()
                        .map(|stdin| lines::say_within(stdin, &Request::Beat, PROMPT));
                    if !matches!(said, Some(Ok(()))) {
                        return;
                    }
                }
            })
            .map_err(|source| Error::Start {
                endpoint: self.endpoint.clone(),
                source,
            })?;
        self.attended = Some(Attended {
            heard: Instant::now(),
            silence: Duration::from_millis(attendance.silence_ms),
            _beats: end,
        });
        Ok(())
    }

    /// Looks whether it still lives, while no answer is expected; one that comes is kept for [`Remote::hear`].
    ///
    /// # Errors
    /// It died, closed its output, failed, or nothing was heard of it for too long.
    pub fn look(&mut self) -> Result<(), Error> {
        while self.early.is_none() {
            match self.replies.try_recv() {
                Ok(message) => self.early = self.take_in(message)?,
                Err(TryRecvError::Empty) => return self.is_heard(),
                Err(TryRecvError::Disconnected) => return Err(self.gone("output")),
            }
        }
        Ok(())
    }

    /// Was something heard of it lately?
    pub(super) fn is_heard(&self) -> Result<(), Error> {
        match &self.attended {
            Some(attended) if attended.heard.elapsed() > attended.silence => Err(Error::Cut {
                endpoint: self.endpoint.clone(),
                doing: self.doing,
                after: attended.silence,
            }),
            _ => Ok(()),
        }
    }
}
