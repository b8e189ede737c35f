//! The shortcut of a lab's direct switch, and what it counts in place of devices.

use hopyard_switch::{LOSSES, NewShortcut, PartyStats, SHORTCUT_MAX_MESSAGE, SelfTest, Switch};

use super::topology::role;
use super::{Builder, Lab, Result};
use crate::model::loads::{Connection, Protocol, Shape};
use crate::model::{Axes, DeviceCount, Hop, LoadKind};

/// What a port took and gave in all: frames and messages of joined sockets.
const PORT: &str = "port:";
/// What of it went by the shortcut.
const JOINED: &str = "joined:";

impl Builder {
    /// Gives the direct switch a shortcut for the lab's processes. Returns what counts in place of the devices, which
    /// messages pass by: the ports of the clients, then the server's.
    ///
    /// # Errors
    /// The kernel cannot or will not; no cgroup v2.
    pub fn join_ports(&mut self, clients: &[String]) -> Result<Vec<Hop>> {
        let cgroup = self
            .cgroup()
            .ok_or_else(|| hopyard_net::Error::Unsupported {
                what: "join the sockets of a lab".to_owned(),
                feature: "cgroup2".to_owned(),
                remedy: "mount it: mount -t cgroup2 none /sys/fs/cgroup".to_owned(),
            })?;
        let cgroup = cgroup.path().to_owned();
        let name = self.id.switch_name();
        let hub = self.space(role::HUB)?.ns().try_clone()?;
        hub.run(|| {
            let new = NewShortcut {
                cgroup: &cgroup,
                // The loads use none of that.
                accept: &LOSSES.map(|(loss, ..)| loss),
            };
            // The path's need has seen the self-test pass on this kernel.
            Switch::open(&name)?.set_tested_shortcut(&new, &SelfTest::default())
        })??;
        let port = |name: &str| format!("{PORT}{name}");
        let mut way: Vec<Hop> = clients
            .iter()
            .map(|client| Hop::rx(role::HUB, &port(client)))
            .collect();
        way.push(Hop::tx(role::HUB, &port(super::switching::PORT_B)));
        Ok(way)
    }
}

impl Lab {
    /// Counts of ports, where the lab's switch has a shortcut.
    ///
    /// # Errors
    /// The switch cannot be read.
    pub(super) fn joined_counts(&self) -> Result<Vec<DeviceCount>> {
        let Some(name) = self
            .switch()
            .filter(|_| self.topology.ports().next().is_some())
        else {
            return Ok(Vec::new());
        };
        // Names of ports are those of its namespace.
        let hub = self.space(role::HUB)?.handle.ns();
        let stats = hub.run(|| Switch::open(name)?.stats())??;
        Ok(stats.iter().flat_map(counts).collect())
    }
}

fn counts(party: &PartyStats) -> Vec<DeviceCount> {
    let Some(shortcut) = &party.shortcut else {
        return Vec::new();
    };
    let joined = DeviceCount {
        namespace: role::HUB.to_owned(),
        name: format!("{JOINED}{}", party.party),
        rx_packets: shortcut.rx_messages,
        rx_bytes: shortcut.rx_bytes,
        tx_packets: shortcut.tx_messages,
        tx_bytes: shortcut.tx_bytes,
        dropped: 0,
    };
    let frames = &party.counters;
    let all = DeviceCount {
        name: format!("{PORT}{}", party.party),
        rx_packets: frames.rx_packets + joined.rx_packets,
        rx_bytes: frames.rx_bytes + joined.rx_bytes,
        tx_packets: frames.tx_packets + joined.tx_packets,
        tx_bytes: frames.tx_bytes + joined.tx_bytes,
        ..joined.clone()
    };
    vec![joined, all]
}

impl super::Topology {
    fn ports(&self) -> impl Iterator<Item = (&str, &Hop)> {
        self.way
            .iter()
            .filter_map(|hop| Some((hop.device.strip_prefix(PORT)?, hop)))
    }

    /// What counts messages of joined sockets. They must have passed it in a load of transactions over a standing connection
    /// whose messages are not too long: without this a path whose sockets were never joined would be taken for the shortcut.
    /// Others may pass it.
    #[must_use]
    pub fn joined(&self, load: LoadKind, axes: &Axes) -> Vec<Hop> {
        let info = load.info();
        let standing = matches!(info.shape, Shape::Transactions(Connection::Standing));
        let longest = axes
            .request_size_bytes
            .max(axes.response_size_bytes)
            .unwrap_or(1);
        let must = info.protocol == Protocol::Tcp && standing && longest <= SHORTCUT_MAX_MESSAGE;
        let joined = self.ports().map(|(port, hop)| {
            let device = format!("{JOINED}{port}");
            if must {
                Hop {
                    device,
                    ..hop.clone()
                }
            } else {
                Hop::any(hop.namespace, &device)
            }
        });
        joined.collect()
    }
}
