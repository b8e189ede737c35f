//! A socket that sends from the program's memory (`MSG_ZEROCOPY`, Linux 4.14; of UDP 5.0).
//!
//! The kernel answers each send in the socket's error queue, once it needs the memory no longer, and says whether it copied the
//! bytes all the same. All messages have the same bytes, so none has to wait for the answer to another;
//! but the answers that nobody takes fill the memory that the socket may have for such (`net.core.optmem_max`).

use std::cell::RefCell;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::thread;

use hopyard_model::ZeroCopied;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, send};
use socket2::SockRef;

use super::{Io, RETRY_AFTER, Socket};
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
    /// If not, the loop waits for answers, because it has other flows to serve.
    blocks: bool,
    state: RefCell<State>,
}

struct State {
    counted: ZeroCopied,
    /// Since answers were taken.
    sent: u32,
    /// Sends without an answer so far.
    in_flight: u64,
    /// The last send found no memory for its answer.
    awaits_answers: bool,
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
        let is_nonblocking = SockRef::from(socket)
            .nonblocking()
            .map_err(|e| format!("cannot read whether a socket blocks: {e}"))?;
        Ok(Self {
            socket,
            tally,
            blocks: !is_nonblocking,
            state: RefCell::new(State {
                counted: tally.read().zero_copy,
                sent: 0,
                in_flight: 0,
                awaits_answers: false,
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
        let answered = state.counted.answered - before;
        state.in_flight = state.in_flight.saturating_sub(answered);
        Ok(answered > 0)
    }

    /// Whether sends of this socket have no answer yet.
    fn has_in_flight(&self) -> bool {
        self.state.borrow().in_flight > 0
    }

    /// Waits until there is an answer. One of what was sent last comes when the other end has it. If none is outstanding, other
    /// sockets of the user hold all memory that it may lock (`RLIMIT_MEMLOCK`), and no event announces free memory.
    ///
    /// # Errors
    /// In that case `Interrupted`, after a pause: the sender looks whether it is to stop, and tries again. Otherwise the kernel's.
    fn wait_for_answers(&self) -> io::Result<()> {
        while !self.take_answers()? {
            if !self.has_in_flight() {
                thread::sleep(RETRY_AFTER);
                return Err(io::ErrorKind::Interrupted.into());
            }
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
        let may_wait = self.blocks && !flags.contains(MsgFlags::MSG_DONTWAIT);
        let flags = flags | MsgFlags::MSG_NOSIGNAL | MsgFlags::from_bits_retain(libc::MSG_ZEROCOPY);
        loop {
            let sent = send(self.socket.as_fd().as_raw_fd(), message, flags);
            let is_time = {
                let mut state = self.state.borrow_mut();
                state.awaits_answers = sent == Err(Errno::ENOBUFS);
                state.sent += u32::from(sent.is_ok());
                state.in_flight += u64::from(sent.is_ok());
                state.sent >= BATCH
            };
            match sent {
                Ok(bytes) => {
                    if is_time {
                        self.take_answers()?;
                    }
                    return Ok(bytes);
                }
                Err(Errno::ENOBUFS) if may_wait => self.wait_for_answers()?,
                Err(Errno::ENOBUFS) => {
                    if !self.take_answers()? {
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                }
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

    fn awaits_notices(&self) -> bool {
        self.state.borrow().awaits_answers
    }

    fn retries(&self) -> bool {
        self.awaits_notices() && !self.has_in_flight()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Shutdown, UdpSocket};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::Duration;

    use hopyard_net::{Handle, NetNs, clock};

    use super::*;
    use crate::flow::events::{End, EpollLoop, Sender, Shape};
    use crate::flow::{Context, Message, transmit_in_turns};

    const BYTES: u32 = 1000;
    const SHAPE: Shape = Shape {
        message: BYTES as usize,
        room: 0,
        calls: 1,
        depth: 0,
        is_numbered: false,
        zero_copy: true,
        is_in_turns: false,
    };

    /// A socket that does not block, and its receiver. It never has memory for an answer if it `awaits` them.
    fn connected(awaits: bool) -> (Socket, UdpSocket) {
        let handle = Handle::new(&NetNs::create().unwrap()).unwrap();
        handle.set_up("lo").unwrap();
        if awaits {
            handle.set_sysctl("net/core/optmem_max", "1").unwrap();
        }
        let sockets = handle
            .ns()
            .run(|| [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap()));
        let [sender, receiver] = sockets.unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        sender.set_nonblocking(true).unwrap();
        (Socket(sender.into()), receiver)
    }

    /// What two flows of a thread send in 300 ms, and its CPU time, ns.
    fn sent(await_answers: [bool; 2], by_epoll: bool) -> ([u64; 2], u64) {
        let sockets = await_answers.map(connected);
        let (tallies, stop) = (<[Tally; 2]>::default(), AtomicBool::new(false));
        let flows = sockets.iter().zip(&tallies).map(|((socket, _), tally)| {
            let context = Context {
                tally,
                stop: &stop,
                close_ns: u64::MAX,
            };
            (ZeroCopySocket::new(socket, tally).unwrap(), context)
        });
        let flows: Vec<_> = flows.collect();
        let cpu_ns = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                stop.store(true, Relaxed);
                for (socket, _) in &sockets {
                    SockRef::from(socket).shutdown(Shutdown::Both).unwrap();
                }
            });
            let before_ns = clock::thread_cpu_ns();
            if by_epoll {
                let end = |(io, context)| End {
                    io,
                    context,
                    part: Sender::new(context, None),
                };
                let ends = flows.into_iter().map(end).collect();
                EpollLoop::new(ends, SHAPE).unwrap().run().unwrap();
            } else {
                transmit_in_turns(&flows, &mut Message::plain(BYTES)).unwrap();
            }
            clock::thread_cpu_ns() - before_ns
        });
        let messages = tallies.each_ref().map(|tally| tally.read().sent.messages);
        (messages, cpu_ns)
    }

    /// Needs root, and Linux 6.8, where the limit is the namespace's.
    #[test]
    fn a_flow_that_awaits_answers_holds_up_no_other_of_its_thread() {
        for by_epoll in [false, true] {
            let ([stuck, other], _) = sent([true, false], by_epoll);
            assert_eq!(stuck, 0, "by epoll: {by_epoll}");
            assert!(other > 3000, "by epoll: {by_epoll}: {other}");
        }
    }

    /// The stuck flow is tried again, and one that blocks is too until it is told to stop.
    #[test]
    fn a_flow_that_blocks_stops_though_it_never_has_memory() {
        let (socket, _receiver) = connected(true);
        SockRef::from(&socket).set_nonblocking(false).unwrap();
        let tally = Tally::default();
        let io = ZeroCopySocket::new(&socket, &tally).unwrap();
        let refused = io.send(&[0; BYTES as usize]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::Interrupted);
        assert!(io.retries());
    }

    /// Needs the same. What spins takes nearly all of the 300 ms.
    #[test]
    fn flows_that_await_answers_do_not_spin() {
        for by_epoll in [false, true] {
            let (messages, cpu_ns) = sent([true, true], by_epoll);
            assert_eq!(messages, [0, 0], "by epoll: {by_epoll}");
            assert!(cpu_ns < 120_000_000, "by epoll: {by_epoll}: {cpu_ns} ns");
        }
    }
}
