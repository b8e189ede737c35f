//! A device, and opening queues of it.

use std::fs::File;
use std::io;
use std::sync::Arc;

use hopyard_net::{Handle, NetNs, TunLayer, TunLink};

use crate::error::{Error, NEEDS_ADMIN, Result};
use crate::queue::Queue;
use crate::sys::{self, NameFlags};
use crate::vnet::VnetHeaderSize;

/// A tap or tun, for opening further queues of it. A cheap handle: cloning it opens nothing, and dropping it
/// closes nothing; a device that does not persist ends with its last [`Queue`].
#[derive(Debug, Clone)]
pub struct Device(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ns: NetNs,
    name: String,
    index: u32,
    /// As `TUNSETIFF` takes them.
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

    /// Opens a queue of a device that exists in the calling thread's network namespace: a persistent one, or
    /// one that another program holds too. Its headers are left as they are, and queues wait
    /// ([`Queue::set_nonblocking`]).
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::OtherKind`]; [`Error::Denied`] for whoever is neither its owner nor has
    /// `CAP_NET_ADMIN`; [`Error::InUse`] where its single queue is open; [`Error::TooManyQueues`];
    /// [`Error::Invalid`] where other programs hold it with headers that this crate does not read (`tun_pi`,
    /// or a `virtio_net_hdr` of neither 10 nor 12 bytes).
    pub fn open(name: &str) -> Result<(Self, Queue)> {
        Self::attach(name, None)
    }

    /// As [`Device::open`], and says what header frames shall have.
    ///
    /// # Errors
    /// Those of [`Device::open`]; [`Error::Invalid`] if other programs hold it with another header, which the
    /// kernel leaves alone.
    pub fn open_with(name: &str, header: Option<VnetHeaderSize>) -> Result<(Self, Queue)> {
        Self::attach(name, Some(header))
    }

    /// What the kernel tells of a tap or tun in the calling thread's network namespace, without opening it;
    /// takes no privilege. `None` if there is no such device, or it is of another kind.
    ///
    /// # Errors
    /// [`Error::Net`] if the kernel cannot be asked.
    pub fn find(name: &str) -> Result<Option<TunLink>> {
        match Handle::here()?.tun_link(name) {
            Err(hopyard_net::Error::Missing { .. }) => Ok(None),
            found => Ok(found?),
        }
    }

    fn attach(name: &str, header: Option<Option<VnetHeaderSize>>) -> Result<(Self, Queue)> {
        let what = format!("open device `{name}`");
        check_name(&what, name, false)?;
        let link = match Handle::here()?.tun_link(name) {
            Err(hopyard_net::Error::Missing { .. }) => return Err(Error::Missing { what }),
            Ok(None) => {
                let kind = kind_of(name);
                return Err(Error::OtherKind { what, kind });
            }
            found => found?,
        };
        let Some(link) = link else {
            return Err(Error::Missing { what });
        };
        let wanted = flags_of(&link, header);
        let file = open_driver(&what)?;
        let found = attach_file(&what, &file, name, wanted, link.index)?;
        if found.flags & KEPT != wanted {
            let why = "other programs hold it with another header before each frame; close it there first";
            return Err(Error::invalid(what, why));
        }
        let size = match header {
            Some(size) => size,
            None => header_size(&what, &file, wanted)?,
        };
        let device = Self::new(NetNs::current()?, &found, false, size)?;
        let queue = Queue::new(file, device.clone())?;
        if let Some(size) = size {
            queue.set_vnet_header_size(&what, size)?;
        }
        Ok((device, queue))
    }

    /// Opens another queue and attaches it; from any thread, whichever namespace it is in.
    ///
    /// # Errors
    /// [`Error::NotMultiQueue`]; [`Error::TooManyQueues`]; [`Error::Missing`] if the device ended, was renamed
    /// or moved to another namespace ([`Queue::find_device`] follows it); [`Error::Denied`] if the
    /// device has another owner, or from a thread in another namespace without `CAP_SYS_ADMIN`.
    pub fn open_queue(&self) -> Result<Queue> {
        let inner = &self.0;
        let what = format!("open another queue of `{}`", inner.name);
        if inner.flags & sys::IFF_MULTI_QUEUE == 0 {
            return Err(Error::NotMultiQueue { what });
        }
        let open = || {
            let file = open_driver(&what)?;
            match sys::index(&inner.name) {
                Ok(index) if index == inner.index => {}
                _ => return Err(Error::Missing { what: what.clone() }),
            }
            attach_file(&what, &file, &inner.name, inner.flags, inner.index)?;
            Ok(file)
        };
        // Entering a namespace takes a privilege that owners of a device need not have.
        let file = if NetNs::current()?.inode()? == inner.ns.inode()? {
            open()
        } else {
            inner.ns.run(open)?
        }?;
        Queue::new(file, self.clone())
    }

    /// Its name, as of when it was made or found.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its index in its namespace.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.0.index
    }

    /// The namespace it is in, as of when it was made or found.
    #[must_use]
    pub fn ns(&self) -> &NetNs {
        &self.0.ns
    }

    /// Does the device pass Ethernet frames or IP packets?
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

    /// The header before each frame, where there is one.
    #[must_use]
    pub fn vnet_header(&self) -> Option<VnetHeaderSize> {
        self.0.vnet_header
    }

    pub(crate) fn nonblocking(&self) -> bool {
        self.0.nonblocking
    }
}

/// The flags of `TUNSETIFF` that every queue of a device is opened with.
const KEPT: u16 =
    sys::IFF_TUN | sys::IFF_TAP | sys::IFF_NO_PI | sys::IFF_VNET_HDR | sys::IFF_MULTI_QUEUE;

fn flags_of(link: &TunLink, header: Option<Option<VnetHeaderSize>>) -> u16 {
    let header = header.map_or(link.vnet_header, |size| size.is_some());
    let layer = match link.layer {
        TunLayer::Tap => sys::IFF_TAP,
        TunLayer::Tun => sys::IFF_TUN,
    };
    [
        (link.multi_queue, sys::IFF_MULTI_QUEUE),
        (header, sys::IFF_VNET_HDR),
    ]
    .iter()
    .filter(|(on, _)| *on)
    .fold(layer | sys::IFF_NO_PI, |flags, (_, flag)| flags | flag)
}

/// Attaches a fresh file to the device of that name and index, in the calling thread's namespace.
fn attach_file(what: &str, file: &File, name: &str, flags: u16, index: u32) -> Result<NameFlags> {
    sys::name_flags(file, sys::TUNSETIFF, name, flags).map_err(|error| {
        let what = what.to_owned();
        match error.raw_os_error() {
            Some(libc::E2BIG) => Error::TooManyQueues { what },
            Some(libc::EBUSY) => Error::InUse { what },
            Some(libc::EPERM) => Error::Denied {
                what,
                remedy: NEEDS_ADMIN.into(),
            },
            // The device was replaced by one of another kind since it was looked at.
            Some(libc::EINVAL) => Error::Missing { what },
            _ => Error::Kernel {
                what,
                source: error,
            },
        }
    })?;
    // Had the device ended meanwhile, the kernel would have made a new one, which goes with the file.
    match sys::index(name) {
        Ok(found) if found == index => {}
        _ => return Err(Error::Missing { what: what.into() }),
    }
    sys::name_flags(file, sys::TUNGETIFF, "", 0).map_err(|error| Error::on_queue(what, error))
}

fn header_size(what: &str, file: &File, flags: u16) -> Result<Option<VnetHeaderSize>> {
    if flags & sys::IFF_VNET_HDR == 0 {
        return Ok(None);
    }
    let bytes =
        sys::get_int(file, sys::TUNGETVNETHDRSZ).map_err(|error| Error::on_queue(what, error))?;
    match bytes {
        10 => Ok(Some(VnetHeaderSize::Basic)),
        12 => Ok(Some(VnetHeaderSize::Mergeable)),
        _ => {
            let why = format!("its frames have a header of {bytes} bytes, not 10 or 12");
            Err(Error::invalid(what, why))
        }
    }
}

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

/// Says what of `flags` this kernel does not have; it would silently leave it out.
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

/// Checks a name as the kernel's `dev_valid_name` does, with a reason.
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

pub(crate) fn word(layer: TunLayer) -> &'static str {
    match layer {
        TunLayer::Tap => "tap",
        TunLayer::Tun => "tun",
    }
}

/// What a device is that is neither tap nor tun, in words.
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

/// The device behind an open queue, wherever it is now.
pub(crate) fn behind(what: &str, queue: &Queue) -> Result<Device> {
    let failed = |error: io::Error| Error::on_queue(what, error);
    let ns = sys::device_namespace(queue.file()).map_err(failed)?;
    let now = sys::name_flags(queue.file(), sys::TUNGETIFF, "", 0).map_err(failed)?;
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&ns));
    let ns = NetNs::open(std::path::Path::new(&path))?;
    let old = queue.device();
    let make = |ns: NetNs| Device::new(ns, &now, old.nonblocking(), old.vnet_header());
    let inside = ns.try_clone()?;
    ns.run(|| make(inside))?
}
