//! Counters by port: each worker writes its own, and readers add them up.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a worker counts at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// Frames read from the port.
    RxFrames,
    /// Bytes of those, without virtio-net headers.
    RxBytes,
    /// Frames written to the port.
    TxFrames,
    /// Bytes of the frames written, without virtio-net headers.
    TxBytes,
    /// Read from it and written to all others: for a group, or an unknown address.
    Flooded,
    /// Addresses that first sent from here.
    Learnt,
    /// Addresses that send from here and were at another port before.
    Moved,
    /// Addresses that send from here and have no room in the table.
    TableFull,
    /// Written to it as part of the previous frame.
    Joined,
    /// Writes postponed because its queue was full.
    Waited,
    /// Written to it before a frame that waits and was read earlier.
    Reordered,
    /// Read from it by another queue than the previous frame of the same flow.
    QueueChanged,
    /// Frames read from the port and not forwarded, by reason.
    Drop(Reason),
}

/// Why a frame was not forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// Read: it has no Ethernet header.
    Runt,
    /// Read: it is longer than any device passes ([`LARGEST_FRAME`](crate::LARGEST_FRAME)).
    Giant,
    /// Read: its source is a group's address, or zero.
    BadSource,
    /// Read: its destination is at the port it came from.
    SamePort,
    /// Read: its source is not among the addresses given to the port, or is given to another one
    /// ([`Rules::macs`](super::Rules::macs)).
    Mac,
    /// Read: its source is one address more than the port may have ([`Rules::addresses`](super::Rules::addresses)).
    Quota,
    /// Read: it is for a group that no bridge forwards to (01:80:c2:00:00:00 to 0f).
    Reserved,
    /// Read: both ports are isolated; of a frame for every port, each copy that was not made ([`Rules::isolated`](super::Rules::isolated)).
    Isolated,
    /// Read: it is for several ports, and the port has sent too many such frames
    /// ([`Rules::broadcasts`](super::Rules::broadcasts)).
    Broadcast,
    /// To be written: the device took no more for as long as the switch waits.
    Stalled,
    /// To be written: the device is down.
    Down,
    /// To be written: the device was deleted.
    Gone,
    /// To be written: the kernel refuses it, because its virtio-net header contradicts it.
    Refused,
    /// To be written: the kernel failed otherwise, for example out of memory.
    Failed,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 14] = [
        Self::Runt,
        Self::Giant,
        Self::BadSource,
        Self::SamePort,
        Self::Mac,
        Self::Quota,
        Self::Reserved,
        Self::Isolated,
        Self::Broadcast,
        Self::Stalled,
        Self::Down,
        Self::Gone,
        Self::Refused,
        Self::Failed,
    ];

    /// The word in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Runt => "runt",
            Self::Giant => "giant",
            Self::BadSource => "bad_source",
            Self::SamePort => "same_port",
            Self::Mac => "mac",
            Self::Quota => "quota",
            Self::Reserved => "reserved",
            Self::Isolated => "isolated",
            Self::Broadcast => "broadcast",
            Self::Stalled => "stalled",
            Self::Down => "down",
            Self::Gone => "gone",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

const EVENTS: usize = 12 + Reason::ALL.len();

impl Event {
    fn index(self) -> usize {
        match self {
            Self::RxFrames => 0,
            Self::RxBytes => 1,
            Self::TxFrames => 2,
            Self::TxBytes => 3,
            Self::Flooded => 4,
            Self::Learnt => 5,
            Self::Moved => 6,
            Self::TableFull => 7,
            Self::Waited => 8,
            Self::QueueChanged => 9,
            Self::Joined => 10,
            Self::Reordered => 11,
            Self::Drop(reason) => 12 + reason as usize,
        }
    }
}

/// One worker's counters of one port, on cache lines that nobody else writes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Cell([AtomicU64; EVENTS]);

impl Cell {
    /// Only its worker calls this, so the addition need not be atomic.
    pub(super) fn add(&self, event: Event, count: u64) {
        let slot = &self.0[event.index()];
        slot.store(slot.load(Relaxed) + count, Relaxed);
    }

    fn get(&self, event: Event) -> u64 {
        self.0[event.index()].load(Relaxed)
    }
}

/// What passed a port since the switch began, all queues together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Frames that its device sent to the switch.
    pub rx_frames: u64,
    /// Bytes of those, Ethernet headers included.
    pub rx_bytes: u64,
    /// Frames that the switch sent to its device.
    pub tx_frames: u64,
    /// Bytes of those, Ethernet headers included.
    pub tx_bytes: u64,
    /// Frames from here that went to every other port.
    pub flooded: u64,
    /// Addresses that first sent from here.
    pub learnt: u64,
    /// Addresses that send from here and were at another port before.
    pub moved: u64,
    /// Frames from addresses without room in the table.
    pub table_full: u64,
    /// Frames that went to its device as part of the previous one, which `tx_frames` counts.
    pub joined: u64,
    /// How often a frame was postponed because the device was full.
    pub waited: u64,
    /// Frames that its device took while earlier ones were postponed.
    pub reordered: u64,
    /// Frames that its device sent by another queue than the previous frame of the same flow, TCP and UDP.
    pub queue_changes: u64,
    /// Lost frames by reason, without zeros.
    pub drops: Vec<(Reason, u64)>,
}

impl Counters {
    /// The sum over workers.
    pub(super) fn sum<'a>(cells: &(impl Iterator<Item = &'a Cell> + Clone)) -> Self {
        let of = |event| cells.clone().map(|cell| cell.get(event)).sum();
        Self {
            rx_frames: of(Event::RxFrames),
            rx_bytes: of(Event::RxBytes),
            tx_frames: of(Event::TxFrames),
            tx_bytes: of(Event::TxBytes),
            flooded: of(Event::Flooded),
            learnt: of(Event::Learnt),
            moved: of(Event::Moved),
            table_full: of(Event::TableFull),
            joined: of(Event::Joined),
            waited: of(Event::Waited),
            reordered: of(Event::Reordered),
            queue_changes: of(Event::QueueChanged),
            drops: Reason::ALL
                .into_iter()
                .map(|reason| (reason, of(Event::Drop(reason))))
                .filter(|(_, count)| *count > 0)
                .collect(),
        }
    }

    /// All frames lost here.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.drops.iter().map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_add_up_and_every_reason_has_a_place_of_its_own() {
        let cells = [Cell::default(), Cell::default()];
        for cell in &cells {
            cell.add(Event::RxFrames, 2);
            cell.add(Event::Waited, 1);
            cell.add(Event::Reordered, 3);
            for (n, reason) in Reason::ALL.into_iter().enumerate() {
                cell.add(Event::Drop(reason), n as u64 + 1);
            }
        }
        let sum = Counters::sum(&cells.iter());
        assert_eq!((sum.rx_frames, sum.waited, sum.tx_frames), (4, 2, 0));
        assert_eq!(sum.reordered, 6);
        let each: Vec<_> = (1..=Reason::ALL.len() as u64).map(|n| 2 * n).collect();
        let seen: Vec<_> = sum.drops.iter().map(|(_, count)| *count).collect();
        assert_eq!(seen, each);
        assert_eq!(sum.dropped(), each.iter().sum::<u64>());
    }
}
