//! A macvtap as its user sees it: files to read frames from and write them to.

use std::fs::{self, OpenOptions};
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sys::stat::{Mode, SFlag, dev_t, makedev, mknod};

use crate::error::{Error, Result};
use crate::exec::own_sys;
use crate::handle::Handle;

impl Handle {
    /// Opens that many queues of a macvtap; each frame has a `virtio_net_hdr` before it.
    ///
    /// The kernel's own `/dev/tapINDEX` is not used: indices are of a namespace and `/dev` is of them all, so
    /// that the file may be that of a device with the same index elsewhere, or be missing (`macvtap_device_event`,
    /// `drivers/net/macvtap.c`).
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no device of that name, [`Error::Invalid`] if it is no macvtap,
    /// [`Error::Denied`] without `CAP_SYS_ADMIN` and `CAP_MKNOD`, [`Error::Kernel`] (`EBUSY`) beyond 256 queues.
    pub fn open_macvtap(&self, name: &str, queues: u32) -> Result<Vec<OwnedFd>> {
        let what = format!("open macvtap `{name}`");
        let index = self.index_for(&what, name)?;
        self.ns().run(|| {
            own_sys()?;
            let number = device_number(&what, name, index)?;
            open(&what, number, queues)
        })?
    }
}

/// The number of a macvtap's character device, where `/sys` shows its namespace.
fn device_number(what: &str, name: &str, index: u32) -> Result<dev_t> {
    let file = format!("/sys/class/net/{name}/macvtap/tap{index}/dev");
    let text = fs::read_to_string(file)
        .map_err(|_| Error::invalid(what, "it is a device of another kind"))?;
    parse(&text).ok_or_else(|| Error::invalid(what, format!("its number reads `{text}`")))
}

fn parse(text: &str) -> Option<dev_t> {
    let (major, minor) = text.trim().split_once(':')?;
    Some(makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// Opens a character device of that number by a node of its own. `/sys` of the calling thread is covered by a
/// file system that goes with the thread.
fn open(what: &str, number: dev_t, queues: u32) -> Result<Vec<OwnedFd>> {
    const NODE: &str = "/sys/queue";
    let step = |errno: Errno| Error::from_errno(what, errno);
    let (none, flags) = (None::<&str>, MsFlags::empty());
    mount(Some("tmpfs"), "/sys", Some("tmpfs"), flags, none).map_err(step)?;
    mknod(NODE, SFlag::S_IFCHR, Mode::S_IRUSR | Mode::S_IWUSR, number).map_err(step)?;
    let queue = || OpenOptions::new().read(true).write(true).open(NODE);
    (0..queues)
        .map(|_| Ok(queue().map_err(|error| Error::from_io(what, error))?.into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_number_is_read_as_sysfs_writes_it() {
        assert_eq!(parse("246:1\n"), Some(makedev(246, 1)));
        assert_eq!(parse("246"), None);
        assert_eq!(parse("a:b\n"), None);
    }
}
