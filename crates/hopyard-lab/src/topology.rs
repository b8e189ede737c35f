//! What a built path looks like: its endpoints, their addresses, and the devices between.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use hopyard_net::Handle;

use super::kept::{Kept, KeptSpace};
use super::outlive::{INSTEAD, mounts_outlive_us};
use super::part::{Part, Undone};
use super::{Error, Result};
use crate::model::{Family, Hop};

/// An IPv4 and an IPv6 address of one interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4 address, without a prefix length.
    pub v4: Ipv4Addr,
    /// IPv6 address, without a prefix length.
    pub v6: Ipv6Addr,
}

impl Addresses {
    /// `127.0.0.1` and `::1`.
    pub const LOOPBACK: Self = Self {
        v4: Ipv4Addr::LOCALHOST,
        v6: Ipv6Addr::LOCALHOST,
    };

    /// The one of a family.
    #[must_use]
    pub fn of(self, family: Family) -> IpAddr {
        match family {
            Family::V4 => self.v4.into(),
            Family::V6 => self.v6.into(),
        }
    }

    /// Both, with the prefix lengths of the subnets of a lab.
    #[must_use]
    pub(crate) fn with_prefixes(self) -> [(IpAddr, u8); 2] {
        [
            (self.v4.into(), Subnet::V4_PREFIX),
            (self.v6.into(), Subnet::V6_PREFIX),
        ]
    }

    /// Both alone, with nothing else on the link.
    #[must_use]
    pub fn alone(self) -> [(IpAddr, u8); 2] {
        [(self.v4.into(), 32), (self.v6.into(), 128)]
    }
}

/// A subnet of a lab, from the blocks set aside for benchmarking: 198.18.0.0/15 (RFC 2544) and
/// 2001:2::/48 (RFC 5180). Over IPv4 there are 32 of them, with some four thousand hosts each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subnet(u8);

impl Subnet {
    /// Endpoints on one link layer.
    pub const LAN: Self = Self(0);
    /// Endpoint `a` and the hub, where the hub routes.
    pub(crate) const SIDE_A: Self = Self(1);
    /// Endpoint `b` and the hub, where the hub routes.
    pub(crate) const SIDE_B: Self = Self(2);
    /// The wire, where the hub routes.
    pub const WIRE: Self = Self(3);
    /// Below a tunnel.
    pub(crate) const UNDERLAY: Self = Self(4);
    /// Between two neighbours of a chain; the first is 0.
    #[must_use]
    pub const fn segment(index: u8) -> Self {
        Self(8 + index)
    }

    pub(crate) const V4_PREFIX: u8 = 20;
    pub(crate) const V6_PREFIX: u8 = 64;

    /// All of it, over each IP version.
    #[must_use]
    pub fn prefixes(self) -> [(IpAddr, u8); 2] {
        self.host(0).with_prefixes()
    }

    /// The host's addresses in it.
    #[must_use]
    pub fn host(self, host: u16) -> Addresses {
        let first = u32::from(Ipv4Addr::new(198, 18, 0, 0));
        let subnet = u32::from(self.0) << (32 - Self::V4_PREFIX);
        Addresses {
            v4: Ipv4Addr::from(first | subnet | u32::from(host)),
            v6: Ipv6Addr::new(0x2001, 2, 0, u16::from(self.0), 0, 0, 0, host),
        }
    }
}

/// Host numbers by role.
pub mod host {
    /// Endpoint `a`.
    pub const A: u16 = 1;
    /// Endpoint `b`.
    pub const B: u16 = 2;
    /// Namespace `far`.
    pub const FAR: u16 = 3;
    pub const HUB: u16 = 254;

    /// A container by its number, from 1.
    #[must_use]
    pub const fn container(number: u16) -> u16 {
        1000 + number
    }
}

/// Namespaces by role.
pub mod role {
    use std::sync::LazyLock;

    /// The endpoint that is the client.
    pub const A: &str = "a";
    /// A second endpoint on the same path.
    pub const B: &str = "b";
    /// The namespace that plays the host.
    pub const HUB: &str = "hub";
    /// The second machine, at the other end of the wire.
    pub const FAR: &str = "far";
    /// Who connects, where nothing was built.
    pub const CLIENT: &str = "client";
    /// Who listens, where nothing was built.
    pub const SERVER: &str = "server";
    /// The other ends of ports that nobody uses.
    pub(crate) const CROWD: &str = "crowd";

    /// Containers that forward, in the order of their chain.
    pub(crate) const FORWARDERS: [&str; 8] = ["f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8"];

    /// Most containers of a lab.
    const MOST: usize = crate::model::MOST_FLOWS as usize;

    static CONTAINERS: LazyLock<Vec<String>> =
        LazyLock::new(|| (1..=MOST).map(|number| format!("c{number}")).collect());

    /// A container by its number, from 1 to the most flows that a load has; the last one beyond.
    #[must_use]
    pub fn container(number: u16) -> &'static str {
        &CONTAINERS[usize::from(number).clamp(1, MOST) - 1]
    }

    static ROUTERS: LazyLock<Vec<String>> =
        LazyLock::new(|| (1..=MOST).map(|number| format!("r{number}")).collect());

    /// The container that routes for the container of that number, as [`container`].
    #[must_use]
    pub fn router(number: u16) -> &'static str {
        &ROUTERS[usize::from(number).clamp(1, MOST) - 1]
    }

    /// Is it that of a container that routes for another?
    #[must_use]
    pub(crate) fn is_router(role: &str) -> bool {
        role.strip_prefix('r')
            .is_some_and(|number| number.parse::<u16>().is_ok())
    }

    /// Is it a container's?
    #[must_use]
    pub fn is_container(role: &str) -> bool {
        role.strip_prefix('c')
            .is_some_and(|number| number.parse::<u16>().is_ok())
    }
}

/// Where a socket lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Namespace by its role.
    pub role: &'static str,
    /// The device that carries its addresses.
    pub device: String,
    /// IPv4 and IPv6 addresses of the endpoint.
    pub addresses: Addresses,
    /// Where it is a guest, which has no namespace on this host: how many CPUs it has.
    pub guest_cpus: Option<u32>,
}

impl Endpoint {
    /// An endpoint in a namespace.
    #[must_use]
    pub fn new(role: &'static str, device: &str, addresses: Addresses) -> Self {
        Self {
            role,
            device: device.to_owned(),
            addresses,
            guest_cpus: None,
        }
    }
}

/// One of the clients of a path, each of which is connected alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Where it is.
    pub endpoint: Endpoint,
    /// The devices that its traffic passes and nobody else's does, from it to the server.
    pub way: Vec<Hop>,
}

/// A built path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// Who connects; the first of them, where they are containers.
    pub client: Endpoint,
    /// Who listens.
    pub server: Endpoint,
    /// Every device that all traffic between them passes, from client to server.
    pub way: Vec<Hop>,
    /// The containers, if that is what connects: a flow is each one's.
    pub containers: Vec<Client>,
    /// After so many devices of the way a program ends the client's connections and makes its own to the server. What it has not
    /// passed on yet waits in its sockets, so the devices before it and behind it do not count the same bytes at the same time.
    pub spliced_at: Option<usize>,
}

impl Topology {
    /// One client that is no container, its server, and every device from the one to the other.
    pub(super) fn pair(client: Endpoint, server: Endpoint, way: Vec<Hop>) -> Self {
        Self {
            client,
            server,
            way,
            containers: Vec::new(),
            spliced_at: None,
        }
    }

    /// Clients that are connected alike, of which there is one at least, and what their traffic has in
    /// common: all of the way that comes after their own.
    pub(super) fn new(clients: Vec<Client>, server: Endpoint, way: Vec<Hop>) -> Self {
        let client = clients[0].endpoint.clone();
        let (containers, alone) = match client.role {
            role::A => (Vec::new(), clients),
            _ => (clients, Vec::new()),
        };
        let own = alone.into_iter().flat_map(|client| client.way);
        Self {
            containers,
            ..Self::pair(client, server, own.chain(way).collect())
        }
    }

    /// The endpoints that connect.
    pub fn clients(&self) -> impl Iterator<Item = &Endpoint> {
        let alone = self.containers.is_empty().then_some(&self.client);
        alone
            .into_iter()
            .chain(self.containers.iter().map(|container| &container.endpoint))
    }

    /// Every device that traffic passes.
    pub fn hops(&self) -> impl Iterator<Item = &Hop> {
        let own = self.containers.iter().flat_map(|container| &container.way);
        own.chain(&self.way)
    }
}

/// One namespace of a lab.
#[derive(Debug)]
pub struct Space {
    pub role: &'static str,
    /// What acts in it.
    pub handle: Handle,
    /// Devices of it that are ends of pairs, one end of each pair of the lab.
    pub(super) pairs: Vec<String>,
}

impl Space {
    pub(super) fn new(role: &'static str, handle: Handle) -> Self {
        Self {
            role,
            handle,
            pairs: Vec::new(),
        }
    }
}

impl Part for Space {
    /// Pairs go at once, in one request; the namespace and what else is in it follow in the background.
    fn undo(&mut self) -> Undone {
        let names: Vec<&str> = self.pairs.iter().map(String::as_str).collect();
        let what = format!("devices of namespace `{}`", self.role);
        Undone::of(what, self.handle.delete_links(&names))
    }

    fn keep(&mut self, home: &Path, kept: &mut Kept) -> Result<()> {
        self.handle.ns().bind(&home.join(self.role))?;
        if !mounts_outlive_us() {
            return Err(Error::Kept(format!("the lab cannot be kept: {INSTEAD}")));
        }
        let links = self.handle.links()?;
        kept.spaces.push(KeptSpace {
            role: self.role.to_owned(),
            devices: links.into_iter().map(|link| link.name).collect(),
            address: None,
        });
        Ok(())
    }
}
