//! TCP through the switch: large segments pass as one frame, frames found together are joined, and nothing is altered.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use hopyard_net::{Handle, Offload};
use hopyard_tap::Offloads;
use hopyard_tap::switch::{Counters, Join, NewSwitch, Switch};
use nix::sys::socket::{setsockopt, sockopt};

use crate::stations::{Station, TAP, are_balanced, joined, until};

const LENGTH: usize = 32 << 20;
/// Less than a frame holds.
const MESSAGE: usize = 16 << 10;

fn byte(at: usize) -> u8 {
    (at as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .to_be_bytes()[0]
}

/// Sends a stream from one namespace to another, and checks that it arrives unchanged.
pub(crate) fn stream(from: &Handle, to: &Handle, address: &str, length: usize) {
    let address: SocketAddr = address.parse().unwrap();
    let listener = to.ns().run(|| TcpListener::bind(address).unwrap()).unwrap();
    let connect = || TcpStream::connect(address).unwrap();
    let mut sender = from.ns().run(connect).unwrap();
    // Other algorithms may pace, so that no two frames are found together.
    setsockopt(&sender, sockopt::TcpCongestion, &OsString::from("cubic")).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    let bytes: Vec<u8> = (0..length).map(byte).collect();
    let mut arrived = Vec::with_capacity(length);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for message in bytes.chunks(MESSAGE) {
                sender.write_all(message).unwrap();
            }
            sender.shutdown(std::net::Shutdown::Both).unwrap();
        });
        receiver.read_to_end(&mut arrived).unwrap();
    });
    assert!(
        arrived == bytes,
        "{} bytes arrived, or others",
        arrived.len()
    );
}

/// The counters of a switch's two ports for a stream from the first to the second.
fn counted(
    new: NewSwitch,
    address: &str,
    prepare: impl FnOnce(&Switch, &[Station]),
) -> [Counters; 2] {
    let (switch, stations) = joined(2, new);
    for (number, station) in (1..).zip(&stations) {
        let address = format!("fd07::{number}").parse().unwrap();
        station.handle.add_address(TAP, address, 64).unwrap();
    }
    prepare(&switch, &stations);
    let [from, to] = [0, 1].map(|number: usize| &stations[number].handle);
    stream(from, to, address, LENGTH);
    at_rest(&switch)
}

/// The counters when nothing passes any more: the last acknowledgements are still under way when a stream has arrived,
/// and ports are read one after the other. On a busy machine, a worker may also hold frames.
fn at_rest(switch: &Switch) -> [Counters; 2] {
    let read = || switch.state().ports;
    for _ in 0..300 {
        let before = read();
        std::thread::sleep(Duration::from_millis(100));
        if read() == before && are_balanced(&before) {
            let counters: Vec<_> = before.into_iter().map(|port| port.counters).collect();
            return counters.try_into().unwrap();
        }
    }
    panic!("frames passed for 30 s after the stream: {:#?}", read());
}

/// Only joining makes fewer frames than were read.
fn add_up(counters: &[Counters; 2]) {
    let [from, to] = counters;
    let written = to.tx_frames + to.joined + to.dropped();
    assert_eq!(from.rx_frames, written + from.dropped(), "{counters:#?}");
}

#[test]
fn segments_pass_whole_with_offloads_and_cut_without() {
    let bytes_per_frame = |offloads| {
        let new = NewSwitch {
            offloads,
            ..NewSwitch::default()
        };
        let counters = counted(new, "10.7.0.2:9000", |_, _| ());
        add_up(&counters);
        let [from, to] = counters;
        (from.rx_bytes / from.rx_frames, to.joined)
    };
    let (whole, _) = bytes_per_frame(Offloads::ALL);
    let (cut, joined) = bytes_per_frame(Offloads::default());
    println!("bytes per frame: {whole} with offloads, {cut} without");
    assert!(whole > 8000, "{whole}");
    assert!(cut <= 1514, "{cut}");
    assert_eq!(joined, 0, "who takes no segments gets none");
}

#[test]
fn frames_that_are_there_together_arrive_as_one_in_both_families() {
    for address in ["10.7.0.2:9000", "[fd07::2]:9000"] {
        let counters = counted(NewSwitch::default(), address, |_, _| ());
        add_up(&counters);
        let to = &counters[1];
        println!("{address}: {} joined to {} frames", to.joined, to.tx_frames);
        assert!(to.joined > 0, "{to:?}");
    }
}

#[test]
fn nothing_is_joined_where_that_is_switched_off_or_segments_are_not_taken() {
    let new = NewSwitch {
        join: Join::Off,
        ..NewSwitch::default()
    };
    let switched_off = counted(new, "10.7.0.2:9000", |_, _| ());
    let not_taken = counted(NewSwitch::default(), "10.7.0.2:9000", |switch, stations| {
        let to = &stations[1].handle;
        to.set_offload(TAP, Offload::Tso, false).unwrap();
        until(switch, "it is seen", |ports| !ports[1].joins);
    });
    for counters in [switched_off, not_taken] {
        add_up(&counters);
        assert_eq!(counters[1].joined, 0, "{counters:#?}");
    }
}
