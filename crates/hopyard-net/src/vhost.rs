//! One queue of vhost-net (`drivers/vhost/net.c`) with a program in the place of the guest: what it puts into its ring the kernel
//! writes to a tap, as if a guest had sent it.
//!
//! The ring is virtio's split ring (OASIS virtio 1.2, section 2.7), with this process's own addresses as the guest's.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use nix::sys::eventfd::EventFd;

use crate::error::{Error, Result};

const DEVICE: &str = "/dev/vhost-net";
/// Descriptors of the ring, a power of two.
const RING: u16 = 8;
/// The ring by which a guest sends.
const TRANSMIT: u32 = 1;
/// Bytes of `struct virtio_net_hdr_v1`, which are before each frame and do not reach the tap.
const HEADER: usize = 12;
const ROOM: usize = 2048;
/// `VIRTIO_F_VERSION_1`, and `VHOST_NET_F_VIRTIO_NET_HDR`: vhost takes the header off.
const FEATURES: u64 = 1 << 32 | 1 << 27;
const WRITE: libc::Ioctl = 1 << 30;

/// `_IOW(VHOST_VIRTIO, number, T)`; `_IO` where nothing is handed over.
const fn command<T>(number: libc::Ioctl) -> libc::Ioctl {
    let size = size_of::<T>() as libc::Ioctl;
    let direction = if size > 0 { WRITE } else { 0 };
    direction | size << 16 | 0xaf << 8 | number
}

#[repr(C)]
struct Region {
    guest: u64,
    size: u64,
    user: u64,
    flags: u64,
}

/// `struct vhost_memory` with one region.
#[repr(C)]
struct Memory {
    regions: u32,
    padding: u32,
    region: Region,
}

/// `struct vhost_vring_state`, and with a descriptor for a number `struct vhost_vring_file`.
#[repr(C)]
struct OfRing {
    index: u32,
    value: i32,
}

/// `struct vhost_vring_addr`.
#[repr(C)]
struct Addresses {
    index: u32,
    flags: u32,
    descriptors: u64,
    used: u64,
    available: u64,
    log: u64,
}

#[repr(C)]
#[derive(Default)]
struct Descriptor {
    address: AtomicU64,
    length: AtomicU32,
    flags: AtomicU16,
    next: AtomicU16,
}

/// What both sides read and write, at an address that stays.
#[repr(C, align(4096))]
struct Shared {
    descriptors: [Descriptor; RING as usize],
    available_flags: AtomicU16,
    available_index: AtomicU16,
    available: [AtomicU16; RING as usize],
    /// Where the kernel would say at which frame to wake it.
    _event: AtomicU32,
    used_flags: AtomicU16,
    used_index: AtomicU16,
    /// Number and length of each.
    used: [AtomicU32; 2 * RING as usize],
    frame: [AtomicU8; ROOM],
}

/// A queue of a tap, served by vhost-net for a guest that is this process.
pub struct VhostQueue {
    /// Closed first: then nobody else looks at the memory.
    vhost: File,
    kick: EventFd,
    sent: u16,
    shared: Box<Shared>,
}

impl std::fmt::Debug for VhostQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VhostQueue")
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

impl VhostQueue {
    /// Has an instance of vhost-net serve an attached queue of a tap, which must have no `virtio_net_hdr` of its own.
    ///
    /// # Errors
    /// [`Error::Unsupported`] without `/dev/vhost-net`, [`Error::Denied`] without the right to open it, [`Error::Kernel`] where it takes
    /// the ring or the queue for none.
    pub fn serve(queue: BorrowedFd<'_>) -> Result<Self> {
        let what = format!("serve a queue of a tap by {DEVICE}");
        let vhost = OpenOptions::new().read(true).write(true).open(DEVICE);
        let vhost = vhost.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::Unsupported {
                what: what.clone(),
                feature: "vhost-net".to_owned(),
                remedy: "load module `vhost_net` (kernel option CONFIG_VHOST_NET)".to_owned(),
            },
            _ => Error::from_io(what.clone(), error),
        })?;
        let kick = EventFd::new().map_err(|errno| Error::from_errno(what.clone(), errno))?;
        let this = Self {
            vhost,
            kick,
            sent: 0,
            shared: Box::new(Shared::new()),
        };
        this.set_up(queue)
            .map_err(|error| Error::from_io(what, error))?;
        Ok(this)
    }

    fn set_up(&self, queue: BorrowedFd<'_>) -> io::Result<()> {
        let shared = &*self.shared;
        let address = |at: *const u8| at as u64;
        let memory = Memory {
            regions: 1,
            padding: 0,
            region: Region {
                guest: address(std::ptr::from_ref(shared).cast()),
                size: size_of::<Shared>() as u64,
                user: address(std::ptr::from_ref(shared).cast()),
                flags: 0,
            },
        };
        let addresses = Addresses {
            index: TRANSMIT,
            flags: 0,
            descriptors: address(shared.descriptors.as_ptr().cast()),
            used: address(std::ptr::from_ref(&shared.used_flags).cast()),
            available: address(std::ptr::from_ref(&shared.available_flags).cast()),
            log: 0,
        };
        let of_ring = |value: i32| OfRing {
            index: TRANSMIT,
            value,
        };
        self.call(command::<()>(0x01), &())?;
        self.call(command::<u64>(0x00), &FEATURES)?;
        // Its size is that without the region.
        self.call(command::<u64>(0x03), &memory)?;
        self.call(command::<OfRing>(0x10), &of_ring(i32::from(RING)))?;
        self.call(command::<OfRing>(0x12), &of_ring(0))?;
        self.call(command::<Addresses>(0x11), &addresses)?;
        self.call(
            command::<OfRing>(0x20),
            &of_ring(self.kick.as_fd().as_raw_fd()),
        )?;
        self.call(command::<OfRing>(0x30), &of_ring(queue.as_raw_fd()))
    }

    fn call<T>(&self, number: libc::Ioctl, what: &T) -> io::Result<()> {
        // SAFETY: the descriptor is open, each number is handed the structure of the kernel's header for it, and the memory that
        // some of them name lives as long as the descriptor.
        let answer =
            unsafe { libc::ioctl(self.vhost.as_raw_fd(), number, std::ptr::from_ref(what)) };
        if answer < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Sends a frame as the guest would, and waits for the kernel to have taken it. False where it did not in that time.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a frame of more than 2036 bytes, [`Error::Kernel`] where the kernel cannot be woken.
    pub fn send(&mut self, frame: &[u8], within: Duration) -> Result<bool> {
        let what = "send a frame by vhost-net";
        let shared = &*self.shared;
        if frame.len() > ROOM - HEADER {
            return Err(Error::invalid(what, "it is longer than the buffer"));
        }
        let bytes = std::iter::repeat_n(&0, HEADER).chain(frame);
        for (place, byte) in shared.frame.iter().zip(bytes) {
            place.store(*byte, Ordering::Relaxed);
        }
        let first = &shared.descriptors[0];
        let length = u32::try_from(HEADER + frame.len()).unwrap_or(0);
        first
            .address
            .store(shared.frame.as_ptr() as u64, Ordering::Relaxed);
        first.length.store(length, Ordering::Relaxed);
        shared.available[usize::from(self.sent % RING)].store(0, Ordering::Relaxed);
        self.sent = self.sent.wrapping_add(1);
        shared.available_index.store(self.sent, Ordering::Release);
        fence(Ordering::SeqCst);
        self.kick
            .write(1)
            .map_err(|errno| Error::from_errno(what, errno))?;
        let deadline = Instant::now() + within;
        while shared.used_index.load(Ordering::Acquire) != self.sent {
            if Instant::now() > deadline {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(true)
    }
}

impl Shared {
    fn new() -> Self {
        Self {
            descriptors: Default::default(),
            available_flags: AtomicU16::new(0),
            available_index: AtomicU16::new(0),
            available: Default::default(),
            _event: AtomicU32::new(0),
            used_flags: AtomicU16::new(0),
            used_index: AtomicU16::new(0),
            used: Default::default(),
            frame: [const { AtomicU8::new(0) }; ROOM],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `linux/vhost.h`.
    #[test]
    fn commands_have_the_kernels_numbers() {
        assert_eq!(command::<()>(0x01), 0xaf01);
        assert_eq!(command::<u64>(0x00), 0x4008_af00);
        assert_eq!(command::<u64>(0x03), 0x4008_af03);
        assert_eq!(command::<OfRing>(0x10), 0x4008_af10);
        assert_eq!(command::<Addresses>(0x11), 0x4028_af11);
        assert_eq!(command::<OfRing>(0x30), 0x4008_af30);
    }

    #[test]
    fn the_ring_is_laid_out_as_virtio_has_it() {
        let shared = Shared::new();
        let at = |place: *const u8| place as usize - std::ptr::from_ref(&shared) as usize;
        let descriptors = at(shared.descriptors.as_ptr().cast());
        let available = at(std::ptr::from_ref(&shared.available_flags).cast());
        let used = at(std::ptr::from_ref(&shared.used_flags).cast());
        assert_eq!((descriptors, descriptors % 16), (0, 0));
        assert_eq!(available % 2, 0);
        assert_eq!(at(shared.available.as_ptr().cast()), available + 4);
        assert_eq!(used % 4, 0);
        assert_eq!(at(std::ptr::from_ref(&shared.used_index).cast()), used + 2);
        assert_eq!(at(shared.used.as_ptr().cast()), used + 4);
    }
}
