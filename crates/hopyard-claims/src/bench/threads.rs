//! MQ-Q4: queues of taps that fewer threads serve than there are queues.

use std::net::UdpSocket;
use std::time::Duration;

use hopyard_net::Handle;
use hopyard_tap::switch::{Choice, NewPort, NewSwitch, QueueCount, Switch};

use super::site::{space, v4};
use super::{FunctionalCheck, Result, socket, udp};

const TAP: &str = "tap0";
const PORT: u16 = 9000;
const QUEUES: usize = 4;
const FLOWS: u64 = 16;
const ROUNDS: u64 = 12;
/// A datagram that is to come has come by then.
const SOON: Duration = Duration::from_millis(500);

/// Two namespaces whose taps the tap switch joins, with sockets from the first to the second.
struct Joined {
    switch: Switch,
    senders: Vec<UdpSocket>,
    receiver: UdpSocket,
}

impl Joined {
    fn new(threads: usize) -> Result<Self> {
        let ends = [space()?, space()?];
        let port = |end: &Handle| Ok(NewPort::new(TAP, end.ns().try_clone()?));
        let new = NewSwitch {
            ports: ends.iter().map(port).collect::<Result<_>>()?,
            queues: QueueCount::Fixed(QUEUES),
            threads: Some(threads),
            // So that every queue has flows.
            steering: Choice::Pinned,
            ..NewSwitch::default()
        };
        let switch = new.start()?;
        for (host, end) in (1..).zip(&ends) {
            end.add_address(TAP, v4(0, host), 24)?;
            end.settle(TAP)?;
        }
        let mac = ends[1].link(TAP)?.mac.unwrap_or_default();
        ends[0].add_neighbour(TAP, v4(0, 2), mac)?;
        let sender = |_| udp::sender(&ends[0], (v4(0, 2), PORT));
        Ok(Self {
            senders: (0..FLOWS).map(sender).collect::<Result<_>>()?,
            receiver: udp::receiver(&ends[1], PORT, SOON)?,
            switch,
        })
    }

    /// Sends numbered datagrams, in each round one of every flow; returns the numbers that arrive. The first of a flow
    /// comes by hash, and pins the flow to a queue; so a round waits for the one before it.
    fn exchange(&self) -> Result<Vec<u64>> {
        let mut came = Vec::new();
        for round in 0..ROUNDS {
            for (number, sender) in (round * FLOWS..).zip(&self.senders) {
                let sent = sender.send(&number.to_be_bytes());
                sent.map_err(socket("send a datagram"))?;
            }
            came.extend(self.arrivals(self.senders.len()));
        }
        // One that arrives twice arrives after all others.
        came.extend(self.arrivals(1));
        Ok(came)
    }

    /// The numbers of the next datagrams, this many at most.
    fn arrivals(&self, count: usize) -> Vec<u64> {
        let mut room = [0; 8];
        let next = || {
            let received = self.receiver.recv(&mut room);
            received.is_ok().then(|| u64::from_be_bytes(room))
        };
        std::iter::from_fn(next).take(count).collect()
    }

    /// How many queues of the first tap had frames for the switch.
    fn used(&self) -> usize {
        let state = self.switch.state();
        let queues = state.ports.first().map(|port| &port.by_queue);
        let used = queues.into_iter().flatten();
        used.filter(|queue| queue.rx_frames > 0).count()
    }
}

/// Datagrams of many flows arrive, each once, by all queues, with every number of threads below that of the queues.
pub(super) fn fewer_than_queues() -> Result<FunctionalCheck> {
    let mut passed = true;
    let mut seen = Vec::new();
    for threads in 1..QUEUES {
        let joined = Joined::new(threads)?;
        let mut came = joined.exchange()?;
        let (arrived, used) = (came.len(), joined.used());
        let serving = joined.switch.state().threads;
        came.sort_unstable();
        passed &= came.into_iter().eq(0..FLOWS * ROUNDS) && used == QUEUES && serving == threads;
        seen.push(format!(
            "with {serving} thread(s) {arrived} arrived, by {used} queues"
        ));
    }
    Ok(FunctionalCheck {
        passed,
        seen: format!(
            "of {} datagrams of {FLOWS} flows through taps of {QUEUES} queues, {}",
            FLOWS * ROUNDS,
            seen.join("; ")
        ),
    })
}
