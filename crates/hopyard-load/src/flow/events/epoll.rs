//! An event loop by epoll: sockets that do not block, and one call that waits for all of a thread.

use std::io;
use std::os::fd::AsFd;

use hopyard_net::clock;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::{TimeSpec, TimeValLike};

use super::{End, Part, Shape, Turn, are_over, next_wake};
use crate::flow::stream::no_buffers;
use crate::flow::{Io, RETRY_AFTER, again, timed_out};

/// Events taken by a call.
const EVENTS: usize = 64;

/// What the loop keeps of a flow.
struct Line {
    outgoing: Vec<u8>,
    /// Bytes of the present message that went.
    gone: Option<usize>,
    /// Part of a message has not gone yet.
    is_blocked: bool,
    /// It does not wait for room, but for the kernel's notices about earlier messages. epoll tells of those in any case.
    awaits_notices: bool,
    /// When to try again, if there is no notice to wait for.
    retry_ns: Option<u64>,
    watched: EpollFlags,
}

/// The flows of a thread, whose sockets do not block.
pub(crate) struct EpollLoop<'a, I, P> {
    ends: Vec<End<'a, I, P>>,
    lines: Vec<Line>,
    shape: Shape,
    epoll: Epoll,
    /// For all of them, so that it stays in the cache.
    incoming: Vec<u8>,
}

impl<'a, I: Io + AsFd, P: Part> EpollLoop<'a, I, P> {
    /// Watches the sockets of all flows.
    ///
    /// # Errors
    /// A sentence: no epoll instance can be made, or a socket cannot be watched.
    pub(crate) fn new(ends: Vec<End<'a, I, P>>, shape: Shape) -> Result<Self, String> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(|e| format!("cannot make an epoll instance: {e}"))?;
        let mut lines = Vec::with_capacity(ends.len());
        for (index, end) in ends.iter().enumerate() {
            let mut line = Line {
                outgoing: vec![0x5a; shape.message],
                gone: None,
                is_blocked: false,
                awaits_notices: false,
                retry_ns: None,
                watched: EpollFlags::empty(),
            };
            line.watched = line.wanted(&end.part, shape);
            epoll
                .add(end.io.as_fd(), EpollEvent::new(line.watched, index as u64))
                .map_err(|e| format!("cannot watch a socket: {e}"))?;
            lines.push(line);
        }
        Ok(Self {
            ends,
            lines,
            shape,
            epoll,
            incoming: vec![0; shape.room],
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
        let mut events = [EpollEvent::empty(); EVENTS];
        for index in 0..self.ends.len() {
            if self.turn(index, EpollFlags::EPOLLOUT)? == Turn::Over {
                return Ok(());
            }
        }
        let mut wake_ns = self.next_wake();
        while !are_over(&self.ends) {
            let ready = self
                .wait(wake_ns, &mut events)
                .map_err(|e| format!("cannot wait for a flow: {e}"))?;
            for event in &events[..ready] {
                let index = usize::try_from(event.data()).unwrap_or(usize::MAX);
                if self.turn(index, event.events())? == Turn::Over {
                    return Ok(());
                }
            }
            if ready > 0 && (is_paced || self.retries()) {
                wake_ns = self.next_wake();
            }
            let Some(at_ns) = wake_ns else { continue };
            let now_ns = clock::monotonic_ns();
            if at_ns > now_ns {
                continue;
            }
            for index in 0..self.ends.len() {
                let retry_ns = &mut self.lines[index].retry_ns;
                if retry_ns.take_if(|at_ns| *at_ns <= now_ns).is_some()
                    && self.turn(index, EpollFlags::EPOLLOUT)? == Turn::Over
                {
                    return Ok(());
                }
                let part = &mut self.ends[index].part;
                if part.wakes_ns().is_some_and(|wakes_ns| wakes_ns <= now_ns) {
                    part.wake(now_ns);
                    if self.turn(index, EpollFlags::EPOLLOUT)? == Turn::Over {
                        return Ok(());
                    }
                }
            }
            wake_ns = self.next_wake();
        }
        Ok(())
    }

    /// Does a flow have to be tried again without an event?
    fn retries(&self) -> bool {
        self.shape.zero_copy && self.lines.iter().any(|line| line.retry_ns.is_some())
    }

    /// When to wake if there is no event. A paced sender that has sent a part of a message waits for room only.
    fn next_wake(&self) -> Option<u64> {
        let flows = self.ends.iter().zip(&self.lines);
        let may_begin = flows.filter(|(_, line)| !P::IS_SHARP || line.gone.is_none());
        let wakes = may_begin.filter_map(|(end, _)| end.part.wakes_ns());
        let retries = self.lines.iter().filter_map(|line| line.retry_ns);
        wakes.chain(retries).min()
    }

    /// Waits for events until an instant, if there is one: to the ns where it has to be met, which `epoll_wait` cannot.
    fn wait(&self, until_ns: Option<u64>, events: &mut [EpollEvent]) -> io::Result<usize> {
        let mut limit = EpollTimeout::NONE;
        if let Some(until_ns) = until_ns {
            let left_ns = until_ns.saturating_sub(clock::monotonic_ns());
            if P::IS_SHARP && left_ns > 0 {
                let left = TimeSpec::nanoseconds(i64::try_from(left_ns).unwrap_or(i64::MAX));
                let mut fds = [PollFd::new(self.epoll.0.as_fd(), PollFlags::POLLIN)];
                match ppoll(&mut fds, Some(left), None) {
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(e) => return Err(e.into()),
                }
            }
            limit = if P::IS_SHARP {
                EpollTimeout::ZERO
            } else {
                let left_ms = left_ns.div_ceil(1_000_000);
                EpollTimeout::try_from(left_ms).unwrap_or(EpollTimeout::MAX)
            };
        }
        match self.epoll.wait(events, limit) {
            Ok(ready) => Ok(ready),
            Err(Errno::EINTR) => Ok(0),
            Err(e) => Err(e.into()),
        }
    }

    /// Does for a flow what these events allow.
    fn turn(&mut self, index: usize, events: EpollFlags) -> Result<Turn, String> {
        // A datagram socket that was shut down tells its reader nothing, for ever.
        if events.contains(EpollFlags::EPOLLHUP) && self.ends[index].context.stopped() {
            return Ok(Turn::Over);
        }
        if events.contains(EpollFlags::EPOLLERR) && !self.ends[index].part.streams() {
            // A sender without a pace reads them while it sends.
            let end = &self.ends[index];
            if let Err(e) = end.io.take_notices() {
                return end.context.ended("send", &e).map(|()| Turn::Over);
            }
        }
        let writable = EpollFlags::EPOLLOUT | EpollFlags::EPOLLERR;
        if events.intersects(writable) {
            self.lines[index].is_blocked = false;
            if self.send(index)? == Turn::Over {
                return Ok(Turn::Over);
            }
        }
        if events.intersects(!EpollFlags::EPOLLOUT) && self.receive(index)? == Turn::Over {
            return Ok(Turn::Over);
        }
        let (end, line) = (&self.ends[index], &mut self.lines[index]);
        let wanted = line.wanted(&end.part, self.shape);
        if wanted != line.watched {
            line.watched = wanted;
            self.epoll
                .modify(end.io.as_fd(), &mut EpollEvent::new(wanted, index as u64))
                .map_err(|e| format!("cannot watch a socket: {e}"))?;
        }
        Ok(Turn::GoesOn)
    }

    fn receive(&mut self, index: usize) -> Result<Turn, String> {
        for _ in 0..self.shape.calls {
            let end = &mut self.ends[index];
            if !end.part.expects() {
                break;
            }
            match end.io.recv(&mut self.incoming) {
                Ok(0) => return end.context.closed().map(|()| Turn::Over),
                Ok(bytes) => end.part.came(&self.incoming[..bytes]),
                Err(e) if again(&e) => continue,
                Err(e) if timed_out(&e) => break,
                Err(e) => return end.context.ended("receive", &e).map(|()| Turn::Over),
            }
            if self.shape.message > 0 && self.send(index)? == Turn::Over {
                return Ok(Turn::Over);
            }
        }
        Ok(Turn::GoesOn)
    }

    fn send(&mut self, index: usize) -> Result<Turn, String> {
        let (end, line) = (&mut self.ends[index], &mut self.lines[index]);
        if line.is_blocked || self.shape.message == 0 {
            return Ok(Turn::GoesOn);
        }
        for _ in 0..self.shape.calls {
            if line.gone.is_none() && !end.part.begin(&mut line.outgoing) {
                break;
            }
            let gone = line.gone.unwrap_or(0);
            line.gone = Some(gone);
            match end.io.send(&line.outgoing[gone..]) {
                Ok(bytes) => {
                    let is_whole = gone + bytes == line.outgoing.len();
                    end.part.sent(bytes, is_whole);
                    line.gone = (!is_whole).then_some(gone + bytes);
                }
                Err(e) if again(&e) => {}
                Err(e) if timed_out(&e) => break,
                Err(e) if no_buffers(&e) => end.context.tally.send_error(),
                Err(e) => return end.context.ended("send", &e).map(|()| Turn::Over),
            }
        }
        // What is left of a message goes when there is room, even if nothing else happens: the other end may wait for it.
        line.is_blocked = line.gone.is_some();
        line.awaits_notices = line.is_blocked && end.io.awaits_notices();
        let retries = line.awaits_notices && end.io.retries();
        line.retry_ns = retries.then(|| clock::monotonic_ns() + RETRY_AFTER.as_nanos() as u64);
        Ok(Turn::GoesOn)
    }
}

impl Line {
    /// The events that a flow waits for.
    fn wanted(&self, part: &impl Part, shape: Shape) -> EpollFlags {
        let sends = part.streams() || self.is_blocked;
        let mut wanted = EpollFlags::empty();
        wanted.set(EpollFlags::EPOLLIN, shape.room > 0);
        wanted.set(EpollFlags::EPOLLOUT, sends && !self.awaits_notices);
        wanted
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::os::fd::BorrowedFd;
    use std::sync::atomic::AtomicBool;

    use nix::libc;
    use nix::sys::eventfd::EventFd;

    use super::*;
    use crate::flow::Context;
    use crate::tally::Tally;

    const SHAPE: Shape = Shape {
        message: 100,
        room: 0,
        calls: 1,
        depth: 0,
        is_numbered: false,
        zero_copy: false,
        is_in_turns: false,
    };

    /// A socket that always has room by what epoll says; its sends end as it is told.
    struct Told {
        event: EventFd,
        sends: RefCell<VecDeque<Result<usize, i32>>>,
    }

    impl AsFd for Told {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.event.as_fd()
        }
    }

    impl Io for Told {
        fn send(&self, message: &[u8]) -> io::Result<usize> {
            let told = self.sends.borrow_mut().pop_front();
            let bytes = told.unwrap_or(Ok(message.len()));
            bytes.map_err(io::Error::from_raw_os_error)
        }

        fn recv(&self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    /// Sends one message, and waits for its end no longer than a second.
    struct One<'a> {
        tally: &'a Tally,
        has_begun: bool,
        is_over: bool,
        until_ns: u64,
    }

    impl Part for One<'_> {
        fn begin(&mut self, _: &mut [u8]) -> bool {
            !std::mem::replace(&mut self.has_begun, true)
        }

        fn sent(&mut self, _: usize, is_whole: bool) {
            self.is_over = is_whole;
        }

        fn came(&mut self, _: &[u8]) {}

        fn expects(&self) -> bool {
            false
        }

        fn wakes_ns(&self) -> Option<u64> {
            Some(self.until_ns)
        }

        fn wake(&mut self, _: u64) {
            self.tally.timed_out(true);
        }

        fn is_over(&self) -> bool {
            self.is_over
        }
    }

    /// With one call for a turn, nothing but room for it brings the loop back to what is left of a message.
    #[test]
    fn what_is_left_of_a_message_waits_for_room() {
        for first in [Ok(30), Err(libc::ENOBUFS), Err(libc::EAGAIN)] {
            let (tally, stop) = (Tally::default(), AtomicBool::new(false));
            let io = Told {
                event: EventFd::from_value(1).unwrap(),
                sends: RefCell::new([first].into()),
            };
            let context = Context {
                tally: &tally,
                stop: &stop,
                close_ns: u64::MAX,
            };
            let part = One {
                tally: &tally,
                has_begun: false,
                is_over: false,
                until_ns: clock::monotonic_ns() + 1_000_000_000,
            };
            let end = End { io, context, part };
            EpollLoop::new(vec![end], SHAPE).unwrap().run().unwrap();
            assert_eq!(tally.read().timeouts, 0, "{first:?}");
        }
    }
}
