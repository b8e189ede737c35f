//! TCP through the switch: large segments pass whole, and nothing is altered.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use hopyard_tap::Offloads;
use hopyard_tap::switch::NewSwitch;

use crate::stations::joined;

const LENGTH: usize = 32 << 20;

fn byte(at: usize) -> u8 {
    (at as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .to_be_bytes()[0]
}

/// Bytes per frame of a stream that arrived as it was sent.
fn stream(offloads: Offloads) -> u64 {
    let new = NewSwitch {
        offloads,
        ..NewSwitch::default()
    };
    let (switch, stations) = joined(2, new);
    let listen = || TcpListener::bind("10.7.0.2:9000").unwrap();
    let listener = stations[1].handle.ns().run(listen).unwrap();
    let connect = || TcpStream::connect("10.7.0.2:9000").unwrap();
    let mut sender = stations[0].handle.ns().run(connect).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    let bytes: Vec<u8> = (0..LENGTH).map(byte).collect();
    let mut arrived = Vec::with_capacity(LENGTH);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sender.write_all(&bytes).unwrap();
            sender.shutdown(std::net::Shutdown::Both).unwrap();
        });
        receiver.read_to_end(&mut arrived).unwrap();
    });
    assert!(
        arrived == bytes,
        "{} bytes arrived, or others",
        arrived.len()
    );
    let counters = &switch.state().ports[0].counters;
    counters.rx_bytes / counters.rx_frames
}

#[test]
fn segments_pass_whole_with_offloads_and_cut_without() {
    let (whole, cut) = (stream(Offloads::ALL), stream(Offloads::default()));
    println!("bytes per frame: {whole} with offloads, {cut} without");
    assert!(whole > 8000, "{whole}");
    assert!(cut <= 1514, "{cut}");
}
