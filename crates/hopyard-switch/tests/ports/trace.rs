//! Who traces a port is told which of its frames are dropped, with the reason, and nobody else pays.

use std::time::{Duration, Instant};

use hopyard_switch::{Dropped, MOST_TOLD, PortChange, Role, Switch, Trace, Traced};

use crate::frames::{BROADCAST, EXPERIMENT, frame};
use crate::listen::Ear;
use crate::site::{Site, guest_mac};

/// A frame that was dropped is told of by then.
const SOON: Duration = Duration::from_secs(5);
/// And one that must not be told of would have been.
const QUIET: Duration = Duration::from_millis(50);
const STRANGER: [u8; 6] = [2, 0, 0, 0, 0xaa, 0xbb];

fn port(device: &str) -> Traced {
    Traced::Port(device.to_owned())
}

fn try_start(site: &Site, party: Traced) -> Result<Trace, hopyard_switch::Error> {
    site.switch(|switch| Switch::open(switch.name()).unwrap().trace(party))
}

fn start(site: &Site, party: Traced) -> Trace {
    try_start(site, party).unwrap()
}

fn try_next(
    site: &Site,
    trace: &mut Trace,
    within: Duration,
) -> Result<Option<Dropped>, hopyard_switch::Error> {
    site.hub.ns().run(|| trace.next(within)).unwrap()
}

fn next(site: &Site, trace: &mut Trace, within: Duration) -> Option<Dropped> {
    try_next(site, trace, within).unwrap()
}

#[test]
fn a_tracer_is_told_of_each_frame_that_is_dropped_with_the_reason() {
    let site = Site::silent("trace", 3);
    site.connect(false, |n, port| port.isolated = n == 2);
    let ears = [0, 1, 2].map(|n| Ear::open(&site.guests[n], "eth0", EXPERIMENT));
    let mut trace = start(&site, port("p0"));
    // What passes is not told of, nor what is dropped of others.
    ears[0].send(&frame(guest_mac(1), guest_mac(0), EXPERIMENT, b"passes"));
    assert_eq!(ears[1].heard().len(), 1);
    ears[2].send(&frame(guest_mac(1), guest_mac(2), EXPERIMENT, b"isolated"));
    let lie = frame(guest_mac(1), STRANGER, EXPERIMENT, b"a lie");
    ears[0].send(&lie);
    let dropped = next(&site, &mut trace, SOON).unwrap();
    assert_eq!((dropped.reason, dropped.from.role), ("mac", Role::Port));
    assert_eq!(dropped.from.device.as_deref(), Some("p0"));
    assert_eq!(dropped.to, None);
    assert_eq!(dropped.len as usize, lie.len());
    assert_eq!(dropped.octets, lie[..lie.len().min(128)]);
    assert_eq!((dropped.gso_size, dropped.tag), (None, None));
    let age = dropped.at.elapsed().unwrap();
    assert!(age < SOON, "{age:?}");
    // A copy that is not made is told of, with whom it was for.
    ears[0].send(&frame(BROADCAST, guest_mac(0), EXPERIMENT, b"to all"));
    let dropped = next(&site, &mut trace, SOON).unwrap();
    let to = dropped.to.unwrap().device;
    assert_eq!((dropped.reason, to.as_deref()), ("isolated", Some("p2")));
    assert_eq!(next(&site, &mut trace, QUIET), None);
    // Frames that it should have got are, too: to its address, and copies.
    ears[2].send(&frame(guest_mac(0), guest_mac(2), EXPERIMENT, b"isolated"));
    ears[2].send(&frame(BROADCAST, guest_mac(2), EXPERIMENT, b"to all"));
    for _ in 0..2 {
        let dropped = next(&site, &mut trace, SOON).unwrap();
        let device = |party: hopyard_switch::Party| party.device.unwrap();
        assert_eq!(dropped.reason, "isolated");
        assert_eq!(device(dropped.from), "p2");
        assert_eq!(device(dropped.to.unwrap()), "p0");
    }
    drop(trace);
    // At the uplink as well.
    let mut wire = start(&site, Traced::Wire);
    let far = Ear::open(&site.far, "far0", EXPERIMENT);
    let echo = frame(guest_mac(1), guest_mac(0), EXPERIMENT, b"a guest's address");
    far.send(&echo);
    let dropped = next(&site, &mut wire, SOON).unwrap();
    assert_eq!((dropped.reason, dropped.from.role), ("mac", Role::Wire));
    // One at a time; what is no port is named.
    let error = try_start(&site, port("p0")).unwrap_err();
    assert!(
        error.is_usage() && error.to_string().contains("somebody traces it already"),
        "{error}"
    );
    drop(wire);
    assert!(try_start(&site, port("up0")).unwrap_err().is_usage());
}

#[test]
fn a_trace_goes_on_over_upgrades_and_ends_with_its_port() {
    let site = Site::silent("trace-again", 2);
    site.connect(false, |_, _| {});
    let mut trace = start(&site, port("p1"));
    let change = PortChange {
        device: "p0",
        isolated: Some(true),
        ..PortChange::default()
    };
    site.switch(|switch| switch.set_port(&change)).unwrap();
    site.switch(Switch::upgrade).unwrap();
    // Longer than a tracer asks at a time: it asked again meanwhile.
    assert_eq!(next(&site, &mut trace, Duration::from_millis(2_500)), None);
    let ear = Ear::open(&site.guests[1], "eth0", EXPERIMENT);
    ear.send(&frame(guest_mac(0), guest_mac(1), EXPERIMENT, b"isolated"));
    assert_eq!(next(&site, &mut trace, SOON).unwrap().reason, "isolated");
    site.remove(1);
    let error = try_next(&site, &mut trace, SOON).unwrap_err();
    assert!(error.is_usage(), "{error}");
}

#[test]
fn drops_of_others_take_no_room_from_those_that_are_asked_for() {
    let site = Site::silent("trace-others", 3);
    site.connect(false, |_, _| {});
    let mut trace = start(&site, port("p0"));
    let ears = [0, 1].map(|n| Ear::open(&site.guests[n], "eth0", EXPERIMENT));
    let lie = |n: u64| frame(guest_mac(2), STRANGER, EXPERIMENT, &n.to_be_bytes());
    // More than the buffer has room for, while nobody reads.
    for n in 0..2 * MOST_TOLD {
        ears[1].send(&lie(n));
    }
    ears[0].send(&lie(7));
    let dropped = next(&site, &mut trace, SOON).unwrap();
    assert_eq!(dropped.octets, lie(7)[..dropped.octets.len()]);
    assert_eq!(dropped.from.device.as_deref(), Some("p0"));
    assert_eq!(trace.missed().unwrap(), 0);
    assert_eq!(site.drops("p1"), [("mac", 2 * MOST_TOLD)]);
}

#[test]
fn the_first_of_a_flood_of_drops_are_told_and_who_was_killed_asks_for_nothing() {
    let site = Site::silent("trace-flood", 2);
    site.connect(false, |_, _| {});
    let mut trace = start(&site, port("p0"));
    let ear = Ear::open(&site.guests[0], "eth0", EXPERIMENT);
    // Far more than the buffer has room for, and numbered.
    let send = |numbers: std::ops::Range<u64>| {
        for n in numbers {
            ear.send(&frame(guest_mac(1), STRANGER, EXPERIMENT, &n.to_be_bytes()));
        }
    };
    send(0..3_000);
    for n in 0..MOST_TOLD {
        let dropped = next(&site, &mut trace, SOON).unwrap();
        assert_eq!(dropped.octets[14..22], n.to_be_bytes());
    }
    // And how many more there were.
    assert!(trace.missed().unwrap() > 0);
    // Nobody reads any more, and nobody asks again: as if it were stopped or killed.
    std::thread::sleep(Duration::from_millis(2_100));
    while next(&site, &mut trace, Duration::ZERO).is_some() {}
    std::mem::forget(trace);
    std::thread::sleep(Duration::from_millis(2_100));
    let passed = Instant::now();
    send(0..10);
    assert!(passed.elapsed() < SOON);
    assert_eq!(site.drops("p0"), [("mac", 3_010)]);
}
