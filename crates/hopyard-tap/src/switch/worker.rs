//! One worker: it serves the same queue of every port.
//!
//! The kernel reads frames into the worker's buffers as they arrive, many for one system call, and writes them from
//! there. Among the frames that the worker finds, consecutive frames of one TCP flow to one port are written as one; no
//! frame waits for another. A frame for a port that takes no more keeps its buffer; with no buffers left, frames stay
//! in their source.
//!
//! A worker has a thread of its own, or shares one with others ([`QueueThread`]).

mod queue_thread;
mod verdict;
mod waiting;

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::counters::{Cell, Event, Reason};
use super::join::{Joint, Segment};
use super::rest::Rest;
use super::shared::{HEADER, Shared};
use super::slots::Slots;
use crate::LARGEST_FRAME;
use crate::queue::Queue;
use crate::ring::{Done, Ring};
pub(super) use queue_thread::QueueThread;
use verdict::Verdict;
use waiting::Waiting;

/// Buffers of a worker: the most frames that one system call moves.
const BUFFERS: u16 = 64;
/// One byte more than the longest frame: a frame that reaches it is too long.
const BUFFER: usize = HEADER.bytes() + LARGEST_FRAME + 1;
/// How long a worker polls before it sleeps. It is about the time that waking it on an idle CPU takes, so polling in
/// vain costs at most twice as much as sleeping at once.
const LOOK: Duration = Duration::from_micros(30);

pub(super) struct Worker {
    /// Number of its queues.
    pub(super) number: usize,
    /// One queue of each port.
    pub(super) queues: Vec<Arc<Queue>>,
    /// Counters of each port.
    pub(super) counters: Arc<[Cell]>,
    pub(super) rest: Arc<Rest>,
    pub(super) shared: Arc<Shared>,
}

/// Frames for a port that will become one.
struct Open {
    joint: Joint,
    /// Buffer of the first frame.
    first: u16,
    last: u16,
}

/// A running worker, with the data that only it uses.
struct Work {
    // First, so that it ends before the queues are closed.
    ring: Ring,
    worker: Worker,
    /// Whether its thread has an order to carry out.
    called: bool,
    /// By port.
    waiting: Vec<Waiting>,
    /// Ports that have no buffer to read into.
    starved: Vec<usize>,
    /// By port: the frame that the next one may join.
    open: Vec<Option<Open>>,
    /// Ports that have such a frame.
    joining: Vec<usize>,
    slots: Slots,
}

impl Worker {
    /// The buffers of a worker. Call this on the thread that will use them.
    pub(super) fn ring() -> std::io::Result<Ring> {
        Ring::new(BUFFERS, BUFFER)
    }

    /// Begins to read from the ports that are read.
    fn begin(self, mut ring: Ring, reads: &[bool]) -> Work {
        let ports = self.queues.len();
        for port in (0..ports).filter(|port| reads[*port]) {
            ring.read(port, self.queues[port].as_raw_fd());
        }
        Work {
            ring,
            worker: self,
            called: false,
            waiting: (0..ports).map(|_| Waiting::default()).collect(),
            starved: Vec::new(),
            open: (0..ports).map(|_| None).collect(),
            joining: Vec::new(),
            slots: Slots::new(BUFFERS),
        }
    }
}

impl Work {
    /// Moves frames, as all that its thread does, until there is something to read from `bell` or it hangs up.
    fn run_alone(&mut self, bell: &impl AsRawFd) {
        self.called = false;
        self.ring.watch(bell.as_raw_fd());
        let mut done = Vec::new();
        while !self.called {
            self.look(&mut done);
            if done.is_empty() {
                self.rest();
            }
            self.act(&mut done);
            self.drop_overdue();
        }
    }

    /// Submits its requests, and takes what is complete.
    fn look(&mut self, done: &mut Vec<Done>) {
        if self.ring.submit().is_err() {
            // Out of memory for a moment: try again.
            std::thread::yield_now();
        }
        self.ring.take(done);
    }

    /// Goes on with what is complete.
    fn act(&mut self, done: &mut Vec<Done>) {
        for done in done.drain(..) {
            self.go_on(done);
        }
        for port in std::mem::take(&mut self.joining) {
            self.close(port);
        }
        self.feed();
    }

    /// Continues to read from ports that had no buffers, as soon as there are some.
    fn feed(&mut self) {
        if self.slots.is_full() {
            return;
        }
        for port in std::mem::take(&mut self.starved) {
            self.ring.read(port, self.fd(port));
        }
    }

    /// Waits for work: polls for a while, then sleeps.
    fn rest(&mut self) {
        if self.give_up_waiting() {
            // Buffers are free again, for ports that had none.
            return;
        }
        let began_ns = self.worker.shared.now_ns();
        self.worker.rest.begin(began_ns);
        let began = Instant::now();
        while self.ring.is_idle() {
            if began.elapsed() > LOOK {
                let limit = self.patience_left();
                self.ring.wait(limit);
                break;
            }
            std::hint::spin_loop();
        }
        self.worker.rest.end(began_ns, self.worker.shared.now_ns());
    }

    fn go_on(&mut self, done: Done) {
        match done {
            Done::Read {
                port,
                buffer,
                length,
            } => self.forward(port, buffer, length),
            Done::Written {
                port,
                buffer,
                error: None,
            } => {
                self.accepted(port);
                self.count_sent(port, buffer);
                self.release(buffer);
            }
            Done::Written {
                port,
                buffer,
                error: Some(libc::EAGAIN),
            } => self.refused(port, buffer),
            Done::Written {
                port,
                buffer,
                error: Some(error),
            } => self.lose(port, buffer, reason(error)),
            Done::Writable { port } => self.resume(port),
            // The device was deleted, so nothing more arrives from it.
            Done::ReadEnded { gone: true, .. } | Done::Nothing => {}
            Done::Watched => self.called = true,
            Done::ReadEnded { port, gone: false } => self.starved.push(port),
        }
    }

    fn fd(&self, port: usize) -> RawFd {
        self.worker.queues[port].as_raw_fd()
    }

    fn count(&self, port: usize, event: Event, count: u64) {
        self.worker.counters[port].add(event, count);
    }

    fn count_sent(&self, port: usize, first: u16) {
        let (mut frames, mut bytes) = (0, 0);
        for (_, piece) in self.slots.pieces(first) {
            frames += 1;
            bytes += piece.len();
        }
        self.count(port, Event::TxFrames, 1);
        self.count(port, Event::TxBytes, (bytes - HEADER.bytes()) as u64);
        self.count(port, Event::Joined, frames - 1);
    }

    /// Forwards a frame that was read.
    fn forward(&mut self, from: usize, buffer: u16, length: usize) {
        self.slots.fill(buffer, length);
        let bytes = length.saturating_sub(HEADER.bytes());
        let counters = &self.worker.counters[from];
        counters.add(Event::RxFrames, 1);
        counters.add(Event::RxBytes, bytes as u64);
        match self.verdict(from, buffer, length) {
            Verdict::Send(port) => self.send(port, buffer),
            Verdict::Flood => self.flood(from, buffer),
            Verdict::Drop(reason) => self.lose(from, buffer, reason),
        }
    }

    /// Sends a frame to every other port that may get it.
    fn flood(&mut self, from: usize, buffer: u16) {
        let ports = self.waiting.len();
        let receivers = self.worker.shared.table.receivers(from);
        if receivers > 1 && !self.worker.shared.may_flood(from) {
            return self.lose(from, buffer, Reason::Broadcast);
        }
        self.count(from, Event::Flooded, 1);
        let apart = (ports - 1 - receivers) as u64;
        if apart > 0 {
            self.count(from, Event::Drop(Reason::Isolated), apart);
        }
        if receivers == 0 {
            return self.release(buffer);
        }
        self.slots.spread(buffer, receivers);
        for port in 0..ports {
            if port != from && !self.worker.shared.table.are_apart(from, port) {
                self.close(port);
                self.write(port, buffer);
            }
        }
    }

    /// Joins a frame to the one that is about to be written to its port, or queues it after that.
    fn send(&mut self, port: usize, buffer: u16) {
        let bytes = self.ring.frame(buffer, self.slots.length(buffer));
        let joins = self.worker.shared.joins(port);
        let Some(segment) = joins.then(|| Segment::parse(bytes)).flatten() else {
            self.close(port);
            return self.write(port, buffer);
        };
        if let Some(open) = &mut self.open[port] {
            let first = self.ring.frame(open.first, self.slots.length(open.first));
            if open.joint.add(first, &segment, bytes) {
                self.slots.join(open.last, buffer, open.joint.payload());
                open.last = buffer;
                return;
            }
        }
        self.close(port);
        self.joining.push(port);
        self.open[port] = Some(Open {
            joint: Joint::new(segment, self.worker.shared.join),
            first: buffer,
            last: buffer,
        });
    }

    /// Writes the joined frame for a port.
    fn close(&mut self, port: usize) {
        let Some(open) = self.open[port].take() else {
            return;
        };
        if open.last != open.first {
            let length = self.slots.length(open.first);
            open.joint.seal(self.ring.frame_mut(open.first, length));
        }
        self.write(port, open.first);
    }

    fn lose(&mut self, port: usize, first: u16, reason: Reason) {
        let frames = self.slots.pieces(first).count();
        self.count(port, Event::Drop(reason), frames as u64);
        self.release(first);
    }

    /// A port has taken a frame; the last one gives the buffers back.
    fn release(&mut self, first: u16) {
        let mut left = self.slots.take(first).then_some(first);
        while let Some(buffer) = left {
            left = self.slots.free(buffer);
            self.ring.give_back(buffer);
        }
    }
}

/// The reason behind the kernel's error (`tun_get_user`, `drivers/net/tun.c`).
fn reason(error: i32) -> Reason {
    match error {
        libc::EIO => Reason::Down,
        libc::EBADFD => Reason::Gone,
        libc::EINVAL => Reason::Refused,
        _ => Reason::Failed,
    }
}
