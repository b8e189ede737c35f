//! Packet sockets: what reached a party's stack, and how.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use hopyard_net::Handle;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

use crate::world;

/// A frame that is to come has come by then, and one that must not come would have.
const QUIET: Duration = Duration::from_millis(30);

/// Hears one Ethernet type at one device, and sends there.
pub(crate) struct Ear(OwnedFd);

impl Ear {
    pub(crate) fn open(handle: &Handle, device: &str, kind: u16) -> Self {
        let open = || {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let any = None::<SockProtocol>;
            let fd = socket(AddressFamily::Packet, SockType::Raw, flags, any).unwrap();
            world::bind_packet(&fd, device, kind);
            fd
        };
        Self(handle.ns().run(open).unwrap())
    }

    /// Hands a frame to the device.
    pub(crate) fn send(&self, frame: &[u8]) {
        assert_eq!(self.try_send(frame), Ok(frame.len()));
    }

    /// As [`Ear::send`], with what the kernel says to it.
    pub(crate) fn try_send(&self, frame: &[u8]) -> nix::Result<usize> {
        send(self.0.as_raw_fd(), frame, MsgFlags::empty())
    }

    /// The frames heard since the last call.
    pub(crate) fn heard(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let mut deadline = Instant::now() + QUIET;
        loop {
            // Before the look: the last one begins when the while is over, and finds nothing.
            let looked = Instant::now();
            while let Some(frame) = self.one() {
                all.push(frame);
                deadline = Instant::now() + QUIET;
            }
            if looked >= deadline {
                return all;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn one(&self) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 70_000];
        let n = recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::empty()).ok()?;
        buffer.truncate(n);
        Some(buffer)
    }
}

/// The names of those that heard something, each as often as it did. All listen at once, for each waits a
/// while for what must not come.
pub(crate) fn who<'a>(ears: &[(&'a str, &Ear)]) -> Vec<&'a str> {
    std::thread::scope(|scope| {
        let listening: Vec<_> = ears
            .iter()
            .map(|(name, ear)| (*name, scope.spawn(|| ear.heard().len())))
            .collect();
        let times = |(name, ear): (&'a str, std::thread::ScopedJoinHandle<'_, usize>)| {
            std::iter::repeat_n(name, ear.join().unwrap())
        };
        listening.into_iter().flat_map(times).collect()
    })
}

/// `PACKET_VNET_HDR` (`linux/if_packet.h`): each frame comes behind a header that tells its offloads.
const PACKET_VNET_HDR: libc::c_int = 15;
/// Bytes of that header (`struct virtio_net_hdr`).
const VNET_HEADER: usize = 10;
/// The checksum is partial: to be finished by whoever puts the frame on a real wire.
const NEEDS_CHECKSUM: u8 = 1;

/// How the stack saw a packet.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) length: usize,
    pub(crate) partial_checksum: bool,
    /// Payload of each segment that the packet stands for; 0: it stands for itself.
    pub(crate) segment: u16,
}

/// Hears packets with their offloads.
pub(crate) struct Offloads(pub(crate) Ear);

impl Offloads {
    pub(crate) fn open(handle: &Handle, device: &str, kind: u16) -> Self {
        let ear = Ear::open(handle, device, kind);
        let on: libc::c_int = 1;
        let size = size_of_val(&on) as libc::socklen_t;
        // SAFETY: the descriptor is open, and `on` is a whole c_int of the size told.
        let done = unsafe {
            libc::setsockopt(
                ear.0.as_raw_fd(),
                libc::SOL_PACKET,
                PACKET_VNET_HDR,
                (&raw const on).cast(),
                size,
            )
        };
        assert_eq!(done, 0);
        Self(ear)
    }

    /// What waits in the socket, which keeps the first ones when it is full.
    pub(crate) fn heard(&self) -> Vec<Seen> {
        let mut all = Vec::new();
        while let Some(bytes) = self.0.one() {
            all.push(Seen {
                length: bytes.len() - VNET_HEADER,
                partial_checksum: bytes[0] & NEEDS_CHECKSUM != 0,
                segment: u16::from_le_bytes([bytes[4], bytes[5]]),
            });
        }
        all
    }
}
