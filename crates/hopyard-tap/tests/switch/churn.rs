//! Queues that come and go while frames pass.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use hopyard_tap::switch::{Choice, NewSwitch, QueueCount};
use nix::sys::socket::{setsockopt, sockopt};

use crate::stations::{joined, until};

const FLOWS: usize = 16;
const SPAN: Duration = Duration::from_secs(3);

#[test]
fn every_frame_arrives_once_while_queues_come_and_go() {
    let new = NewSwitch {
        queues: QueueCount::Fixed(1),
        ..NewSwitch::default()
    };
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

    let mut sent: u32 = 0;
    let mut arrived = Vec::new();
    std::thread::scope(|scope| {
        let hearing = scope.spawn(|| {
            let mut numbers = Vec::new();
            let mut datagram = [0; 16];
            while receiver.recv(&mut datagram).is_ok() {
                numbers.push(u32::from_be_bytes(datagram[..4].try_into().unwrap()));
            }
            numbers
        });
        scope.spawn(|| {
            let end = Instant::now() + SPAN;
            for count in [2, 4, 3, 1, 4, 2, 1, 3].iter().cycle() {
                if Instant::now() > end {
                    break;
                }
                switch.set_queues(*count).unwrap();
                assert_eq!(switch.state().queues, *count);
            }
        });
        let began = Instant::now();
        while began.elapsed() < SPAN {
            for sender in &senders {
                sender.send(&sent.to_be_bytes()).unwrap();
                sent += 1;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        arrived = hearing.join().unwrap();
    });

    let state = switch.state();
    let all = arrived.len();
    arrived.sort_unstable();
    arrived.dedup();
    assert_eq!(arrived.len(), all, "none twice");
    let unread = state.ports[0].unread.unwrap();
    let dropped = state.ports[1].counters.dropped();
    println!(
        "{sent} sent while {} queues came and went: {all} arrived, {unread} dropped before they were read, {dropped} after",
        state.changes
    );
    assert!(state.changes > 20, "{state:#?}");
    assert_eq!(all as u64 + unread + dropped, u64::from(sent), "{state:#?}");
    assert_eq!(dropped, 0);
    // A queue that overflows under a sender that does not wait, and nothing else.
    assert!(unread * 1000 < u64::from(sent), "{unread} of {sent}");
}

#[test]
fn queues_follow_the_load() {
    for steering in [Choice::Hash, Choice::Kernel, Choice::Cpu] {
        let new = NewSwitch {
            queues: QueueCount::Auto { most: 3 },
            steering,
            ..NewSwitch::default()
        };
        let (switch, stations) = joined(2, new);
        assert_eq!(switch.state().queues, 1);
        let bind = || UdpSocket::bind("10.7.0.1:0").unwrap();
        let sender = stations[0].handle.ns().run(bind).unwrap();
        // Whoever is not there to hear it costs the switch the same.
        sender.connect("10.7.0.2:9").unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while switch.state().queues < 2 {
            assert!(Instant::now() < deadline, "{:#?}", switch.state());
            for _ in 0..2000 {
                // The port is closed, and the answer to that an error of the next send.
                let _ = sender.send(&[0; 64]);
            }
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        while switch.state().queues > 1 {
            assert!(Instant::now() < deadline, "{:#?}", switch.state());
            std::thread::sleep(Duration::from_millis(20));
        }
        until(&switch, "what was read went somewhere", |ports| {
            ports[0].counters.rx_frames == ports[1].counters.tx_frames
        });
    }
}
