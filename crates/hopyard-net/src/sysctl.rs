//! Network sysctls of a namespace.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::netns::NetNs;

impl Handle {
    /// Reads a sysctl by its path below `/proc/sys`, `net/ipv4/ip_forward`; blanks at the end removed.
    ///
    /// # Errors
    /// [`Error::Missing`] if this namespace has none of that name, [`Error::Invalid`] for a key that
    /// does not begin with `net/`.
    pub fn sysctl(&self, key: &str) -> Result<String> {
        let what = || format!("read sysctl `{key}`");
        let path = path(key, what)?;
        let text = self.where_sysctls_are(|| fs::read_to_string(path))?;
        let text = text.map_err(|error| explain(key, what(), error))?;
        Ok(text.trim_end().to_owned())
    }

    /// Sets a sysctl of the namespace. `/proc/sys/net` follows the thread's namespace, so no other
    /// namespace is touched.
    ///
    /// # Errors
    /// As [`Handle::sysctl`]; [`Error::Kernel`] for a value the kernel refuses.
    pub fn set_sysctl(&self, key: &str, value: &str) -> Result<()> {
        self.where_sysctls_are(|| set_here(key, value))?
    }

    /// Sets several, and says of each what came of it, in their order.
    ///
    /// # Errors
    /// [`Error::Denied`] without `CAP_SYS_ADMIN`, where the namespace is not that of the calling thread.
    pub fn set_sysctls(&self, settings: &[(&str, &str)]) -> Result<Vec<Result<()>>> {
        self.where_sysctls_are(|| {
            // Where the kernel gives none, `/proc` does as well.
            let procfs = own_proc().ok();
            let set = |(key, value): &(&str, &str)| set_in(procfs.as_ref(), key, value);
            settings.iter().map(set).collect()
        })
    }

    /// Runs `f` where `/proc/sys/net` is that of the namespace: on the calling thread if it is in there.
    fn where_sysctls_are<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T> {
        if NetNs::current()?.inode()? == self.ns().inode()? {
            return Ok(f());
        }
        self.ns().run(f)
    }

    /// Whether the namespace has this sysctl.
    #[must_use]
    pub fn has_sysctl(&self, key: &str) -> bool {
        let Ok(path) = path(key, String::new) else {
            return false;
        };
        self.where_sysctls_are(|| fs::exists(path).unwrap_or(false))
            .unwrap_or(false)
    }
}

/// [`Handle::set_sysctl`] in the namespace of the calling thread.
pub(crate) fn set_here(key: &str, value: &str) -> Result<()> {
    set_in(None, key, value)
}

/// Sets a sysctl in this procfs, or in `/proc`.
fn set_in(procfs: Option<&OwnedFd>, key: &str, value: &str) -> Result<()> {
    let what = || format!("set sysctl `{key}` to `{value}`");
    let path = path(key, what)?;
    let opened: io::Result<File> = match procfs {
        Some(procfs) => {
            let below = path.strip_prefix("/proc/").unwrap_or(&path);
            let access = OFlag::O_WRONLY | OFlag::O_CLOEXEC;
            let file = openat(procfs, below, access, Mode::empty());
            file.map(File::from).map_err(io::Error::from)
        }
        None => File::options().write(true).open(&path),
    };
    opened
        .and_then(|mut file| file.write_all(value.as_bytes()))
        .map_err(|error| explain(key, what(), error))
}

/// A procfs that nobody else uses, mounted nowhere, so that it goes with its descriptor. To find the `net/ipv4` of a namespace in `/proc/sys`,
/// the kernel compares it with that of each other namespace whose sysctls somebody has used there (`proc_sys_compare`): among a thousand
/// of them that takes some half a millisecond for each family. Here it takes twenty microseconds, mount included.
fn own_proc() -> io::Result<OwnedFd> {
    let procfs = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&procfs)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    Ok(fsmount(&procfs, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// Sysctls outside `net/` belong to the whole host, whatever namespace one is in.
pub(crate) fn path(key: &str, what: impl Fn() -> String) -> Result<String> {
    let parts = key.split('/').skip(1);
    let plain = parts.clone().next().is_some()
        && parts.clone().all(|part| !matches!(part, "" | "." | ".."));
    if !key.starts_with("net/") || !plain {
        return Err(Error::invalid(
            what(),
            "only sysctls of the network namespace, with slashes: `net/ipv4/ip_forward`",
        ));
    }
    Ok(format!("/proc/sys/{key}"))
}

fn explain(key: &str, what: String, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::Missing {
            what,
            object: format!("sysctl `{key}` in this namespace"),
        },
        _ => Error::from_io(what, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_outside_the_namespace_are_refused() {
        for key in [
            "kernel/hostname",
            "net/../kernel/hostname",
            "net",
            "net/",
            "net.ipv4.ip_forward",
            "/net/x",
        ] {
            assert!(path(key, String::new).is_err(), "{key}");
        }
        assert_eq!(
            path("net/ipv4/ip_forward", String::new).unwrap(),
            "/proc/sys/net/ipv4/ip_forward"
        );
    }
}
