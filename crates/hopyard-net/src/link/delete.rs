//! Deleting devices, one or several at once.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};

use super::{named, with};
use crate::error::{Error, Result};
use crate::handle::{Handle, refused};

/// The device group of what is about to be deleted; any number but 0, the group of all others.
const DOOMED: u32 = 0x686f_7079;

impl Handle {
    /// Deletes a device; the other end of a pair goes with it, before this returns.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is none of that name.
    pub fn delete_link(&self, name: &str) -> Result<()> {
        let message = RouteNetlinkMessage::DelLink(named(name));
        self.ask(&format!("delete device `{name}`"), name, message, 0)
            .map(drop)
    }

    /// Deletes several devices at once, and with them the other ends of pairs, before this returns.
    ///
    /// Deleting waits for readers of the device (`rcu_barrier` in `netdev_run_todo`), some 30 ms each
    /// time; this waits once. The devices are put into a device group of their own for it. Names that
    /// do not exist (any more) are passed over.
    ///
    /// # Errors
    /// [`Error::Kernel`] (`EOPNOTSUPP`) when one of them cannot be deleted; then none is, and they are out of that group again.
    pub fn delete_links(&self, names: &[&str]) -> Result<()> {
        let what = format!("delete devices `{}`", names.join("`, `"));
        let mut found = Vec::new();
        let deleted = self.delete_as_group(&what, names, &mut found);
        match deleted {
            // Somebody else deletes such a group at the same time.
            Err(error) if error.errno() == Some(libc::ENODEV) => Ok(()),
            deleted => deleted.inspect_err(|_| {
                for name in found {
                    // The first problem is the one to report.
                    let _ = self.change(&what, name, with(name, LinkAttribute::Group(0)));
                }
            }),
        }
    }

    fn delete_as_group<'a>(
        &self,
        what: &str,
        names: &[&'a str],
        found: &mut Vec<&'a str>,
    ) -> Result<()> {
        for name in names {
            let message = with(name, LinkAttribute::Group(DOOMED));
            match self.change(what, name, message) {
                Ok(()) => found.push(name),
                Err(Error::Missing { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if found.is_empty() {
            return Ok(());
        }
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::Group(DOOMED));
        self.request(RouteNetlinkMessage::DelLink(message), 0)
            .map(drop)
            .map_err(|refusal| refused(what, refusal))
    }
}
