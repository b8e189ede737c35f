//! What the kernel announces of the devices, addresses and routes of a namespace.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

use crate::{Error, NetNs, Result};

/// `RTMGRP_LINK`, and addresses and routes of both families (`linux/rtnetlink.h`).
const GROUPS: u32 = 1 | 0x10 | 0x40 | 0x100 | 0x400;

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

    /// How many datagrams of announcements came since the last call; one that was lost for want of room
    /// counts too.
    #[must_use]
    pub fn heard(&self) -> usize {
        let mut room = [0; 8192];
        let mut heard = 0;
        loop {
            match recv(self.0.as_raw_fd(), &mut room, MsgFlags::empty()) {
                Err(nix::Error::EAGAIN) => return heard,
                Ok(_) | Err(nix::Error::ENOBUFS) => heard += 1,
                Err(_) => return heard + 1,
            }
        }
    }
}
