//! Network namespaces as owned values.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};

use crate::error::{Error, Result};
use crate::fresh_thread::on_fresh_thread;
use crate::owned;

/// Where `ip netns` keeps its names.
const RUN_NETNS: &str = "/run/netns";

/// A network namespace, held by a file descriptor.
///
/// A namespace without a name vanishes with the last descriptor, process and socket in it; the kernel
/// takes it down in the background (`cleanup_net`), some milliseconds later. Delete a veth pair
/// explicitly where that matters.
#[derive(Debug)]
pub struct NetNs {
    fd: OwnedFd,
}

impl NetNs {
    /// Makes a new, empty namespace. The loopback device exists and is down.
    ///
    /// # Errors
    /// [`Error::Denied`] without `CAP_SYS_ADMIN`.
    pub fn create() -> Result<Self> {
        let what = "create a network namespace";
        on_fresh_thread("netns", || {
            leave_for_new()?;
            Self::current()
        })
        .map_err(|error| Error::from_io(what, error))?
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// [`Error::Kernel`] where `/proc` is not mounted.
    pub fn current() -> Result<Self> {
        Self::open(Path::new("/proc/thread-self/ns/net"))
    }

    /// Opens a namespace by a file: `/run/netns/NAME` or `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such file, [`Error::Invalid`] if it is not a namespace.
    pub fn open(path: &Path) -> Result<Self> {
        let what = || format!("open network namespace `{}`", path.display());
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::Missing {
                what: what(),
                object: format!("file `{}`", path.display()),
            },
            _ => Error::from_io(what(), error),
        })?;
        let filesystem =
            nix::sys::statfs::fstatfs(&file).map_err(|errno| Error::from_errno(what(), errno))?;
        if filesystem.filesystem_type() != nix::sys::statfs::NSFS_MAGIC {
            return Err(Error::invalid(
                what(),
                "the file is not a namespace, as those of `ip netns` and /proc/PID/ns/net are",
            ));
        }
        Ok(Self { fd: file.into() })
    }

    /// The file by which other processes can open it, as long as this value lives.
    #[must_use]
    pub fn proc_path(&self) -> PathBuf {
        let (pid, fd) = (std::process::id(), self.fd.as_raw_fd());
        format!("/proc/{pid}/fd/{fd}").into()
    }

    /// A second descriptor of the same namespace.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the process has no descriptors left.
    pub fn try_clone(&self) -> Result<Self> {
        let fd = self
            .fd
            .try_clone()
            .map_err(|error| Error::from_io("duplicate a namespace descriptor", error))?;
        Ok(Self { fd })
    }

    /// Runs `f` inside the namespace, on a scratch thread; processes that `f` starts are born there.
    ///
    /// Inside, `/proc/sys/net` and `/proc/thread-self/net` show the namespace, while `/proc/self/net`
    /// and `/sys/class/net` still show the caller's. A panic of `f` goes on in the caller.
    ///
    /// # Errors
    /// [`Error::Denied`] without `CAP_SYS_ADMIN`.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T> {
        let what = "enter a network namespace";
        on_fresh_thread("netns", || {
            setns(self, CloneFlags::CLONE_NEWNET)
                .map_err(|errno| Error::from_errno(what, errno))?;
            Ok(f())
        })
        .map_err(|error| Error::from_io(what, error))?
    }

    /// Has a command be born in the namespace, whichever thread starts it.
    ///
    /// # Errors
    /// [`Error::Kernel`] when the process has no descriptors left. Whether the command's process may
    /// enter is known when it is started.
    pub fn adopt(&self, command: &mut Command) -> Result<()> {
        let ns = self.try_clone()?;
        let enter = move || Ok(setns(&ns, CloneFlags::CLONE_NEWNET)?);
        // SAFETY: between fork and exec the closure makes one setns(2) on a descriptor that is open
        // already; it allocates nothing and takes no lock.
        unsafe { command.pre_exec(enter) };
        Ok(())
    }

    /// The inode number, which tells namespaces apart and is what `ip netns` and `/proc` print.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the descriptor cannot be read.
    pub fn inode(&self) -> Result<u64> {
        let what = "read the inode of a network namespace";
        let file = self.try_clone()?.fd;
        let metadata = File::from(file)
            .metadata()
            .map_err(|error| Error::from_io(what, error))?;
        Ok(metadata.ino())
    }

    /// Gives the namespace a name by mounting it on `path`, so that it outlives this process and
    /// `ip netns exec NAME` works for a path below `/run/netns`.
    ///
    /// Makes the file, and the directory where it is missing. As `ip netns add` does, `/run/netns` is
    /// made a shared mount, so that the name is seen in other mount namespaces too.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the file exists already; it may belong to somebody else.
    pub fn bind(&self, path: &Path) -> Result<BoundNs> {
        let what = || format!("name a network namespace `{}`", path.display());
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(|error| Error::from_io(what(), error))?;
            if directory == Path::new(RUN_NETNS) {
                share_mount(directory).map_err(|errno| Error::from_errno(what(), errno))?;
            }
        }
        let created = OpenOptions::new().write(true).create_new(true).open(path);
        created.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::invalid(what(), "the name is taken"),
            _ => Error::from_io(what(), error),
        })?;
        let source = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        let mounted = mount(
            Some(source.as_str()),
            path,
            None::<&str>,
            MsFlags::MS_BIND,
            None::<&str>,
        );
        if let Err(errno) = mounted {
            owned::remove_file(path).ok();
            return Err(Error::from_errno(what(), errno));
        }
        Ok(BoundNs {
            path: path.to_path_buf(),
        })
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A name given to a namespace. Dropping it leaves the name in place: outliving the process is the
/// point of a name. [`BoundNs::unbind`] removes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundNs {
    path: PathBuf,
}

impl BoundNs {
    /// The file the namespace is mounted on.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the name, see [`unbind`].
    ///
    /// # Errors
    /// Those of [`unbind`].
    pub fn unbind(self) -> Result<()> {
        unbind(&self.path)
    }
}

/// Removes a name made by [`NetNs::bind`]: the mount and the file. The namespace lives on as long as
/// something else holds it.
///
/// # Errors
/// [`Error::Missing`] if there is no such file, [`Error::Kernel`] if it cannot be removed.
pub fn unbind(path: &Path) -> Result<()> {
    let what = || format!("remove the namespace name `{}`", path.display());
    match owned::unmount(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Error::Missing {
                what: what(),
                object: format!("file `{}`", path.display()),
            });
        }
        // EINVAL: a file left behind by a mount that never happened or is gone.
        Err(error) if error.raw_os_error() != Some(libc::EINVAL) => {
            return Err(Error::from_io(what(), error));
        }
        _ => {}
    }
    owned::remove_file(path).map_err(|error| Error::from_io(what(), error))
}

/// Makes a directory a shared mount point, mounting it on itself where it is none yet.
fn share_mount(directory: &Path) -> nix::Result<()> {
    let share = || {
        let flags = MsFlags::MS_SHARED | MsFlags::MS_REC;
        mount(None::<&str>, directory, None::<&str>, flags, None::<&str>)
    };
    match share() {
        Err(Errno::EINVAL) => {
            let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
            mount(
                Some(directory),
                directory,
                None::<&str>,
                flags,
                None::<&str>,
            )?;
            share()
        }
        other => other,
    }
}

/// Moves the calling thread, which is to end soon, into a new namespace.
pub(crate) fn leave_for_new() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)
        .map_err(|errno| Error::from_errno("create a network namespace", errno))
}
