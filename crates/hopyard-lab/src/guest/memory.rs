//! Files in memory, which end with this process, for QEMU to open.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use nix::sys::memfd::{MFdFlags, memfd_create};

/// Under which name another process of the same user can open an open file of this one.
pub(super) fn open_name(file: &File) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

/// A file in memory.
pub(super) fn file_in_memory(name: &str) -> io::Result<File> {
    Ok(memfd_create(name, MFdFlags::MFD_CLOEXEC)?.into())
}
