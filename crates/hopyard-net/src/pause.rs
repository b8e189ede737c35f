//! Flow control of Ethernet: whether a device asks its neighbour to pause, and heeds it (IEEE 802.3, annex 31B).

use crate::error::{Error, Result};
use crate::ethtool;
use crate::handle::{Handle, missing_device};

/// Pause frames of a device, as `ethtool -a` shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pause {
    /// Whether it is agreed on with the neighbour.
    pub negotiated: bool,
    /// Whether the device stops when it is asked to.
    pub rx: bool,
    /// Whether it asks.
    pub tx: bool,
}

impl Handle {
    /// Pause frames of a device; `None` of a device that has none, as those that are software alone.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such device.
    pub fn pause(&self, name: &str) -> Result<Option<Pause>> {
        let what = format!("read the flow control of `{name}`");
        match ethtool::pause(self.ioctl_socket(), name) {
            Ok([negotiated, rx, tx]) => Ok(Some(Pause { negotiated, rx, tx })),
            Err(error) => match error.raw_os_error() {
                Some(libc::EOPNOTSUPP) => Ok(None),
                Some(libc::ENODEV) => Err(missing_device(&what, name)),
                _ => Err(Error::from_io(what, error)),
            },
        }
    }
}
