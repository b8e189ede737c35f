//! Deleting a device without waiting until the kernel has freed it.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork, pipe2};

use crate::attrs::{u16_at, u32_at};
use crate::error::{Error, Result};
use crate::handle::{Handle, missing_device};

/// `linux/rtnetlink.h`.
const RTMGRP_LINK: u32 = 1;
const RTM_DELLINK: u16 = 17;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLMSG_ERROR: u16 = 2;
/// Bytes of `struct nlmsghdr`; the device's index is 4 bytes into what follows.
const HEADER: usize = 16;
const REQUEST: usize = HEADER + crate::link::IFINFOMSG;

/// What came of the request.
enum Outcome {
    Gone,
    Refused(Errno),
    /// Nothing was heard of it.
    Lost,
}

impl Handle {
    /// Deletes a device; the other end of a pair goes with it. Both have left their namespaces when this returns.
    ///
    /// The kernel then waits for all readers of the device, and has whoever asked wait as well (`rcu_barrier` in
    /// `netdev_run_todo`, some 20 ms). Here that is a process of its own, which holds no file of the caller, ends by itself and
    /// is collected by `init`.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is none of that name; [`Error::Kernel`] when it cannot be deleted.
    pub fn delete_link_unawaited(&self, name: &str) -> Result<()> {
        let what = format!("delete device `{name}`");
        let index = self.index_for(&what, name)?;
        let socket = self.ns().run(listen)?;
        match socket.and_then(|socket| ask_from_a_process(&socket, index)) {
            Ok(Outcome::Gone) => Ok(()),
            Ok(Outcome::Refused(Errno::ENODEV)) => Err(missing_device(&what, name)),
            Ok(Outcome::Refused(errno)) => Err(Error::from_errno(&what, errno)),
            // There was no room for another process, it was killed before it asked, or the socket had no room for what the kernel
            // said: to wait is better than to leave the device.
            Ok(Outcome::Lost) | Err(_) => match self.delete_link(name) {
                Err(Error::Missing { .. }) => Ok(()),
                deleted => deleted,
            },
        }
    }
}

/// A socket on which the kernel announces devices that are gone.
fn listen() -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let route = SockProtocol::NetlinkRoute;
    let fd = socket(AddressFamily::Netlink, SockType::Raw, flags, route)?;
    bind(fd.as_raw_fd(), &NetlinkAddr::new(0, RTMGRP_LINK))?;
    Ok(fd)
}

fn request(index: u32) -> [u8; REQUEST] {
    let mut message = [0; REQUEST];
    let length = u32::try_from(REQUEST).unwrap_or(u32::MAX);
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message[4..6].copy_from_slice(&RTM_DELLINK.to_ne_bytes());
    message[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    message[HEADER + 4..HEADER + 8].copy_from_slice(&index.to_ne_bytes());
    message
}

fn ask_from_a_process(socket: &OwnedFd, index: u32) -> nix::Result<Outcome> {
    let (alive, held) = pipe2(OFlag::O_CLOEXEC)?;
    send_from_a_process(socket, &held, &request(index))?;
    drop(held);
    outcome(socket, &alive, index)
}

/// Has a grandchild send the request: nobody has to collect it here. It holds `held` until the kernel is done.
fn send_from_a_process(socket: &OwnedFd, held: &OwnedFd, request: &[u8]) -> nix::Result<()> {
    let (socket, held) = (socket.as_raw_fd(), held.as_raw_fd());
    // SAFETY: until it ends the child makes system calls alone; it allocates nothing and takes no lock.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => {
            // Where the caller ignores SIGCHLD there is nothing to collect.
            while waitpid(child, None) == Err(Errno::EINTR) {}
            Ok(())
        }
        ForkResult::Child => {
            // SAFETY: as above.
            if let Ok(ForkResult::Child) = unsafe { fork() } {
                close_all_but(socket, held);
                // SAFETY: send(2) reads the bytes of a slice that lives.
                unsafe { libc::send(socket, request.as_ptr().cast(), request.len(), 0) };
            }
            // SAFETY: _exit(2) runs nothing of the caller's.
            unsafe { libc::_exit(0) }
        }
    }
}

/// Whoever waits for the end of a pipe, or for a lock, is not to wait for this process.
fn close_all_but(one: RawFd, other: RawFd) {
    let [low, high] =
        [one.min(other), one.max(other)].map(|fd| libc::c_uint::try_from(fd).unwrap_or(0));
    for range in [0..low, low + 1..high, high + 1..libc::c_uint::MAX] {
        if !range.is_empty() {
            // SAFETY: close_range(2) takes integers and touches no memory of ours.
            unsafe { libc::syscall(libc::SYS_close_range, range.start, range.end - 1, 0) };
        }
    }
}

/// Waits until the device has left, or its deletion is refused, or the process that asked has ended.
fn outcome(socket: &OwnedFd, alive: &OwnedFd, index: u32) -> nix::Result<Outcome> {
    loop {
        let mut files = [
            PollFd::new(socket.as_fd(), PollFlags::POLLIN),
            PollFd::new(alive.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut files, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            polled => polled?,
        };
        let ended = files[1].revents().is_some_and(|events| !events.is_empty());
        if let Some(outcome) = heard(socket, index)? {
            return Ok(outcome);
        }
        if ended {
            return Ok(Outcome::Lost);
        }
    }
}

/// What the kernel has said so far.
fn heard(socket: &OwnedFd, index: u32) -> nix::Result<Option<Outcome>> {
    let mut room = [0; 16 * 1024];
    loop {
        let length = match recv(socket.as_raw_fd(), &mut room, MsgFlags::empty()) {
            Err(Errno::EAGAIN) => return Ok(None),
            // Announcements were lost; the end of the process tells then.
            Err(Errno::ENOBUFS | Errno::EINTR) => continue,
            received => received?,
        };
        let mut rest = &room[..length];
        while let Some((message, behind)) = first_message(rest) {
            if let Some(outcome) = message_outcome(message, index) {
                return Ok(Some(outcome));
            }
            rest = behind;
        }
    }
}

fn first_message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
    let message = bytes.get(..length).filter(|_| length >= HEADER)?;
    let behind = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((message, behind))
}

fn message_outcome(message: &[u8], index: u32) -> Option<Outcome> {
    let kind = u16_at(message, 4)?;
    let body = message.get(HEADER..)?;
    match kind {
        NLMSG_ERROR => Some(match u32_at(body, 0)?.cast_signed().saturating_neg() {
            0 => Outcome::Gone,
            errno => Outcome::Refused(Errno::from_raw(errno)),
        }),
        // A bridge that loses a port says so in its own family.
        RTM_DELLINK if body.first() == Some(&0) && u32_at(body, 4) == Some(index) => {
            Some(Outcome::Gone)
        }
        _ => None,
    }
}
