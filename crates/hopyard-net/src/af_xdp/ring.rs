//! Rings of an AF_XDP socket: one end writes values and the number of the next, the other reads them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::errno::Errno;

use super::memory::Memory;

/// A value that the kernel writes or reads; any bytes are one.
pub(super) trait Entry: Copy {}

impl Entry for u64 {}
impl Entry for libc::xdp_desc {}

/// Which ring: its socket option, its place among a socket's mappings, and where its parts are.
pub(super) struct Kind {
    pub(super) option: libc::c_int,
    pub(super) place: libc::off_t,
    pub(super) parts: fn(&libc::xdp_mmap_offsets) -> libc::xdp_ring_offset,
}

/// One ring, of which this process is one end.
#[derive(Debug)]
struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    entries: NonNull<T>,
    size: u32,
    /// The number that this end comes to next.
    at: u32,
    /// Behind the pointers.
    _memory: Memory,
}

// SAFETY: the pointers lead into the ring's own memory.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Entry> Ring<T> {
    /// Asks for a ring of so many values, a power of two, and maps it.
    fn new(socket: BorrowedFd<'_>, kind: &Kind, size: u32) -> io::Result<Self> {
        set_option(socket, kind.option, &size)?;
        let parts = (kind.parts)(&offsets(socket)?);
        let bytes = usize::try_from(parts.desc).unwrap_or(usize::MAX);
        let bytes = bytes.saturating_add(size as usize * size_of::<T>());
        Self::within(Memory::of(socket, bytes, kind.place)?, &parts, size)
    }

    fn within(memory: Memory, parts: &libc::xdp_ring_offset, size: u32) -> io::Result<Self> {
        Ok(Self {
            producer: memory.place(parts.producer, 1)?,
            consumer: memory.place(parts.consumer, 1)?,
            entries: memory.place(parts.desc, size as usize)?,
            size,
            at: 0,
            _memory: memory,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: it is within the ring's memory, which lives as long as this, and is only ever used as an atomic number.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as for the producer.
        unsafe { self.consumer.as_ref() }
    }

    fn entry(&self) -> NonNull<T> {
        let index = (self.at & (self.size - 1)) as usize;
        // SAFETY: an index below the ring's size, of which there are as many entries.
        unsafe { self.entries.add(index) }
    }
}

/// A ring that this process reads.
#[derive(Debug)]
pub(super) struct Incoming<T>(Ring<T>);

impl<T: Entry> Incoming<T> {
    pub(super) fn new(socket: BorrowedFd<'_>, kind: &Kind, size: u32) -> io::Result<Self> {
        Ring::new(socket, kind, size).map(Self)
    }

    /// How many values are there.
    pub(super) fn ready(&self) -> u32 {
        self.0
            .producer()
            .load(Ordering::Acquire)
            .wrapping_sub(self.0.at)
    }

    /// The next one, of those that are [`ready`](Self::ready).
    pub(super) fn take(&mut self) -> T {
        // SAFETY: the kernel has written it before it told the number that `ready` read, and writes there no more before
        // `release`.
        let value = unsafe { self.0.entry().read() };
        self.0.at = self.0.at.wrapping_add(1);
        value
    }

    /// Gives the room of all that were taken back to the kernel.
    pub(super) fn release(&self) {
        self.0.consumer().store(self.0.at, Ordering::Release);
    }
}

/// A ring that this process writes.
#[derive(Debug)]
pub(super) struct Outgoing<T>(Ring<T>);

impl<T: Entry> Outgoing<T> {
    pub(super) fn new(socket: BorrowedFd<'_>, kind: &Kind, size: u32) -> io::Result<Self> {
        Ring::new(socket, kind, size).map(Self)
    }

    /// Values that the kernel has not taken yet.
    pub(super) fn waiting(&self) -> u32 {
        self.0
            .at
            .wrapping_sub(self.0.consumer().load(Ordering::Acquire))
    }

    /// How many more there is room for.
    pub(super) fn room(&self) -> u32 {
        self.0.size.saturating_sub(self.waiting())
    }

    /// Writes the next one, where there is [`room`](Self::room).
    pub(super) fn put(&mut self, value: T) {
        // SAFETY: the kernel has taken what was there, and reads no more before `submit`.
        unsafe { self.0.entry().write(value) };
        self.0.at = self.0.at.wrapping_add(1);
    }

    /// Tells the kernel of all that were written.
    pub(super) fn submit(&self) {
        self.0.producer().store(self.0.at, Ordering::Release);
    }
}

/// Sets an option of an AF_XDP socket.
pub(super) fn set_option<T: Copy>(
    socket: BorrowedFd<'_>,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    let value = (&raw const *value).cast();
    // SAFETY: the value is whole, of the size given, and lives to the end of the call, which only reads it.
    let outcome =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_XDP, option, value, size) };
    Ok(Errno::result(outcome).map(drop)?)
}

/// Where the parts of a socket's rings are.
fn offsets(socket: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    const NONE: libc::xdp_ring_offset = libc::xdp_ring_offset {
        producer: 0,
        consumer: 0,
        desc: 0,
        flags: 0,
    };
    let mut offsets = libc::xdp_mmap_offsets {
        rx: NONE,
        tx: NONE,
        fr: NONE,
        cr: NONE,
    };
    let mut size = size_of_val(&offsets) as libc::socklen_t;
    let into = (&raw mut offsets).cast();
    // SAFETY: the kernel writes at most `size` bytes, which `offsets` has.
    let outcome = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            libc::XDP_MMAP_OFFSETS,
            into,
            &raw mut size,
        )
    };
    Errno::result(outcome)?;
    // Kernels before 5.4 have shorter ones.
    if size as usize != size_of_val(&offsets) {
        return Err(Errno::EOPNOTSUPP.into());
    }
    Ok(offsets)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const SIZE: u32 = 16;

    /// Both ends of a ring that has come to a number.
    fn both_ends(at: u32) -> (Outgoing<u64>, Incoming<u64>) {
        let parts = libc::xdp_ring_offset {
            producer: 0,
            consumer: 64,
            desc: 128,
            flags: 0,
        };
        let memory = || Memory::new(4096).unwrap();
        let written = Ring::within(memory(), &parts, SIZE).unwrap();
        written.producer().store(at, Ordering::Relaxed);
        written.consumer().store(at, Ordering::Relaxed);
        let read = Ring {
            producer: written.producer,
            consumer: written.consumer,
            entries: written.entries,
            size: SIZE,
            at,
            _memory: memory(),
        };
        (Outgoing(Ring { at, ..written }), Incoming(read))
    }

    proptest! {
        /// Numbers begin anew after the largest, and the other end sees nothing before it is told.
        #[test]
        fn values_come_out_as_they_went_in(at in u32::MAX - 300.., steps in vec((0..20_u32, 0..20_u32), 0..40)) {
            let (mut to, mut from) = both_ends(at);
            let (mut there, mut next) = (VecDeque::new(), 0);
            for (puts, takes) in steps {
                let before = from.ready();
                for _ in 0..puts.min(to.room()) {
                    to.put(next);
                    there.push_back(next);
                    next += 1;
                }
                prop_assert_eq!(from.ready(), before);
                to.submit();
                prop_assert_eq!(from.ready() as usize, there.len());
                for _ in 0..takes.min(from.ready()) {
                    prop_assert_eq!(Some(from.take()), there.pop_front());
                }
                from.release();
                prop_assert_eq!(to.waiting() as usize, there.len());
                prop_assert_eq!(to.room() as usize, SIZE as usize - there.len());
            }
        }
    }

    #[test]
    fn a_ring_does_not_reach_beyond_its_memory() {
        let parts = |producer, desc| libc::xdp_ring_offset {
            producer,
            consumer: 64,
            desc,
            flags: 0,
        };
        let ring = |parts| Ring::<u64>::within(Memory::new(256).unwrap(), &parts, SIZE);
        assert!(ring(parts(0, 128)).is_ok());
        for wrong in [
            parts(0, 136),
            parts(2, 128),
            parts(256, 128),
            parts(0, u64::MAX),
        ] {
            assert_eq!(ring(wrong).unwrap_err().raw_os_error(), Some(libc::EFAULT));
        }
    }
}
