//! Queues are attached and detached at ports, some of which are gone or accept no more queues.

use std::net::UdpSocket;
use std::time::Duration;

use hopyard_tap::switch::NewSwitch;
use hopyard_tap::{Device, Error, MAX_QUEUES};

use crate::stations::{Station, TAP, joined};

const FLOWS: u32 = 16;

/// How many of [`FLOWS`] flows from the first station to the second deliver a datagram.
fn flows_that_arrive(stations: &[Station]) -> u32 {
    let socket = |at: usize, address: &str| {
        let bind = || UdpSocket::bind(address).unwrap();
        stations[at].handle.ns().run(bind).unwrap()
    };
    let receiver = socket(1, "10.7.0.2:9000");
    receiver
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    for number in 0..FLOWS {
        let sender = socket(0, "10.7.0.1:0");
        sender
            .send_to(&number.to_be_bytes(), "10.7.0.2:9000")
            .unwrap();
    }
    let mut datagram = [0; 4];
    (0..FLOWS)
        .take_while(|_| receiver.recv(&mut datagram).is_ok())
        .count() as u32
}

#[test]
fn queues_come_and_go_beside_taps_that_were_deleted() {
    let (switch, stations) = joined(4, NewSwitch::default());
    let delete = |at: usize| stations[at].handle.delete_link(TAP).unwrap();
    let mut seen = Vec::new();
    let mut set = |count| {
        let set = switch.set_queues(count).map_err(|e| e.to_string());
        seen.push((set, switch.state().queues, flows_that_arrive(&stations)));
    };
    delete(3);
    set(2);
    // This one had two queues.
    delete(2);
    set(1);
    set(3);
    let wanted = [2, 1, 3].map(|count| (Ok(()), count, FLOWS));
    assert_eq!(seen, wanted, "{:#?}", switch.state());
    let there: Vec<bool> = switch.state().ports.iter().map(|p| p.there).collect();
    assert_eq!(there, [true, true, false, false]);
}

#[test]
fn a_tap_that_takes_no_more_queues_leaves_the_others_as_they_were() {
    // With a thread for each queue, and with one for all.
    for threads in [None, Some(1)] {
        leaves_the_others_as_they_were(threads);
    }
}

fn leaves_the_others_as_they_were(threads: Option<usize>) {
    let new = NewSwitch {
        threads,
        ..NewSwitch::default()
    };
    let (switch, stations) = joined(3, new);
    // The last port in order: the others already have a queue by then.
    let ns = stations[2].handle.ns();
    let (device, first) = ns.run(|| Device::open(TAP).unwrap()).unwrap();
    let more = (0..MAX_QUEUES - 2).map(|_| device.open_queue().unwrap());
    let others: Vec<_> = std::iter::once(first).chain(more).collect();
    others.iter().for_each(|queue| queue.detach().unwrap());

    let error = switch.set_queues(2).unwrap_err();
    assert!(matches!(error, Error::TooManyQueues { .. }), "{error}");
    let seen = (switch.state().queues, flows_that_arrive(&stations));
    assert_eq!(seen, (1, FLOWS), "{:#?}", switch.state());
    drop(others);
    switch.set_queues(2).unwrap();
    let seen = (switch.state().queues, flows_that_arrive(&stations));
    assert_eq!(seen, (2, FLOWS), "{:#?}", switch.state());
}
