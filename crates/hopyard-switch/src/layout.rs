//! The shapes of `bpf/layout.h`, which asserts the same sizes and offsets.

use std::net::{IpAddr, Ipv6Addr};

use serde::Serialize;

use crate::mac::Mac;

pub(crate) const LAYOUT_VERSION: u32 = 6;
pub(crate) const SLOT_WIRE: u32 = 0;
pub(crate) const SLOT_HOST: u32 = 1;
pub(crate) const FIRST_PORT: u32 = 2;
pub(crate) const MAX_SLOTS: u32 = 4096;
pub(crate) const LOW_DEVICES: u32 = 32768;
pub(crate) const MAX_HOSTS: usize = 1024;

/// Octets of an Ethernet header: a frame is this much longer than what the MTU counts.
pub(crate) const ETHERNET_HEADER: u32 = 14;

pub(crate) const STATE_FREE: u32 = 0;
pub(crate) const STATE_BUSY: u32 = 1;
pub(crate) const STATE_READY: u32 = 2;

pub(crate) const SWITCH_ANSWERS: u16 = 1;
pub(crate) const SWITCH_UPGRADING: u16 = 2;
pub(crate) const SWITCH_CLSACT: u16 = 4;
/// Attach behind the programs of others.
pub(crate) const SWITCH_BEHIND: u16 = 0x100;
/// The uplink was exchanged, its links are not in place yet: whoever finds it so goes on.
pub(crate) const SWITCH_MOVING: u16 = 0x200;
/// The host has addresses beside that of the uplink.
pub(crate) const SWITCH_HOSTS: u16 = 0x400;

pub(crate) const PORT_ISOLATED: u16 = 1;
pub(crate) const PORT_ANY_SOURCE: u16 = 2;
pub(crate) const PORT_HELD: u16 = 4;
pub(crate) const PORT_PEER: u16 = 8;
/// Frames go straight to the other end only while that is in another namespace: the program sees where it is.
pub(crate) const PORT_FOLLOW: u16 = 0x400;
/// Frames to it take the queue, though they could go straight into the guest's namespace. For the loader.
pub(crate) const PORT_QUEUED: u16 = 0x100;
/// It was made from a file, and may be removed when the file has it no longer. For the loader.
pub(crate) const PORT_DECLARED: u16 = 0x200;
/// Its program is a classifier, whatever those of the uplink are. For the loader.
pub(crate) const PORT_CLASSIFIER: u16 = 0x800;
pub(crate) const PORT_ROUTER: u16 = 16;
pub(crate) const PORT_DHCP: u16 = 32;
pub(crate) const PORT_RATE_IN: u16 = 64;
pub(crate) const PORT_RATE_OUT: u16 = 128;

pub(crate) const BROADCASTS_UNLIMITED: u32 = u32::MAX;
/// Seconds' worth of group frames that a port may send at once.
pub const BROADCAST_BURST_S: u32 = 10;

pub(crate) const STATION_OWN: u16 = 1;

pub(crate) const RATE_UNITS_PER_NS: u64 = 16;
pub(crate) const RATE_SHIFT: u32 = 16;

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) version: u32,
    pub(crate) state: u32,
    pub(crate) uplink: u32,
    pub(crate) uplink_len: u32,
    pub(crate) host_mac: u64,
    pub(crate) netns: u64,
    pub(crate) flags: u16,
    pub(crate) changing: u16,
    pub(crate) slots: u32,
    pub(crate) net_device: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PortRecord {
    pub(crate) mac: u64,
    pub(crate) ifindex: u32,
    pub(crate) device: u32,
    pub(crate) state: u32,
    pub(crate) sure_len: u32,
    pub(crate) vlan: u16,
    pub(crate) flags: u16,
    pub(crate) holdings: u32,
    pub(crate) broadcasts: u32,
    pub(crate) mac_flags: u16,
    pub(crate) life: u16,
    pub(crate) net_device: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Station {
    pub(crate) ifindex: u32,
    pub(crate) slot: u32,
    pub(crate) sure_len: u32,
    pub(crate) port_flags: u16,
    pub(crate) flags: u16,
    pub(crate) net_device: u64,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AddressKey {
    pub(crate) ip: [u8; 16],
    pub(crate) vlan: u32,
}

impl AddressKey {
    pub(crate) fn new(ip: IpAddr, vlan: u16) -> Self {
        let ip = match ip {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        Self {
            ip: ip.octets(),
            vlan: vlan.into(),
        }
    }

    pub(crate) fn ip(&self) -> IpAddr {
        Ipv6Addr::from(self.ip).to_canonical()
    }
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) mac: u64,
    pub(crate) slot: u32,
    pub(crate) port_flags: u32,
}

pub(crate) const HOLDS_STATION: u32 = 0;
pub(crate) const HOLDS_ADDRESS: u32 = 1;
pub(crate) const HOLDS_PREFIX: u32 = 2;

/// What the trie of prefixes compares: a port's slot, then an address.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PrefixKey {
    pub(crate) slot: u32,
    pub(crate) ip: [u8; 16],
}

/// IPv4 prefixes are apart: `::/0` must not contain them.
const PREFIX_IPV4: u32 = 1 << 31;

impl PrefixKey {
    pub(crate) fn new(slot: u32, ip: IpAddr) -> Self {
        let family = if ip.is_ipv4() { PREFIX_IPV4 } else { 0 };
        Self {
            slot: slot | family,
            ip: AddressKey::new(ip, 0).ip,
        }
    }
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct HoldingKey {
    pub(crate) slot: u32,
    pub(crate) number: u32,
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) address: AddressKey,
    pub(crate) kind: u32,
    pub(crate) station: u64,
    pub(crate) prefix: u64,
}

/// A token bucket (`bpf/rate.h`); times are in parts of a ns.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) paid_to: u64,
    pub(crate) per_byte: u64,
    pub(crate) depth: u64,
    pub(crate) bits_per_s: u64,
    pub(crate) burst_bytes: u64,
    pub(crate) unused: [u64; 3],
}

/// What a port gets and what it sends.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) inward: Bucket,
    pub(crate) outward: Bucket,
}

/// Whose drops are told of.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TraceWish {
    pub(crate) until: u64,
    pub(crate) mac: u64,
    pub(crate) slot: u32,
    pub(crate) missed: u32,
}

/// In place of a slot: nobody who is known.
pub(crate) const NOBODY: u32 = u32::MAX;
/// Octets of a dropped frame that are told of.
pub(crate) const TOLD_OCTETS: usize = 128;
/// Of so many dropped frames a [`Trace`](crate::Trace) surely tells, however slowly they are read.
pub const MOST_TOLD: u64 = 500;

/// The key of a station: who has `mac` in `vlan`.
pub(crate) fn station_key(mac: Mac, vlan: u16) -> u64 {
    mac.to_number() | u64::from(vlan) << 48
}

/// Why a frame was dropped, in the order of `enum drop` in `bpf/layout.h`, with what it means.
pub const DROP_REASONS: [(&str, &str); 21] = [
    (
        "no_port",
        "from a device that is just being added or removed",
    ),
    (
        "malformed",
        "too short, or a header that contradicts itself",
    ),
    ("source", "a group address or zero as the source"),
    ("vlan", "tagged by the guest: the port alone says the VLAN"),
    ("mac", "a source address that is not the sender's"),
    ("ip", "an IP source address that is not the sender's"),
    ("arp", "an ARP message that lies about its sender"),
    (
        "nd",
        "a neighbour discovery message that lies about its sender; a redirect or an advertisement of what is no router",
    ),
    ("dhcp", "a DHCP answer from a port that is no server"),
    (
        "checksum",
        "a deferred checksum that would be written elsewhere than into a transport header",
    ),
    (
        "protocol",
        "neither IP nor ARP from a port held to its addresses",
    ),
    (
        "reserved",
        "to an address that no bridge forwards (STP, LLDP, pause)",
    ),
    ("self", "to the party that it came from"),
    ("isolated", "between ports of which one is isolated"),
    ("unknown", "to nobody known, and the switch has no uplink"),
    (
        "broadcast",
        "a broadcast or multicast beyond the limit of its port",
    ),
    ("rate_out", "beyond the rate that its port may send at"),
    (
        "rate_in",
        "beyond the rate that the receiving port may get at",
    ),
    ("mtu", "longer than the receiver takes"),
    ("down", "to a receiver that is down or has no carrier"),
    ("device", "a copy that the receiving device did not take"),
];

/// What one CPU counted of a party.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counters {
    /// Packets from the party; a GSO packet counts as one, as on any device.
    pub rx_packets: u64,
    /// Bytes from the party, Ethernet header included.
    pub rx_bytes: u64,
    /// Packets to the party.
    pub tx_packets: u64,
    /// Bytes to the party.
    pub tx_bytes: u64,
    /// Questions of the party (ARP, neighbour solicitation) that the switch answered itself.
    pub answered: u64,
    /// Packets to the party that were dropped since it gets no more at a time: drops of their senders, too.
    pub over_rate: u64,
    /// ICMP messages to the party, that what it sent is longer than the receiver takes.
    pub too_big: u64,
    #[serde(skip)]
    told_to: u64,
    /// Packets of the party that were dropped, in the order of [`DROP_REASONS`].
    pub drops: [u64; DROP_REASONS.len()],
    #[serde(skip)]
    room: [u64; DROPS_ROOM - DROP_REASONS.len()],
    #[serde(skip)]
    last_ip: u64,
}

/// Reasons that the maps have room for.
const DROPS_ROOM: usize = 23;

impl Counters {
    pub(crate) fn add(&mut self, other: &Self) {
        self.rx_packets += other.rx_packets;
        self.rx_bytes += other.rx_bytes;
        self.tx_packets += other.tx_packets;
        self.tx_bytes += other.tx_bytes;
        self.answered += other.answered;
        self.over_rate += other.over_rate;
        self.too_big += other.too_big;
        for (sum, part) in self.drops.iter_mut().zip(other.drops) {
            *sum += part;
        }
    }

    /// Drops that happened, by reason.
    pub fn dropped(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        DROP_REASONS
            .iter()
            .zip(self.drops)
            .filter(|(_, count)| *count > 0)
            .map(|((name, _), count)| (*name, count))
    }
}

macro_rules! pod {
    ($($shape:ty),*) => {$(
        // SAFETY: `repr(C)` integers and arrays of them, without padding (see the offsets below); any
        // bytes are a value.
        unsafe impl aya::Pod for $shape {}
    )*};
}

pod!(
    Config, PortRecord, Station, AddressKey, Address, HoldingKey, Holding, PrefixKey, Bucket,
    Limits, TraceWish, Counters
);

const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Config, host_mac) == 16);
    assert!(offset_of!(Config, changing) == 34);
    assert!(offset_of!(Config, slots) == 36);
    assert!(offset_of!(Config, net_device) == 40);
    assert!(size_of::<Config>() == 48);
    assert!(offset_of!(PortRecord, device) == 12);
    assert!(offset_of!(PortRecord, vlan) == 24);
    assert!(offset_of!(PortRecord, holdings) == 28);
    assert!(offset_of!(PortRecord, broadcasts) == 32);
    assert!(offset_of!(PortRecord, mac_flags) == 36);
    assert!(offset_of!(PortRecord, life) == 38);
    assert!(offset_of!(PortRecord, net_device) == 40);
    assert!(size_of::<PortRecord>() == 48);
    assert!(size_of::<HoldingKey>() == 8);
    assert!(offset_of!(Holding, station) == 24);
    assert!(size_of::<Holding>() == 40);
    assert!(size_of::<PrefixKey>() == 20);
    assert!(offset_of!(Station, port_flags) == 12);
    assert!(offset_of!(Station, net_device) == 16);
    assert!(size_of::<Station>() == 24);
    assert!(offset_of!(AddressKey, vlan) == 16);
    assert!(size_of::<AddressKey>() == 20);
    assert!(offset_of!(Address, slot) == 8);
    assert!(size_of::<Address>() == 16);
    assert!(offset_of!(Counters, drops) == 64);
    assert!(offset_of!(Counters, last_ip) == 248);
    assert!(size_of::<Counters>() == 256);
    assert!(offset_of!(Bucket, burst_bytes) == 32);
    assert!(size_of::<Limits>() == 128);
    assert!(offset_of!(TraceWish, slot) == 16);
    assert!(size_of::<TraceWish>() == 24);
};
