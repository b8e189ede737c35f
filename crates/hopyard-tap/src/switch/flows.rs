//! How often flows change their queue, which sends the frames of one flow to several workers and out of order.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use foldhash::quality::RandomState;

/// Flows watched at once. If two flows share an entry, each replaces the other.
const CAPACITY: usize = 4096;
/// Bits of an entry for the queue.
const QUEUE_BITS: u32 = 16;
/// Bytes of a frame that contain its addresses and ports: two VLAN tags, and options or a few extension headers.
const HEADERS: usize = 256;

/// The queue by which each flow last came. Shared by all workers without a lock; an entry is one word.
#[derive(Debug)]
pub(super) struct Flows {
    /// Most of a flow's hash, and its queue + 1; 0 is free.
    last: Box<[AtomicU64]>,
    hash: RandomState,
    /// Whether there ever was a second queue. Until then no flow can change its queue, and frames are not parsed.
    has_choice: AtomicBool,
}

impl Flows {
    pub(super) fn new() -> Self {
        Self {
            last: (0..CAPACITY).map(|_| AtomicU64::new(0)).collect(),
            hash: RandomState::default(),
            has_choice: AtomicBool::new(false),
        }
    }

    /// Call this when there is a second queue.
    pub(super) fn watch(&self) {
        self.has_choice.store(true, Relaxed);
    }

    /// Records by which queue a frame came. A frame that is neither TCP nor UDP belongs to no flow.
    pub(super) fn seen(&self, frame: &[u8], queue: usize) -> Seen {
        if !self.has_choice.load(Relaxed) {
            return Seen::Alike;
        }
        let Some(flow) = flow(frame) else {
            return Seen::Alike;
        };
        let (slot, entry) = self.entry(flow, queue);
        let last = slot.load(Relaxed);
        if last == entry {
            return Seen::Alike;
        }
        slot.store(entry, Relaxed);
        if last >> QUEUE_BITS == entry >> QUEUE_BITS {
            Seen::Changed(flow)
        } else {
            Seen::New(flow)
        }
    }

    /// Both directions of a flow will use this queue from now on, which does not count as a change.
    pub(super) fn expect(&self, flow: Flow, queue: usize) {
        for flow in [flow, reverse(flow)] {
            let (slot, entry) = self.entry(flow, queue);
            slot.store(entry, Relaxed);
        }
    }

    /// The entry of a flow, and its content after a frame by this queue.
    fn entry(&self, flow: Flow, queue: usize) -> (&AtomicU64, u64) {
        let hash = self.hash.hash_one(flow);
        let entry = hash >> QUEUE_BITS << QUEUE_BITS | (queue as u64 + 1);
        (&self.last[hash as usize % CAPACITY], entry)
    }
}

/// A frame compared with earlier ones of its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// It came by the same queue, or belongs to no flow.
    Alike,
    /// It is the first one, or the first one for a long time.
    New(Flow),
    /// It came by another queue.
    Changed(Flow),
}

/// Source and destination address, protocol, source and destination port.
pub(super) type Flow = (IpAddr, IpAddr, u8, u16, u16);

/// The flow of the answers.
pub(super) fn reverse((from, to, protocol, source, destination): Flow) -> Flow {
    (to, from, protocol, destination, source)
}

pub(super) fn flow(frame: &[u8]) -> Option<Flow> {
    // Lax: a segment that is still to be cut has no valid length.
    let headers = &frame[..frame.len().min(HEADERS)];
    let packet = LaxSlicedPacket::from_ethernet(headers).ok()?;
    let (protocol, from, to) = match packet.transport? {
        TransportSlice::Tcp(tcp) => (6, tcp.source_port(), tcp.destination_port()),
        TransportSlice::Udp(udp) => (17, udp.source_port(), udp.destination_port()),
        _ => return None,
    };
    let (source, destination) = match packet.net? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            (
                header.source_addr().into(),
                header.destination_addr().into(),
            )
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            (
                header.source_addr().into(),
                header.destination_addr().into(),
            )
        }
        LaxNetSlice::Arp(_) => return None,
    };
    Some((source, destination, protocol, from, to))
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    use super::*;

    fn udp(port: u16, length: usize) -> Vec<u8> {
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .udp(port, 9);
        let mut frame = Vec::new();
        builder.write(&mut frame, &vec![0; length]).unwrap();
        frame
    }

    fn tcp6(port: u16) -> Vec<u8> {
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv6([1; 16], [2; 16], 64)
            .tcp(port, 9, 1, 1000);
        let mut frame = Vec::new();
        builder.write(&mut frame, &[0; 1400]).unwrap();
        frame
    }

    fn changed(flows: &Flows, frame: &[u8], queue: usize) -> bool {
        matches!(flows.seen(frame, queue), Seen::Changed(_))
    }

    fn watched() -> Flows {
        let flows = Flows::new();
        flows.watch();
        flows
    }

    #[test]
    fn with_one_queue_nothing_changes() {
        let flows = Flows::new();
        assert!(!changed(&flows, &udp(1, 10), 0));
        assert!(!changed(&flows, &udp(1, 10), 1));
    }

    #[test]
    fn a_change_is_counted_once_and_a_flow_s_first_frame_is_none() {
        let flows = watched();
        for frame in [udp(1, 10), udp(2, 1400), tcp6(1)] {
            let seen = [0, 0, 1, 1, 0].map(|queue| changed(&flows, &frame, queue));
            assert_eq!(seen, [false, false, true, false, true]);
        }
    }

    /// A segment of 64 KiB that its device would cut: the length in its header is 0 or too large.
    #[test]
    fn lengths_in_headers_do_not_matter() {
        let flows = watched();
        let mut frame = udp(1, 1400);
        assert!(!changed(&flows, &frame, 0));
        for length in [0_u16, 0xffff] {
            frame[16..18].copy_from_slice(&length.to_be_bytes());
            assert!(changed(&flows, &frame, 1), "{length}");
            assert!(changed(&flows, &frame, 0), "{length}");
        }
    }

    #[test]
    fn what_is_no_tcp_and_no_udp_is_in_no_flow() {
        let flows = watched();
        let mut arp = udp(1, 10);
        arp[12..14].copy_from_slice(&[8, 6]);
        for frame in [&arp[..], &arp[..5], &[]] {
            assert!(!changed(&flows, frame, 0));
            assert!(!changed(&flows, frame, 1));
        }
    }

    #[test]
    fn what_is_expected_is_no_change() {
        let flows = watched();
        let Seen::New(flow) = flows.seen(&udp(1, 10), 0) else {
            panic!("it was not seen before");
        };
        flows.expect(flow, 1);
        assert_eq!(flows.seen(&udp(1, 10), 1), Seen::Alike);
        assert_eq!(flows.seen(&udp(1, 10), 0), Seen::Changed(flow));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_flow_or_none(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let flows = watched();
            let known = flow(&bytes).is_some();
            prop_assert!(!changed(&flows, &bytes, 0));
            prop_assert_eq!(changed(&flows, &bytes, 1), known);
        }
    }
}
