//! Flows, as the steering programs see them (`bpf/flow.h`).

use std::net::{IpAddr, SocketAddr};

/// Bytes of a flow's key.
pub(crate) const KEY: usize = 40;

/// A flow in one direction: as its frames leave the kernel towards a queue.
///
/// ```
/// use hopyard_tap::Flow;
///
/// let (one, two) = ("192.0.2.1:5000".parse()?, "192.0.2.2:80".parse()?);
/// let queue = Flow::tcp(one, two).queue(4);
/// assert_eq!(queue, Flow::tcp(two, one).queue(4));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flow {
    /// The IP protocol: 6 is TCP, 17 UDP (IANA, *Protocol Numbers*).
    pub protocol: u8,
    /// The sender; port 0 for protocols without ports, and for fragments.
    pub source: SocketAddr,
    /// The receiver, in the same family.
    pub destination: SocketAddr,
}

impl Flow {
    /// A TCP flow.
    #[must_use]
    pub fn tcp(source: SocketAddr, destination: SocketAddr) -> Self {
        Self::new(6, source, destination)
    }

    /// A UDP flow.
    #[must_use]
    pub fn udp(source: SocketAddr, destination: SocketAddr) -> Self {
        Self::new(17, source, destination)
    }

    fn new(protocol: u8, source: SocketAddr, destination: SocketAddr) -> Self {
        Self {
            protocol,
            source,
            destination,
        }
    }

    /// The queue to which [`Steering::Hash`](crate::Steering::Hash) assigns the flow, given the number of attached
    /// queues; the same for both directions.
    ///
    /// # Panics
    /// Without queues.
    #[must_use]
    pub fn queue(&self, queues: usize) -> usize {
        let hash = self.hash();
        (hash ^ hash >> 16) as usize % (1 << 16) % queues
    }

    fn hash(&self) -> u32 {
        let ends = end(self.source).wrapping_add(end(self.destination));
        finish(mix(ends, u32::from(self.protocol)))
    }

    /// The key of the map.
    pub(crate) fn key(&self) -> [u8; KEY] {
        let mut key = [0; KEY];
        key[..16].copy_from_slice(&octets(self.source));
        key[16..32].copy_from_slice(&octets(self.destination));
        key[32..34].copy_from_slice(&self.source.port().to_be_bytes());
        key[34..36].copy_from_slice(&self.destination.port().to_be_bytes());
        key[36] = self.protocol;
        key
    }
}

fn octets(end: SocketAddr) -> [u8; 16] {
    match end.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// The hash of one end: its address as four words, and its port as the program reads it.
fn end(end: SocketAddr) -> u32 {
    let octets = octets(end);
    let words = octets
        .chunks_exact(4)
        .map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    let port = u32::from(u16::from_ne_bytes(end.port().to_be_bytes()));
    finish(words.chain([port]).fold(0, mix))
}

/// One step of MurmurHash3 (Appleby).
fn mix(hash: u32, word: u32) -> u32 {
    let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15);
    let hash = hash ^ word.wrapping_mul(0x1b87_3593);
    hash.rotate_left(13)
        .wrapping_mul(5)
        .wrapping_add(0xe654_6b64)
}

/// The final step of MurmurHash3.
fn finish(hash: u32) -> u32 {
    let hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_directions_share_a_queue(a: u128, b: u128, ports: (u16, u16), protocol: u8, queues in 1usize..=256) {
            let a = SocketAddr::new(IpAddr::V6(a.into()), ports.0);
            let b = SocketAddr::new(IpAddr::V6(b.into()), ports.1);
            let there = Flow::new(protocol, a, b);
            prop_assert_eq!(there.queue(queues), Flow::new(protocol, b, a).queue(queues));
            prop_assert!(there.queue(queues) < queues);
        }
    }

    #[test]
    fn flows_spread_evenly() {
        let mut counts = [0u32; 8];
        for port in 1..=8000 {
            let source = SocketAddr::from(([10, 0, 0, 1], port));
            let flow = Flow::udp(source, SocketAddr::from(([10, 0, 0, 2], 53)));
            counts[flow.queue(8)] += 1;
        }
        // 1000 each, within 5 standard deviations (30).
        assert!(
            counts.iter().all(|count| count.abs_diff(1000) < 150),
            "{counts:?}"
        );
    }
}
