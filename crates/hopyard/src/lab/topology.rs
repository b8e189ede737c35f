//! What a built path looks like: its endpoints, their addresses, and the devices between.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopyard_net::Handle;

use crate::meter::way::Hop;
use crate::model::Family;

/// An IPv4 and an IPv6 address of one interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4.
    pub v4: Ipv4Addr,
    /// IPv6.
    pub v6: Ipv6Addr,
}

impl Addresses {
    /// Loopback.
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

    /// Both, with the prefix lengths that every lab uses.
    #[must_use]
    pub fn with_prefixes(self) -> [(IpAddr, u8); 2] {
        [(self.v4.into(), 24), (self.v6.into(), 64)]
    }
}

/// A subnet of a lab, from the blocks set aside for benchmarking: 198.18.0.0/15 (RFC 2544) and
/// 2001:2::/48 (RFC 5180).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subnet(u8);

impl Subnet {
    /// Endpoints on one link layer.
    pub const LAN: Self = Self(0);
    /// Endpoint `a` and the hub, where the hub routes.
    pub const SIDE_A: Self = Self(1);
    /// Endpoint `b` and the hub, where the hub routes.
    pub const SIDE_B: Self = Self(2);
    /// The wire, where the hub routes.
    pub const WIRE: Self = Self(3);
    /// Below a tunnel.
    pub const UNDERLAY: Self = Self(4);

    /// The host's addresses in it.
    #[must_use]
    pub fn host(self, host: u8) -> Addresses {
        Addresses {
            v4: Ipv4Addr::new(198, 18, self.0, host),
            v6: Ipv6Addr::new(0x2001, 2, 0, u16::from(self.0), 0, 0, 0, u16::from(host)),
        }
    }
}

/// Host numbers by role.
pub mod host {
    /// Endpoint `a`.
    pub const A: u8 = 1;
    /// Endpoint `b`.
    pub const B: u8 = 2;
    /// Namespace `far`.
    pub const FAR: u8 = 3;
    /// The hub.
    pub const HUB: u8 = 254;
}

/// Namespaces by role.
pub mod role {
    /// The endpoint that is the client.
    pub const A: &str = "a";
    /// A second endpoint on the same path.
    pub const B: &str = "b";
    /// The namespace that plays the host.
    pub const HUB: &str = "hub";
    /// The second machine, at the other end of the wire.
    pub const FAR: &str = "far";
    /// The other ends of ports that nobody uses.
    pub const CROWD: &str = "crowd";
}

/// Where a socket lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Namespace by its role.
    pub role: &'static str,
    /// The device that carries its addresses.
    pub device: String,
    /// Its addresses.
    pub addresses: Addresses,
    /// Where it is a guest, which has no namespace on this host: how many CPUs it has.
    pub guest_cpus: Option<u32>,
}

/// A built path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// Who connects.
    pub client: Endpoint,
    /// Who listens.
    pub server: Endpoint,
    /// Every device that traffic between them passes, from client to server.
    pub way: Vec<Hop>,
}

/// One namespace of a lab.
#[derive(Debug)]
pub struct Space {
    /// Its role.
    pub role: &'static str,
    /// What acts in it.
    pub handle: Handle,
}
