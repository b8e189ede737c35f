//! AF_XDP sockets in copy mode: two devices whose frames a program passes on (`Documentation/networking/af_xdp.rst`).
//!
//! Both sockets share their memory, so a frame that one device gave is sent by the other from where it lies. The kernel copies
//! it into that memory and out of it again.

mod memory;
mod ring;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use self::memory::Memory;
use self::ring::{Incoming, Kind, Outgoing, set_option};
use crate::error::{Error, Result};
use crate::handle::Handle;

/// `linux/socket.h`; not every C library has it.
const AF_XDP: libc::c_int = 44;
/// Bytes of a frame's place: XDP gives what fits into a page.
const FRAME: usize = 4096;
/// Places of each device, and values of each of its rings; a power of two.
const FRAMES: u32 = 2048;
/// Frames passed on before the kernel is told of them: as many as it takes in one call (`TX_BATCH_SIZE`).
const BATCH: u32 = 32;
/// The only queue of a device.
const QUEUE: u32 = 0;

const RX: Kind = Kind {
    option: libc::XDP_RX_RING,
    place: libc::XDP_PGOFF_RX_RING,
    parts: |offsets| offsets.rx,
};
const TX: Kind = Kind {
    option: libc::XDP_TX_RING,
    place: libc::XDP_PGOFF_TX_RING,
    parts: |offsets| offsets.tx,
};
const FILL: Kind = Kind {
    option: libc::XDP_UMEM_FILL_RING,
    place: libc::XDP_UMEM_PGOFF_FILL_RING as libc::off_t,
    parts: |offsets| offsets.fr,
};
const COMPLETION: Kind = Kind {
    option: libc::XDP_UMEM_COMPLETION_RING,
    place: libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t,
    parts: |offsets| offsets.cr,
};

/// What was passed on from one device to the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PassedOn {
    /// Frames.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A socket on the first queue of a device.
struct Port {
    received: Incoming<libc::xdp_desc>,
    to_send: Outgoing<libc::xdp_desc>,
    /// Places that the kernel may write frames to.
    free: Outgoing<u64>,
    /// Places whose frames were sent.
    sent: Incoming<u64>,
    /// After its rings, which are dropped first.
    socket: OwnedFd,
}

/// Two devices whose frames go to each other.
pub struct XdpPair {
    ports: [Port; 2],
    /// After the sockets that use it.
    _frames: Memory,
}

impl XdpPair {
    /// Opens sockets on two devices of a namespace. They get frames once an XDP program of each device hands them over.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such device; [`Error::Unsupported`] where the kernel has no AF_XDP sockets;
    /// [`Error::Denied`] without `CAP_NET_RAW`.
    pub fn open(handle: &Handle, devices: [&str; 2]) -> Result<Self> {
        let what = format!(
            "open AF_XDP sockets on `{}` and `{}`",
            devices[0], devices[1]
        );
        let [one, other] = devices.map(|device| handle.index_for(&what, device));
        let indices = [one?, other?];
        let opened = handle.ns().run(|| Self::open_here(indices))?;
        opened.map_err(|error| match error.raw_os_error() {
            Some(libc::EAFNOSUPPORT | libc::EOPNOTSUPP) => Error::Unsupported {
                what,
                feature: "AF_XDP sockets".to_owned(),
                remedy: "use Linux 5.10 or newer with CONFIG_XDP_SOCKETS".to_owned(),
            },
            _ => Error::from_io(what, error),
        })
    }

    fn open_here([one, other]: [u32; 2]) -> io::Result<Self> {
        let frames = Memory::new(2 * FRAMES as usize * FRAME)?;
        let first = socket()?;
        let memory = libc::xdp_umem_reg_v1 {
            addr: frames.address(),
            len: frames.bytes() as u64,
            chunk_size: FRAME as u32,
            headroom: 0,
        };
        set_option(first.as_fd(), libc::XDP_UMEM_REG, &memory)?;
        let first = Port::new(first)?;
        bind(&first.socket, one, None)?;
        let second = Port::new(socket()?)?;
        bind(&second.socket, other, Some(&first.socket))?;
        let mut pair = Self {
            ports: [first, second],
            _frames: frames,
        };
        let mut place = 0;
        for port in &mut pair.ports {
            for _ in 0..FRAMES {
                port.free.put(place);
                place += FRAME as u64;
            }
            port.free.submit();
        }
        Ok(pair)
    }

    /// The sockets, in the order of their devices, for maps of XDP programs.
    #[must_use]
    pub fn sockets(&self) -> [BorrowedFd<'_>; 2] {
        self.ports.each_ref().map(|port| port.socket.as_fd())
    }

    /// Passes on what is there, a batch at most each way: from the first device to the second, and back.
    ///
    /// # Errors
    /// [`Error::Kernel`]: a device went down, or is gone.
    pub fn pass_on(&mut self) -> Result<[PassedOn; 2]> {
        let [one, other] = &mut self.ports;
        let passed = pass(one, other).and_then(|there| Ok([there, pass(other, one)?]));
        passed.map_err(|error| Error::from_io("pass frames on by AF_XDP", error))
    }

    /// Waits until a device has a frame.
    ///
    /// # Errors
    /// [`Error::Kernel`], as `poll(2)`.
    pub fn wait(&self) -> Result<()> {
        let [one, other] = self.sockets();
        let mut sockets = [one, other].map(|socket| PollFd::new(socket, PollFlags::POLLIN));
        match poll(&mut sockets, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(Error::from_errno(
                "wait for frames of AF_XDP sockets",
                errno,
            )),
        }
    }
}

impl Port {
    fn new(socket: OwnedFd) -> io::Result<Self> {
        let fd = socket.as_fd();
        Ok(Self {
            received: Incoming::new(fd, &RX, FRAMES)?,
            to_send: Outgoing::new(fd, &TX, FRAMES)?,
            free: Outgoing::new(fd, &FILL, FRAMES)?,
            sent: Incoming::new(fd, &COMPLETION, FRAMES)?,
            socket,
        })
    }
}

/// Passes on what `from` has received, a batch at most and as far as `to` has room, after giving back the places whose frames were
/// sent. Under a flood there is always more: the other direction has its turn, and the caller counts.
fn pass(from: &mut Port, to: &mut Port) -> io::Result<PassedOn> {
    give_back(from, to);
    let mut passed = PassedOn::default();
    let count = from.received.ready().min(to.to_send.room()).min(BATCH);
    if count == 0 {
        return Ok(passed);
    }
    for _ in 0..count {
        let frame = from.received.take();
        passed.packets += 1;
        passed.bytes += u64::from(frame.len);
        to.to_send.put(libc::xdp_desc {
            options: 0,
            ..frame
        });
    }
    from.received.release();
    to.to_send.submit();
    send(to)?;
    Ok(passed)
}

/// Frames that `to` has sent lay in places of `from`.
fn give_back(from: &mut Port, to: &mut Port) {
    let count = to.sent.ready();
    for _ in 0..count {
        let frame = to.sent.take();
        from.free.put(frame & !(FRAME as u64 - 1));
    }
    if count > 0 {
        to.sent.release();
        from.free.submit();
    }
}

/// Has the kernel send what was given to it. In copy mode it does so within the call.
fn send(port: &Port) -> io::Result<()> {
    let socket = port.socket.as_raw_fd();
    let call = || {
        // SAFETY: no bytes are given, and none are read.
        let outcome = unsafe { libc::sendto(socket, null(), 0, libc::MSG_DONTWAIT, null(), 0) };
        Errno::result(outcome).map(drop)
    };
    send_all(|| port.to_send.waiting(), call)
}

/// Calls until no frame waits, by what each call ends with (`__xsk_generic_xmit`).
fn send_all(
    waiting: impl Fn() -> u32,
    mut call: impl FnMut() -> nix::Result<()>,
) -> io::Result<()> {
    let mut dropped = 0;
    while waiting() > 0 {
        match call() {
            // A call takes a batch at most, and less where the device is busy.
            Ok(()) | Err(Errno::EAGAIN | Errno::EINTR) => {}
            // The device dropped a frame. It has left the ring, and those after it are still to be sent.
            Err(Errno::EBUSY) if dropped < FRAMES => dropped += 1,
            // There is no memory: what is left goes with the next frames.
            Err(Errno::ENOBUFS | Errno::EBUSY) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: makes a descriptor, and touches no memory.
    let fd = unsafe { libc::socket(AF_XDP, kind, 0) };
    let fd = Errno::result(fd)?;
    // SAFETY: it was just made, and is nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Binds a socket to a device, with memory of its own or that of another socket.
fn bind(socket: &OwnedFd, device: u32, shared: Option<&OwnedFd>) -> io::Result<()> {
    let flags = match shared {
        Some(_) => libc::XDP_SHARED_UMEM,
        None => libc::XDP_COPY,
    };
    let address = libc::sockaddr_xdp {
        sxdp_family: AF_XDP as u16,
        sxdp_flags: flags,
        sxdp_ifindex: device,
        sxdp_queue_id: QUEUE,
        sxdp_shared_umem_fd: shared.map_or(0, |fd| fd.as_raw_fd().cast_unsigned()),
    };
    let size = size_of_val(&address) as libc::socklen_t;
    let address = (&raw const address).cast();
    // SAFETY: the address is whole, of the size given, and lives to the end of the call, which only reads it.
    let outcome = unsafe { libc::bind(socket.as_raw_fd(), address, size) };
    Ok(Errno::result(outcome).map(drop)?)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// How many of a batch of frames are left by calls that end so, each of which takes one.
    fn left(end: Errno) -> io::Result<u32> {
        let frames = Cell::new(BATCH);
        let call = || {
            frames.set(frames.get() - 1);
            Err(end)
        };
        send_all(|| frames.get(), call)?;
        Ok(frames.get())
    }

    #[test]
    fn a_frame_that_the_device_drops_does_not_hold_up_those_after_it() {
        for end in [Errno::EBUSY, Errno::EAGAIN, Errno::EINTR] {
            assert_eq!(left(end).unwrap(), 0, "{end}");
        }
        assert_eq!(left(Errno::ENOBUFS).unwrap(), BATCH - 1);
        let error = left(Errno::ENETDOWN).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENETDOWN));
    }

    #[test]
    fn a_device_that_stays_busy_does_not_keep_the_loop() {
        let calls = Cell::new(0);
        let call = || {
            calls.set(calls.get() + 1);
            Err(Errno::EBUSY)
        };
        send_all(|| 1, call).unwrap();
        assert_eq!(calls.get(), FRAMES + 1);
    }
}
