//! What the kernel announces of the devices, addresses and routes of a namespace.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

use crate::attrs::{u16_at, u32_at};
use crate::link::read;
use crate::{Error, Link, NetNs, Result};

/// `RTMGRP_LINK`, and addresses and routes of both families (`linux/rtnetlink.h`).
const GROUPS: u32 = 1 | 0x10 | 0x40 | 0x100 | 0x400;

/// `struct nlmsghdr` before what a message says, and the type of one about a device (`linux/rtnetlink.h`).
const HEADER: usize = 16;
const NEW_LINK: u16 = 16;

/// What the kernel announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// A device that is new or another than it was, as it is now.
    Link(Box<Link>),
    /// Anything else: a device that went, an address, a route; or announcements that were lost for want of room.
    Other,
}

/// Hears announcements from when it was opened.
#[derive(Debug)]
pub struct Monitor(OwnedFd);

impl Monitor {
    /// Of a namespace.
    ///
    /// # Errors
    /// [`Error::Denied`], [`Error::Kernel`].
    pub fn open(ns: &NetNs) -> Result<Self> {
        let open = || {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let route = SockProtocol::NetlinkRoute;
            let fd = socket(AddressFamily::Netlink, SockType::Raw, flags, route)?;
            bind(fd.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
            Ok::<_, nix::Error>(fd)
        };
        let what = "listen to what the kernel announces of devices";
        let opened = ns.run(open)?;
        opened
            .map(Self)
            .map_err(|errno| Error::from_errno(what, errno))
    }

    /// What was announced since the last call.
    #[must_use]
    pub fn heard(&self) -> Vec<Heard> {
        let mut room = [0; 8192];
        let mut heard = Vec::new();
        loop {
            match recv(self.0.as_raw_fd(), &mut room, MsgFlags::empty()) {
                Err(nix::Error::EAGAIN) => return heard,
                Ok(length) => heard.push(of_message(&room[..length])),
                Err(nix::Error::ENOBUFS) => heard.push(Heard::Other),
                Err(_) => {
                    heard.push(Heard::Other);
                    return heard;
                }
            }
        }
    }
}

/// The kernel puts each announcement into a datagram of its own.
fn of_message(datagram: &[u8]) -> Heard {
    let length = u32_at(datagram, 0).map_or(0, |length| length as usize);
    match (u16_at(datagram, 4), datagram.get(HEADER..length)) {
        (Some(NEW_LINK), Some(said)) => Heard::Link(Box::new(read::parse(said))),
        _ => Heard::Other,
    }
}
