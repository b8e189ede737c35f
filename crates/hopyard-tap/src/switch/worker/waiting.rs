//! Frames that wait for a port that takes no more.
//!
//! A waiting frame keeps its buffer, and with no buffers left nothing is read. So the switch waits for a port once, for
//! a limited time; after that, frames for the port are lost at once until it takes some again.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::Work;
use crate::switch::counters::{Event, Reason};
use crate::sys;

/// The least time to sleep, so that a port that takes frames again at the end of its patience is noticed.
const LEAST_WAIT: Duration = Duration::from_millis(1);

/// Waiting frames of a port.
#[derive(Default)]
pub(super) struct Waiting {
    /// Their first buffers, in order.
    frames: VecDeque<u16>,
    /// When the first began to wait; `None` while the port takes frames.
    since: Option<Instant>,
    /// The port took nothing for the whole patience, so frames do not wait for it until it takes one.
    stalled: bool,
}

impl Waiting {
    /// The port took a frame; whether that one was submitted after a frame that was refused and waits.
    fn accept(&mut self) -> bool {
        self.stalled = false;
        !self.frames.is_empty()
    }
}

impl Work {
    /// Writes a frame after those that wait.
    pub(super) fn write(&mut self, port: usize, first: u16) {
        if self.waiting[port].since.is_some() {
            self.hold(port, first);
        } else {
            let pieces = self.slots.pieces(first);
            self.ring.write(port, self.fd(port), first, pieces);
        }
    }

    /// Postpones a frame until its port takes frames again, or drops it if the port is stalled.
    fn hold(&mut self, port: usize, first: u16) {
        if self.waiting[port].stalled {
            return self.lose(port, first, Reason::Stalled);
        }
        self.count(port, Event::Waited, 1);
        self.waiting[port].frames.push_back(first);
    }

    /// A port refused a frame.
    pub(super) fn refused(&mut self, port: usize, buffer: u16) {
        if self.waiting[port].since.is_none() {
            self.waiting[port].since = Some(Instant::now());
            self.ring.writable(port, self.fd(port));
        }
        self.hold(port, buffer);
    }

    /// A port took a frame.
    pub(super) fn accepted(&mut self, port: usize) {
        if self.waiting[port].accept() {
            self.count(port, Event::Reordered, 1);
        }
    }

    /// A port takes frames again: writes the waiting ones in order.
    pub(super) fn resume(&mut self, port: usize) {
        self.waiting[port].since = None;
        for first in std::mem::take(&mut self.waiting[port].frames) {
            self.write(port, first);
        }
    }

    /// Drops frames that have waited too long; returns whether there were any.
    pub(super) fn give_up_waiting(&mut self) -> bool {
        let mut lost = false;
        for port in 0..self.waiting.len() {
            if self.is_stalled(port) {
                self.waiting[port].stalled = true;
                for first in std::mem::take(&mut self.waiting[port].frames) {
                    self.lose(port, first, Reason::Stalled);
                }
                lost = true;
            }
        }
        lost
    }

    /// Whether frames have waited too long for a port that still takes no more.
    fn is_stalled(&self, port: usize) -> bool {
        let waiting = &self.waiting[port];
        let patience = self.worker.shared.patience;
        let long = waiting
            .since
            .is_some_and(|since| since.elapsed() >= patience);
        if !long || waiting.frames.is_empty() {
            return false;
        }
        // If this thread had no CPU, the port may take frames by now, and the ring is about to report it.
        let file = self.worker.queues[port].as_fd();
        !sys::is_ready([file], libc::POLLOUT).unwrap_or(true)
    }

    /// Time until frames have waited too long; `None` if none wait.
    pub(super) fn patience_left(&self) -> Option<Duration> {
        let held = self.waiting.iter().filter(|port| !port.frames.is_empty());
        let since = held.filter_map(|port| port.since).min()?;
        let left = self.worker.shared.patience.saturating_sub(since.elapsed());
        Some(left.max(LEAST_WAIT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_is_taken_while_another_waits_has_overtaken_it() {
        let mut waiting = Waiting::default();
        assert!(!waiting.accept());
        waiting.frames.push_back(7);
        assert!(waiting.accept());
        waiting.frames.clear();
        assert!(!waiting.accept());
    }
}
