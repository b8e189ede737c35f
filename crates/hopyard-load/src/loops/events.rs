//! Streams and transactions in event loops (axis `api`).

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::time::Duration;

use nix::sys::eventfd::EventFd;
use socket2::SockRef;

use super::ceiling::{slower, timed};
use super::stream::receive_size;
use super::{Loops, Origin, Run, Said, Work};
use crate::flow::events::{
    Client, End, EpollLoop, NumberedClient, Part, Receiver, Sender, Server, Shape, UringLoop, Way,
};
use crate::flow::{
    Context, Io, Nothing, RECEIVE_BYTES, Responder, Schedule, Socket, Times, ZeroCopySocket,
};
use crate::protocol::Tallied;
use crate::sockets::Sockets;
use crate::spec::LoadSpec;

/// Calls for the only stream of a thread before the loop asks what else there is, and for each of several: a sender's turn is one
/// message, as in `flow/stream.rs`.
const CALLS_ALONE: usize = 16;
const SENDS: usize = 1;
const RECEIVES: usize = 4;
/// Messages of a thread that are handed to an io_uring side by side: what one call is shared by.
const DEPTH: usize = 8;
/// Bytes, and messages, of sends without a copy that the kernel has not answered: as much as a socket buffer holds.
const UNANSWERED: usize = 4 * 1024 * 1024;
const MOST_UNANSWERED: usize = 256;
/// Requests of a flow that are.
const REQUESTS: usize = 16;
/// Memory into which all streams of a thread receive by io_uring, bytes, and the least of each: the kernel has it meanwhile, so that
/// they cannot share it.
const ROOM: usize = 16 * 1024 * 1024;
const LEAST_ROOM: usize = 16 * 1024;

/// Who waits for the sockets of a thread.
#[derive(Debug, Clone, Copy)]
enum Waiter {
    Epoll,
    Uring,
}

/// Bulk data one way.
pub(super) struct Streams(Waiter);
/// Requests and responses over standing flows.
pub(super) struct Transactions(Waiter);

pub(super) static STREAMS_BY_EPOLL: Streams = Streams(Waiter::Epoll);
pub(super) static STREAMS_BY_URING: Streams = Streams(Waiter::Uring);
pub(super) static TRANSACTIONS_BY_EPOLL: Transactions = Transactions(Waiter::Epoll);
pub(super) static TRANSACTIONS_BY_URING: Transactions = Transactions(Waiter::Uring);

impl Loops for Streams {
    fn share_threads(&self) -> bool {
        true
    }

    fn prepare<'a>(&self, work: Work<'a>) -> Result<Run<'a>, String> {
        let (spec, waiter) = (work.spec, self.0);
        let sockets = work.sockets()?;
        let count = sockets.len();
        if work.sends() {
            // One that has a pace has its thread alone.
            let schedule = Schedule::new(spec, work.start_ns, 0);
            let part = |context| Sender::new(context, schedule.clone());
            let run = waiter.ready(sockets, sending(spec, count), part)?;
            Ok(Box::new(move || run().map(|()| Said::Nothing)))
        } else {
            let shape = receiving(spec, count, waiter);
            let run = waiter.ready(sockets, shape, Receiver::new)?;
            Ok(Box::new(move || run().map(|()| Said::Nothing)))
        }
    }

    fn ceiling(&self, spec: &LoadSpec, span: Duration) -> Result<Tallied, String> {
        let waiter = self.0;
        let sent = timed(span, |nothing, context| {
            let part = Sender::new(context, None);
            waiter.alone(nothing, context, sending(spec, 1), part)
        })?;
        let got = timed(span, |nothing, context| {
            let shape = receiving(spec, 1, waiter);
            waiter.alone(nothing, context, shape, Receiver::new(context))
        })?;
        Ok(slower(sent, got))
    }
}

impl Loops for Transactions {
    /// What an event loop is for. The time of a transaction holds the work on the others of its thread.
    fn share_threads(&self) -> bool {
        true
    }

    fn prepare<'a>(&self, work: Work<'a>) -> Result<Run<'a>, String> {
        let (spec, waiter) = (work.spec, self.0);
        let sockets = work.sockets()?;
        let responder = Responder::of(spec);
        let is_server = |flow: &super::Flow<'_>| matches!(flow.origin, Origin::Server { .. });
        if work.flows.iter().any(is_server) {
            let shape = exchanging(spec, spec.response_size, spec.request_size);
            let part = |context| Server::new(context, &responder);
            let run = waiter.ready(sockets, shape, part)?;
            return Ok(Box::new(move || run().map(|()| Said::Nothing)));
        }
        let times = Times::of(&work.timetable)?;
        let times = Rc::new(RefCell::new(times));
        let shape = exchanging(spec, spec.request_size, spec.response_size);
        let run: Box<dyn FnOnce() -> Result<(), String> + 'a> = if responder.datagrams {
            let part = |context| NumberedClient::new(context, &responder, times.clone());
            waiter.ready(sockets, shape, part)?
        } else {
            let part = |context| Client::new(context, &responder, times.clone());
            waiter.ready(sockets, shape, part)?
        };
        Ok(Box::new(move || {
            run()?;
            let times = Rc::into_inner(times).ok_or("the times of a flow are still in use")?;
            Ok(Said::RoundTrips(times.into_inner().timings))
        }))
    }

    fn ceiling(&self, spec: &LoadSpec, span: Duration) -> Result<Tallied, String> {
        let responder = Responder {
            pause_ns: 0,
            ..Responder::of(spec)
        };
        let times = Rc::new(RefCell::new(Times::new(0, u64::MAX)?));
        let shape = exchanging(spec, spec.request_size, spec.response_size);
        timed(span, |nothing, context| {
            let part = Client::new(context, &responder, times.clone());
            self.0.alone(nothing, context, shape, part)
        })
    }
}

fn sending(spec: &LoadSpec, flows: usize) -> Shape {
    let most = if spec.zero_copy {
        (UNANSWERED / spec.message_size.max(1) as usize).clamp(DEPTH, MOST_UNANSWERED)
    } else {
        DEPTH
    };
    let depth = most / flows.max(1);
    Shape {
        message: spec.message_size as usize,
        room: 0,
        calls: if flows > 1 { SENDS } else { CALLS_ALONE },
        depth: depth.max(1),
        is_numbered: false,
        zero_copy: spec.zero_copy,
        is_in_turns: false,
    }
}

fn receiving(spec: &LoadSpec, flows: usize, waiter: Waiter) -> Shape {
    let room = match waiter {
        Waiter::Uring if spec.kind.is_tcp() => {
            // A socket that keeps messages apart drops the part of a message that has no room.
            let least = match spec.sockets {
                Sockets::UnixSeqpacket => LEAST_ROOM.max(spec.message_size as usize),
                _ => LEAST_ROOM,
            };
            (ROOM / flows.max(1)).clamp(least, RECEIVE_BYTES.max(least))
        }
        _ => receive_size(spec),
    };
    Shape {
        message: 0,
        room,
        calls: if flows > 1 { RECEIVES } else { CALLS_ALONE },
        depth: 0,
        is_numbered: false,
        zero_copy: false,
        is_in_turns: false,
    }
}

/// Of one end of requests and responses.
fn exchanging(spec: &LoadSpec, message: u32, room: u32) -> Shape {
    let (outstanding, datagrams) = (spec.outstanding as usize, !spec.kind.is_tcp());
    // A datagram that is lost leaves its request waiting, beside the next one.
    let least = if datagrams { 2 } else { 1 };
    Shape {
        message: message as usize,
        room: room as usize,
        calls: outstanding,
        depth: outstanding.clamp(least, REQUESTS),
        is_numbered: datagrams,
        zero_copy: false,
        is_in_turns: outstanding == 1,
    }
}

type Ready<'a> = Box<dyn FnOnce() -> Result<(), String> + 'a>;

impl Waiter {
    /// The loop of a thread's flows.
    fn ready<'a, P: Part + 'a>(
        self,
        sockets: Vec<(&'a Socket, Context<'a>)>,
        shape: Shape,
        part: impl Fn(Context<'a>) -> P,
    ) -> Result<Ready<'a>, String> {
        match self {
            Self::Epoll => {
                for (socket, _) in &sockets {
                    SockRef::from(*socket)
                        .set_nonblocking(true)
                        .map_err(|e| format!("cannot make a socket non-blocking: {e}"))?;
                }
                if shape.zero_copy {
                    let io =
                        |socket, context: &Context<'a>| ZeroCopySocket::new(socket, context.tally);
                    let flows = EpollLoop::new(ends(sockets, io, part)?, shape)?;
                    return Ok(Box::new(move || flows.run()));
                }
                let ends = ends(sockets, |socket, _| Ok(socket), part)?;
                let flows = EpollLoop::new(ends, shape)?;
                Ok(Box::new(move || flows.run()))
            }
            Self::Uring => {
                let ends = ends(sockets, |socket, _| Ok(Way::Socket(socket)), part)?;
                let flows = UringLoop::new(ends, shape)?;
                Ok(Box::new(move || flows.run()))
            }
        }
    }

    /// The same with no path at all.
    fn alone<P: Part>(
        self,
        nothing: &Nothing,
        context: Context<'_>,
        shape: Shape,
        part: P,
    ) -> Result<(), String> {
        match self {
            Self::Epoll => {
                let io = AlwaysReady::new(nothing)?;
                let end = End { io, context, part };
                EpollLoop::new(vec![end], shape)?.run()
            }
            Self::Uring => {
                let io = Way::Nothing(nothing);
                let end = End { io, context, part };
                UringLoop::new(vec![end], shape)?.run()
            }
        }
    }
}

fn ends<'a, I, P>(
    sockets: Vec<(&'a Socket, Context<'a>)>,
    io: impl Fn(&'a Socket, &Context<'a>) -> Result<I, String>,
    part: impl Fn(Context<'a>) -> P,
) -> Result<Vec<End<'a, I, P>>, String> {
    let end = |(socket, context)| {
        Ok(End {
            io: io(socket, &context)?,
            context,
            part: part(context),
        })
    };
    sockets.into_iter().map(end).collect()
}

/// No path, with a descriptor that epoll always finds ready.
struct AlwaysReady<'a> {
    nothing: &'a Nothing,
    event: EventFd,
}

impl<'a> AlwaysReady<'a> {
    fn new(nothing: &'a Nothing) -> Result<Self, String> {
        let event = EventFd::from_value(1).map_err(|e| format!("cannot make an eventfd: {e}"))?;
        Ok(Self { nothing, event })
    }
}

impl AsFd for AlwaysReady<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Io for AlwaysReady<'_> {
    fn send(&self, message: &[u8]) -> std::io::Result<usize> {
        self.nothing.send(message)
    }

    fn recv(&self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.nothing.recv(buffer)
    }
}

#[cfg(test)]
mod tests;
