//! An event loop by io_uring: every send and receive is a request, and one call hands over those of all flows of a thread and
//! waits for an answer.

use std::cell::RefCell;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use hopyard_net::clock;
use hopyard_net::uring::{Call, Done, Outcome, Request, Ring};
use nix::libc;

use super::{End, Part, Shape, Turn, are_over, next_wake};
use crate::flow::stream::no_buffers;
use crate::flow::{Nothing, Socket, again, timed_out};

thread_local! {
    /// The ring of the last turn of traffic: to make one and to end one would fall into the turns of other cells.
    static KEPT: RefCell<Option<Ring>> = const { RefCell::new(None) };
}

/// What a flow reads from and writes to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way<'a> {
    Socket(&'a Socket),
    /// No path at all.
    Nothing(&'a Nothing),
}

impl<'a> Way<'a> {
    fn out(self, zero_copy: bool) -> (Call, BorrowedFd<'a>) {
        match self {
            Self::Socket(socket) if zero_copy => (Call::SendZeroCopy, socket.as_fd()),
            Self::Socket(socket) => (Call::Send, socket.as_fd()),
            Self::Nothing(nothing) => (Call::Write, nothing.null.as_fd()),
        }
    }

    fn back(self) -> (Call, BorrowedFd<'a>) {
        match self {
            Self::Socket(socket) => (Call::Receive, socket.as_fd()),
            Self::Nothing(nothing) => (Call::Read, nothing.zero.as_fd()),
        }
    }
}

/// The flows of a thread.
///
/// A flow has `depth` requests that send, numbered first, and one that receives. What every message is alike in is sent from one
/// area by all; where each has its number, each request has an area.
pub(crate) struct UringLoop<'a, P> {
    ends: Vec<End<'a, Way<'a>, P>>,
    /// By tag: bytes of the message that went, where one is on its way.
    gone: Vec<Option<usize>>,
    shape: Shape,
    /// Areas that are sent from; each flow has one after them.
    sends: usize,
    ring: Ring,
}

impl<'a, P: Part> UringLoop<'a, P> {
    /// Makes the ring.
    ///
    /// # Errors
    /// A sentence: the kernel has none for this process.
    pub(crate) fn new(ends: Vec<End<'a, Way<'a>, P>>, shape: Shape) -> Result<Self, String> {
        let each = shape.depth + 1;
        let sends = if shape.is_numbered {
            ends.len() * shape.depth
        } else {
            1
        };
        let mut areas = vec![shape.message; sends];
        areas.resize(sends + ends.len(), shape.room);
        let requests = ends.len() * each;
        let kept = KEPT.take().filter(|ring| ring.is_for(requests, &areas));
        let ring = match kept {
            Some(ring) => ring,
            None => {
                Ring::new(requests, &areas, 0x5a).map_err(|e| hopyard_model::plain::chain(&e))?
            }
        };
        if shape.zero_copy {
            ring.require_zero_copy()
                .map_err(|e| hopyard_model::plain::chain(&e))?;
        }
        Ok(Self {
            gone: vec![None; requests],
            ends,
            shape,
            sends,
            ring,
        })
    }

    /// Serves the flows until they are over.
    ///
    /// # Errors
    /// A flow failed before the window was over.
    pub(crate) fn run(mut self) -> Result<(), String> {
        let is_paced = P::IS_SHARP && next_wake(&self.ends).is_some();
        if is_paced {
            clock::sharp_timers().map_err(|e| format!("cannot make timers sharp: {e}"))?;
        }
        let each = self.shape.depth + 1;
        for index in 0..self.ends.len() {
            self.ask(index, 0..self.shape.depth)?;
        }
        let mut wake_ns = self.next_wake();
        while !self.is_over() {
            let left_ns = wake_ns.map(|at_ns| at_ns.saturating_sub(clock::monotonic_ns()));
            self.ring
                .wait(left_ns.map(Duration::from_nanos))
                .map_err(|e| format!("cannot wait for a flow: {e}"))?;
            while let Some(done) = self.ring.done() {
                let (index, nth) = (done.tag / each, done.tag % each);
                if self.take(index, done)? == Turn::Over {
                    return Ok(());
                }
                // A stream goes on with the request that is free now; what came may be answered by any.
                let free = if self.shape.room == 0 {
                    nth..nth + 1
                } else {
                    0..self.shape.depth
                };
                self.ask(index, free)?;
            }
            if is_paced {
                wake_ns = self.next_wake();
            }
            let Some(at_ns) = wake_ns else { continue };
            let now_ns = clock::monotonic_ns();
            if at_ns > now_ns {
                continue;
            }
            for index in 0..self.ends.len() {
                let part = &mut self.ends[index].part;
                if part.wakes_ns().is_some_and(|wakes_ns| wakes_ns <= now_ns) {
                    part.wake(now_ns);
                    self.ask(index, 0..self.shape.depth)?;
                }
            }
            wake_ns = self.next_wake();
        }
        if self.ring.held() == 0 {
            KEPT.set(Some(self.ring));
        }
        Ok(())
    }

    /// When to wake if there is no answer. A paced sender with all of its requests in the kernel waits for one of them only.
    fn next_wake(&self) -> Option<u64> {
        let each = self.shape.depth + 1;
        let may_begin = |index: usize| {
            !P::IS_SHARP || (0..self.shape.depth).any(|nth| !self.ring.has(index * each + nth))
        };
        let flows = self.ends.iter().enumerate();
        let flows = flows.filter(|(index, _)| may_begin(*index));
        flows.filter_map(|(_, end)| end.part.wakes_ns()).min()
    }

    /// All flows have ended, and the kernel has nothing of a stream that is still to go. What was answered has gone, and what was
    /// given up may wait for its answer for ever.
    fn is_over(&self) -> bool {
        let may_go = self.shape.room > 0 || self.ring.held() == 0;
        are_over(&self.ends) && may_go
    }

    /// The request of a flow that receives.
    fn receiver(&self, index: usize) -> usize {
        index * (self.shape.depth + 1) + self.shape.depth
    }

    /// The area from which a request sends.
    fn area_of(&self, index: usize, nth: usize) -> usize {
        if self.shape.is_numbered {
            index * self.shape.depth + nth
        } else {
            0
        }
    }

    fn receive_request(&self, index: usize) -> Request<'a> {
        let (call, fd) = self.ends[index].io.back();
        Request {
            tag: self.receiver(index),
            call,
            fd,
            area: self.sends + index,
            part: 0..self.shape.room,
        }
    }

    fn send_request(&self, index: usize, nth: usize, gone: usize) -> Request<'a> {
        let (call, fd) = self.ends[index].io.out(self.shape.zero_copy);
        Request {
            tag: index * (self.shape.depth + 1) + nth,
            call,
            fd,
            area: self.area_of(index, nth),
            part: gone..self.shape.message,
        }
    }

    /// Asks for all that a flow has to send, by these of its requests, and for what is to come.
    fn ask(&mut self, index: usize, free: Range<usize>) -> Result<(), String> {
        let asked = self.ask_sends(index, free).and_then(|()| {
            let receive = self.receive_request(index);
            if self.ends[index].part.expects() && !self.ring.has(receive.tag) {
                self.ring.ask(&receive)?;
            }
            Ok(())
        });
        asked.map_err(|e| format!("cannot ask an io_uring: {e}"))
    }

    fn ask_sends(&mut self, index: usize, free: Range<usize>) -> std::io::Result<()> {
        for nth in free {
            let tag = index * (self.shape.depth + 1) + nth;
            if self.ring.has(tag) {
                continue;
            }
            if self.gone[tag].is_none() {
                let area = self.area_of(index, nth);
                let part = &mut self.ends[index].part;
                let begun = if self.shape.is_numbered {
                    self.ring.area(area).is_some_and(|area| part.begin(area))
                } else {
                    part.begin(&mut [])
                };
                if !begun {
                    return Ok(());
                }
                self.gone[tag] = Some(0);
            }
            let send = self.send_request(index, nth, self.gone[tag].unwrap_or(0));
            let receive = self.receive_request(index);
            let part = &self.ends[index].part;
            if self.shape.is_in_turns && part.expects() && !self.ring.has(receive.tag) {
                self.ring.ask_both(&send, &receive)?;
            } else {
                self.ring.ask(&send)?;
            }
        }
        Ok(())
    }

    /// Takes in what became of a request.
    fn take(&mut self, index: usize, done: Done) -> Result<Turn, String> {
        if let Some(before) = done.before {
            self.went(index, before, usize::MAX);
        }
        if done.tag != self.receiver(index) {
            return self.take_sent(index, done);
        }
        let end = &mut self.ends[index];
        match done.outcome {
            Outcome::Went(0) => return end.context.closed().map(|()| Turn::Over),
            Outcome::Went(bytes) => {
                let area = self.sends + index;
                if let Some(came) = self.ring.area(area).and_then(|area| area.get(..bytes)) {
                    end.part.came(came);
                }
            }
            Outcome::Failed(e) if again(&e) || timed_out(&e) => {}
            Outcome::Failed(e) => {
                return end.context.ended("receive", &e).map(|()| Turn::Over);
            }
            Outcome::Released { .. } => {}
        }
        Ok(Turn::GoesOn)
    }

    fn take_sent(&mut self, index: usize, done: Done) -> Result<Turn, String> {
        let context = self.ends[index].context;
        match done.outcome {
            Outcome::Went(bytes) => self.went(index, done.tag, bytes),
            Outcome::Released { copied } => {
                let mut sends = context.tally.read().zero_copy;
                sends.answered += 1;
                sends.copied += u64::from(copied);
                context.tally.set_zero_copy(sends);
            }
            Outcome::Failed(e)
                if self.shape.zero_copy && e.raw_os_error() == Some(libc::EINVAL) =>
            {
                return Err(format!(
                    "cannot send without copies by io_uring: {e}; whether the kernel copied all the same is told by Linux 6.2 \
                     (IORING_SEND_ZC_REPORT_USAGE)"
                ));
            }
            Outcome::Failed(e) if again(&e) || timed_out(&e) => {}
            Outcome::Failed(e) if no_buffers(&e) => context.tally.send_error(),
            Outcome::Failed(e) => return context.ended("send", &e).map(|()| Turn::Over),
        }
        Ok(Turn::GoesOn)
    }

    /// So many bytes of a message went, all that were left at most.
    fn went(&mut self, index: usize, tag: usize, bytes: usize) {
        let gone = self.gone[tag].unwrap_or(0);
        let bytes = bytes.min(self.shape.message - gone);
        let is_whole = gone + bytes == self.shape.message;
        self.gone[tag] = (!is_whole).then_some(gone + bytes);
        self.ends[index].part.sent(bytes, is_whole);
    }
}
