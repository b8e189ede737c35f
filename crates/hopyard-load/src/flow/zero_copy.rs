//! A socket that sends from the program's memory (`MSG_ZEROCOPY`, Linux 4.14; of UDP 5.0).
//!
//! The kernel answers each send in the socket's error queue, once it needs the memory no longer, and says whether it copied the
//! bytes all the same. All messages have the same bytes, so none has to wait for the answer to another;
//! but the answers that nobody takes fill the memory that the socket may have for such (`net.core.optmem_max`).

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use hopyard_model::ZeroCopied;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, send};

use super::{Io, Socket};
use crate::tally::Tally;

/// Sends after which answers are taken.
const BATCH: u32 = 16;
/// `SO_EE_ORIGIN_ZEROCOPY` and `SO_EE_CODE_ZEROCOPY_COPIED` (`include/uapi/linux/errqueue.h`).
const ORIGIN: u8 = 5;
const COPIED: u8 = 1;

/// A connected socket whose sends are not to copy.
pub(crate) struct ZeroCopySocket<'a> {
    socket: &'a Socket,
    tally: &'a Tally,
    state: RefCell<State>,
}

struct State {
    counted: ZeroCopied,
    /// Since answers were taken.
    sent: u32,
    /// Room for the control message of an answer.
    control: Vec<u8>,
}

impl<'a> ZeroCopySocket<'a> {
    /// Lets a socket send so.
    ///
    /// # Errors
    /// A sentence: the kernel has none of this for such a socket.
    pub(crate) fn new(socket: &'a Socket, tally: &'a Tally) -> Result<Self, String> {
        hopyard_net::allow_zerocopy(socket).map_err(|e| hopyard_model::plain::chain(&e))?;
        Ok(Self {
            socket,
            tally,
            state: RefCell::new(State {
                counted: tally.read().zero_copy,
                sent: 0,
                control: cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6),
            }),
        })
    }

    /// Takes the answers that are there, and counts them; were there any?
    fn take_answers(&self) -> io::Result<bool> {
        let mut state = self.state.borrow_mut();
        let before = state.counted.answered;
        state.sent = 0;
        loop {
            let State {
                counted, control, ..
            } = &mut *state;
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let mut nothing: [IoSliceMut<'_>; 0] = [];
            let fd = self.socket.as_fd().as_raw_fd();
            let answer = match recvmsg::<()>(fd, &mut nothing, Some(control), flags) {
                Ok(answer) => answer,
                Err(Errno::EAGAIN) => break,
                Err(Errno::EINTR) => continue,
                Err(e) => return Err(e.into()),
            };
            for message in answer.cmsgs()? {
                let (ControlMessageOwned::Ipv4RecvErr(error, _)
                | ControlMessageOwned::Ipv6RecvErr(error, _)) = message
                else {
                    continue;
                };
                if error.ee_origin == ORIGIN {
                    take_in(counted, &error);
                }
            }
        }
        self.tally.set_zero_copy(state.counted);
        Ok(state.counted.answered > before)
    }

    /// Waits until there is an answer. One of what was sent last comes when the other end has it.
    fn wait_for_answers(&self) -> io::Result<()> {
        while !self.take_answers()? {
            let mut fds = [PollFd::new(self.socket.as_fd(), PollFlags::empty())];
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(e) => return Err(e.into()),
            }
            let revents = fds[0].revents().unwrap_or(PollFlags::empty());
            if revents.contains(PollFlags::POLLHUP) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
        Ok(())
    }

    #[inline]
    fn send_with(&self, message: &[u8], flags: MsgFlags) -> io::Result<usize> {
        let flags = flags | MsgFlags::MSG_NOSIGNAL | MsgFlags::from_bits_retain(libc::MSG_ZEROCOPY);
        loop {
            match send(self.socket.as_fd().as_raw_fd(), message, flags) {
                Ok(bytes) => {
                    let is_time = {
                        let mut state = self.state.borrow_mut();
                        state.sent += 1;
                        state.sent >= BATCH
                    };
                    if is_time {
                        self.take_answers()?;
                    }
                    return Ok(bytes);
                }
                Err(Errno::ENOBUFS) => self.wait_for_answers()?,
                Err(Errno::EAGAIN) => {
                    // Answers would wake whoever waits for room.
                    self.take_answers()?;
                    return Err(Errno::EAGAIN.into());
                }
                Err(e) => return Err(e.into()),
            }
        }
    }
}

/// An answer is of several sends, numbered one after the other.
fn take_in(counted: &mut ZeroCopied, answer: &libc::sock_extended_err) {
    let sends = answer.ee_data.wrapping_sub(answer.ee_info).wrapping_add(1);
    counted.answered += u64::from(sends);
    if answer.ee_code & COPIED != 0 {
        counted.copied += u64::from(sends);
    }
}

impl AsFd for ZeroCopySocket<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Io for ZeroCopySocket<'_> {
    #[inline]
    fn send(&self, message: &[u8]) -> io::Result<usize> {
        self.send_with(message, MsgFlags::empty())
    }

    #[inline]
    fn send_now(&self, message: &[u8]) -> io::Result<usize> {
        self.send_with(message, MsgFlags::MSG_DONTWAIT)
    }

    #[inline]
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.recv(buffer)
    }

    fn take_notices(&self) -> io::Result<()> {
        self.take_answers().map(drop)
    }
}
