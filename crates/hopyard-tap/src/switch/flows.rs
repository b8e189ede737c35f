//! How often flows change their queue: what sends the frames of one flow to several workers, and out of their order.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use foldhash::quality::RandomState;

/// Flows watched at once; of two in one place, each takes the other for gone.
const CAPACITY: usize = 4096;
/// Bits of an entry that say which queue.
const QUEUE_BITS: u32 = 16;
/// As much of a frame as its addresses and ports are in: two VLAN tags, and options or a few extension headers.
const HEADERS: usize = 256;

/// The queue by which each flow came last. Shared by all workers without a lock; an entry is one word.
#[derive(Debug)]
pub(super) struct Flows {
    /// Most of a flow's hash, and its queue + 1; 0 is free.
    last: Box<[AtomicU64]>,
    hash: RandomState,
    /// Was there ever a second queue? Until then no flow can change its own, and no frame is looked into.
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

    /// From here on there is more than one queue to come by.
    pub(super) fn watch(&self) {
        self.has_choice.store(true, Relaxed);
    }

    /// Did this frame come by another queue than the one of its flow before it? Whatever is not TCP or UDP is in no
    /// flow.
    pub(super) fn changed(&self, frame: &[u8], queue: usize) -> bool {
        if !self.has_choice.load(Relaxed) {
            return false;
        }
        let Some(flow) = flow(frame) else {
            return false;
        };
        let hash = self.hash.hash_one(flow);
        let entry = hash >> QUEUE_BITS << QUEUE_BITS | (queue as u64 + 1);
        let slot = &self.last[hash as usize % CAPACITY];
        let last = slot.load(Relaxed);
        if last != entry {
            slot.store(entry, Relaxed);
        }
        last != entry && last >> QUEUE_BITS == entry >> QUEUE_BITS
    }
}

/// Source and destination, in that order, with what runs between them.
type Flow = (IpAddr, IpAddr, u8, u16, u16);

pub(super) fn flow(frame: &[u8]) -> Option<Flow> {
    // Lax: a segment that is still to be cut has no length of its own.
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

    fn watched() -> Flows {
        let flows = Flows::new();
        flows.watch();
        flows
    }

    #[test]
    fn with_one_queue_nothing_changes() {
        let flows = Flows::new();
        assert!(!flows.changed(&udp(1, 10), 0));
        assert!(!flows.changed(&udp(1, 10), 1));
    }

    #[test]
    fn a_change_is_counted_once_and_a_flow_s_first_frame_is_none() {
        let flows = watched();
        for frame in [udp(1, 10), udp(2, 1400), tcp6(1)] {
            let seen = [0, 0, 1, 1, 0].map(|queue| flows.changed(&frame, queue));
            assert_eq!(seen, [false, false, true, false, true]);
        }
    }

    /// A segment of 64 KiB that its device would cut: the length in its header is 0 or more than there is.
    #[test]
    fn lengths_in_headers_do_not_matter() {
        let flows = watched();
        let mut frame = udp(1, 1400);
        assert!(!flows.changed(&frame, 0));
        for length in [0_u16, 0xffff] {
            frame[16..18].copy_from_slice(&length.to_be_bytes());
            assert!(flows.changed(&frame, 1), "{length}");
            assert!(flows.changed(&frame, 0), "{length}");
        }
    }

    #[test]
    fn what_is_no_tcp_and_no_udp_is_in_no_flow() {
        let flows = watched();
        let mut arp = udp(1, 10);
        arp[12..14].copy_from_slice(&[8, 6]);
        for frame in [&arp[..], &arp[..5], &[]] {
            assert!(!flows.changed(frame, 0));
            assert!(!flows.changed(frame, 1));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_flow_or_none(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let flows = watched();
            let known = flow(&bytes).is_some();
            prop_assert!(!flows.changed(&bytes, 0));
            prop_assert_eq!(flows.changed(&bytes, 1), known);
        }
    }
}
