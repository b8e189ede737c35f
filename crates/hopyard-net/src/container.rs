//! Processes in containers.
//!
//! A process that shall have many containers must not be copied for each of them, with its memory and threads
//! (`fork`). So nothing runs between the birth of a container's process and its program: the thread that starts
//! it enters the network namespace and asks for a PID namespace beforehand, and the program does the rest itself
//! ([`unshare_mount_and_cgroup`]), once it is in the control group that it shall see as the root of all.

use std::process::{Child, Command};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};

use crate::error::{Error, Result};
use crate::fresh_thread::on_fresh_thread;
use crate::netns::NetNs;

/// Starts a command in a network namespace, as the first process of a PID namespace of its own. When it ends,
/// the kernel ends what it started.
///
/// # Errors
/// [`Error::Denied`] without `CAP_SYS_ADMIN`; [`Error::Kernel`] if there is no room for another namespace, or
/// no such program.
pub fn start_first(net: &NetNs, command: &mut Command) -> Result<Child> {
    let what = "start a process in a container";
    on_fresh_thread("netns", || {
        let step = |errno| Error::from_errno(what, errno);
        setns(net, CloneFlags::CLONE_NEWNET).map_err(step)?;
        // For the children of this thread, which from here on cannot start threads.
        unshare(CloneFlags::CLONE_NEWPID).map_err(step)?;
        command.spawn().map_err(|error| Error::from_io(what, error))
    })
    .map_err(|error| Error::from_io(what, error))?
}

/// Gives the calling process, which has one thread, mount and cgroup namespaces of its own, and a `/proc` of its
/// PID namespace.
///
/// # Errors
/// [`Error::Denied`] without `CAP_SYS_ADMIN`; [`Error::Kernel`] if there is no room for another namespace, or
/// `/proc` cannot be mounted.
pub fn unshare_mount_and_cgroup() -> Result<()> {
    let step = |what: &'static str| move |errno| Error::from_errno(what, errno);
    let none = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWCGROUP)
        .map_err(step("make mount and cgroup namespaces"))?;
    let private = MsFlags::MS_PRIVATE | MsFlags::MS_REC;
    mount(none, "/", none, private, none).map_err(step("make the mounts below `/` private"))?;
    let plain = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), plain, none).map_err(step("mount `/proc`"))
}
