//! Queues attached and detached while frames pass.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hopyard_tap::switch::{Choice, NewSwitch, QueueCount, Switch};
use nix::sys::socket::{setsockopt, sockopt};

use crate::stations::{joined, until};

const FLOWS: usize = 16;
const ROUNDS: u32 = 5;
/// Fewer than a queue of a tap holds, and than may wait for an address (`neigh/default/unres_qlen_bytes`): neither
/// overflows, however long the switch waits for a CPU.
const UNDERWAY: u32 = 128;
/// Time for something that takes some three seconds on an undisturbed machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Tries again if frames were left in a queue for as long as the switch waits, because a worker had no CPU.
fn set_queues(switch: &Switch, count: usize, deadline: Instant) {
    while let Err(error) = switch.set_queues(count) {
        let again = error.to_string().contains("try again later");
        assert!(again && Instant::now() < deadline, "{error}");
    }
}

#[test]
fn every_frame_arrives_once_while_queues_come_and_go() {
    frames_arrive_while_queues_come_and_go(NewSwitch::default());
}

/// The queues that come and go are served by threads that serve others meanwhile.
#[test]
fn every_frame_arrives_once_while_threads_get_and_lose_queues() {
    for threads in [1, 2] {
        frames_arrive_while_queues_come_and_go(NewSwitch {
            queues: QueueCount::Fixed(threads),
            threads: Some(threads),
            ..NewSwitch::default()
        });
    }
}

fn frames_arrive_while_queues_come_and_go(new: NewSwitch) {
    let (switch, stations) = joined(2, new);
    let socket = |at: usize, address: &str| {
        let bind = || UdpSocket::bind(address).unwrap();
        stations[at].handle.ns().run(bind).unwrap()
    };
    let receiver = socket(1, "10.7.0.2:9000");
    setsockopt(&receiver, sockopt::RcvBufForce, &(64 << 20)).unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    let senders: Vec<UdpSocket> = (0..FLOWS).map(|_| socket(0, "10.7.0.1:0")).collect();
    for sender in &senders {
        sender.connect("10.7.0.2:9000").unwrap();
    }

    let deadline = Instant::now() + PATIENCE;
    let late = || Instant::now() > deadline;
    let (changed, heard, total) = (
        AtomicBool::new(false),
        AtomicU32::new(0),
        AtomicU32::new(u32::MAX),
    );
    let mut arrived = Vec::new();
    std::thread::scope(|scope| {
        let hearing = scope.spawn(|| {
            let mut numbers = Vec::new();
            let mut datagram = [0; 16];
            while heard.load(Relaxed) < total.load(Relaxed) && !late() {
                if receiver.recv(&mut datagram).is_ok() {
                    numbers.push(u32::from_be_bytes(datagram[..4].try_into().unwrap()));
                    heard.fetch_add(1, Relaxed);
                }
            }
            // A frame that arrived twice would arrive after all others.
            while receiver.recv(&mut datagram).is_ok() {
                numbers.push(u32::from_be_bytes(datagram[..4].try_into().unwrap()));
            }
            numbers
        });
        scope.spawn(|| {
            for count in [2, 4, 3, 1, 4, 2, 1, 3].repeat(ROUNDS as usize) {
                set_queues(&switch, count, deadline);
                assert_eq!(switch.state().queues, count);
            }
            changed.store(true, Relaxed);
        });
        let mut sent: u32 = 0;
        while !changed.load(Relaxed) && !late() {
            for sender in &senders {
                sender.send(&sent.to_be_bytes()).unwrap();
                sent += 1;
            }
            while sent.saturating_sub(heard.load(Relaxed)) > UNDERWAY && !late() {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
        total.store(sent, Relaxed);
        arrived = hearing.join().unwrap();
    });

    let (state, sent) = (switch.state(), total.into_inner());
    arrived.sort_unstable();
    let each_once: Vec<u32> = (0..sent).collect();
    assert!(
        arrived == each_once,
        "{} of {sent} arrived: {state:#?}",
        arrived.len()
    );
    assert!(state.changes >= 8 * u64::from(ROUNDS), "{state:#?}");
    assert_eq!(state.ports[0].unread, Some(0), "{state:#?}");
    assert_eq!(state.ports[1].counters.dropped(), 0, "{state:#?}");
}

#[test]
fn queues_follow_the_load() {
    for steering in [Choice::Hash, Choice::Kernel, Choice::Cpu, Choice::Pinned] {
        let new = NewSwitch {
            queues: QueueCount::Auto { most: 3 },
            steering,
            ..NewSwitch::default()
        };
        let (switch, stations) = joined(2, new);
        assert_eq!(switch.state().queues, 1);
        let bind = || UdpSocket::bind("10.7.0.1:0").unwrap();
        let sender = stations[0].handle.ns().run(bind).unwrap();
        // The cost for the switch is the same without a receiver.
        sender.connect("10.7.0.2:9").unwrap();
        let deadline = Instant::now() + PATIENCE;
        while switch.state().queues < 2 {
            assert!(Instant::now() < deadline, "{:#?}", switch.state());
            for _ in 0..2000 {
                // The port is closed, so the next send reports an error.
                let _ = sender.send(&[0; 64]);
            }
        }
        let deadline = Instant::now() + PATIENCE;
        while switch.state().queues > 1 {
            assert!(Instant::now() < deadline, "{:#?}", switch.state());
            std::thread::sleep(Duration::from_millis(20));
        }
        until(&switch, "what was read went somewhere", |ports| {
            ports[0].counters.rx_frames == ports[1].counters.tx_frames
        });
    }
}
