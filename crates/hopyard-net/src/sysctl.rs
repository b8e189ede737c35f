//! Network sysctls of a namespace.

use std::fs::{self, File};
use std::io;

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

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
            let mut directory = None;
            let set = |(key, value): &(&str, &str)| set_below(&mut directory, key, value);
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
    set_below(&mut None, key, value)
}

/// [`set_here`], which keeps the open directory of the key for the next one. To find the directory of `eth0`, the kernel compares it with
/// that of each other namespace (`proc_sys_compare`), so that among a thousand of them this takes longer than to write.
fn set_below(directory: &mut Option<(String, File)>, key: &str, value: &str) -> Result<()> {
    let what = || format!("set sysctl `{key}` to `{value}`");
    let path = path(key, what)?;
    let (above, name) = path.rsplit_once('/').unwrap_or_default();
    let failed = |error: io::Error| explain(key, what(), error);
    let (_, opened) = match directory.take() {
        Some(last) if last.0 == above => directory.insert(last),
        _ => directory.insert((above.to_owned(), File::open(above).map_err(failed)?)),
    };
    let file = openat(
        opened,
        name,
        OFlag::O_WRONLY | OFlag::O_CLOEXEC,
        Mode::empty(),
    );
    let mut file = File::from(file.map_err(|errno| failed(errno.into()))?);
    io::Write::write_all(&mut file, value.as_bytes()).map_err(failed)
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
