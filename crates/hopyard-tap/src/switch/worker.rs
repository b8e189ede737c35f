//! One worker: the same queue of every port, and nothing else.
//!
//! The kernel reads frames into the worker's buffers as they come, many for one system call, and the worker has it
//! write them from there. A frame for a port that takes no more keeps its buffer; with no buffers left, frames stay in
//! their source.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::counters::{Cell, Event, Reason};
use super::frame::{Mac, addresses};
use super::rest::Rest;
use super::shared::Shared;
use super::table::Learnt;
use crate::queue::Queue;
use crate::ring::{Done, Ring};
use crate::{LARGEST_FRAME, VnetHeaderSize};

/// The header before each frame, passed on as it is.
pub(super) const HEADER: VnetHeaderSize = VnetHeaderSize::Mergeable;
/// Buffers of a worker: as many frames as are moved for one system call, at most.
const BUFFERS: u16 = 64;
/// A byte more than can come: whatever reaches it is too long.
const BUFFER: usize = HEADER.bytes() + LARGEST_FRAME + 1;
/// How long a worker keeps looking before it sleeps: about what waking it on an idle CPU takes, so that looking in
/// vain costs at most twice what sleeping at once would have.
const LOOK: Duration = Duration::from_micros(30);
/// How long frames wait for a device that takes no more.
const PATIENCE: Duration = Duration::from_millis(100);

pub(super) struct Worker {
    /// Of its queues.
    pub(super) number: usize,
    /// One of each port.
    pub(super) queues: Vec<Arc<Queue>>,
    /// One for each port.
    pub(super) counters: Arc<[Cell]>,
    pub(super) rest: Arc<Rest>,
    pub(super) shared: Arc<Shared>,
}

/// What waits for a port that took no more.
#[derive(Default)]
struct Waiting {
    /// Buffers and lengths, in their order.
    frames: VecDeque<(u16, usize)>,
    /// Since when the first does; `None` while the port takes frames.
    since: Option<Instant>,
    /// It took nothing for [`PATIENCE`]: nobody waits for it until it takes a frame.
    stalled: bool,
}

/// A worker at work, with what is its own alone.
struct Work {
    // First, so that it ends before the queues are closed.
    ring: Ring,
    worker: Worker,
    /// By port.
    waiting: Vec<Waiting>,
    /// Ports that found no buffer to read into.
    starved: Vec<usize>,
    /// By buffer: length of the frame in it, and ports that still have to take it.
    frames: Vec<(usize, usize)>,
}

impl Worker {
    /// The buffers of a worker, to be made where failing can be told.
    pub(super) fn ring() -> std::io::Result<Ring> {
        Ring::new(BUFFERS, BUFFER)
    }

    /// Moves frames until the switch ends.
    pub(super) fn run(self) {
        let Ok(mut ring) = Self::ring() else {
            // It was tried before the thread was started.
            return;
        };
        for (port, queue) in self.queues.iter().enumerate() {
            ring.read(port, queue.as_raw_fd());
        }
        ring.watch(self.shared.end.as_raw_fd());
        let ports = self.queues.len();
        let mut work = Work {
            ring,
            worker: self,
            waiting: (0..ports).map(|_| Waiting::default()).collect(),
            starved: Vec::new(),
            frames: vec![(0, 0); usize::from(BUFFERS)],
        };
        work.run();
    }
}

impl Work {
    fn run(&mut self) {
        let mut done = Vec::new();
        while !self.worker.shared.is_ending() {
            if self.ring.submit().is_err() {
                // Out of memory for a moment, and asked again.
                std::thread::yield_now();
            }
            self.ring.take(&mut done);
            if done.is_empty() {
                self.rest();
            }
            for done in done.drain(..) {
                self.go_on(done);
            }
            self.feed();
        }
    }

    /// Reads on from ports that had no buffers, once there are some; frames stay in their source until then.
    fn feed(&mut self) {
        if self.frames.iter().all(|(_, left)| *left > 0) {
            return;
        }
        for port in std::mem::take(&mut self.starved) {
            self.ring.read(port, self.fd(port));
        }
    }

    /// Waits until there is something to do: awake for a while, then asleep.
    fn rest(&mut self) {
        self.give_up_waiting();
        let began_ns = self.worker.shared.now_ns();
        self.worker.rest.begin(began_ns);
        let began = Instant::now();
        while self.ring.is_idle() {
            if began.elapsed() > LOOK {
                let held = self.waiting.iter().any(|port| port.since.is_some());
                self.ring.wait(held.then_some(PATIENCE));
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
                self.waiting[port].stalled = false;
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
            // The device was deleted: nothing comes from it any more.
            Done::ReadEnded { gone: true, .. } | Done::Watched | Done::Nothing => {}
            Done::ReadEnded { port, gone: false } => self.starved.push(port),
        }
    }

    fn fd(&self, port: usize) -> RawFd {
        self.worker.queues[port].as_raw_fd()
    }

    fn count(&self, port: usize, event: Event, count: u64) {
        self.worker.counters[port].add(event, count);
    }

    fn count_sent(&self, port: usize, buffer: u16) {
        let (length, _) = self.frames[usize::from(buffer)];
        self.count(port, Event::TxFrames, 1);
        self.count(port, Event::TxBytes, (length - HEADER.bytes()) as u64);
    }

    /// Sends a frame that was read where it belongs.
    fn forward(&mut self, from: usize, buffer: u16, length: usize) {
        self.frames[usize::from(buffer)] = (length, 1);
        self.count(from, Event::RxFrames, 1);
        let bytes = length.saturating_sub(HEADER.bytes());
        self.count(from, Event::RxBytes, bytes as u64);
        match self.destination(from, buffer, length) {
            Err(reason) => self.lose(from, buffer, reason),
            Ok(Some(port)) => self.send(port, buffer),
            Ok(None) => self.flood(from, buffer),
        }
    }

    /// The port that a frame is for; `None` for all but its own.
    fn destination(
        &self,
        from: usize,
        buffer: u16,
        length: usize,
    ) -> Result<Option<usize>, Reason> {
        if length == BUFFER {
            return Err(Reason::Giant);
        }
        let frame = self.ring.frame(buffer, length).get(HEADER.bytes()..);
        let frame = frame.ok_or(Reason::Runt)?;
        let (to, source) = addresses(frame).ok_or(Reason::Runt)?;
        if !source.is_station() {
            return Err(Reason::BadSource);
        }
        self.learn(source, from);
        if self.worker.shared.flows.changed(frame, self.worker.number) {
            self.count(from, Event::QueueChanged, 1);
        }
        if to.is_group() {
            return Ok(None);
        }
        let shared = &self.worker.shared;
        match shared.table.find(to, shared.now_s()) {
            Some(port) if port == from => Err(Reason::SamePort),
            found => Ok(found),
        }
    }

    fn learn(&self, source: Mac, from: usize) {
        let shared = &self.worker.shared;
        let event = match shared.table.learn(source, from, shared.now_s()) {
            Learnt::Known => return,
            Learnt::New => Event::Learnt,
            Learnt::Moved => Event::Moved,
            Learnt::Full => Event::TableFull,
        };
        self.count(from, event, 1);
    }

    fn flood(&mut self, from: usize, buffer: u16) {
        self.count(from, Event::Flooded, 1);
        let ports = self.waiting.len();
        self.frames[usize::from(buffer)].1 = ports - 1;
        for port in (0..ports).filter(|port| *port != from) {
            self.send(port, buffer);
        }
    }

    fn send(&mut self, port: usize, buffer: u16) {
        let (length, _) = self.frames[usize::from(buffer)];
        if self.waiting[port].since.is_some() {
            self.hold(port, buffer, length);
        } else {
            self.ring.write(port, self.fd(port), buffer, length);
        }
    }

    fn hold(&mut self, port: usize, buffer: u16, length: usize) {
        self.count(port, Event::Waited, 1);
        self.waiting[port].frames.push_back((buffer, length));
    }

    /// A port takes no more.
    fn refused(&mut self, port: usize, buffer: u16) {
        if self.waiting[port].stalled {
            return self.lose(port, buffer, Reason::Stalled);
        }
        if self.waiting[port].since.is_none() {
            self.waiting[port].since = Some(Instant::now());
            self.ring.writable(port, self.fd(port));
        }
        let (length, _) = self.frames[usize::from(buffer)];
        self.hold(port, buffer, length);
    }

    /// A port takes frames again: those that waited, in their order.
    fn resume(&mut self, port: usize) {
        self.waiting[port].since = None;
        let fd = self.fd(port);
        for (buffer, length) in std::mem::take(&mut self.waiting[port].frames) {
            self.ring.write(port, fd, buffer, length);
        }
    }

    /// Loses what has waited too long.
    fn give_up_waiting(&mut self) {
        for port in 0..self.waiting.len() {
            let waiting = &mut self.waiting[port];
            if waiting
                .since
                .is_some_and(|since| since.elapsed() >= PATIENCE)
            {
                waiting.stalled = true;
                for (buffer, _) in std::mem::take(&mut waiting.frames) {
                    self.lose(port, buffer, Reason::Stalled);
                }
            }
        }
    }

    fn lose(&mut self, port: usize, buffer: u16, reason: Reason) {
        self.count(port, Event::Drop(reason), 1);
        self.release(buffer);
    }

    /// One port less has to take the frame in a buffer; the last one gives it back.
    fn release(&mut self, buffer: u16) {
        let (_, left) = &mut self.frames[usize::from(buffer)];
        *left -= 1;
        if *left == 0 {
            self.ring.give_back(buffer);
        }
    }
}

/// What the kernel's refusal means (`tun_get_user`, `drivers/net/tun.c`).
fn reason(error: i32) -> Reason {
    match error {
        libc::EIO => Reason::Down,
        libc::EBADFD => Reason::Gone,
        libc::EINVAL => Reason::Refused,
        _ => Reason::Failed,
    }
}
