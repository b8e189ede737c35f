//! The handle: one namespace, with the sockets that act in it.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use netlink_packet_core::NetlinkSerializable;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcHandle, TcMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::error::{Error, Result};
use crate::ifreq;
use crate::netlink::{Netlink, Refusal};
use crate::netns::NetNs;

/// Everything one does inside a namespace.
///
/// Holds a netlink socket, an ioctl socket and the file of device counters that were opened there, so it
/// acts on that namespace from any thread; and it keeps the namespace alive. Methods take turns on the
/// netlink socket.
pub struct Handle {
    ns: NetNs,
    rtnl: Mutex<Netlink>,
    ioctl: OwnedFd,
    counters: File,
}

/// Counters of the devices of the namespace of the thread that opens it; an open file stays with that namespace.
pub(crate) const COUNTERS: &str = "/proc/thread-self/net/dev";

fn open_counters() -> Result<File> {
    File::open(COUNTERS).map_err(|error| Error::from_io(format!("open {COUNTERS}"), error))
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle")
            .field("ns", &self.ns)
            .finish_non_exhaustive()
    }
}

impl Handle {
    /// Opens the sockets in `ns`.
    ///
    /// # Errors
    /// [`Error::Denied`] without `CAP_SYS_ADMIN`, [`Error::Kernel`] without descriptors left.
    pub fn new(ns: &NetNs) -> Result<Self> {
        ns.run(Self::here)?
    }

    /// Opens the sockets in the namespace of the calling thread, which takes no privilege; what is done
    /// with them may.
    ///
    /// # Errors
    /// [`Error::Kernel`] without descriptors left, or where `/proc` is not mounted.
    pub fn here() -> Result<Self> {
        let what = "open sockets in a network namespace";
        let rtnl = Netlink::open(NETLINK_ROUTE).map_err(|error| Error::from_io(what, error))?;
        let flags = SockFlag::SOCK_CLOEXEC;
        let ioctl = socket(AddressFamily::Unix, SockType::Datagram, flags, None)
            .map_err(|errno| Error::from_errno(what, errno))?;
        Ok(Self {
            ns: NetNs::current()?,
            rtnl: Mutex::new(rtnl),
            ioctl,
            counters: open_counters()?,
        })
    }

    /// The namespace.
    #[must_use]
    pub fn ns(&self) -> &NetNs {
        &self.ns
    }

    /// The index of a device.
    ///
    /// # Errors
    /// [`Error::Missing`] if this namespace has no such device.
    pub fn index(&self, name: &str) -> Result<u32> {
        self.index_for(&format!("find device `{name}`"), name)
    }

    /// The index of a device that the operation `what` needs.
    pub(crate) fn index_for(&self, what: &str, name: &str) -> Result<u32> {
        ifreq::index(self.ioctl.as_fd(), name).map_err(|error| match error.raw_os_error() {
            Some(libc::ENODEV) => missing_device(what, name),
            _ => Error::from_io(what, error),
        })
    }

    pub(crate) fn ioctl_socket(&self) -> std::os::fd::BorrowedFd<'_> {
        self.ioctl.as_fd()
    }

    pub(crate) fn counters(&self) -> &File {
        &self.counters
    }

    /// The beginning of a message about what is at a place of a device: its root, its ingress…
    pub(crate) fn tc_message(&self, what: &str, name: &str, parent: TcHandle) -> Result<TcMessage> {
        let index = self.index_for(what, name)?;
        let index = i32::try_from(index).map_err(|_| missing_device(what, name))?;
        let mut message = TcMessage::with_index(index);
        message.header.parent = parent;
        Ok(message)
    }

    /// A request about the device `name`.
    pub(crate) fn ask(
        &self,
        what: &str,
        name: &str,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<Vec<Vec<u8>>> {
        self.request(message, flags)
            .map_err(|refusal| match refusal.errno() {
                libc::ENODEV => missing_device(what, name),
                _ => refused(what, refusal),
            })
    }

    pub(crate) fn request(
        &self,
        message: impl NetlinkSerializable,
        flags: u16,
    ) -> std::result::Result<Vec<Vec<u8>>, Refusal> {
        self.rtnl().request(message, flags)
    }

    pub(crate) fn dump(&self, what: &str, message: &RouteNetlinkMessage) -> Result<Vec<Vec<u8>>> {
        let replies = self.rtnl().dump(message);
        replies.map_err(|refusal| refused(what, refusal))
    }

    /// As [`Self::dump`], of what header and attributes of the message say, where the kernel takes that. `add`s up the answers one by
    /// one: there may be a million routes.
    pub(crate) fn dump_filtered_into<A: Default>(
        &self,
        message: &RouteNetlinkMessage,
        add: impl Fn(&mut A, &[u8]),
    ) -> std::result::Result<A, Refusal> {
        self.rtnl().dump_filtered_into(message, add)
    }

    fn rtnl(&self) -> MutexGuard<'_, Netlink> {
        // A panic elsewhere leaves at most unread answers, which the sequence numbers filter out.
        self.rtnl.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn missing_device(what: &str, name: &str) -> Error {
    Error::Missing {
        what: what.into(),
        object: format!("device `{name}` in this namespace"),
    }
}

pub(crate) fn refused(what: &str, refusal: Refusal) -> Error {
    match Error::from_io(what, refusal.error) {
        Error::Kernel { what, source, .. } => Error::Kernel {
            what,
            source,
            detail: refusal.detail,
        },
        other => other,
    }
}

/// Checks a device name as the kernel's `dev_valid_name` does, with a reason.
pub(crate) fn check_name(what: &str, name: &str) -> Result<()> {
    let bad = |byte: u8| {
        byte == b'/' || byte == b':' || byte == b'%' || byte.is_ascii_whitespace() || byte == 0
    };
    if name.is_empty() || name.len() > 15 || name == "." || name == ".." || name.bytes().any(bad) {
        return Err(Error::invalid(
            what,
            format!("`{name}` is no device name: 1 to 15 bytes without blanks, `/`, `:` and `%`"),
        ));
    }
    Ok(())
}
