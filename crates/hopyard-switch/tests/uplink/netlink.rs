//! The kernel's own account of devices, addresses and routes: what it lists, what it announces.

use std::os::fd::{AsRawFd, OwnedFd};

use hopyard_net::NetNs;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send,
    socket,
};

const NLMSG_DONE: u16 = 3;
const RTM_GETADDR: u16 = 22;
const RTM_GETROUTE: u16 = 26;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const HEADER: usize = 16;
/// `RTMGRP_LINK`, and addresses and routes of both families (`linux/rtnetlink.h`).
const GROUPS: u32 = 1 | 0x10 | 0x40 | 0x100 | 0x400;

/// A message: its type and what follows the header.
type Message = (u16, Vec<u8>);

fn open(ns: &NetNs, groups: u32) -> OwnedFd {
    ns.run(|| {
        let fd = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkRoute,
        )
        .unwrap();
        bind(fd.as_raw_fd(), &NetlinkAddr::new(0, groups)).unwrap();
        fd
    })
    .unwrap()
}

/// The messages of one datagram.
fn messages(datagram: &[u8]) -> Vec<Message> {
    let mut found = Vec::new();
    let mut rest = datagram;
    while rest.len() >= HEADER {
        let length = u32::from_ne_bytes(rest[..4].try_into().unwrap()) as usize;
        let kind = u16::from_ne_bytes([rest[4], rest[5]]);
        found.push((kind, rest[HEADER..length].to_vec()));
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

fn dump(ns: &NetNs, kind: u16) -> Vec<Message> {
    let fd = open(ns, 0);
    let mut request = vec![0; HEADER + 12];
    let length = request.len() as u32;
    request[..4].copy_from_slice(&length.to_ne_bytes());
    request[4..6].copy_from_slice(&kind.to_ne_bytes());
    request[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    send(fd.as_raw_fd(), &request, MsgFlags::empty()).unwrap();
    let mut all = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let n = recv(fd.as_raw_fd(), &mut buffer, MsgFlags::empty()).unwrap();
        for message in messages(&buffer[..n]) {
            if message.0 == NLMSG_DONE {
                return all;
            }
            all.push(message);
        }
    }
}

/// Every address and every route of a namespace, in all tables and families, as the kernel says it.
pub(crate) fn addresses_and_routes(ns: &NetNs) -> Vec<Message> {
    let mut all = dump(ns, RTM_GETADDR);
    assert!(all.len() >= 2, "the host has addresses");
    let routes = dump(ns, RTM_GETROUTE);
    assert!(routes.len() >= 4, "the host has routes");
    all.extend(routes);
    all
}

/// Hears what the kernel announces of devices, addresses and routes.
pub(crate) struct Monitor(OwnedFd);

impl Monitor {
    pub(crate) fn open(ns: &NetNs) -> Self {
        Self(open(ns, GROUPS))
    }

    /// All announcements so far.
    pub(crate) fn heard(&self) -> Vec<Message> {
        let mut all = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(n) = recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
            all.extend(messages(&buffer[..n]));
        }
        all
    }
}
