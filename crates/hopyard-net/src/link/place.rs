//! Where a device is, and by which name and index.

use std::os::fd::{AsFd, AsRawFd};

use netlink_packet_route::link::{LinkAttribute, LinkMessage};

use super::with;
use crate::error::Result;
use crate::handle::{Handle, check_name};
use crate::netns::NetNs;

impl Handle {
    /// Moves a device to another namespace, where it arrives down and without addresses.
    ///
    /// # Errors
    /// [`Error::Missing`]; [`Error::Kernel`] (`EEXIST`) when the name is taken there, (`EINVAL`) for
    /// devices that are bound to their namespace.
    pub fn move_to(&self, name: &str, ns: &NetNs) -> Result<()> {
        let what = format!("move `{name}` to another namespace");
        let fd = ns.as_fd().as_raw_fd();
        self.change(&what, name, with(name, LinkAttribute::NetNsFd(fd)))
    }

    /// Moves a device to another namespace, where it gets this index if nobody has it: rules, routes of others and programs that keep a
    /// device's index find it by that. Kernels before 5.13 choose an index themselves.
    ///
    /// # Errors
    /// As [`Handle::move_to`].
    pub fn move_as(&self, name: &str, ns: &NetNs, index: u32) -> Result<()> {
        let what = format!("move `{name}` to another namespace");
        let mut message = with(name, LinkAttribute::NetNsFd(ns.as_fd().as_raw_fd()));
        let asked = LinkAttribute::NewIfIndex(index.cast_signed());
        message.attributes.push(asked);
        match self.change(&what, name, message) {
            Err(error) if matches!(error.errno(), Some(libc::EBUSY | libc::EINVAL)) => {
                self.move_to(name, ns)
            }
            moved => moved,
        }
    }

    /// Renames a device.
    ///
    /// # Errors
    /// [`Error::Missing`]; [`Error::Kernel`] (`EEXIST`) when the name is taken.
    pub fn rename(&self, name: &str, new: &str) -> Result<()> {
        let what = format!("rename `{name}` to `{new}`");
        check_name(&what, new)?;
        let mut message = LinkMessage::default();
        message.header.index = self.index_for(&what, name)?;
        message
            .attributes
            .push(LinkAttribute::IfName(new.to_owned()));
        self.change(&what, name, message)
    }
}
