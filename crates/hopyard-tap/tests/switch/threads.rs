//! Fewer threads than queues.

use std::net::UdpSocket;

use hopyard_net::NetNs;
use hopyard_tap::switch::{Choice, NewPort, NewSwitch, QueueCount, Switch};

use crate::stations::{SOON, Station, joined};

const QUEUES: usize = 4;
const FLOWS: u32 = 16;

/// A socket for each flow from the first station to the second, and the one where they arrive.
struct Flows {
    senders: Vec<UdpSocket>,
    receiver: UdpSocket,
}

impl Flows {
    fn between(stations: &[Station]) -> Self {
        let socket = |at: usize, address: &str| {
            let bind = || UdpSocket::bind(address).unwrap();
            stations[at].handle.ns().run(bind).unwrap()
        };
        let receiver = socket(1, "10.7.0.2:9000");
        receiver.set_read_timeout(Some(SOON)).unwrap();
        let sender = |_| {
            let sender = socket(0, "10.7.0.1:0");
            sender.connect("10.7.0.2:9000").unwrap();
            sender
        };
        Self {
            senders: (0..FLOWS).map(sender).collect(),
            receiver,
        }
    }

    /// Sends a datagram by each flow, and waits for it before the next one.
    fn pass(&self) {
        for (number, sender) in (0_u32..).zip(&self.senders) {
            sender.send(&number.to_be_bytes()).unwrap();
            let mut datagram = [0; 4];
            self.receiver.recv(&mut datagram).unwrap();
            assert_eq!(u32::from_be_bytes(datagram), number);
        }
    }
}

/// Frames that the first station sent by each queue.
fn by_queue(switch: &Switch) -> Vec<u64> {
    let ports = switch.state().ports;
    let queues = ports[0].by_queue.iter();
    queues.map(|queue| queue.rx_frames).collect()
}

/// Other tests of this process have such threads too, so the switch says how many it has.
#[test]
fn frames_of_every_queue_pass_by_fewer_threads() {
    const ROUNDS: u32 = 20;
    for threads in [1, 2, 3, QUEUES] {
        let new = NewSwitch {
            queues: QueueCount::Fixed(QUEUES),
            threads: Some(threads),
            steering: Choice::Pinned,
            ..NewSwitch::default()
        };
        let (switch, stations) = joined(2, new);
        let state = switch.state();
        assert_eq!((state.queues, state.threads), (QUEUES, threads));
        let flows = Flows::between(&stations);
        // The first frame of a flow comes by hash, all others by the queue to which the flow is pinned.
        flows.pass();
        let before = by_queue(&switch);
        for _ in 0..ROUNDS {
            flows.pass();
        }
        let each = u64::from(ROUNDS * FLOWS) / QUEUES as u64;
        for (queue, (now, before)) in by_queue(&switch).iter().zip(&before).enumerate() {
            assert!(now - before >= each, "queue {queue} of {threads} threads");
        }
        assert_eq!(switch.state().ports[0].unread, Some(0));
    }
}

/// The thread sleeps between frames: with one queue and with several it must wake up for each of them, and for changes.
#[test]
fn a_thread_serves_queues_that_are_added_and_removed() {
    let new = NewSwitch {
        threads: Some(1),
        ..NewSwitch::default()
    };
    let (switch, stations) = joined(2, new);
    let flows = Flows::between(&stations);
    for count in [1, 3, 1, 2, 4, 1] {
        switch.set_queues(count).unwrap();
        let state = switch.state();
        assert_eq!((state.queues, state.threads), (count, 1));
        flows.pass();
    }
}

#[test]
fn threads_without_queues_are_refused() {
    let ns = NetNs::create().expect("these tests need root");
    let refused = |queues, threads| {
        let port = |name: &&str| NewPort::new(*name, ns.try_clone().unwrap());
        let new = NewSwitch {
            ports: ["a", "b"].iter().map(port).collect(),
            queues,
            threads: Some(threads),
            ..NewSwitch::default()
        };
        let error = new.start().unwrap_err();
        assert!(error.is_usage(), "{error}");
        error.to_string()
    };
    for threads in [0, 3] {
        let error = refused(QueueCount::Fixed(2), threads);
        let said = format!("2 queue(s) have 1 to 2 of them, not {threads}");
        assert!(error.contains(&said), "{error}");
    }
    let error = refused(QueueCount::Auto { most: 2 }, 1);
    assert!(error.contains("give a number of queues"), "{error}");
}
