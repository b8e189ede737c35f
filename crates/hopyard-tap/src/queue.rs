//! A queue: one open file of a device.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::Path;

use hopyard_net::NetNs;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::sys;
use crate::vnet::{VnetHeader, VnetHeaderSize};

/// Whether a queue gets frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Frames reach it.
    Attached,
    /// No frame reaches it. It stays open, counts towards [`MAX_QUEUES`](crate::MAX_QUEUES), and what is written to it
    /// still goes to the kernel.
    Detached,
}

/// A queue of a device; dropping it closes it, and a device that does not persist ends with its last one.
///
/// Frames are whole: each read gives one, each write takes one. They are read and written through a shared
/// reference and from any thread, as the kernel takes care of order.
///
/// # Errors of reading and writing
///
/// | kind or number | meaning |
/// |---|---|
/// | [`WouldBlock`](io::ErrorKind::WouldBlock) | nothing to read, or no room, on a nonblocking queue |
/// | `EBADFD` | the device was deleted |
/// | `EIO` | written to a device that is down |
/// | `EINVAL` | a frame too short, or a header that contradicts it |
/// | `EFBIG` | the frame read does not fit the buffer; its rest is lost ([`Queue::read_frame`] only) |
#[derive(Debug)]
pub struct Queue {
    file: File,
    device: Device,
}

impl Queue {
    pub(crate) fn new(file: File, device: Device) -> Result<Self> {
        let queue = Self { file, device };
        if queue.device.nonblocking() {
            queue.set_nonblocking(true)?;
        }
        Ok(queue)
    }

    /// The device when the queue was opened.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The device with its current name and namespace (`TUNGETDEVNETNS`, Linux 5.2).
    ///
    /// # Errors
    /// [`Error::Gone`]; [`Error::Denied`] without `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`.
    pub fn find_device(&self) -> Result<Device> {
        let what = self.what("follow");
        let failed = |error: io::Error| Error::on_queue(what.clone(), error);
        let ns = sys::device_namespace(&self.file).map_err(failed)?;
        let now = sys::name_flags(&self.file, sys::TUNGETIFF, "", 0).map_err(failed)?;
        let ns = NetNs::open(Path::new(&format!("/proc/self/fd/{}", ns.as_raw_fd())))?;
        let old = &self.device;
        let make = |ns: NetNs| Device::new(ns, &now, old.nonblocking(), old.vnet_header());
        let inside = ns.try_clone()?;
        ns.run(|| make(inside))?
    }

    /// Reads one frame, with its [`VnetHeader`] in front if the device has them, and returns their length. Waits for
    /// one unless the queue is nonblocking. A frame longer than the buffer is truncated silently. With
    /// [`Offloads`](crate::Offloads), the buffer needs [`LARGEST_FRAME`](crate::LARGEST_FRAME) and the header; without,
    /// the MTU and 18 bytes.
    ///
    /// # Errors
    /// See [`Queue`].
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(buffer)
    }

    /// Writes one frame, with its [`VnetHeader`] in front if the device has them. The kernel receives it on the device
    /// with the queue's number recorded (`skb_record_rx_queue`), and remembers that the flow belongs to this queue.
    ///
    /// # Errors
    /// See [`Queue`].
    pub fn write(&self, frame: &[u8]) -> io::Result<usize> {
        (&self.file).write(frame)
    }

    /// Reads one frame and, separately, its header (the default header on a device without). Returns the frame's
    /// length.
    ///
    /// # Errors
    /// See [`Queue`]; [`InvalidData`](io::ErrorKind::InvalidData) for a header with unknown contents.
    pub fn read_frame(&self, frame: &mut [u8]) -> io::Result<(VnetHeader, usize)> {
        let size = self.device.vnet_header();
        let mut head = [0; 12];
        let head = &mut head[..size.map_or(0, VnetHeaderSize::bytes)];
        // Only a frame longer than the buffer reaches this byte; the kernel does not report it otherwise.
        let mut beyond = [0];
        let room = head.len() + frame.len();
        let length = (&self.file).read_vectored(&mut [
            IoSliceMut::new(head),
            IoSliceMut::new(frame),
            IoSliceMut::new(&mut beyond),
        ])?;
        if length > room {
            return Err(io::Error::from_raw_os_error(libc::EFBIG));
        }
        let header = size.map(|size| VnetHeader::parse(head, size)).transpose();
        let header = header.map_err(|bad| io::Error::new(io::ErrorKind::InvalidData, bad))?;
        Ok((header.unwrap_or_default(), length - head.len()))
    }

    /// Writes one frame with a header, which a device without headers does not get.
    ///
    /// # Errors
    /// See [`Queue`].
    pub fn write_frame(&self, header: &VnetHeader, frame: &[u8]) -> io::Result<()> {
        let head = header.emit();
        let size = self.device.vnet_header().map_or(0, VnetHeaderSize::bytes);
        let pieces = [IoSlice::new(&head[..size]), IoSlice::new(frame)];
        (&self.file).write_vectored(&pieces).map(drop)
    }

    /// Sets whether reading and writing wait (`O_NONBLOCK`). It belongs to the open file, so it applies to every
    /// duplicated descriptor.
    ///
    /// # Errors
    /// [`Error::Kernel`].
    pub fn set_nonblocking(&self, on: bool) -> Result<()> {
        sys::set_nonblocking(self.as_fd(), on)
            .map_err(|error| Error::on_queue(self.what("set the waiting of"), error))
    }

    /// Whether it is attached.
    ///
    /// # Errors
    /// [`Error::Gone`].
    pub fn state(&self) -> Result<State> {
        Ok(
            match self.flags(&self.what("read"))? & sys::IFF_DETACH_QUEUE {
                0 => State::Attached,
                _ => State::Detached,
            },
        )
    }

    /// Attaches it again (`IFF_ATTACH_QUEUE`): it becomes the device's last queue, with the highest number.
    ///
    /// # Errors
    /// [`Error::AlreadyAttached`], [`Error::NotMultiQueue`], [`Error::Gone`].
    pub fn attach(&self) -> Result<()> {
        self.set_queue("attach", sys::IFF_ATTACH_QUEUE)
    }

    /// Detaches it (`IFF_DETACH_QUEUE`): no frame reaches it any more, and unread frames in it are lost. The device's
    /// last queue gets its number. If no queue is attached, all frames are dropped, and counted as `tx_dropped`.
    ///
    /// To lose nothing, steer flows elsewhere first ([`Pins`](crate::Pins)), read until
    /// [`WouldBlock`](io::ErrorKind::WouldBlock), then detach.
    ///
    /// # Errors
    /// [`Error::AlreadyDetached`], [`Error::NotMultiQueue`], [`Error::Gone`].
    pub fn detach(&self) -> Result<()> {
        self.set_queue("detach", sys::IFF_DETACH_QUEUE)
    }

    fn set_queue(&self, verb: &str, flag: u16) -> Result<()> {
        sys::name_flags(self.as_fd(), sys::TUNSETQUEUE, "", flag).map_or_else(
            |error| Err(self.refused(self.what(verb), error)),
            |_| Ok(()),
        )
    }

    /// The cause of a refusal: the kernel returns `EINVAL` for everything.
    fn refused(&self, what: String, error: io::Error) -> Error {
        if error.raw_os_error() != Some(libc::EINVAL) {
            return Error::on_queue(what, error);
        }
        match self.flags(&what) {
            Err(gone) => gone,
            Ok(flags) if flags & sys::IFF_MULTI_QUEUE == 0 => Error::NotMultiQueue { what },
            Ok(flags) if flags & sys::IFF_DETACH_QUEUE != 0 => Error::AlreadyDetached { what },
            Ok(_) => Error::AlreadyAttached { what },
        }
    }

    fn flags(&self, what: &str) -> Result<u16> {
        sys::name_flags(self.as_fd(), sys::TUNGETIFF, "", 0)
            .map(|now| now.flags)
            .map_err(|error| Error::on_queue(what, error))
    }

    pub(crate) fn what(&self, verb: &str) -> String {
        format!("{verb} a queue of `{}`", self.device.name())
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for Queue {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl From<Queue> for OwnedFd {
    fn from(queue: Queue) -> Self {
        queue.file.into()
    }
}
