//! Making devices.

use hopyard_net::{Handle, NetNs, TunLayer};

use crate::MAX_QUEUES;
use crate::device::{self, Device};
use crate::error::{Error, Result};
use crate::offload::Offloads;
use crate::queue::Queue;
use crate::sys;
use crate::vnet::VnetHeaderSize;

/// How many queues a device begins with, and whether it can have more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queues {
    /// One, permanently: the device as it was before Linux 3.8.
    Single,
    /// This many to begin with, 1 to [`MAX_QUEUES`]; more by [`Device::open_queue`] (`IFF_MULTI_QUEUE`).
    Multi(usize),
}

/// A device to make.
#[derive(Debug, Clone)]
pub struct NewDevice {
    /// Its name, at most 15 bytes; `%d` becomes the first free number.
    pub name: String,
    /// Whether the device passes Ethernet frames or IP packets.
    pub layer: TunLayer,
    /// How many queues the device may have.
    pub queues: Queues,
    /// A [`VnetHeader`](crate::VnetHeader) of this size before each frame (`IFF_VNET_HDR`).
    pub vnet_header: Option<VnetHeaderSize>,
    /// The unfinished frames that the program takes; needs `vnet_header`.
    pub offloads: Offloads,
    /// Reading and writing return [`WouldBlock`](std::io::ErrorKind::WouldBlock) instead of waiting (`O_NONBLOCK`), on
    /// every queue.
    pub nonblocking: bool,
    /// Begin without carrier (`IFF_NO_CARRIER`, Linux 6.2), until [`Queue::set_carrier`].
    pub no_carrier: bool,
    /// Outlive the last queue (`TUNSETPERSIST`), until [`Queue::set_persistent`] or
    /// [`hopyard_net::Handle::delete_link`]. Without owner and group, everybody who may open `/dev/net/tun` may open
    /// its queues.
    pub persistent: bool,
    /// A user who may open queues without `CAP_NET_ADMIN` (`TUNSETOWNER`).
    pub owner: Option<u32>,
    /// A group whose members may open queues without `CAP_NET_ADMIN` (`TUNSETGROUP`). If there is also an owner, only
    /// that user may, *and* only as a member of the group (`tun_not_capable`).
    pub group: Option<u32>,
}

impl NewDevice {
    /// A tap with a single queue and default options.
    #[must_use]
    pub fn tap(name: impl Into<String>) -> Self {
        Self::new(name, TunLayer::Tap)
    }

    /// A tun with a single queue and default options.
    #[must_use]
    pub fn tun(name: impl Into<String>) -> Self {
        Self::new(name, TunLayer::Tun)
    }

    fn new(name: impl Into<String>, layer: TunLayer) -> Self {
        Self {
            name: name.into(),
            layer,
            queues: Queues::Single,
            vnet_header: None,
            offloads: Offloads::default(),
            nonblocking: false,
            no_carrier: false,
            persistent: false,
            owner: None,
            group: None,
        }
    }

    /// Makes it in the calling thread's network namespace, down, with its queues attached. If a step fails, the device
    /// is removed.
    ///
    /// # Errors
    /// [`Error::NoDriver`] without `/dev/net/tun`; [`Error::Denied`] without `CAP_NET_ADMIN`; [`Error::NameTaken`];
    /// [`Error::TooManyQueues`]; [`Error::Unsupported`] for what this kernel lacks; [`Error::Invalid`] for a
    /// contradictory request.
    pub fn create(&self) -> Result<(Device, Vec<Queue>)> {
        let what = format!("create {} `{}`", device::word(self.layer), self.name);
        self.check(&what)?;
        let file = device::open_driver(&what)?;
        let flags = self.flags();
        device::check_features(&what, &file, flags)?;
        let made = sys::name_flags(&file, sys::TUNSETIFF, &self.name, flags | sys::IFF_TUN_EXCL)
            .map_err(|error| self.refused(&what, error))?;
        let device = Device::new(NetNs::current()?, &made, self.nonblocking, self.vnet_header)?;
        let first = Queue::new(file, device.clone())?;
        self.set_up(&what, &first)?;
        let mut queues = vec![first];
        if let Queues::Multi(count) = self.queues {
            while queues.len() < count {
                queues.push(device.open_queue()?);
            }
        }
        // Last, so that a failure before it removes the device.
        if self.persistent {
            queues[0].set_persistent(true)?;
        }
        Ok((device, queues))
    }

    fn check(&self, what: &str) -> Result<()> {
        device::check_name(what, &self.name, true)?;
        match self.queues {
            Queues::Multi(0) => {
                let why =
                    "a device begins with one queue at least; detach it to have none attached";
                return Err(Error::invalid(what, why));
            }
            Queues::Multi(count) if count > MAX_QUEUES => {
                return Err(Error::TooManyQueues { what: what.into() });
            }
            _ => {}
        }
        if self.offloads != Offloads::default() && self.vnet_header.is_none() {
            let why =
                "offloads need `vnet_header`: without, nothing says what is left to do on a frame";
            return Err(Error::invalid(what, why));
        }
        self.offloads.check(what)
    }

    fn flags(&self) -> u16 {
        let wanted = [
            (self.queues != Queues::Single, sys::IFF_MULTI_QUEUE),
            (self.vnet_header.is_some(), sys::IFF_VNET_HDR),
            (self.no_carrier, sys::IFF_NO_CARRIER),
        ];
        device::flags(self.layer, &wanted)
    }

    fn set_up(&self, what: &str, queue: &Queue) -> Result<()> {
        if let Some(size) = self.vnet_header {
            queue.set_vnet_header_size(what, size)?;
        }
        if self.offloads != Offloads::default() {
            queue.set_offloads(self.offloads)?;
        }
        if let Some(owner) = self.owner {
            queue.set_owner(owner)?;
        }
        if let Some(group) = self.group {
            queue.set_group(group)?;
        }
        Ok(())
    }

    fn refused(&self, what: &str, error: std::io::Error) -> Error {
        match error.raw_os_error() {
            Some(libc::EBUSY | libc::EEXIST) => self.taken(what.to_owned()),
            // A security module's answer, whatever capabilities there are.
            Some(libc::EACCES) => Error::Kernel {
                what: what.to_owned(),
                source: error,
            },
            _ => Error::on_queue(what, error),
        }
    }

    fn taken(&self, what: String) -> Error {
        let found = Handle::here().and_then(|handle| handle.tun_link(&self.name));
        let (by, usable) = match found {
            Ok(Some(link)) => (format!("a {}", device::word(link.layer)), true),
            _ => (device::kind_of(&self.name), false),
        };
        Error::NameTaken { what, by, usable }
    }
}
