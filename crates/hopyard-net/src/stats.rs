//! Counters of devices and queueing disciplines.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::LinkMessage;
use netlink_packet_route::tc::TcMessage;

use crate::attrs::{attribute, text, u32_at, u64_at};
use crate::error::Result;
use crate::handle::Handle;
use crate::link::{IFINFOMSG, IFLA_IFNAME};

const IFLA_STATS64: u16 = 23;
/// Bytes of `struct tcmsg`.
const TCMSG: usize = 20;
const TC_H_ROOT: u32 = u32::MAX;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_PKT64: u16 = 8;

/// The counters of one device (`struct rtnl_link_stats64`), all since it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceStats {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// Packets received; a GRO or GSO packet counts as one on virtual devices.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received, Ethernet header included.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Received packets dropped for want of room.
    pub rx_dropped: u64,
    /// Packets dropped instead of sent.
    pub tx_dropped: u64,
    /// Bad packets received.
    pub rx_errors: u64,
    /// Failures to send.
    pub tx_errors: u64,
}

/// The counters of a queueing discipline.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QdiscStats {
    /// Its kind: `tbf`, `pfifo_fast`.
    pub kind: String,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent, a GSO packet counted by its segments.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// How often a packet had to wait for the rate.
    pub overlimits: u64,
    /// Bytes waiting.
    pub backlog_bytes: u64,
    /// Packets waiting.
    pub queued: u64,
}

impl Handle {
    /// The counters of all devices of the namespace, by index, in one netlink dump.
    ///
    /// # Errors
    /// [`Error::Kernel`](crate::Error::Kernel) if the dump fails.
    pub fn device_stats(&self) -> Result<Vec<DeviceStats>> {
        let message = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let replies = self.dump("read the counters of a namespace's devices", &message)?;
        Ok(replies.iter().map(|reply| device(reply)).collect())
    }

    /// The counters of the root queueing discipline of a device; `None` where it has none (`noqueue`,
    /// the default of virtual devices).
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) if there is no such device.
    pub fn qdisc_stats(&self, name: &str) -> Result<Option<QdiscStats>> {
        let what = format!("read the queue counters of `{name}`");
        let index = self.index_for(&what, name)?;
        // A request for one qdisc is answered only to those who ask for an echo, with a notification
        // to everybody else; the dump disturbs nobody.
        let message = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
        let replies = self.dump(&what, &message)?;
        Ok(replies
            .iter()
            .filter(|reply| u32_at(reply, 4) == Some(index) && u32_at(reply, 12) == Some(TC_H_ROOT))
            .map(|reply| qdisc(reply))
            .find(|stats| stats.kind != "noqueue"))
    }
}

fn device(reply: &[u8]) -> DeviceStats {
    let counters = attribute(reply, IFINFOMSG, IFLA_STATS64).unwrap_or_default();
    let counter = |position: usize| u64_at(counters, position * 8).unwrap_or(0);
    DeviceStats {
        name: attribute(reply, IFINFOMSG, IFLA_IFNAME)
            .map(text)
            .unwrap_or_default(),
        index: u32_at(reply, 4).unwrap_or(0),
        rx_packets: counter(0),
        tx_packets: counter(1),
        rx_bytes: counter(2),
        tx_bytes: counter(3),
        rx_errors: counter(4),
        tx_errors: counter(5),
        rx_dropped: counter(6),
        tx_dropped: counter(7),
    }
}

fn qdisc(reply: &[u8]) -> QdiscStats {
    let stats = attribute(reply, TCMSG, TCA_STATS2).unwrap_or_default();
    let basic = attribute(stats, 0, TCA_STATS_BASIC).unwrap_or_default();
    let queue = attribute(stats, 0, TCA_STATS_QUEUE).unwrap_or_default();
    let narrow = |bytes: &[u8], offset: usize| u64::from(u32_at(bytes, offset).unwrap_or(0));
    let wide = attribute(stats, 0, TCA_STATS_PKT64).and_then(|value| u64_at(value, 0));
    QdiscStats {
        kind: attribute(reply, TCMSG, TCA_KIND)
            .map(text)
            .unwrap_or_default(),
        bytes: u64_at(basic, 0).unwrap_or(0),
        packets: wide.unwrap_or_else(|| narrow(basic, 8)),
        queued: narrow(queue, 0),
        backlog_bytes: narrow(queue, 4),
        drops: narrow(queue, 8),
        overlimits: narrow(queue, 16),
    }
}
