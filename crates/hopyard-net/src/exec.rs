//! What a process does between its birth and `exec`.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};

use crate::error::{Error, Result};
use crate::netns::NetNs;

/// Moves the calling thread into `ns` and a mount namespace of its own where `/sys` shows the devices
/// of `ns`, as `ip netns exec` does (iproute2 `lib/namespace.c`). Call it in a process with one
/// thread, just before replacing it by the user's program; there is no way back.
///
/// # Errors
/// [`Error::Denied`] without `CAP_SYS_ADMIN`; [`Error::Kernel`] when `/` cannot be made a slave
/// mount or `/sys` cannot be mounted.
pub fn enter_for_exec(ns: &NetNs) -> Result<()> {
    setns(ns, CloneFlags::CLONE_NEWNET)
        .map_err(|errno| Error::from_errno("enter a network namespace", errno))?;
    own_sys()
}

/// Moves the calling thread into a mount namespace of its own where `/sys` shows the devices of its network
/// namespace. There is no way back.
pub(crate) fn own_sys() -> Result<()> {
    let step = |what: &'static str| move |errno: Errno| Error::from_errno(what, errno);
    let none = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS).map_err(step("make a mount namespace"))?;
    let slave = MsFlags::MS_SLAVE | MsFlags::MS_REC;
    mount(none, "/", none, slave, none).map_err(step("make the mounts below `/` slaves"))?;
    match umount2("/sys", MntFlags::MNT_DETACH) {
        Ok(()) | Err(Errno::EINVAL | Errno::ENOENT) => {}
        Err(errno) => return Err(step("unmount `/sys`")(errno)),
    }
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none)
        .map_err(step("mount `/sys`"))
}

/// Has the kernel kill a command's process when the **thread** that starts it ends, however it ends
/// (`PR_SET_PDEATHSIG`): start it from a thread that lives as long as the process shall.
pub fn end_with_starter(command: &mut Command) {
    let starter = Pid::this();
    let promise = move || {
        set_pdeathsig(Signal::SIGKILL)?;
        // It may have ended before that, and then nobody sends the signal any more.
        if getppid() != starter {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes two system calls, prctl(2) and getppid(2); it
    // allocates nothing and takes no lock.
    unsafe { command.pre_exec(promise) };
}

/// Has a command's process be ended when it writes a file beyond so many bytes (`RLIMIT_FSIZE`).
pub fn limit_files(command: &mut Command, most: u64) {
    let limit = move || Ok(setrlimit(Resource::RLIMIT_FSIZE, most, most)?);
    // SAFETY: between fork and exec the closure makes one setrlimit(2); it allocates nothing and takes no lock.
    unsafe { command.pre_exec(limit) };
}

/// Has a command's process keep a file of ours, by the number that is given back.
pub fn inherit(command: &mut Command, file: OwnedFd) -> RawFd {
    let number = file.as_raw_fd();
    let keep = move || {
        fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes one fcntl(2) on a descriptor that it owns; it allocates
    // nothing and takes no lock.
    unsafe { command.pre_exec(keep) };
    number
}
