//! Flows in event loops: each end says what it sends next and what it makes of what came ([`Part`]); who carries the bytes, by
//! which calls, is another's to say ([`epoll`], [`uring`]).

mod epoll;
mod exchange;
mod stream;
mod uring;

pub(crate) use epoll::EpollLoop;
pub(crate) use exchange::{Client, NumberedClient, Server};
pub(crate) use stream::{Receiver, Sender};
pub(crate) use uring::{UringLoop, Way};

use super::Context;

/// One end of a flow.
pub(crate) trait Part {
    /// Must it be woken to the µs?
    const IS_SHARP: bool = false;

    /// Begins the next message, if one is to go now: writes into it what differs from message to message.
    fn begin(&mut self, message: &mut [u8]) -> bool;

    /// So many bytes of a message went; were they its last?
    fn sent(&mut self, bytes: usize, is_whole: bool);

    /// Bytes came.
    fn came(&mut self, bytes: &[u8]);

    /// Is something to come?
    fn expects(&self) -> bool;

    /// Will it send as soon as there is room?
    fn streams(&self) -> bool {
        false
    }

    /// When it has something to do though nothing comes.
    fn wakes_ns(&self) -> Option<u64> {
        None
    }

    /// That instant has come.
    fn wake(&mut self, _now_ns: u64) {}

    /// Traffic has stopped, and nothing of it is on its way.
    fn is_over(&self) -> bool;
}

/// The end of a flow with what carries it.
pub(crate) struct End<'a, I, P> {
    pub(crate) io: I,
    pub(crate) context: Context<'a>,
    pub(crate) part: P,
}

/// How a thread's flows use their memory and their turns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Bytes of each message that is sent; none where nothing is.
    pub(crate) message: usize,
    /// Bytes taken by a call; none where nothing comes.
    pub(crate) room: usize,
    /// Calls for one flow before it is the next one's turn.
    pub(crate) calls: usize,
    /// Messages of a flow that are handed to an io_uring side by side.
    pub(crate) depth: usize,
    /// Does each message have a number in it?
    pub(crate) is_numbered: bool,
    /// Is the kernel to send from the program's memory?
    pub(crate) zero_copy: bool,
    /// Does nothing come before the message that was sent has gone?
    pub(crate) is_in_turns: bool,
}

/// What a turn of a flow came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    GoesOn,
    /// The flow is over, and so is the window.
    Over,
}

/// Have all of them ended? They stop together.
fn are_over<I, P: Part>(ends: &[End<'_, I, P>]) -> bool {
    ends.iter().all(|end| end.part.is_over())
}

/// The first instant at which one of them has something to do.
fn next_wake<I, P: Part>(ends: &[End<'_, I, P>]) -> Option<u64> {
    ends.iter().filter_map(|end| end.part.wakes_ns()).min()
}
