//! Pins each flow to a queue with its first frame; flows are assigned to the queues in turn
//! ([`Choice::Pinned`](super::Choice::Pinned)).

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hopyard_net::TunLayer;

use super::flows;
use crate::error::Result;
use crate::flow::Flow;
use crate::queue::Queue;
use crate::steering::{Pins, Steering};

/// The most flows that are pinned at once: each has a pin for each direction.
const MOST: usize = Pins::MOST / 2;

/// Assignment of flows to queues, the same for all ports. Workers call it once for each new flow.
#[derive(Debug)]
pub(super) struct Pinner {
    pinned: Mutex<Pinned>,
    /// Attached queues.
    queues: AtomicU16,
}

#[derive(Debug)]
struct Pinned {
    pins: Pins,
    flows: Book,
}

/// Flows with their queues; of both directions, the one that sorts first. The oldest make room.
#[derive(Debug)]
struct Book {
    queues: HashMap<flows::Flow, u16>,
    order: VecDeque<flows::Flow>,
    most: usize,
    /// Turns so far.
    turn: u16,
}

/// A new entry.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    queue: u16,
    /// A flow that is no longer pinned.
    gone: Option<flows::Flow>,
}

impl Pinner {
    pub(super) fn new() -> Result<Self> {
        let pinned = Pinned {
            pins: Pins::new(TunLayer::Tap)?,
            flows: Book::new(MOST),
        };
        Ok(Self {
            pinned: Mutex::new(pinned),
            queues: AtomicU16::new(1),
        })
    }

    fn pinned(&self) -> MutexGuard<'_, Pinned> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a device select queues by the pins.
    pub(super) fn steer(&self, queue: &Queue) -> Result<()> {
        queue.steer(Steering::Pinned(&self.pinned().pins))
    }

    /// Sets the number of attached queues: new flows are spread over them.
    pub(super) fn set_queues(&self, count: usize) {
        self.queues
            .store(u16::try_from(count).unwrap_or(u16::MAX), Relaxed);
    }

    /// Pins both directions of a flow that is not pinned yet, and returns its queue. `None` if it is pinned already, or
    /// if the kernel refuses the pin: then the hash decides.
    pub(super) fn pin(&self, flow: flows::Flow) -> Option<u16> {
        let queues = self.queues.load(Relaxed);
        if queues < 2 {
            return None;
        }
        let mut pinned = self.pinned();
        let Pinned { pins, flows } = &mut *pinned;
        let Entry { queue, gone } = flows.enter(flow, queues)?;
        for flow in gone.iter().flat_map(both) {
            // If this fails, the flow stays on its queue.
            let _ = pins.unpin(&flow);
        }
        let [there, back] = both(&flow);
        let done = pins
            .pin(&there, queue)
            .and_then(|()| pins.pin(&back, queue));
        done.is_ok().then_some(queue)
    }
}

impl Book {
    fn new(most: usize) -> Self {
        Self {
            queues: HashMap::new(),
            order: VecDeque::new(),
            most,
            turn: 0,
        }
    }

    /// Enters a flow if it is new.
    fn enter(&mut self, flow: flows::Flow, queues: u16) -> Option<Entry> {
        let flow = flow.min(flows::reverse(flow));
        if self.queues.contains_key(&flow) {
            return None;
        }
        let gone = (self.queues.len() >= self.most)
            .then(|| self.order.pop_front())
            .flatten();
        if let Some(oldest) = &gone {
            self.queues.remove(oldest);
        }
        let queue = self.turn % queues;
        self.turn = self.turn.wrapping_add(1);
        self.queues.insert(flow, queue);
        self.order.push_back(flow);
        Some(Entry { queue, gone })
    }
}

/// Both directions in the form of the map of pins.
fn both(flow: &flows::Flow) -> [Flow; 2] {
    let (from, to, protocol, source, destination) = *flow;
    let source = SocketAddr::new(from, source);
    let destination = SocketAddr::new(to, destination);
    let there = Flow {
        protocol,
        source,
        destination,
    };
    let back = Flow {
        source: destination,
        destination: source,
        ..there
    };
    [there, back]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(port: u16) -> flows::Flow {
        ([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 6, port, 9)
    }

    #[test]
    fn flows_take_the_queues_in_turn_and_keep_them() {
        let mut book = Book::new(3);
        let mut enter = |port| {
            book.enter(flow(port), 2)
                .map(|e| (e.queue, e.gone.is_some()))
        };
        assert_eq!(enter(1), Some((0, false)));
        assert_eq!(enter(2), Some((1, false)));
        assert_eq!(enter(1), None);
        assert_eq!(enter(3), Some((0, false)));
        // The first makes room.
        assert_eq!(enter(4), Some((1, true)));
        assert_eq!(enter(1), Some((0, true)));
    }

    #[test]
    fn both_directions_are_one_flow() {
        let mut book = Book::new(3);
        assert!(book.enter(flow(1), 2).is_some());
        assert_eq!(book.enter(flows::reverse(flow(1)), 2), None);
        let [there, back] = both(&flow(1));
        assert_eq!(both(&flows::reverse(flow(1))), [back, there]);
    }
}
