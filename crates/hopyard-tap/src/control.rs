//! Settings of the whole device, made through a queue.

use std::os::fd::AsFd;

use crate::error::{Error, Result};
use crate::offload::Offloads;
use crate::queue::Queue;
use crate::sys;
use crate::vnet::VnetHeaderSize;

/// These apply to the whole device, whichever queue is used, attached or not.
impl Queue {
    /// Sets which unfinished frames the program takes (`TUNSETOFFLOAD`); `ethtool -k` shows it. The kernel finishes all
    /// others before they reach a queue.
    ///
    /// # Errors
    /// [`Error::Invalid`] for offloads without the device's headers, or that need others; [`Error::Unsupported`] for
    /// `uso` before Linux 6.2; [`Error::Gone`].
    pub fn set_offloads(&self, offloads: Offloads) -> Result<()> {
        let what = self.what_device("set the offloads");
        offloads.check(&what)?;
        if offloads != Offloads::default() && self.device().vnet_header().is_none() {
            let why = "its frames have no header that says what is left to do; make it with `vnet_header`";
            return Err(Error::invalid(what, why));
        }
        sys::set_value(self.as_fd(), sys::TUNSETOFFLOAD, offloads.bits()).map_err(|error| {
            if error.raw_os_error() == Some(libc::EINVAL) && offloads.uso {
                return Error::Unsupported {
                    what: what.clone(),
                    feature: "UDP segmentation on taps".into(),
                    remedy: "that takes Linux 6.2; go without `uso`".into(),
                };
            }
            Error::on_queue(what, error)
        })
    }

    /// Sets whether the device outlives its last queue (`TUNSETPERSIST`).
    ///
    /// # Errors
    /// [`Error::Gone`].
    pub fn set_persistent(&self, on: bool) -> Result<()> {
        let what = self.what_device("set the persistence");
        sys::set_value(self.as_fd(), sys::TUNSETPERSIST, u32::from(on))
            .map_err(|error| Error::on_queue(what, error))
    }

    /// Lets a user open queues of the device without `CAP_NET_ADMIN` (`TUNSETOWNER`).
    ///
    /// # Errors
    /// [`Error::Invalid`] for an id that this user namespace does not have; [`Error::Gone`].
    pub fn set_owner(&self, user: u32) -> Result<()> {
        self.set_id("owner", sys::TUNSETOWNER, user)
    }

    /// Lets members of a group open queues of the device without `CAP_NET_ADMIN` (`TUNSETGROUP`).
    ///
    /// # Errors
    /// [`Error::Invalid`] for an id that this user namespace does not have; [`Error::Gone`].
    pub fn set_group(&self, group: u32) -> Result<()> {
        self.set_id("group", sys::TUNSETGROUP, group)
    }

    fn set_id(&self, role: &str, request: libc::Ioctl, id: u32) -> Result<()> {
        let what = self.what_device(&format!("set the {role}"));
        sys::set_value(self.as_fd(), request, id).map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => {
                Error::invalid(what, format!("there is no id {id} in this user namespace"))
            }
            _ => Error::on_queue(what, error),
        })
    }

    /// Switches the carrier on or off (`TUNSETCARRIER`, Linux 5.0).
    ///
    /// # Errors
    /// [`Error::Unsupported`] on older kernels; [`Error::Gone`].
    pub fn set_carrier(&self, on: bool) -> Result<()> {
        let what = self.what_device("set the carrier");
        sys::set_int(self.as_fd(), sys::TUNSETCARRIER, i32::from(on)).map_err(|error| {
            match error.raw_os_error() {
                Some(libc::EINVAL) => Error::Unsupported {
                    what,
                    feature: "carrier of taps".into(),
                    remedy: "that takes Linux 5.0".into(),
                },
                _ => Error::on_queue(what, error),
            }
        })
    }

    /// Limits the kernel memory, in bytes, of frames that each queue wrote and that are still under way. A write beyond
    /// it waits, or returns [`WouldBlock`](std::io::ErrorKind::WouldBlock) (`TUNSETSNDBUF`). Unlimited (2³¹ − 1) at
    /// first.
    ///
    /// # Errors
    /// [`Error::Invalid`] for 0 and for 2³¹ or more; [`Error::Gone`].
    pub fn set_send_buffer(&self, bytes: u32) -> Result<()> {
        let what = self.what_device("set the send buffer");
        let value = i32::try_from(bytes).ok().filter(|&bytes| bytes > 0);
        let Some(value) = value else {
            return Err(Error::invalid(what, "it holds 1 to 2147483647 bytes"));
        };
        sys::set_int(self.as_fd(), sys::TUNSETSNDBUF, value)
            .map_err(|error| Error::on_queue(what, error))
    }

    /// The limit of [`Queue::set_send_buffer`], bytes.
    ///
    /// # Errors
    /// [`Error::Gone`].
    pub fn send_buffer(&self) -> Result<u32> {
        sys::get_int(self.as_fd(), sys::TUNGETSNDBUF)
            .map_err(|error| Error::on_queue(self.what_device("read the send buffer"), error))
    }

    /// Sets the header's length, and little-endian byte order on every host.
    pub(crate) fn set_vnet_header_size(&self, what: &str, size: VnetHeaderSize) -> Result<()> {
        let bytes = match size {
            VnetHeaderSize::Basic => 10,
            VnetHeaderSize::Mergeable => 12,
        };
        for (request, value) in [(sys::TUNSETVNETHDRSZ, bytes), (sys::TUNSETVNETLE, 1)] {
            sys::set_int(self.as_fd(), request, value)
                .map_err(|error| Error::on_queue(what, error))?;
        }
        Ok(())
    }

    pub(crate) fn what_device(&self, verb: &str) -> String {
        format!("{verb} of `{}`", self.device().name())
    }
}
