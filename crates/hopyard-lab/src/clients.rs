//! The clients of a path: endpoint `a`, or a container for each flow.

use std::net::IpAddr;

use hopyard_net::Route;

use super::builder::ETH;
use super::topology::{Addresses, Client, Endpoint, Subnet, host, role};
use super::{Builder, Result};
use crate::model::{Family, Hop};

/// What a client is connected to is named after it.
const PORT: &str = "veth-";

/// Where a client is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSlot {
    /// Role of the namespace that the client runs in.
    pub role: &'static str,
    /// The name of what it is connected to.
    pub port: String,
    /// IPv4 and IPv6 addresses of the client.
    pub addresses: Addresses,
}

impl ClientSlot {
    /// The name of what it is connected to, where it alone can have that name.
    #[must_use]
    pub(crate) fn port_or<'a>(&'a self, otherwise: &'a str) -> &'a str {
        if role::is_container(self.role) {
            &self.port
        } else {
            otherwise
        }
    }

    /// What all devices are that are as this one at each container: its own of that name, or the ports. `None` for
    /// any other device.
    pub(super) fn alike<'a>(role: &str, device: &'a str) -> Option<&'a str> {
        if role::is_container(role) || role::is_router(role) {
            return Some(device);
        }
        let of = device.strip_prefix(PORT)?;
        role::is_container(of).then_some(PORT)
    }

    /// That of a client which stands already.
    #[must_use]
    pub fn of(client: &Client) -> Self {
        Self {
            role: client.endpoint.role,
            port: format!("{PORT}{}", client.endpoint.role),
            addresses: client.endpoint.addresses,
        }
    }

    fn alone(subnet: Subnet) -> Self {
        Self {
            role: role::A,
            port: format!("{PORT}{}", role::A),
            addresses: subnet.host(host::A),
        }
    }

    fn container(number: u16, subnet: Subnet) -> Self {
        let role = role::container(number);
        Self {
            role,
            port: format!("{PORT}{role}"),
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
        mut attach: impl FnMut(&mut Self, &ClientSlot) -> Result<Vec<Hop>>,
    ) -> Result<Vec<Client>> {
        let slots = self.slots(subnet);
        let roles: Vec<_> = slots.iter().map(|slot| slot.role).collect();
        self.make_spaces(&roles)?;
        let mut clients = Vec::with_capacity(slots.len());
        for slot in &slots {
            let way = attach(self, slot)?;
            let endpoint = self.endpoint(slot.role, ETH, slot.addresses)?;
            clients.push(Client { endpoint, way });
        }
        Ok(clients)
    }

    fn slots(&self, subnet: Subnet) -> Vec<ClientSlot> {
        let Some(containers) = self.axes().container_count() else {
            return vec![ClientSlot::alone(subnet)];
        };
        let last = u16::try_from(containers).unwrap_or(u16::MAX);
        (1..=last)
            .map(|number| ClientSlot::container(number, subnet))
            .collect()
    }

    /// Those of an address of each IP version that a namespace is to have. Containers have one of the cell's IP
    /// version alone: a thousand devices on one link that tell each other of their IPv6 multicast groups send
    /// a million reports.
    pub(super) fn of_families(&self, role: &str, both: [(IpAddr, u8); 2]) -> Vec<(IpAddr, u8)> {
        let four = self.axes().family == Family::V4;
        let has_containers = self.axes().container_count().is_some();
        let is_one_of_many = role::is_container(role) || role::is_router(role) && has_containers;
        both.into_iter()
            .filter(|(address, _)| !is_one_of_many || address.is_ipv4() == four)
            .collect()
    }

    /// The other end of a client's cable. For containers, every such end has the addresses `own` and a route to its
    /// container, in `table` or the main table.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn cable_end(
        &mut self,
        slot: &ClientSlot,
        role: &'static str,
        device: &str,
        own: Addresses,
        table: Option<u32>,
    ) -> Result<()> {
        if !role::is_container(slot.role) {
            return self.address(role, device, own);
        }
        let own = self.of_families(slot.role, own.alone());
        let theirs = self.of_families(slot.role, slot.addresses.alone());
        let handle = self.space(role)?;
        for (address, prefix) in own {
            handle.add_address(device, address, prefix)?;
        }
        let by = handle.link(device)?.index;
        for (to, prefix) in theirs {
            handle.make_route(&Route {
                table,
                ..Route::new(to, prefix, None, by)
            })?;
        }
        Ok(())
    }

    /// Tells containers and the server that they are on one link with of each other, for good. Asking takes room in
    /// a table that the whole host has one of, for a thousand entries (`gc_thresh3`).
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn add_static_neighbours(
        &mut self,
        clients: &[Client],
        server: &Endpoint,
    ) -> Result<()> {
        if self.has_real_wire() && server.role == role::FAR {
            // The other machine asks for addresses, as it does in use.
            return Ok(());
        }
        let mac = self.space(server.role)?.link(&server.device)?.mac;
        for client in containers(clients) {
            self.introduce_with(&client.endpoint, server, mac)?;
        }
        Ok(())
    }

    /// The same for a neighbour with a cable to each container, of whose own way its device is the last.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn introduce_by_cable(
        &mut self,
        clients: &[Client],
        neighbour: &'static str,
        addresses: Addresses,
    ) -> Result<()> {
        for client in containers(clients) {
            let device = client.way.last().map_or(ETH, |hop| &hop.device);
            let mac = self.space(neighbour)?.link(device)?.mac;
            let neighbour = Endpoint::new(neighbour, device, addresses);
            self.introduce_with(&client.endpoint, &neighbour, mac)?;
        }
        Ok(())
    }

    /// The same for two neighbours.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn introduce(&mut self, one: &Endpoint, other: &Endpoint) -> Result<()> {
        let mac = self.space(other.role)?.link(&other.device)?.mac;
        self.introduce_with(one, other, mac)
    }

    /// Sends what is for one host to a router, or to the host itself on a link where it has an address of another subnet; over
    /// the IP versions that a client has.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn route_to_host(
        &mut self,
        role: &'static str,
        to: Addresses,
        (router, device): (Option<Addresses>, &str),
        client: &str,
    ) -> Result<()> {
        for (to, length) in self.of_families(client, to.alone()) {
            let family = if to.is_ipv4() { Family::V4 } else { Family::V6 };
            let router = router.map(|router| router.of(family));
            self.space(role)?
                .add_route(Some((to, length)), router, Some(device))?;
        }
        Ok(())
    }

    fn introduce_with(
        &mut self,
        client: &Endpoint,
        neighbour: &Endpoint,
        mac: Option<[u8; 6]>,
    ) -> Result<()> {
        let family = self.axes().family;
        let own = self.space(client.role)?.link(&client.device)?.mac;
        let (Some(mac), Some(own)) = (mac, own) else {
            return Ok(());
        };
        let (there, back) = (neighbour.addresses.of(family), client.addresses.of(family));
        self.space(client.role)?
            .add_neighbour(&client.device, there, mac)?;
        let handle = self.space(neighbour.role)?;
        Ok(handle.add_neighbour(&neighbour.device, back, own)?)
    }
}

fn containers(clients: &[Client]) -> impl Iterator<Item = &Client> {
    clients
        .iter()
        .filter(|client| role::is_container(client.endpoint.role))
}
