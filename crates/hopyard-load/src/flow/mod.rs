//! The hot loops: one flow each, the streams of a CPU in turns, or the numbered datagrams of a socket.
//!
//! A loop makes socket calls and stores counters, nothing else: buffers are made before it starts, no
//! lock is taken (but by those that make connections), and the clock is read only where something is timed.

mod burst;
mod conns;
mod crr;
pub(crate) mod events;
mod exchange;
mod gather;
mod message;
mod replay;
mod rr;
mod schedule;
mod stream;
mod zero_copy;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::socket::{MsgFlags, recv, send};

pub(crate) use conns::{Client as ConnsClient, Opened, Server as ConnsServer};
pub(crate) use crr::{client as crr_client, server as crr_server};
pub(crate) use exchange::{Responder, Times};
pub(crate) use gather::{BATCH, gather};
pub(crate) use message::Message;
pub(crate) use replay::{Replaying, transmit_replayed};
pub(crate) use rr::{client as rr_client, server as rr_server};
pub(crate) use schedule::Schedule;
pub(crate) use stream::{
    RECEIVE_BYTES, receive, receive_in_turns, transmit, transmit_in_turns, transmit_paced,
};

pub(crate) use zero_copy::ZeroCopySocket;

use super::tally::Tally;
use hopyard_net::clock;

/// Pause before another try at a send for which no event announces room.
const RETRY_AFTER: Duration = Duration::from_millis(1);

/// What a flow reads from and writes to.
pub(crate) trait Io {
    /// Hands a message to the kernel; how many bytes it took.
    fn send(&self, message: &[u8]) -> io::Result<usize>;
    /// The same of as much as there is room for at once; no room is an error, `WouldBlock`.
    #[inline]
    fn send_now(&self, message: &[u8]) -> io::Result<usize> {
        self.send(message)
    }
    /// Takes what is there; 0 at the end.
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize>;
    /// Reads the kernel's notices about earlier sends. Until they are read, epoll reports them again and again.
    fn take_notices(&self) -> io::Result<()> {
        Ok(())
    }
    /// Did the last send fail because it has to wait for such notices, and not for room?
    fn awaits_notices(&self) -> bool {
        false
    }
    /// Does the last send wait for room that no event will announce, so that it has to be tried again after [`RETRY_AFTER`]?
    fn retries(&self) -> bool {
        false
    }
    /// The same as [`Self::recv`], with the number of messages that it was.
    #[inline]
    fn take(&self, buffer: &mut [u8]) -> io::Result<(usize, u64)> {
        Ok((self.recv(buffer)?, 1))
    }
}

impl<I: Io> Io for &I {
    #[inline]
    fn send(&self, message: &[u8]) -> io::Result<usize> {
        (**self).send(message)
    }

    #[inline]
    fn send_now(&self, message: &[u8]) -> io::Result<usize> {
        (**self).send_now(message)
    }

    #[inline]
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).recv(buffer)
    }

    fn take_notices(&self) -> io::Result<()> {
        (**self).take_notices()
    }

    fn awaits_notices(&self) -> bool {
        (**self).awaits_notices()
    }

    fn retries(&self) -> bool {
        (**self).retries()
    }

    #[inline]
    fn take(&self, buffer: &mut [u8]) -> io::Result<(usize, u64)> {
        (**self).take(buffer)
    }
}

/// A connected socket.
#[derive(Debug)]
pub(crate) struct Socket(pub(crate) OwnedFd);

/// A flow's data socket, once there is one, for the controlling thread. Of a flow that connects anew for each transaction, that of the
/// present one.
pub(crate) type SharedSocket = Arc<Mutex<Option<Arc<Socket>>>>;

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Io for Socket {
    #[inline]
    fn send(&self, message: &[u8]) -> io::Result<usize> {
        Ok(send(self.0.as_raw_fd(), message, MsgFlags::MSG_NOSIGNAL)?)
    }

    #[inline]
    fn send_now(&self, message: &[u8]) -> io::Result<usize> {
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        Ok(send(self.0.as_raw_fd(), message, flags)?)
    }

    #[inline]
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self.0.as_raw_fd(), buffer, MsgFlags::empty())?)
    }
}

/// No path at all: the loop and two system calls.
#[derive(Debug)]
pub(crate) struct Nothing {
    pub(crate) null: OwnedFd,
    pub(crate) zero: OwnedFd,
}

impl Io for Nothing {
    fn send(&self, message: &[u8]) -> io::Result<usize> {
        Ok(nix::unistd::write(self.null.as_fd(), message)?)
    }

    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(nix::unistd::read(self.zero.as_fd(), buffer)?)
    }
}

/// What a flow's thread is given besides its socket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    /// Its counters.
    pub(crate) tally: &'a Tally,
    /// Set when traffic is to stop.
    pub(crate) stop: &'a AtomicBool,
    /// No error matters after this instant: the window is closed.
    pub(crate) close_ns: u64,
}

impl Context<'_> {
    #[inline]
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// An error of a socket call: the end of the flow if the traffic is over, a failure before.
    pub(crate) fn ended(&self, operation: &str, error: &io::Error) -> Result<(), String> {
        if self.over() {
            Ok(())
        } else {
            Err(format!("cannot {operation}: {error}"))
        }
    }

    /// The other end closed: the end of the flow if the traffic is over, a failure before.
    pub(crate) fn closed(&self) -> Result<(), String> {
        if self.over() {
            Ok(())
        } else {
            Err("the other end closed the connection before the window was over".to_owned())
        }
    }

    fn over(&self) -> bool {
        self.stopped() || clock::monotonic_ns() >= self.close_ns
    }
}

/// A call was interrupted or has to be made again.
fn again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted)
}

/// The receive time-out of the socket ran out.
fn timed_out(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}
