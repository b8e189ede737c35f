//! How much a packet holds, by the device that takes it in.

use hopyard::model::{Arrived, LoadKind, Peer};

use crate::axes::measured;
use crate::support::{alone, cell, tell};

/// Bytes of a packet that the server's device took in, on the average, frame header included.
fn bytes_per_skb(path: &str, set: &[(&str, &str)]) -> u64 {
    let cell = cell(path, Peer::Local, LoadKind::TcpStream, set);
    let mut all = Arrived { bytes: 0, skbs: 0 };
    // A controller without a CPU reads the device for both edges at once: a window like that counts nothing.
    for _ in 0..5 {
        let arrived = measured(&cell, 100, 30).unwrap().arrived.unwrap();
        all.bytes += arrived.bytes;
        all.skbs += arrived.skbs;
        if all.skbs >= 100 {
            break;
        }
    }
    assert!(all.skbs >= 100, "{path}: {all:?}");
    all.bytes / all.skbs
}

#[test]
fn without_offloads_every_segment_fits_a_frame() {
    let _alone = alone();
    for path in ["veth", "bridge"] {
        let with = bytes_per_skb(path, &[]);
        let without = bytes_per_skb(path, &[("offload", "off")]);
        tell(&format!(
            "{path}: {with} bytes per skb, {without} with offload=off"
        ));
        assert!(without <= 1514, "{path}: {without}");
        assert!(with > 2 * 1514, "{path}: {with}");
    }
}
