//! Files and directories that root makes and removes in places whose names other users know (`/run/hopyard*`, the BPF
//! file system, control groups).
//!
//! `std::fs` follows symbolic links in the directories above its object. Whoever can write to one of those directories
//! chooses then which file root removes. The functions here follow no link anywhere in a path (`openat2(2)`,
//! Linux 5.6). A path that a user typed may have links: resolve it first (`std::fs::canonicalize`).

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::mount::{MntFlags, umount2};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};

use crate::directories::retry;

mod lock;

pub use lock::Lock;

/// What group and others must not have of a directory.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// `S_ISVTX`: in such a directory nobody can rename or remove what others own.
const STICKY: u32 = 0o1000;
/// How deep [`remove_tree`] goes: each level takes a descriptor.
const DEEPEST: usize = 64;

/// Makes a directory, and those above it that are missing, with this mode, unless it is there. Checks all of them as
/// [`check_directory`] does, before anything is made in them. Another process may remove one of them meanwhile.
///
/// # Errors
/// It cannot be made; somebody else could change what is in it.
pub fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    retry(|| walk(path, Some(mode)))
}

/// Checks that nobody but root and the caller can put anything into a directory, or another directory in its place: it
/// and those above it but `/` belong to root or the caller, none is a symbolic link, and none is writable by group or
/// others. Those above it may be writable where the sticky bit keeps others from renaming what is not theirs.
///
/// # Errors
/// `NotFound`; or an error that names the directory, what is wrong with it, and the way out.
pub fn check_directory(path: &Path) -> io::Result<()> {
    walk(path, None)
}

/// Removes a file, a socket or a symbolic link, not what the link leads to.
///
/// # Errors
/// As `unlink(2)`; an error that says so where a directory above is a symbolic link.
pub fn remove_file(path: &Path) -> io::Result<()> {
    let (above, name) = parent(path)?;
    Ok(unlinkat(&above, name, UnlinkatFlags::NoRemoveDir)?)
}

/// Takes off what is mounted on a file.
///
/// # Errors
/// As `umount2(2)`; an error that says so where a directory above is a symbolic link.
pub(crate) fn unmount(path: &Path) -> io::Result<()> {
    let (above, name) = parent(path)?;
    let inside = PathBuf::from(format!("/proc/self/fd/{}", above.as_raw_fd())).join(name);
    Ok(umount2(
        &inside,
        MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW,
    )?)
}

/// Removes an empty directory.
///
/// # Errors
/// As `rmdir(2)`; an error that says so where a directory above is a symbolic link.
pub fn remove_directory(path: &Path) -> io::Result<()> {
    let (above, name) = parent(path)?;
    Ok(unlinkat(&above, name, UnlinkatFlags::RemoveDir)?)
}

/// Removes a directory with all that is in it. Removes symbolic links in it, not what they lead to; leaves alone what is
/// mounted below it.
///
/// # Errors
/// As `unlink(2)` and `rmdir(2)`; an error that says so where the directory or one above it is a symbolic link, and
/// where something is mounted on a directory below. What was removed before is gone then.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let (above, name) = parent(path)?;
    empty(above.as_fd(), name, 0)?;
    Ok(unlinkat(&above, name, UnlinkatFlags::RemoveDir)?)
}

fn empty(above: BorrowedFd<'_>, name: &OsStr, depth: usize) -> io::Result<()> {
    if depth == DEEPEST {
        let why = format!("it is more than {DEEPEST} directories deep");
        return Err(io::Error::other(why));
    }
    let inside = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_XDEV;
    let directory = open(above, Path::new(name), inside)?;
    let listed = format!("/proc/self/fd/{}", directory.as_raw_fd());
    for entry in fs::read_dir(listed)? {
        let name = entry?.file_name();
        match unlinkat(&directory, &*name, UnlinkatFlags::NoRemoveDir) {
            // POSIX says EPERM of a directory, Linux EISDIR.
            Err(Errno::EISDIR | Errno::EPERM) => {
                empty(directory.as_fd(), &name, depth + 1)?;
                unlinkat(&directory, &*name, UnlinkatFlags::RemoveDir)?;
            }
            Ok(()) | Err(Errno::ENOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Opens the directory that a file is in, and gives the name in it.
fn parent(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
    let above = match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    };
    let above = open(AT_FDCWD, above, ResolveFlag::empty())?;
    Ok((above, name))
}

/// Opens a directory by a path without symbolic links.
fn open(at: BorrowedFd<'_>, path: &Path, resolve: ResolveFlag) -> io::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_DIRECTORY | OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(resolve | ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(at, path, how).map_err(|errno| {
        let why = match errno {
            Errno::ELOOP => "is or has a symbolic link in it, which is not followed",
            Errno::EXDEV => "is where something is mounted, which is left alone",
            other => return other.into(),
        };
        io::Error::other(format!("`{}` {why}", path.display()))
    })
}

/// Opens the directories of a path one after another, making those that are missing if there is a mode for them.
fn walk(path: &Path, mode: Option<u32>) -> io::Result<()> {
    let mut walked = PathBuf::new();
    let mut at: Option<OwnedFd> = None;
    let last = path.components().count();
    for (n, part) in (1..).zip(path.components()) {
        let name = Path::new(part.as_os_str());
        let above = at.as_ref().map_or(AT_FDCWD, AsFd::as_fd);
        walked.push(part);
        let found = match (open(above, name, ResolveFlag::empty()), mode) {
            (Err(error), Some(mode)) if error.kind() == ErrorKind::NotFound => {
                match mkdirat(above, name, Mode::from_bits_truncate(mode)) {
                    Ok(()) | Err(Errno::EEXIST) => open(above, name, ResolveFlag::empty()),
                    Err(errno) => Err(errno.into()),
                }
            }
            (found, _) => found,
        };
        let found = found?;
        check(
            &walked,
            &File::from(found.try_clone()?).metadata()?,
            n == last,
        )?;
        at = Some(found);
    }
    Ok(())
}

fn check(path: &Path, data: &fs::Metadata, is_last: bool) -> io::Result<()> {
    let mode = data.mode() & 0o7777;
    let is_closed = mode & WRITABLE_BY_OTHERS == 0 || !is_last && mode & STICKY != 0;
    // Who has `/` has all that this process sees. In a user namespace without the host's root that is a user without a number.
    let is_trusted = [0, geteuid().as_raw()].contains(&data.uid()) || path == Path::new("/");
    let why = if !is_trusted {
        format!("belongs to user {}", data.uid())
    } else if !is_closed {
        format!("has mode {mode:o}, which lets others write to it")
    } else {
        return Ok(());
    };
    let why = format!(
        "`{}` {why}, so others could choose what is used and removed below it: look at what is there, then remove it, or \
         `chown root` and `chmod go-w` it",
        path.display()
    );
    Err(io::Error::new(ErrorKind::PermissionDenied, why))
}

#[cfg(test)]
mod tests;
