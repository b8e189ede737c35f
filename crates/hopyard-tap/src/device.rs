//! A device, and what the kernel needs and reports about one.

use std::fs::File;
use std::sync::Arc;

use hopyard_net::{Handle, NetNs, TunLayer, TunLink};

use crate::error::{Error, Result};
use crate::sys::{self, NameFlags};
use crate::vnet::VnetHeaderSize;

/// A tap or tun, for opening further queues. A cheap handle: cloning it opens nothing, and dropping it closes nothing.
/// A device that does not persist ends with its last [`Queue`](crate::Queue).
#[derive(Debug, Clone)]
pub struct Device(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ns: NetNs,
    name: String,
    index: u32,
    /// Flags for `TUNSETIFF`.
    flags: u16,
    nonblocking: bool,
    vnet_header: Option<VnetHeaderSize>,
}

impl Device {
    /// Describes the device `made` in `ns`, which is the calling thread's namespace.
    pub(crate) fn new(
        ns: NetNs,
        made: &NameFlags,
        nonblocking: bool,
        vnet_header: Option<VnetHeaderSize>,
    ) -> Result<Self> {
        let what = || format!("find device `{}`", made.name);
        let index = sys::index(&made.name).map_err(|_| Error::Missing { what: what() })?;
        Ok(Self(Arc::new(Inner {
            ns,
            name: made.name.clone(),
            index,
            flags: made.flags & KEPT,
            nonblocking,
            vnet_header,
        })))
    }

    /// What the kernel reports about a tap or tun in the calling thread's network namespace, without opening it; needs
    /// no privilege. `None` if there is no such device, or it is of another kind.
    ///
    /// # Errors
    /// [`Error::Net`] if the kernel cannot be asked.
    pub fn find(name: &str) -> Result<Option<TunLink>> {
        match Handle::here()?.tun_link(name) {
            Err(hopyard_net::Error::Missing { .. }) => Ok(None),
            found => Ok(found?),
        }
    }

    /// Its name when it was made or found.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its index in its namespace.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.0.index
    }

    /// The namespace it was in when it was made or found.
    #[must_use]
    pub fn ns(&self) -> &NetNs {
        &self.0.ns
    }

    /// Whether the device passes Ethernet frames or IP packets.
    #[must_use]
    pub fn layer(&self) -> TunLayer {
        if self.0.flags & sys::IFF_TAP != 0 {
            TunLayer::Tap
        } else {
            TunLayer::Tun
        }
    }

    /// Whether it can have more than one queue.
    #[must_use]
    pub fn is_multi_queue(&self) -> bool {
        self.0.flags & sys::IFF_MULTI_QUEUE != 0
    }

    /// The header before each frame, if any.
    #[must_use]
    pub fn vnet_header(&self) -> Option<VnetHeaderSize> {
        self.0.vnet_header
    }

    /// Flags of `TUNSETIFF` for a queue of it.
    pub(crate) fn flags(&self) -> u16 {
        self.0.flags
    }

    pub(crate) fn nonblocking(&self) -> bool {
        self.0.nonblocking
    }
}

/// The flags of `TUNSETIFF` that every queue of a device is opened with.
pub(crate) const KEPT: u16 =
    sys::IFF_TUN | sys::IFF_TAP | sys::IFF_NO_PI | sys::IFF_VNET_HDR | sys::IFF_MULTI_QUEUE;

pub(crate) fn open_driver(what: &str) -> Result<File> {
    sys::open().map_err(|error| {
        let what = what.to_owned();
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => Error::NoDriver { what },
            Some(libc::EPERM | libc::EACCES) => Error::Denied {
                what,
                remedy: "/dev/net/tun is closed to this user; `chmod 0666 /dev/net/tun` is safe, as devices have owners of their own".into(),
            },
            _ => Error::Kernel { what, source: error },
        }
    })
}

/// Fails if this kernel lacks one of `flags`, which it would silently ignore.
pub(crate) fn check_features(what: &str, file: &File, flags: u16) -> Result<()> {
    let known =
        sys::get_int(file, sys::TUNGETFEATURES).map_err(|error| Error::on_queue(what, error))?;
    for (flag, feature, since) in [
        (sys::IFF_MULTI_QUEUE, "multi-queue taps", "3.8"),
        (sys::IFF_VNET_HDR, "virtio-net headers on taps", "2.6.27"),
        (sys::IFF_NO_CARRIER, "taps made without carrier", "6.2"),
    ] {
        if flags & flag != 0 && known & u32::from(flag) == 0 {
            return Err(Error::Unsupported {
                what: what.into(),
                feature: feature.into(),
                remedy: format!("that takes Linux {since}"),
            });
        }
    }
    Ok(())
}

/// Checks a name as the kernel's `dev_valid_name` does, but gives a reason.
pub(crate) fn check_name(what: &str, name: &str, pattern: bool) -> Result<()> {
    let plain = if pattern {
        name.replacen("%d", "", 1)
    } else {
        name.to_owned()
    };
    let bad = |byte: u8| matches!(byte, b'/' | b':' | b'%' | 0) || byte.is_ascii_whitespace();
    if name.is_empty() || name.len() > 15 || matches!(name, "." | "..") || plain.bytes().any(bad) {
        let why =
            format!("`{name}` is no device name: 1 to 15 bytes without blanks, `/`, `:` and `%`");
        return Err(Error::invalid(what, why));
    }
    Ok(())
}

/// Flags of `TUNSETIFF` for a device of a layer: those that are wanted, and no `tun_pi` before frames.
pub(crate) fn flags(layer: TunLayer, wanted: &[(bool, u16)]) -> u16 {
    let layer = match layer {
        TunLayer::Tap => sys::IFF_TAP,
        TunLayer::Tun => sys::IFF_TUN,
    };
    let wanted = wanted.iter().filter(|(on, _)| *on);
    wanted.fold(layer | sys::IFF_NO_PI, |flags, (_, flag)| flags | flag)
}

pub(crate) fn word(layer: TunLayer) -> &'static str {
    match layer {
        TunLayer::Tap => "tap",
        TunLayer::Tun => "tun",
    }
}

/// The kind of a device that is neither tap nor tun, as text.
pub(crate) fn kind_of(name: &str) -> String {
    let kind = Handle::here()
        .and_then(|handle| handle.link(name))
        .ok()
        .and_then(|link| link.kind);
    kind.map_or_else(
        || "another device".into(),
        |kind| format!("a device of kind `{kind}`"),
    )
}
