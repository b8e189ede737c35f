//! Links of eBPF programs to devices: a program runs as long as somebody holds its link, by a descriptor or by a file.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::errno::Errno;

use crate::device_program::{DeviceHook, bpf};
use crate::error::{Error, Result};
use crate::handle::Handle;

/// Of `enum bpf_cmd`, `linux/bpf.h`.
const BPF_OBJ_PIN: libc::c_int = 6;
const BPF_OBJ_GET: libc::c_int = 7;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_LINK_UPDATE: libc::c_int = 29;

/// What these read of `union bpf_attr`.
#[repr(C)]
struct Create {
    program: u32,
    device: u32,
    hook: u32,
    flags: u32,
}

#[repr(C)]
struct Update {
    link: u32,
    program: u32,
    flags: u32,
    last_program: u32,
}

#[repr(C)]
struct File {
    path: u64,
    object: u32,
    flags: u32,
}

/// A program that runs at a device until this value goes and, where it is pinned, its file.
#[derive(Debug)]
pub struct ProgramLink(OwnedFd);

impl Handle {
    /// Has the kernel run a program at a device, behind those that are there, as long as its link is held.
    ///
    /// # Errors
    /// As [`Handle::attach_program`].
    pub fn link_program(
        &self,
        name: &str,
        program: impl AsFd,
        hook: DeviceHook,
    ) -> Result<ProgramLink> {
        let what = format!("run an eBPF program at `{name}`");
        let attributes = Create {
            program: number(&program),
            device: self.index_for(&what, name)?,
            hook: hook as u32,
            flags: 0,
        };
        // The kernel looks for the device in the namespace of who asks.
        let made = self.ns().run(|| {
            // SAFETY: the attributes are those of the command, of which the kernel keeps none.
            unsafe { bpf(BPF_LINK_CREATE, &attributes) }
        })?;
        let made = made.and_then(link);
        made.map_err(|errno| Error::from_errno(what, errno))
    }
}

impl ProgramLink {
    /// Gives the link a file of a BPF file system, which holds it when this value is gone.
    ///
    /// # Errors
    /// [`Error::Kernel`]: `EEXIST` where there is such a file; [`Error::Denied`] where it would not be in a BPF file system.
    pub fn pin(&self, file: &Path) -> Result<()> {
        let what = || format!("keep an eBPF program by the file {}", file.display());
        let path = in_c(file, what)?;
        let attributes = File {
            path: path.as_ptr().addr() as u64,
            object: number(&self.0),
            flags: 0,
        };
        // SAFETY: the attributes are those of the command, and the path lives to its end.
        let done = unsafe { bpf(BPF_OBJ_PIN, &attributes) };
        done.map(drop)
            .map_err(|errno| Error::from_errno(what(), errno))
    }

    /// The link of a file.
    ///
    /// # Errors
    /// [`Error::Kernel`]: `ENOENT` where there is no such file, and others where it is none of a BPF file system.
    pub fn open(file: &Path) -> Result<Self> {
        let what = || format!("open the link {}", file.display());
        let path = in_c(file, what)?;
        let attributes = File {
            path: path.as_ptr().addr() as u64,
            object: 0,
            flags: 0,
        };
        // SAFETY: the attributes are those of the command, and the path lives to its end.
        let opened = unsafe { bpf(BPF_OBJ_GET, &attributes) };
        let opened = opened.and_then(link);
        opened.map_err(|errno| Error::from_errno(what(), errno))
    }

    /// Has the link run another program; no packet sees neither or both. Gives `false` where the device is gone: then nothing runs any more.
    ///
    /// # Errors
    /// [`Error::Kernel`]: the program is of another kind.
    pub fn replace(&self, program: impl AsFd) -> Result<bool> {
        let attributes = Update {
            link: number(&self.0),
            program: number(&program),
            flags: 0,
            last_program: 0,
        };
        // SAFETY: the attributes are those of the command, of which the kernel keeps none.
        match unsafe { bpf(BPF_LINK_UPDATE, &attributes) } {
            Err(Errno::ENOLINK) => Ok(false),
            done => done
                .map(|_| true)
                .map_err(|errno| Error::from_errno("replace the eBPF program of a link", errno)),
        }
    }
}

fn number(descriptor: &impl AsFd) -> u32 {
    descriptor.as_fd().as_raw_fd().cast_unsigned()
}

/// Takes the descriptor that the kernel has just made.
fn link(made: libc::c_long) -> std::result::Result<ProgramLink, Errno> {
    let made = RawFd::try_from(made).map_err(|_| Errno::EOVERFLOW)?;
    // SAFETY: the kernel made it for this call, and nobody else has it.
    Ok(ProgramLink(unsafe { OwnedFd::from_raw_fd(made) }))
}

fn in_c(file: &Path, what: impl Fn() -> String) -> Result<CString> {
    CString::new(file.as_os_str().as_bytes()).map_err(|_| Error::from_errno(what(), Errno::EINVAL))
}
