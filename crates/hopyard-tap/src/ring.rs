//! An io_uring of one worker: multishot reads, and writes from the buffers that they filled.
//!
//! A buffer belongs to the kernel until a read fills it, then to the worker until it gives the buffer back.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue};

/// The only group of buffers.
const GROUP: u16 = 0;
/// Instead of a file position, which these files do not have.
const NO_OFFSET: u64 = u64::MAX;
/// Requests that can be submitted at once.
const ENTRIES: u32 = 256;

/// The completion of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// A frame was read from a port into a buffer.
    Read {
        port: usize,
        buffer: u16,
        length: usize,
    },
    /// Reading from a port ended and must be requested again; `gone` if the device does not exist any more.
    ReadEnded { port: usize, gone: bool },
    /// A buffer was written to a port; the error is a number of `errno(3)`.
    Written {
        port: usize,
        buffer: u16,
        error: Option<i32>,
    },
    /// A port accepts frames again.
    Writable { port: usize },
    /// A watched descriptor is ready.
    Watched,
    /// A completion without information.
    Nothing,
}

/// The identity of a request, in 64 bits: kind, port, buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Read,
    Write,
    Writable,
    Watch,
    Give,
}

const KINDS: [Kind; 5] = [
    Kind::Read,
    Kind::Write,
    Kind::Writable,
    Kind::Watch,
    Kind::Give,
];

fn tag(kind: Kind, port: usize, buffer: u16) -> u64 {
    (kind as u64) << 48 | (port as u64) << 16 | u64::from(buffer)
}

fn untag(tag: u64) -> (Option<Kind>, usize, u16) {
    let port = (tag >> 16) as u32 as usize;
    (KINDS.get((tag >> 48) as usize).copied(), port, tag as u16)
}

pub(crate) struct Ring {
    ring: IoUring,
    /// All buffers in a row; never moved or resized.
    memory: Vec<u8>,
    /// Length of each buffer.
    size: usize,
    /// By buffer: the pieces of the frame that begins in it, while it is being written.
    pieces: Vec<Vec<libc::iovec>>,
}

impl Ring {
    /// With this many buffers of a size, all owned by the kernel.
    pub(crate) fn new(buffers: u16, size: usize) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            // The kernel interrupts no task for completions, and sets a flag instead.
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .build(ENTRIES)?;
        let mut known = Probe::new();
        ring.submitter().register_probe(&mut known)?;
        if !known.is_supported(opcode::ReadMulti::CODE) {
            let why = "this kernel's io_uring has no multishot reads";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let memory = vec![0; usize::from(buffers) * size];
        let mut ring = Self {
            ring,
            memory,
            size,
            pieces: vec![Vec::new(); usize::from(buffers)],
        };
        ring.give(0, buffers);
        Ok(ring)
    }

    /// Reads frames from a port until it is cancelled (Linux 6.7).
    pub(crate) fn read(&mut self, port: usize, fd: RawFd) {
        let read = opcode::ReadMulti::new(Fd(fd), 0, GROUP).offset(NO_OFFSET);
        self.push(&read.build().user_data(tag(Kind::Read, port, 0)));
    }

    /// Writes a frame to a port, and never waits for it. Its pieces are parts of buffers, in order; none of the buffers
    /// is given back or written again before the write is complete.
    pub(crate) fn write(
        &mut self,
        port: usize,
        fd: RawFd,
        first: u16,
        pieces: impl Iterator<Item = (u16, Range<usize>)>,
    ) {
        let mut vector = std::mem::take(&mut self.pieces[usize::from(first)]);
        vector.clear();
        vector.extend(pieces.map(|(buffer, part)| {
            let bytes = &self.frame(buffer, part.end)[part.start..];
            libc::iovec {
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: bytes.len(),
            }
        }));
        let write = match vector.as_slice() {
            [one] => opcode::Write::new(Fd(fd), one.iov_base.cast(), one.iov_len as u32)
                .offset(NO_OFFSET)
                .rw_flags(libc::RWF_NOWAIT)
                .build(),
            many => opcode::Writev::new(Fd(fd), many.as_ptr(), many.len() as u32)
                .offset(NO_OFFSET)
                .rw_flags(libc::RWF_NOWAIT)
                .build(),
        };
        self.pieces[usize::from(first)] = vector;
        self.push(&write.user_data(tag(Kind::Write, port, first)));
    }

    /// Reports when a port accepts frames again.
    pub(crate) fn writable(&mut self, port: usize, fd: RawFd) {
        let poll = opcode::PollAdd::new(Fd(fd), libc::POLLOUT as u32);
        self.push(&poll.build().user_data(tag(Kind::Writable, port, 0)));
    }

    /// Reports when a descriptor can be read or hangs up.
    pub(crate) fn watch(&mut self, fd: RawFd) {
        let poll = opcode::PollAdd::new(Fd(fd), libc::POLLIN as u32);
        self.push(&poll.build().user_data(tag(Kind::Watch, 0, 0)));
    }

    /// Gives a buffer back.
    pub(crate) fn give_back(&mut self, buffer: u16) {
        self.give(buffer, 1);
    }

    fn give(&mut self, first: u16, count: u16) {
        let start = usize::from(first) * self.size;
        let memory = self.memory[start..].as_mut_ptr();
        let give = opcode::ProvideBuffers::new(memory, self.size as i32, count, GROUP, first);
        let quiet = squeue::Flags::SKIP_SUCCESS;
        self.push(
            &give
                .build()
                .flags(quiet)
                .user_data(tag(Kind::Give, 0, first)),
        );
    }

    /// The frame that was read into a buffer.
    pub(crate) fn frame(&self, buffer: u16, length: usize) -> &[u8] {
        let start = usize::from(buffer) * self.size;
        &self.memory[start..start + length]
    }

    /// The same, mutable.
    pub(crate) fn frame_mut(&mut self, buffer: u16, length: usize) -> &mut [u8] {
        let start = usize::from(buffer) * self.size;
        &mut self.memory[start..start + length]
    }

    fn push(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: buffers of requests are in `memory`, and lists of them in `pieces`. Both live and do not move
            // until all requests are cancelled (`drop`). Callers keep a descriptor open as long as the ring.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return;
            }
            // The queue is full, so submit its contents first. The kernel takes all, or is briefly out of memory.
            let _ = self.ring.submit();
        }
    }

    /// Submits all requests, and lets the kernel complete what it can.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        self.ring.submit().map(drop)
    }

    /// Whether there is no completion, as far as can be seen without a system call.
    pub(crate) fn is_idle(&mut self) -> bool {
        self.ring.completion().is_empty() && !self.ring.submission().taskrun()
    }

    /// Whether it has nothing to do at all: no completion, and no request to submit.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let is_idle = self.is_idle();
        let requests = self.ring.submission();
        // Completions beyond the room for them come with the next system call only.
        is_idle && requests.is_empty() && !requests.cq_overflow()
    }

    /// A descriptor that can be read while there are completions.
    pub(crate) fn fd(&self) -> RawFd {
        self.ring.as_raw_fd()
    }

    /// Waits for a completion.
    pub(crate) fn wait(&mut self, limit: Option<Duration>) {
        let Some(limit) = limit else {
            // A signal is not an error: the caller checks again.
            let _ = self.ring.submit_and_wait(1);
            return;
        };
        let limit = Timespec::from(limit);
        let args = SubmitArgs::new().timespec(&limit);
        // Neither is a timeout.
        let _ = self.ring.submitter().submit_with_args(1, &args);
    }

    /// Takes completions in their order.
    pub(crate) fn take(&mut self, done: &mut Vec<Done>) {
        for entry in self.ring.completion() {
            let (kind, port, buffer) = untag(entry.user_data());
            match kind {
                Some(Kind::Read) => take_read(&entry, port, done),
                Some(Kind::Write) => done.push(Done::Written {
                    port,
                    buffer,
                    error: (entry.result() < 0).then(|| -entry.result()),
                }),
                Some(Kind::Writable) => done.push(Done::Writable { port }),
                Some(Kind::Watch) => done.push(Done::Watched),
                Some(Kind::Give) | None => done.push(Done::Nothing),
            }
        }
    }
}

fn take_read(entry: &cqueue::Entry, port: usize, done: &mut Vec<Done>) {
    let length = usize::try_from(entry.result());
    if let (Ok(length), Some(buffer)) = (length, cqueue::buffer_select(entry.flags())) {
        done.push(Done::Read {
            port,
            buffer,
            length,
        });
    }
    if !cqueue::more(entry.flags()) {
        let gone = is_gone(entry.result());
        done.push(Done::ReadEnded { port, gone });
    }
}

/// Whether a read ended because its device was deleted (`tun_chr_read_iter`, `tun_ring_recv`, `drivers/net/tun.c`), or its
/// descriptor is not one. Reads also end without buffers (`ENOBUFS`) or memory, and can then be requested again.
fn is_gone(result: i32) -> bool {
    matches!(-result, libc::EBADFD | libc::EBADF | libc::EFAULT)
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel must not write to buffers after they are freed. This fails if there is nothing to cancel.
        let all = CancelBuilder::any();
        let _ = self.ring.submitter().register_sync_cancel(None, all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_can_be_requested_again_does_not_mean_that_the_device_is_gone() {
        for error in [libc::EBADFD, libc::EBADF, libc::EFAULT] {
            assert!(is_gone(-error), "{error}");
        }
        for error in [libc::ENOBUFS, libc::ENOMEM, libc::EAGAIN, libc::EINTR] {
            assert!(!is_gone(-error), "{error}");
        }
        assert!(!is_gone(0) && !is_gone(60));
    }

    #[test]
    fn tags_read_back() {
        for kind in KINDS {
            let (back, port, buffer) = untag(tag(kind, 1023, 65_535));
            assert_eq!((back, port, buffer), (Some(kind), 1023, 65_535));
        }
        assert_eq!(untag(u64::MAX).0, None);
    }
}
