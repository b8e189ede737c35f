//! Making, changing and listing devices.

mod delete;
mod place;
pub(crate) mod read;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};

use crate::error::{Error, Result};
use crate::ethtool;
use crate::handle::{Handle, check_name, missing_device};
use crate::kind::{self, LinkKind, NewLink};
use crate::netns::NetNs;

/// Bytes of `struct ifinfomsg`.
pub(crate) const IFINFOMSG: usize = 16;
pub(crate) const IFLA_LINKINFO: u16 = 18;
pub(crate) const IFLA_INFO_KIND: u16 = 1;

/// Where an XDP program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XdpHook {
    /// In the driver or the adapter: before the stack has the frame, and not at all for one that is handed over
    /// within the stack.
    Driver,
    /// In the stack, for every frame that the device receives.
    Stack,
}

/// A device as the kernel reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// Its index in its namespace.
    pub index: u32,
    /// Name of the device in its namespace.
    pub name: String,
    /// Its kind by the kernel's name; `None` for loopback and most hardware.
    pub kind: Option<String>,
    /// Its Ethernet address, where it has one.
    pub mac: Option<[u8; 6]>,
    /// Bytes of network-layer payload.
    pub mtu: u32,
    /// Largest GSO packet, bytes; `None` on kernels that do not say.
    pub gso_max_size: Option<u32>,
    /// Whether it was brought up.
    pub up: bool,
    /// Whether it has a carrier.
    pub carrier: bool,
    /// Whether it takes frames to any address, for whomever (a bridge, a capture, its administrator).
    pub promiscuous: bool,
    /// Whether its administrator has it do so ([`Handle::take_all_frames`]).
    pub takes_all: bool,
    /// Index of the bridge it is a port of.
    pub master: Option<u32>,
    /// Index of the device below, or of the peer, or of the one that a tunnel was made on; it may be an index of another namespace.
    pub lower: Option<u32>,
    /// The namespace that `lower` is in, by this namespace's number for it; `None`: this one.
    pub lower_ns: Option<i32>,
    /// Where its XDP program runs, if it has one; of several, the one in the driver.
    pub xdp: Option<XdpHook>,
    /// The VLAN of a device of kind `vlan`.
    pub vlan: Option<u16>,
}

impl Handle {
    /// The name of a device's driver (`ethtool -i`): `veth`, `ixgbe`; `None` of a device that has none, such as loopback.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such device.
    pub fn driver(&self, name: &str) -> Result<Option<String>> {
        let what = format!("read the driver of `{name}`");
        ethtool::driver(self.ioctl_socket(), name).map_err(|error| match error.raw_os_error() {
            Some(libc::ENODEV) => missing_device(&what, name),
            _ => Error::from_io(what, error),
        })
    }

    /// Makes a device.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when the kernel has no such kind; [`Error::Missing`] when the lower
    /// device does not exist; [`Error::Kernel`] (`EEXIST`) when the name is taken.
    pub fn add_link(&self, link: &NewLink<'_>) -> Result<()> {
        let kind = link.kind.name();
        let on = link
            .kind
            .lower()
            .map(|lower| format!(" on `{lower}`"))
            .unwrap_or_default();
        let what = format!("create {kind} `{}`{on}", link.name);
        check_name(&what, &link.name)?;
        if let Some(peer) = link.kind.peer() {
            check_name(&what, peer)?;
        }
        check_tunnel(&what, &link.kind)?;
        let lower = link
            .kind
            .lower()
            .map(|lower| self.index_for(&what, lower))
            .transpose()?;
        if let (Some(into), true) = (link.into, link.kind.sends_from_where_it_is_made()) {
            return self.add_and_move(link, into);
        }
        let message = RouteNetlinkMessage::NewLink(kind::message(link, lower));
        self.request(message, NLM_F_CREATE | NLM_F_EXCL)
            .map(drop)
            .map_err(|refusal| kind::refused(&what, &link.kind, refusal))
    }

    /// Makes a device here, which sends its outer packets from here, and moves it. Its name must be free at both places.
    fn add_and_move(&self, link: &NewLink<'_>, into: &NetNs) -> Result<()> {
        let there = Self::new(into)?;
        self.add_link(&NewLink {
            into: None,
            up: false,
            ..link.clone()
        })?;
        // The first problem is the one to report.
        self.move_to(&link.name, into).inspect_err(|_| {
            let _ = self.delete_link(&link.name);
        })?;
        if link.up {
            there.set_up(&link.name).inspect_err(|_| {
                let _ = there.delete_link(&link.name);
            })?;
        }
        Ok(())
    }

    /// All devices of the namespace, by index.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the dump fails.
    pub fn links(&self) -> Result<Vec<Link>> {
        let message = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let replies = self.dump("list the devices of a namespace", &message)?;
        Ok(replies.iter().map(|reply| read::parse(reply)).collect())
    }

    /// One device.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is none of that name.
    pub fn link(&self, name: &str) -> Result<Link> {
        let what = format!("read device `{name}`");
        // The kernel would refuse the name as out of range.
        if name.len() >= libc::IFNAMSIZ {
            return Err(missing_device(&what, name));
        }
        let replies = self.ask(&what, name, RouteNetlinkMessage::GetLink(named(name)), 0)?;
        replies
            .first()
            .map(|reply| read::parse(reply))
            .ok_or_else(|| missing_device(&what, name))
    }

    /// The device below, or the peer of a pair, in whichever namespace it is; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Missing`] if it or its namespace went away, [`Error::Denied`] if that namespace is of another user.
    pub fn lower_of(&self, link: &Link) -> Result<Option<Link>> {
        let Some(index) = link.lower else {
            return Ok(None);
        };
        let mut message = LinkMessage::default();
        message.header.index = index;
        if let Some(ns) = link.lower_ns {
            message.attributes.push(LinkAttribute::IfNetnsId(ns));
        }
        let what = format!("read the other end of `{}`", link.name);
        let replies = self.ask(&what, &link.name, RouteNetlinkMessage::GetLink(message), 0);
        let replies = replies.map_err(|error| match error.errno() {
            // No namespace has that number any more (`rtnl_get_net_ns_capable`): one that ends loses it before its devices go.
            Some(libc::EINVAL) if link.lower_ns.is_some() => Error::Missing {
                what,
                object: format!("network namespace of the other end of `{}`", link.name),
            },
            _ => error,
        })?;
        Ok(replies.first().map(|reply| read::parse(reply)))
    }

    /// Brings a device up.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Kernel`].
    pub fn set_up(&self, name: &str) -> Result<()> {
        self.set_flag(&format!("bring `{name}` up"), name, LinkFlags::Up, true)
    }

    /// Has a device take frames to every group, for a station behind it whose groups the kernel cannot know.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Kernel`].
    pub fn take_all_groups(&self, name: &str) -> Result<()> {
        let what = format!("have `{name}` take frames to every group");
        self.set_flag(&what, name, LinkFlags::Allmulti, true)
    }

    /// Makes the kernel act at once on changes of a device's carrier, and says whether it has one.
    ///
    /// The kernel looks at such changes up to a second later (`net/core/link_watch.c`), and then
    /// reports multicast groups or activates a queue amid a measurement. Call it for each device once
    /// everything is up.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no such device, [`Error::Kernel`].
    pub fn settle(&self, name: &str) -> Result<bool> {
        let what = format!("settle the link of `{name}`");
        let asked = ethtool::link_detected(self.ioctl_socket(), name);
        match asked.map_err(|error| (error.raw_os_error(), error)) {
            Ok(carrier) => Ok(carrier),
            Err((Some(libc::ENODEV), _)) => Err(missing_device(&what, name)),
            // netkit does not answer ethtool; kernels that have it act when netlink is asked
            // (`linkwatch_sync_dev` in `rtnl_fill_ifinfo`, Linux 6.8).
            Err((Some(libc::EOPNOTSUPP), _)) => Ok(self.link(name)?.carrier),
            Err((_, error)) => Err(Error::from_io(what, error)),
        }
    }

    /// Takes a device down.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Kernel`].
    pub fn set_down(&self, name: &str) -> Result<()> {
        self.set_flag(&format!("take `{name}` down"), name, LinkFlags::Up, false)
    }

    /// Has a device take frames to every station, for stations behind it that the kernel does not know.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Kernel`].
    pub fn take_all_frames(&self, name: &str) -> Result<()> {
        let what = format!("have `{name}` take frames to every station");
        self.set_flag(&what, name, LinkFlags::Promisc, true)
    }

    /// Has it take frames to its own address and to groups alone, as a new device does.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Kernel`].
    pub fn take_own_frames(&self, name: &str) -> Result<()> {
        let what = format!("have `{name}` take its own frames alone");
        self.set_flag(&what, name, LinkFlags::Promisc, false)
    }

    fn set_flag(&self, what: &str, name: &str, flag: LinkFlags, on: bool) -> Result<()> {
        let mut message = named(name);
        message.header.flags.set(flag, on);
        message.header.change_mask = flag;
        self.change(what, name, message)
    }

    /// Makes a device a port of a bridge.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Kernel`].
    pub fn set_master(&self, port: &str, bridge: &str) -> Result<()> {
        let what = format!("add port `{port}` to bridge `{bridge}`");
        let index = self.index_for(&what, bridge)?;
        self.change(&what, port, with(port, LinkAttribute::Controller(index)))
    }

    /// Sets the MTU, in bytes of network-layer payload.
    ///
    /// # Errors
    /// [`Error::Missing`]; [`Error::Kernel`] (`EINVAL`) outside the device's limits.
    pub fn set_mtu(&self, name: &str, mtu: u32) -> Result<()> {
        let what = format!("set the MTU of `{name}` to {mtu}");
        self.change(&what, name, with(name, LinkAttribute::Mtu(mtu)))
    }

    /// Sets how many packets a queue of the device holds (`txqueuelen`); of a tap or tun, how many frames
    /// each of its files.
    ///
    /// # Errors
    /// [`Error::Missing`]; [`Error::Kernel`] (`ENOMEM`) for more than there is room for.
    pub fn set_tx_queue_len(&self, name: &str, packets: u32) -> Result<()> {
        let what = format!("set the queue length of `{name}` to {packets}");
        self.change(&what, name, with(name, LinkAttribute::TxQueueLen(packets)))
    }

    /// Sets the Ethernet address.
    ///
    /// # Errors
    /// [`Error::Missing`]; [`Error::Kernel`] (`EADDRNOTAVAIL`) for a multicast or zero address.
    pub fn set_mac(&self, name: &str, mac: [u8; 6]) -> Result<()> {
        let what = format!("set the address of `{name}`");
        self.change(
            &what,
            name,
            with(name, LinkAttribute::Address(mac.to_vec())),
        )
    }

    /// Changes one attribute of a device.
    pub(crate) fn set_attribute(
        &self,
        what: &str,
        name: &str,
        attribute: LinkAttribute,
    ) -> Result<()> {
        self.change(what, name, with(name, attribute))
    }

    fn change(&self, what: &str, name: &str, message: LinkMessage) -> Result<()> {
        self.ask(what, name, RouteNetlinkMessage::SetLink(message), 0)
            .map(drop)
    }
}

/// A message about the device of that name; the kernel looks it up (`rtnl_dev_get`).
pub(crate) fn named(name: &str) -> LinkMessage {
    let mut message = LinkMessage::default();
    message
        .attributes
        .push(LinkAttribute::IfName(name.to_owned()));
    message
}

fn with(name: &str, attribute: LinkAttribute) -> LinkMessage {
    let mut message = named(name);
    message.attributes.push(attribute);
    message
}

fn check_tunnel(what: &str, kind: &LinkKind<'_>) -> Result<()> {
    let (LinkKind::Vxlan { vni, .. } | LinkKind::Geneve { vni, .. }) = kind else {
        return Ok(());
    };
    if *vni >= 1 << 24 {
        return Err(Error::invalid(
            what,
            format!("the network identifier {vni} exceeds 24 bits"),
        ));
    }
    if let LinkKind::Vxlan { local, remote, .. } = kind
        && local.is_ipv4() != remote.is_ipv4()
    {
        let why = format!("{local} and {remote} are of different families");
        return Err(Error::invalid(what, why));
    }
    Ok(())
}
