//! A worker's stdin: requests, and how to wait while they may come.

use std::io::{self, BufRead};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use hopyard_net::clock;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::attend;
use super::endpoint::Attendance;

/// Where requests come from.
pub(super) struct Input {
    source: Source,
    /// A request that came in mid-window.
    pending: Option<Vec<u8>>,
}

enum Source {
    /// Read by whoever wants one.
    Stdin,
    /// Read by a thread, which has an eye on the other end's silence.
    Attended(Receiver<Vec<u8>>),
}

const OFF: &str = "the run is off: a request, or the end of them, came before the window was over";

impl Input {
    pub(super) fn new() -> Self {
        Self {
            source: Source::Stdin,
            pending: None,
        }
    }

    /// From now on the other end has to say something now and then, or this process ends; it is told the same way.
    pub(super) fn attend(&mut self, attendance: Attendance) -> io::Result<()> {
        if matches!(self.source, Source::Stdin) {
            self.source = Source::Attended(attend::begin(attendance)?);
        }
        Ok(())
    }

    /// The next request, without its newline; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(line) = self.pending.take() {
            return Ok(Some(line));
        }
        match &self.source {
            Source::Stdin => io::stdin().lock().split(b'\n').next().transpose(),
            Source::Attended(lines) => Ok(lines.recv().ok()),
        }
    }

    /// Sleeps until an instant with an eye on requests: one, or their end, means that the run is off.
    pub(super) fn wait_until(&mut self, instant_ns: u64) -> Result<(), String> {
        loop {
            let now = clock::monotonic_ns();
            if now >= instant_ns {
                return Ok(());
            }
            let left = Duration::from_nanos(instant_ns - now);
            match &self.source {
                Source::Stdin => {
                    let stdin = io::stdin();
                    let mut watched = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
                    match ppoll(&mut watched, Some(TimeSpec::from_duration(left)), None) {
                        Ok(0) | Err(Errno::EINTR) => {}
                        Ok(_) => return Err(OFF.to_owned()),
                        Err(e) => return Err(format!("cannot wait: {e}")),
                    }
                }
                Source::Attended(lines) => match lines.recv_timeout(left) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Err(OFF.to_owned()),
                    Ok(line) => {
                        self.pending = Some(line);
                        return Err(OFF.to_owned());
                    }
                },
            }
        }
    }
}
