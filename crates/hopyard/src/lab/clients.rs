//! The clients of a path: endpoint `a`, or a container for each flow.

use std::net::IpAddr;

use super::builder::ETH;
use super::topology::{Addresses, Client, Subnet, host, role};
use super::{Builder, Result};
use crate::meter::way::Hop;
use crate::model::Family;

/// Where a client is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    /// Its namespace.
    pub role: &'static str,
    /// The name of what it is connected to.
    pub port: String,
    /// Its addresses.
    pub addresses: Addresses,
}

impl Seat {
    /// The name of what it is connected to, where it alone can have that name.
    #[must_use]
    pub fn port_or<'a>(&'a self, otherwise: &'a str) -> &'a str {
        if role::is_container(self.role) {
            &self.port
        } else {
            otherwise
        }
    }

    fn alone(subnet: Subnet) -> Self {
        Self {
            role: role::A,
            port: "veth-a".to_owned(),
            addresses: subnet.host(host::A),
        }
    }

    fn container(number: u16, subnet: Subnet) -> Self {
        let role = role::container(number);
        Self {
            role,
            port: format!("veth-{role}"),
            addresses: subnet.host(host::container(number)),
        }
    }
}

impl Builder {
    /// The clients, each with its device [`ETH`] as `attach` makes it and its addresses in a subnet. What
    /// `attach` gives back is the way from there as far as it is the client's own.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub fn clients(
        &mut self,
        subnet: Subnet,
        mut attach: impl FnMut(&mut Self, &Seat) -> Result<Vec<Hop>>,
    ) -> Result<Vec<Client>> {
        let seats = self.seats(subnet);
        let roles: Vec<_> = seats.iter().map(|seat| seat.role).collect();
        self.make_spaces(&roles)?;
        let mut clients = Vec::with_capacity(seats.len());
        for seat in &seats {
            let way = attach(self, seat)?;
            let endpoint = self.endpoint(seat.role, ETH, seat.addresses)?;
            clients.push(Client { endpoint, way });
        }
        Ok(clients)
    }

    fn seats(&self, subnet: Subnet) -> Vec<Seat> {
        let Some(containers) = self.axes().container_count() else {
            return vec![Seat::alone(subnet)];
        };
        let last = u16::try_from(containers).unwrap_or(u16::MAX);
        (1..=last)
            .map(|number| Seat::container(number, subnet))
            .collect()
    }

    /// Those of an address of each IP version that a namespace is to have. Containers have one of the cell's IP
    /// version alone: a thousand devices on one link that tell each other of their IPv6 multicast groups send
    /// a million reports.
    pub(super) fn of_families(&self, role: &str, both: [(IpAddr, u8); 2]) -> Vec<(IpAddr, u8)> {
        let four = self.axes().family == Family::V4;
        both.into_iter()
            .filter(|(address, _)| !role::is_container(role) || address.is_ipv4() == four)
            .collect()
    }

    /// The other end of a client's cable. At those of containers `own` addresses are the same, with a route to
    /// the container.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn cable_end(
        &mut self,
        seat: &Seat,
        role: &'static str,
        device: &str,
        own: Addresses,
    ) -> Result<()> {
        if !role::is_container(seat.role) {
            return self.address(role, device, own);
        }
        let own = self.of_families(seat.role, own.alone());
        let theirs = self.of_families(seat.role, seat.addresses.alone());
        let handle = self.space(role)?;
        for (address, prefix) in own {
            handle.add_address(device, address, prefix)?;
        }
        for to in theirs {
            handle.add_route(Some(to), None, Some(device))?;
        }
        Ok(())
    }

    /// Tells containers and their neighbour of each other, for good. Asking takes room in a table that the
    /// whole host has one of, for a thousand entries (`gc_thresh3`). `device` is the neighbour's; `None` is the
    /// last one of each container's own way.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn introduce(
        &mut self,
        clients: &[Client],
        neighbour: &'static str,
        device: Option<&str>,
        addresses: Addresses,
    ) -> Result<()> {
        let address = addresses.of(self.axes().family);
        let shared = match device {
            Some(device) => Some(self.space(neighbour)?.link(device)?.mac),
            None => None,
        };
        let containers = clients
            .iter()
            .filter(|client| role::is_container(client.endpoint.role));
        for Client { endpoint, way } in containers {
            let device = device.or(way.last().map(|hop| &*hop.device)).unwrap_or(ETH);
            let mac = match shared {
                Some(mac) => mac,
                None => self.space(neighbour)?.link(device)?.mac,
            };
            let own = self.space(endpoint.role)?.link(ETH)?.mac;
            if let (Some(mac), Some(own)) = (mac, own) {
                let back = endpoint.addresses.of(self.axes().family);
                self.space(endpoint.role)?
                    .add_neighbour(ETH, address, mac)?;
                self.space(neighbour)?.add_neighbour(device, back, own)?;
            }
        }
        Ok(())
    }
}
