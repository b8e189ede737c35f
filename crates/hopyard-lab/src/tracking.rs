//! What connection tracking of the hub must say of a path's connections.

use std::net::IpAddr;

use hopyard_net::{ConntrackStats, Tracked, conntrack_stats, nft_counters, tracked_to};

use super::part::{Part, Undone};
use super::services::Services;
use super::{Builder, Lab, Result, role};
use crate::model::loads::Protocol;
use crate::model::{Connections, TrackingCounts, Treatment};

/// What the hub does with connections from the clients to the server.
#[derive(Debug)]
enum Expected {
    /// Gives them another source address.
    SourceTranslated,
    /// Gives them another destination address: they were to a service.
    DestinationTranslated(Services),
    /// Hands them to a flow table.
    Offloaded,
}

impl Part for Expected {
    /// Its rules go with the hub.
    fn undo(&mut self) -> Undone {
        Undone::default()
    }
}

/// Samples of such labs are proved by connection tracking of the hub too.
impl Builder {
    /// The counter of connections that a rule handed to a flow table.
    pub(super) const OFFLOADED: &str = "offloaded";

    /// The hub gives connections from the clients to the server another source address.
    pub(super) fn expect_source_translated(&mut self) {
        self.push(Expected::SourceTranslated);
    }

    /// Clients connect to a service of these, of which the hub has loaded all but the last.
    pub(super) fn expect_services(&mut self, services: Services) {
        self.push(Expected::DestinationTranslated(services));
    }

    /// The hub hands connections to a flow table and counts them by [`Builder::OFFLOADED`].
    pub(super) fn expect_offloaded(&mut self) {
        self.push(Expected::Offloaded);
    }
}

impl Lab {
    fn expected(&self) -> Option<&Expected> {
        self.builder.parts().next()
    }

    /// The address by which clients reach ports of the server at `server`: its own, or that of a service, which then leads
    /// there.
    ///
    /// # Errors
    /// The rules of the service cannot be loaded.
    pub fn publish(&self, server: IpAddr, ports: &[u16], protocol: Protocol) -> Result<IpAddr> {
        let Some(Expected::DestinationTranslated(services)) = self.expected() else {
            return Ok(server);
        };
        let hub = self.space(role::HUB)?.handle.ns();
        services.publish(hub, server, ports, protocol)?;
        Ok(services.address())
    }

    /// What connection tracking of the hub counted, where the path is proved by it.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn tracking_counts(&self) -> Result<Option<TrackingCounts>> {
        if self.expected().is_none() {
            return Ok(None);
        }
        let hub = self.space(role::HUB)?.handle.ns();
        Ok(Some(counts(conntrack_stats(hub)?)))
    }

    /// [`Self::connections`] of a path with a flow table, which drops a connection that ends: they have to be read before.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn leaving_connections(&self) -> Result<Option<Connections>> {
        match self.expected() {
            Some(Expected::Offloaded) => self.connections(),
            _ => Ok(None),
        }
    }

    /// The connections to the server as the hub tracks them, where the path is proved by them.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn connections(&self) -> Result<Option<Connections>> {
        let Some(expected) = self.expected() else {
            return Ok(None);
        };
        let own = self.topology.server.addresses.of(self.axes().family);
        let to = match expected {
            Expected::DestinationTranslated(services) => services.address(),
            Expected::SourceTranslated | Expected::Offloaded => own,
        };
        let hub = self.space(role::HUB)?.handle.ns();
        let tracked = tracked_to(hub, to)?;
        let done = |entry: &&Tracked| match expected {
            Expected::SourceTranslated => entry.is_source_translated(),
            Expected::DestinationTranslated(_) => {
                entry.is_destination_translated() && entry.answers_from == Some(own)
            }
            Expected::Offloaded => entry.is_offloaded(),
        };
        let as_expected = tracked.iter().filter(done).count() as u64;
        let handed_over = match expected {
            Expected::Offloaded => {
                let counters = nft_counters(hub)?;
                let own = counters
                    .iter()
                    .find(|counter| counter.name == Builder::OFFLOADED);
                own.map(|counter| counter.packets)
            }
            _ => None,
        };
        Ok(Some(Connections {
            to: to.to_string(),
            tracked: tracked.len() as u64,
            as_expected,
            expected: match expected {
                Expected::SourceTranslated => Treatment::SourceTranslated,
                Expected::DestinationTranslated(_) => Treatment::DestinationTranslated,
                Expected::Offloaded => Treatment::Offloaded,
            },
            handed_over,
        }))
    }
}

fn counts(stats: ConntrackStats) -> TrackingCounts {
    TrackingCounts {
        entries: stats.entries,
        limit: stats.limit,
        dropped: stats.dropped,
        early_dropped: stats.early_dropped,
        insert_failed: stats.insert_failed,
    }
}
