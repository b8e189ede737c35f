//! Memory that a process and the kernel share.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};

use nix::errno::Errno;

/// A mapping of its own, which ends with this value.
#[derive(Debug)]
pub(super) struct Memory {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is nobody else's in this process; who uses it from several threads has to be careful itself.
unsafe impl Send for Memory {}

impl Memory {
    /// New memory, filled with zeroes.
    pub(super) fn new(bytes: usize) -> io::Result<Self> {
        Self::map(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// What the kernel has at a place of a descriptor.
    pub(super) fn of(fd: BorrowedFd<'_>, bytes: usize, place: libc::off_t) -> io::Result<Self> {
        Self::map(
            bytes,
            libc::MAP_SHARED | libc::MAP_POPULATE,
            fd.as_raw_fd(),
            place,
        )
    }

    fn map(
        bytes: usize,
        flags: libc::c_int,
        fd: libc::c_int,
        place: libc::off_t,
    ) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a mapping wherever there is room takes no memory from anybody.
        let at = unsafe { libc::mmap(null_mut(), bytes, access, flags, fd, place) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let at = NonNull::new(at.cast::<u8>()).ok_or(Errno::EFAULT)?;
        Ok(Self { at, bytes })
    }

    pub(super) fn address(&self) -> u64 {
        self.at.as_ptr() as u64
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A place in it that can hold so many values.
    ///
    /// # Errors
    /// They would be beyond its end, or not where such a value may be.
    pub(super) fn place<T>(&self, offset: u64, count: usize) -> io::Result<NonNull<T>> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = size_of::<T>()
            .checked_mul(count)
            .and_then(|size| size.checked_add(offset));
        if end.is_none_or(|end| end > self.bytes) || offset % align_of::<T>() != 0 {
            return Err(Errno::EFAULT.into());
        }
        // SAFETY: the place is within the mapping, as was just checked.
        let place = unsafe { self.at.add(offset) };
        Ok(place.cast())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and nobody has a reference into it that outlives this value.
        let _ = unsafe { libc::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}
