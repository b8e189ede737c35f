//! Counters of every device of a lab.

use std::collections::HashMap;

use hopyard_net::{DeviceStats, Handle};

use super::Error;
use crate::model::DeviceCount;

/// Reads every device of the namespaces, each named by its role in the lab.
///
/// # Errors
/// The kernel does not answer.
pub fn read<'a>(
    spaces: impl Iterator<Item = (&'a str, &'a Handle)>,
) -> Result<Vec<DeviceCount>, Error> {
    let mut counts = Vec::new();
    for (namespace, handle) in spaces {
        counts.extend(
            handle
                .device_stats()?
                .into_iter()
                .map(|stats| count(namespace, stats)),
        );
    }
    Ok(counts)
}

fn count(namespace: &str, stats: DeviceStats) -> DeviceCount {
    DeviceCount {
        namespace: namespace.to_owned(),
        name: stats.name,
        rx_packets: stats.rx_packets,
        rx_bytes: stats.rx_bytes,
        tx_packets: stats.tx_packets,
        tx_bytes: stats.tx_bytes,
        dropped: stats.rx_dropped + stats.tx_dropped,
    }
}

/// The difference between two readings; a device that did not exist at the start counts from 0.
#[must_use]
pub fn since(end: &[DeviceCount], start: &[DeviceCount]) -> Vec<DeviceCount> {
    let name = |device: &DeviceCount| (device.namespace.clone(), device.name.clone());
    let start: HashMap<_, _> = start.iter().map(|device| (name(device), device)).collect();
    end.iter()
        .map(|now| {
            let before = start.get(&name(now));
            before.map_or_else(|| now.clone(), |before| minus(now, before))
        })
        .collect()
}

fn minus(now: &DeviceCount, before: &DeviceCount) -> DeviceCount {
    DeviceCount {
        namespace: now.namespace.clone(),
        name: now.name.clone(),
        rx_packets: now.rx_packets.saturating_sub(before.rx_packets),
        rx_bytes: now.rx_bytes.saturating_sub(before.rx_bytes),
        tx_packets: now.tx_packets.saturating_sub(before.tx_packets),
        tx_bytes: now.tx_bytes.saturating_sub(before.tx_bytes),
        dropped: now.dropped.saturating_sub(before.dropped),
    }
}
