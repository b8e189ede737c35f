//! Load `udp_gso`: datagrams of the asked size, many for each call and each packet buffer.

use hopyard::lab::Lab;
use hopyard::model::{LoadKind, Measurement, Peer};

use crate::support::cli::run;
use crate::support::{beside, cell, float, proved, tell};

const SIZE: u32 = 1200;

fn measured(load: LoadKind, set: &[(&str, &str)]) -> Measurement {
    let size = SIZE.to_string();
    let set = [&[("message_size", &*size)], set].concat();
    let cell = cell("veth", Peer::Local, load, &set);
    let path = hopyard::lab::path("veth").unwrap();
    let lab = Lab::build(path, Peer::Local, &cell.axes).unwrap();
    proved(&lab, &cell, 300).unwrap()
}

/// Bytes of a packet buffer (skb) at the receiver's device.
fn per_skb(measured: &Measurement) -> f64 {
    let arrived = measured.arrived.unwrap();
    float(arrived.bytes) / float(arrived.skbs)
}

#[test]
fn datagrams_have_the_asked_size_and_share_a_packet_buffer() {
    let _beside = beside();
    for (family, flows) in [("4", "1"), ("6", "1"), ("4", "3")] {
        let set = [("family", family), ("flows", flows), ("gro", "on")];
        let gso = measured(LoadKind::UdpGso, &set);
        let plain = measured(LoadKind::UdpStream, &set);
        for (m, counted) in [
            (&gso, gso.received),
            (&gso, gso.sent),
            (&plain, plain.received),
        ] {
            let size = float(counted.bytes) / float(counted.messages);
            assert!((size / f64::from(SIZE) - 1.0).abs() < 0.01, "{size}: {m:?}");
        }
        assert!(gso.received.messages <= gso.sent.messages * 11 / 10);
        let (many, one) = (per_skb(&gso), per_skb(&plain));
        tell(&format!(
            "IPv{family}, {flows} flows of {SIZE} bytes: udp_gso {:.0} messages/ms and {many:.0} bytes per skb, udp_stream {:.0} and {one:.0}",
            float(gso.received.messages) * 1e6 / float(gso.window_ns),
            float(plain.received.messages) * 1e6 / float(plain.window_ns),
        ));
        // Headers are some 60 bytes.
        assert!(
            (f64::from(SIZE)..f64::from(SIZE) * 1.1).contains(&one),
            "{one}"
        );
        assert!(many > 10.0 * f64::from(SIZE), "{many}");
    }
}

#[test]
fn a_datagram_that_does_not_fit_the_mtu_is_refused_before_anything_is_built() {
    let _beside = beside();
    let args = [
        "run",
        "--paths",
        "veth",
        "--loads",
        "udp_gso",
        "--set",
        "message_size=1473",
    ];
    let said = run(&args);
    assert_eq!(said.status.code(), Some(2), "{said:?}");
    let why = "at most 1472 bytes at mtu 1500 over IPv4";
    assert!(said.stderr.contains(why), "{said:?}");
}
