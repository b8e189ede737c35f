//! Joined sockets of a lab, by the shortcut of its direct switch or without one, and what is counted of them in place of devices.

use std::path::{Path, PathBuf};

use hopyard_net::Handle;
use hopyard_switch::{
    LOSSES, NewShortcut, PairShortcut, PartyStats, SHORTCUT_MAX_MESSAGE, SelfTest, Switch,
};

use super::kept::Kept;
use super::part::{Part, Undone};
use super::topology::role;
use super::{Builder, Error, Lab, Result};
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
    /// The lab is to be kept; the kernel cannot or will not; no cgroup v2.
    pub(crate) fn join_ports(&mut self, clients: &[String]) -> Result<Vec<Hop>> {
        if self.is_to_keep() {
            return Err(Error::Kept(
                "only sockets of processes that hopyard starts are joined, and none of these runs in a kept lab: choose path `direct`"
                    .to_owned(),
            ));
        }
        let cgroup = self.cgroup_of_sockets()?;
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

    /// Joins sockets of the lab's processes between the two ends of a veth pair, by their namespaces and names. Returns what counts
    /// in place of the devices, which messages pass by: of the first end, of the second.
    ///
    /// # Errors
    /// As [`Builder::join_ports`].
    pub(super) fn join_pair(
        &mut self,
        ends: [(&'static str, &'static str); 2],
    ) -> Result<[Hop; 2]> {
        let cgroup = self.cgroup_of_sockets()?;
        let mut handle = |role| -> Result<Handle> { Ok(Handle::new(self.space(role)?.ns())?) };
        let handles = [handle(ends[0].0)?, handle(ends[1].0)?];
        let pair = [(&handles[0], ends[0].1), (&handles[1], ends[1].1)];
        let shortcut = PairShortcut::new(pair, &cgroup)?;
        self.push(JoinedPair {
            shortcut: Some(shortcut),
            ends,
            handles,
        });
        let port = |device: &str| format!("{PORT}{device}");
        Ok([
            Hop::tx(ends[0].0, &port(ends[0].1)),
            Hop::rx(ends[1].0, &port(ends[1].1)),
        ])
    }

    fn cgroup_of_sockets(&self) -> Result<PathBuf> {
        let cgroup = self.cgroup();
        let cgroup = cgroup.ok_or_else(|| hopyard_net::Error::Unsupported {
            what: "join the sockets of a lab".to_owned(),
            feature: "cgroup2".to_owned(),
            remedy: "mount it: mount -t cgroup2 none /sys/fs/cgroup".to_owned(),
        })?;
        Ok(cgroup.path().to_owned())
    }
}

/// The two ends of a pair whose sockets are joined.
#[derive(Debug)]
struct JoinedPair {
    shortcut: Option<PairShortcut>,
    ends: [(&'static str, &'static str); 2],
    handles: [Handle; 2],
}

impl Part for JoinedPair {
    /// Its programs end with their descriptors.
    fn undo(&mut self) -> Undone {
        self.shortcut = None;
        Undone::default()
    }

    fn keep(&mut self, _: &Path, _: &mut Kept) -> Result<()> {
        Err(Error::Kept(
            "sockets without a switch are joined by this process, and no longer than it runs: choose path `direct`"
                .to_owned(),
        ))
    }

    fn counted(&self) -> Result<Vec<DeviceCount>> {
        let Some(shortcut) = &self.shortcut else {
            return Ok(Vec::new());
        };
        let ends = self.ends.iter().zip(&self.handles);
        let mut counts = Vec::new();
        for (((role, device), handle), joined) in ends.zip(shortcut.counters()?) {
            let all = handle.device_stats()?;
            let frames = all.iter().find(|stats| stats.name == *device);
            let Some(frames) = frames else {
                continue;
            };
            let count = |name: String, rx: [u64; 2], tx: [u64; 2]| {
                DeviceCount::new(*role, name, [rx[0], rx[1], tx[0], tx[1]])
            };
            // A port takes what its sockets send.
            let received = [joined.tx_messages, joined.tx_bytes];
            let sent = [joined.rx_messages, joined.rx_bytes];
            counts.push(count(format!("{JOINED}{device}"), received, sent));
            counts.push(count(
                format!("{PORT}{device}"),
                [
                    frames.rx_packets + received[0],
                    frames.rx_bytes + received[1],
                ],
                [frames.tx_packets + sent[0], frames.tx_bytes + sent[1]],
            ));
        }
        Ok(counts)
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
    let joined = DeviceCount::new(
        role::HUB,
        format!("{JOINED}{}", party.party),
        [
            shortcut.rx_messages,
            shortcut.rx_bytes,
            shortcut.tx_messages,
            shortcut.tx_bytes,
        ],
    );
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
