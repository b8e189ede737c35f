//! Addresses, routes and neighbours.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::attrs::{attribute, attributes, u16_at, u32_at};
use crate::error::{Error, Result};
use crate::handle::{Handle, refused};

/// Bytes of `struct ifaddrmsg`, `struct rtmsg` and `struct rtnexthop`.
const IFADDRMSG: usize = 8;
pub(crate) const RTMSG: usize = 12;
const RTNEXTHOP: usize = 8;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
pub(crate) const RTA_OIF: u16 = 4;
pub(crate) const RTA_GATEWAY: u16 = 5;
pub(crate) const RTA_PREFSRC: u16 = 7;
pub(crate) const RTA_MULTIPATH: u16 = 9;
pub(crate) const RTA_NH_ID: u16 = 30;
pub(crate) const RTA_VIA: u16 = 18;
pub(crate) const RTN_UNICAST: u8 = 1;
/// Routes are asked for by the device for so many devices.
const ONE_BY_ONE: usize = 4;
/// Listed one after the other. A list of all families at once is made with the network locked (`rtnl_dump_all`); one of a single family
/// is not, on recent kernels. A kernel without a family gives all others, so things may be there twice.
const FAMILIES: [AddressFamily; 2] = [AddressFamily::Inet, AddressFamily::Inet6];

impl Handle {
    /// The addresses of all devices, with the index of each one's device.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the dump fails.
    pub fn addresses(&self) -> Result<Vec<(u32, IpAddr)>> {
        let mut all = Vec::new();
        for family in FAMILIES {
            let mut message = AddressMessage::default();
            message.header.family = family;
            let message = RouteNetlinkMessage::GetAddress(message);
            let replies = self.dump("list the addresses of a namespace", &message)?;
            all.extend(replies.iter().filter_map(|reply| own_address(reply)));
        }
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// The gateways of all unicast routes by these devices, with the index of the device that leads to each. A device that is gone has
    /// none.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the dump fails.
    pub fn gateways(&self, devices: &[u32]) -> Result<BTreeSet<(u32, IpAddr)>> {
        let mut gateways = BTreeSet::new();
        for family in FAMILIES {
            // For each question the kernel goes through all routes.
            if devices.len() > ONE_BY_ONE {
                gateways.extend(self.gateways_of(family, None)?);
            } else {
                for device in devices {
                    gateways.extend(self.gateways_of(family, Some(*device))?);
                }
            }
        }
        gateways.retain(|(device, _)| devices.contains(device));
        Ok(gateways)
    }

    fn gateways_of(
        &self,
        family: AddressFamily,
        device: Option<u32>,
    ) -> Result<BTreeSet<(u32, IpAddr)>> {
        let mut message = RouteMessage::default();
        message.header.address_family = family;
        // Each device that is up has a multicast route, and a host may have thousands of devices.
        message.header.kind = RouteType::Unicast;
        message.attributes.extend(device.map(RouteAttribute::Oif));
        let message = RouteNetlinkMessage::GetRoute(message);
        let listed = self.dump_filtered_into(&message, |all: &mut BTreeSet<_>, route| {
            if route.get(7) == Some(&RTN_UNICAST) {
                let hops = hops(route).into_iter();
                all.extend(hops.filter_map(|(device, gateway)| Some((device, gateway?))));
            }
        });
        match listed {
            Err(refusal) if device.is_some() && refusal.errno() == libc::ENODEV => {
                Ok(BTreeSet::new())
            }
            listed => listed.map_err(|refusal| refused("list the routes of a namespace", refusal)),
        }
    }

    /// Gives a device an address; the route to its prefix comes with it. IPv6 addresses are usable at
    /// once (`IFA_F_NODAD`).
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Invalid`] for a prefix that is too long, [`Error::Kernel`]
    /// (`EEXIST`) if the device has it already.
    pub fn add_address(&self, name: &str, address: IpAddr, prefix: u8) -> Result<()> {
        let what = format!("add address {address}/{prefix} to `{name}`");
        let mut message = self.address_of(&what, name, address, prefix)?;
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        let message = RouteNetlinkMessage::NewAddress(message);
        self.ask(&what, name, message, NLM_F_CREATE | NLM_F_EXCL)
            .map(drop)
    }

    /// Takes an address from a device; routes by it go too.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Kernel`] (`EADDRNOTAVAIL`) if the device has it not.
    pub fn delete_address(&self, name: &str, address: IpAddr, prefix: u8) -> Result<()> {
        let what = format!("delete address {address}/{prefix} of `{name}`");
        let message = self.address_of(&what, name, address, prefix)?;
        let message = RouteNetlinkMessage::DelAddress(message);
        self.ask(&what, name, message, 0).map(drop)
    }

    fn address_of(
        &self,
        what: &str,
        name: &str,
        address: IpAddr,
        prefix: u8,
    ) -> Result<AddressMessage> {
        check_prefix(what, address, prefix)?;
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        message.header.index = self.index_for(what, name)?;
        message.attributes.push(AddressAttribute::Local(address));
        message.attributes.push(AddressAttribute::Address(address));
        Ok(message)
    }

    /// Adds a route to the main table: to `destination` (the default route where `None`), by the
    /// gateway `via`, by `device`, or both.
    ///
    /// # Errors
    /// [`Error::Invalid`] when neither destination nor gateway tells the family, or nothing tells
    /// the way; [`Error::Missing`] for the device; [`Error::Kernel`] (`ENETUNREACH`) for a gateway
    /// that cannot be reached.
    pub fn add_route(
        &self,
        destination: Option<(IpAddr, u8)>,
        via: Option<IpAddr>,
        device: Option<&str>,
    ) -> Result<()> {
        let to = destination.map_or("default".to_owned(), |(address, prefix)| {
            format!("{address}/{prefix}")
        });
        let by = via.map(|via| format!(" via {via}")).unwrap_or_default();
        let on = device
            .map(|device| format!(" by `{device}`"))
            .unwrap_or_default();
        let what = format!("add route {to}{by}{on}");
        let Some(any) = destination.map(|(address, _)| address).or(via) else {
            return Err(Error::invalid(
                what,
                "give a destination (0.0.0.0/0 or ::/0) or a gateway",
            ));
        };
        if via.is_none() && device.is_none() {
            return Err(Error::invalid(what, "give a gateway or a device"));
        }
        if via.is_some_and(|via| via.is_ipv4() != any.is_ipv4()) {
            return Err(Error::invalid(
                what,
                "destination and gateway are of different families",
            ));
        }
        let mut message = RouteMessage::default();
        message.header.address_family = family(any);
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.kind = RouteType::Unicast;
        message.header.scope = if via.is_some() {
            RouteScope::Universe
        } else {
            RouteScope::Link
        };
        if let Some((address, prefix)) = destination {
            check_prefix(&what, address, prefix)?;
            message.header.destination_prefix_length = prefix;
            if prefix > 0 {
                message
                    .attributes
                    .push(RouteAttribute::Destination(RouteAddress::from(address)));
            }
        }
        if let Some(via) = via {
            message
                .attributes
                .push(RouteAttribute::Gateway(RouteAddress::from(via)));
        }
        if let Some(device) = device {
            message
                .attributes
                .push(RouteAttribute::Oif(self.index_for(&what, device)?));
        }
        self.request(
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
        .map(drop)
        .map_err(|refusal| refused(&what, refusal))
    }

    /// Tells a device the Ethernet address of a neighbour, for good; replaces what it knew.
    ///
    /// # Errors
    /// [`Error::Missing`], [`Error::Kernel`].
    pub fn add_neighbour(&self, device: &str, address: IpAddr, mac: [u8; 6]) -> Result<()> {
        let what = format!("add neighbour {address} on `{device}`");
        let mut message = NeighbourMessage::default();
        message.header.family = family(address);
        message.header.ifindex = self.index_for(&what, device)?;
        message.header.state = NeighbourState::Permanent;
        message.attributes = vec![
            NeighbourAttribute::Destination(match address {
                IpAddr::V4(ip) => NeighbourAddress::Inet(ip),
                IpAddr::V6(ip) => NeighbourAddress::Inet6(ip),
            }),
            NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
        ];
        let message = RouteNetlinkMessage::NewNeighbour(message);
        self.ask(&what, device, message, NLM_F_CREATE | NLM_F_REPLACE)
            .map(drop)
    }
}

/// A device and its own address; the other one of a message may be the peer's.
fn own_address(message: &[u8]) -> Option<(u32, IpAddr)> {
    let of = |wanted| {
        let mut all = attributes(message, IFADDRMSG);
        all.find_map(|(kind, value)| (kind == wanted).then_some(value))
    };
    let ip = ip_at(of(IFA_LOCAL).or_else(|| of(IFA_ADDRESS))?)?;
    Some((u32_at(message, 4)?, ip))
}

/// The devices and gateways of a route, which may have several.
pub(crate) fn hops(message: &[u8]) -> Vec<(u32, Option<IpAddr>)> {
    let several = attribute(message, RTMSG, RTA_MULTIPATH).unwrap_or_default();
    let several = next_hops(several).filter_map(|one| hop(one, RTNEXTHOP, u32_at(one, 4)));
    hop(message, RTMSG, None)
        .into_iter()
        .chain(several)
        .collect()
}

/// The next hops of a route that has several (`struct rtnexthop` and attributes).
fn next_hops(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = u16_at(rest, 0).map(usize::from)?.max(RTNEXTHOP);
        let one = rest.get(..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(one)
    })
}

fn hop(message: &[u8], header: usize, mut device: Option<u32>) -> Option<(u32, Option<IpAddr>)> {
    let mut gateway = None;
    for (kind, value) in attributes(message, header) {
        match kind {
            RTA_OIF => device = u32_at(value, 0),
            RTA_GATEWAY => gateway = ip_at(value),
            // The family of the address is before it.
            RTA_VIA => gateway = ip_at(value.get(2..).unwrap_or_default()),
            _ => {}
        }
    }
    Some((device?, gateway))
}

pub(crate) fn ip_at(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => <[u8; 4]>::try_from(octets)
            .ok()
            .map(|ip| Ipv4Addr::from(ip).into()),
        16 => <[u8; 16]>::try_from(octets)
            .ok()
            .map(|ip| Ipv6Addr::from(ip).into()),
        _ => None,
    }
}

pub(crate) fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

pub(crate) fn check_prefix(what: &str, address: IpAddr, prefix: u8) -> Result<()> {
    let longest = if address.is_ipv4() { 32 } else { 128 };
    if prefix > longest {
        return Err(Error::invalid(
            what,
            format!("a prefix has at most {longest} bits"),
        ));
    }
    Ok(())
}
