//! A lock on a file that only root and the caller can open. Anybody can lock a directory or file that they can read, and hold
//! that for ever.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::Mode;

use super::parent;

/// A lock that one process at a time has. It ends with this value or with the process; the file goes with the value.
#[derive(Debug)]
pub struct Lock {
    _held: Flock<File>,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock, after waiting for whoever has it.
    ///
    /// # Errors
    /// The file cannot be made or locked; an error that says so where a directory above is a symbolic link.
    pub fn wait(path: &Path) -> io::Result<Self> {
        loop {
            let held = Flock::lock(open(path)?, FlockArg::LockExclusive);
            let held = held.map_err(|(_, errno)| errno)?;
            if let Some(lock) = Self::of(held, path) {
                return Ok(lock);
            }
        }
    }

    /// Takes the lock; `None` where somebody has it.
    ///
    /// # Errors
    /// As [`Lock::wait`].
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        loop {
            let held = match Flock::lock(open(path)?, FlockArg::LockExclusiveNonblock) {
                Ok(held) => held,
                Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
                Err((_, errno)) => return Err(errno.into()),
            };
            if let Some(lock) = Self::of(held, path) {
                return Ok(Some(lock));
            }
        }
    }

    /// Whoever held it before has removed its file, and another one may stand there now.
    fn of(held: Flock<File>, path: &Path) -> Option<Self> {
        stands_at(&held, path).then(|| Self {
            _held: held,
            path: path.to_owned(),
        })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Still under the lock, so that whoever waits for it finds out.
        let _ = super::remove_file(&self.path);
    }
}

fn open(path: &Path) -> io::Result<File> {
    let (above, name) = parent(path)?;
    let how = OpenHow::new()
        .flags(OFlag::O_CREAT | OFlag::O_WRONLY | OFlag::O_CLOEXEC)
        .mode(Mode::S_IRUSR | Mode::S_IWUSR)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    Ok(File::from(openat2(above, name, how)?))
}

fn stands_at(file: &File, path: &Path) -> bool {
    let identity = |data: fs::Metadata| (data.dev(), data.ino());
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(held), Ok(there)) => identity(held) == identity(there),
        _ => false,
    }
}
