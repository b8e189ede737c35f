//! Frames as they are: a packet socket on one device.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrLike, bind, recv,
    sendto, socket,
};

use crate::{Error, NetNs, Result};

/// Hears the frames of one Ethernet type that come in by a device, and sends by it (packet(7)).
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    device: u32,
    kind: u16,
}

impl PacketSocket {
    /// On a device of a namespace. It never waits.
    ///
    /// # Errors
    /// [`Error::Denied`] without `CAP_NET_RAW`; [`Error::Kernel`] without such a device.
    pub fn open(ns: &NetNs, device: &str, kind: u16) -> Result<Self> {
        let what = || format!("open a packet socket on `{device}`");
        let open = || {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            // Without a protocol it hears nothing until it is bound to its device.
            let none = None::<SockProtocol>;
            let socket = socket(AddressFamily::Packet, SockType::Raw, flags, none)?;
            let device = nix::net::if_::if_nametoindex(device)?;
            bind(
                socket.as_raw_fd(),
                &address(device, kind).ok_or(nix::Error::EINVAL)?,
            )?;
            Ok::<_, nix::Error>((socket, device))
        };
        let (socket, device) = ns
            .run(open)?
            .map_err(|errno| Error::from_errno(what(), errno))?;
        Ok(Self {
            socket,
            device,
            kind,
        })
    }

    /// Sends a whole frame, Ethernet header included.
    ///
    /// # Errors
    /// What sendto(2) says.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        let to = address(self.device, self.kind).ok_or(nix::Error::EINVAL)?;
        sendto(self.socket.as_raw_fd(), frame, &to, MsgFlags::empty())?;
        Ok(())
    }

    /// The next frame that came in, into `room`; its length, or `None` where there is none now.
    ///
    /// # Errors
    /// What recv(2) says.
    pub fn receive(&self, room: &mut [u8]) -> io::Result<Option<usize>> {
        match recv(self.socket.as_raw_fd(), room, MsgFlags::empty()) {
            Ok(length) => Ok(Some(length)),
            Err(nix::Error::EAGAIN) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// `sockaddr_ll`: a device and an Ethernet type.
fn address(device: u32, kind: u16) -> Option<LinkAddr> {
    let raw = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: kind.to_be(),
        sll_ifindex: i32::try_from(device).ok()?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `raw` is a whole sockaddr_ll, and its family says so.
    unsafe { LinkAddr::from_raw((&raw const raw).cast(), Some(size)) }
}
