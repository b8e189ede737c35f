//! Services as kube-proxy lays them out in a host's rules, for a hub: those that nobody asks for, and behind them the one
//! that the client connects to.
//!
//! Each service has one endpoint. What a client's own service leads to is known when the server listens, so that its
//! ports are added then ([`Services::publish`]); each port of the server has the same port at the service.

mod iptables;
mod nftables;

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use hopyard_net::{IptablesFamily, NetNs, Result, apply_ruleset, restore_iptables};

use crate::model::Family;
use crate::model::loads::Protocol;

/// How services are written down as rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// A verdict map from address, protocol and port to the service's chain.
    Nftables,
    /// A rule for each service, one after another.
    Iptables,
}

/// The services of a hub.
#[derive(Debug)]
pub(super) struct Services {
    layout: Layout,
    family: Family,
    /// How many, with the one that is used.
    count: u32,
    /// The ports of the one that is used, as they were added last.
    published: Mutex<Vec<Port>>,
}

/// A port of a service, and the endpoint behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Port {
    /// The service's number, from 1.
    service: u32,
    address: IpAddr,
    endpoint: IpAddr,
    protocol: Protocol,
    port: u16,
}

impl Port {
    fn protocol(&self) -> &'static str {
        match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        }
    }

    /// What tells it from all others.
    fn id(&self) -> impl Display {
        let letter = match self.protocol {
            Protocol::Tcp => 'T',
            Protocol::Udp => 'U',
        };
        format!("{:07X}{letter}{:05}", self.service, self.port)
    }

    /// Address and port of the endpoint, as rules have them.
    fn target(&self) -> impl Display {
        match self.endpoint {
            IpAddr::V4(ip) => format!("{ip}:{}", self.port),
            IpAddr::V6(ip) => format!("[{ip}]:{}", self.port),
        }
    }
}

/// What all addresses of a lab are in (RFC 2544, RFC 5180): the "cluster", whose sources are not hidden.
const CLUSTER: [&str; 2] = ["198.18.0.0/15", "2001:2::/48"];

impl Services {
    pub(super) fn new(layout: Layout, family: Family, count: u32) -> Self {
        Self {
            layout,
            family,
            count: count.max(1),
            published: Mutex::default(),
        }
    }

    /// The address that the client connects to.
    pub(super) fn address(&self) -> IpAddr {
        address(self.family, self.count)
    }

    /// Loads all services but the one that is used, at once.
    pub(super) fn load(&self, hub: &NetNs) -> Result<()> {
        let idle: Vec<Port> = (1..self.count)
            .map(|service| Port {
                service,
                address: address(self.family, service),
                endpoint: idle_endpoint(self.family, service),
                protocol: Protocol::Tcp,
                port: 80,
            })
            .collect();
        let rules = match self.layout {
            Layout::Nftables => nftables::all(self.family, &idle),
            Layout::Iptables => iptables::all(self.cluster(), &idle),
        };
        self.apply(hub, &rules, false)
    }

    /// Puts ports of a server behind the service that is used, after all others, in place of those it had.
    pub(super) fn publish(
        &self,
        hub: &NetNs,
        endpoint: IpAddr,
        ports: &[u16],
        protocol: Protocol,
    ) -> Result<()> {
        let port = |&port| Port {
            service: self.count,
            address: self.address(),
            endpoint,
            protocol,
            port,
        };
        let mut now: Vec<Port> = ports.iter().map(port).collect();
        // Flows that share a socket name its port once each.
        now.dedup();
        let mut published = self
            .published
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let only = |some: &[Port], others: &[Port]| -> Vec<Port> {
            let own = some.iter().filter(|port| !others.contains(port));
            own.copied().collect()
        };
        let (gone, new) = (only(&published, &now), only(&now, &published));
        if gone.is_empty() && new.is_empty() {
            return Ok(());
        }
        let rules = match self.layout {
            Layout::Nftables => nftables::exchange(self.family, &gone, &new),
            Layout::Iptables => iptables::exchange(self.cluster(), &gone, &new),
        };
        self.apply(hub, &rules, true)?;
        *published = now;
        Ok(())
    }

    /// Rules of nftables say themselves what stays; those of iptables are in addition where it `keeps` what is there.
    fn apply(&self, hub: &NetNs, rules: &str, keeps: bool) -> Result<()> {
        match self.layout {
            Layout::Nftables => apply_ruleset(hub, rules),
            Layout::Iptables => restore_iptables(hub, self.iptables(), rules, keeps),
        }
    }

    fn cluster(&self) -> &'static str {
        match self.family {
            Family::V4 => CLUSTER[0],
            Family::V6 => CLUSTER[1],
        }
    }

    fn iptables(&self) -> IptablesFamily {
        match self.family {
            Family::V4 => IptablesFamily::V4,
            Family::V6 => IptablesFamily::V6,
        }
    }
}

/// The address of a service by its number: the last quarter of what labs have, which no subnet of a lab uses.
fn address(family: Family, number: u32) -> IpAddr {
    numbered(family, [198, 19, 128, 0], 0xffff, number)
}

/// The endpoint of a service that nobody asks for.
fn idle_endpoint(family: Family, number: u32) -> IpAddr {
    numbered(family, [198, 19, 0, 0], 0xfffe, number)
}

fn numbered(family: Family, four: [u8; 4], six: u16, number: u32) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::from(u32::from(Ipv4Addr::from(four)) + number).into(),
        Family::V6 => {
            let subnet = u128::from(Ipv6Addr::new(0x2001, 2, 0, six, 0, 0, 0, 0));
            Ipv6Addr::from(subnet + u128::from(number)).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Subnet;

    #[test]
    fn no_service_has_an_address_of_a_subnet() {
        for family in [Family::V4, Family::V6] {
            let last = [30_000, 1].map(|number| address(family, number));
            assert_ne!(last[0], last[1]);
            for subnet in [Subnet::LAN, Subnet::WIRE, Subnet::segment(7)] {
                assert_ne!(subnet.host(1).of(family), last[1]);
            }
        }
        assert_eq!(address(Family::V4, 30_000).to_string(), "198.19.245.48");
        assert_eq!(
            idle_endpoint(Family::V4, 30_000).to_string(),
            "198.19.117.48"
        );
        assert_eq!(address(Family::V6, 1).to_string(), "2001:2:0:ffff::1");
    }

    fn port(service: u32) -> Port {
        Port {
            service,
            address: address(Family::V4, service),
            endpoint: Subnet::SIDE_B.host(2).v4.into(),
            protocol: Protocol::Udp,
            port: 4000,
        }
    }

    #[test]
    fn what_was_published_is_taken_out_again() {
        let (old, new) = (
            port(7),
            Port {
                port: 4001,
                ..port(7)
            },
        );
        let rules = nftables::exchange(Family::V4, &[old], &[new]);
        assert!(
            rules.contains("delete element ip kube-proxy service-ips { 198.19.128.7 . udp . 4000")
        );
        assert!(
            rules.contains("add element ip kube-proxy service-ips { 198.19.128.7 . udp . 4001")
        );
        let rules = iptables::exchange(CLUSTER[0], &[old], &[new]);
        let gone = rules
            .lines()
            .filter(|line| line.starts_with("-D KUBE-SERVICES "));
        // The jump to node ports is behind all services.
        assert_eq!(gone.count(), 2);
        assert!(rules.contains("-X KUBE-SEP-0000007U04000"));
        assert!(rules.contains("--to-destination 198.18.32.2:4001"));
    }
}
