//! A user namespace for who is not root: inside, its only user is root, over what belongs to that namespace alone.

use std::fs::{self, DirEntry, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::error::{Error, Result};

/// Bit of `CAP_SYS_ADMIN` in the masks of `/proc/PID/status` (`linux/capability.h`).
const SYS_ADMIN: u64 = 1 << 21;
/// Inode of the first user namespace (`PROC_USER_INIT_INO` in `include/linux/proc_ns.h`).
const FIRST_USER: u64 = 0xefff_fffd;
const RUN: &str = "/run";

/// May this process make namespaces as it is (`CAP_SYS_ADMIN`)?
#[must_use]
pub fn may_make_namespaces() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| has_admin(&status))
}

/// Is this process in the user namespace that the machine began with? In others root may do much, and is refused the rest.
#[must_use]
pub fn is_in_first_user_namespace() -> bool {
    fs::metadata("/proc/self/ns/user").is_ok_and(|namespace| namespace.ino() == FIRST_USER)
}

fn has_admin(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & SYS_ADMIN != 0)
}

/// Moves the calling process, which has one thread, into user and mount namespaces of its own. There its user is root and can make
/// network namespaces with devices, and `/run` can be written: a file system of its own that shows what was there. Files that it
/// makes elsewhere belong to its user. There is no way back.
///
/// # Errors
/// [`Error::Unsupported`] where this user may not have user namespaces; the error says what forbids it.
pub fn enter_own_user_namespace() -> Result<()> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)
        .map_err(|errno| forbidden(&errno.into()))?;
    // Without this a user could drop groups that a file is closed to (user_namespaces(7)).
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {user} 1")),
        ("gid_map", format!("0 {group} 1")),
    ];
    for (file, map) in maps {
        fs::write(format!("/proc/self/{file}"), map).map_err(|error| forbidden(&error))?;
    }
    let none = None::<&str>;
    let private = MsFlags::MS_PRIVATE | MsFlags::MS_REC;
    mount(none, "/", none, private, none).map_err(|errno| forbidden(&errno.into()))?;
    own_run().map_err(|error| Error::from_io("make a /run of its own", error))
}

/// Mounts a file system on `/run` in which entries are those that were there.
fn own_run() -> io::Result<()> {
    let before = File::open(RUN)?;
    let entries: Vec<DirEntry> = fs::read_dir(RUN)?.collect::<io::Result<_>>()?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("run"), RUN, Some("tmpfs"), flags, Some("mode=755"))?;
    let before = PathBuf::from(format!("/proc/self/fd/{}", before.as_raw_fd()));
    // But for hopyard's own: a directory that is another user's would be in the way of this one's labs.
    let is_ours = |entry: &DirEntry| entry.file_name().as_encoded_bytes().starts_with(b"hopyard");
    for entry in entries.into_iter().filter(|entry| !is_ours(entry)) {
        // What goes away meanwhile, or is closed to this user, is not needed by anything that ran before.
        let _ = show(&before.join(entry.file_name()), &entry);
    }
    Ok(())
}

fn show(was: &Path, entry: &DirEntry) -> io::Result<()> {
    let here = entry.path();
    let kind = entry.file_type()?;
    if kind.is_symlink() {
        return symlink(fs::read_link(was)?, here);
    }
    if kind.is_dir() {
        fs::create_dir(&here)?;
    } else {
        File::create_new(&here)?;
    }
    let none = None::<&str>;
    // Mounts of another user's namespace come with all that is mounted below them, or not at all.
    let whole = MsFlags::MS_BIND | MsFlags::MS_REC;
    Ok(mount(Some(was), &here, none, whole, none)?)
}

/// Why this user has no user namespace, by what the kernel's settings say.
fn forbidden(error: &io::Error) -> Error {
    let is_zero = |file: &str, zero: &str| {
        fs::read_to_string(format!("/proc/sys/{file}")).is_ok_and(|value| value.trim() == zero)
    };
    let remedy = if is_zero("user/max_user_namespaces", "0") {
        "user.max_user_namespaces is 0: set it to 10000 (sysctl -w)".to_owned()
    } else if is_zero("kernel/unprivileged_userns_clone", "0") {
        "kernel.unprivileged_userns_clone is 0: set it to 1 (sysctl -w)".to_owned()
    } else if is_zero("kernel/apparmor_restrict_unprivileged_userns", "1") {
        "kernel.apparmor_restrict_unprivileged_userns is 1: allow this program a user namespace by a profile of AppArmor"
            .to_owned()
    } else {
        format!("the kernel says: {error}; a container's filter of system calls may forbid it")
    };
    Error::Unsupported {
        what: "make namespaces without root".to_owned(),
        feature: "unprivileged user namespace".to_owned(),
        remedy: format!("{remedy}; or run as root"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_tells_who_may_make_namespaces() {
        assert!(has_admin(
            "Name:\tx\nCapPrm:\t0\nCapEff:\t000001ffffffffff\n"
        ));
        assert!(has_admin("CapEff:\t0000000000200000\n"));
        assert!(!has_admin("CapEff:\t000001ffffdfffff\n"));
        assert!(!has_admin(
            "CapPrm:\t000001ffffffffff\nCapEff:\t0000000000000000\n"
        ));
        assert!(!has_admin(""));
    }
}
