//! A device that takes no more: frames wait in their source.

use std::time::{Duration, Instant};

use hopyard_net::{LinkKind, NewLink};
use hopyard_tap::switch::{NewSwitch, Reason};

use crate::stations::{TAP, frame, joined, mac};

/// Behind the second station's tap is a wire of 10 Mbit/s, bridged, so that frames add up in its queue.
#[test]
fn frames_wait_for_a_slow_device_instead_of_being_lost() {
    let new = NewSwitch {
        send_buffer: 32 * 1024,
        ..NewSwitch::default()
    };
    let (switch, stations) = joined(2, new);
    let slow = &stations[1].handle;
    let pair = LinkKind::Veth {
        peer: "far0".into(),
        peer_ns: None,
        peer_mac: None,
    };
    slow.add_link(&NewLink::new("wire0", pair)).unwrap();
    slow.add_link(&NewLink::new("br0", LinkKind::Bridge))
        .unwrap();
    slow.shape("wire0", 10_000_000).unwrap();
    for device in [TAP, "wire0"] {
        slow.set_master(device, "br0").unwrap();
    }
    for device in ["wire0", "far0", "br0"] {
        slow.set_up(device).unwrap();
        slow.settle(device).unwrap();
    }
    let far = || {
        let stats = slow.device_stats().unwrap();
        stats.iter().find(|s| s.name == "far0").unwrap().rx_packets
    };
    let before = far();
    // Twice what the wire carries, for a second: the queues hold less than the rest.
    let began = Instant::now();
    let mut sent = 0;
    while began.elapsed() < Duration::from_secs(1) {
        // Nobody is known by that address: the bridge hands on the frame itself, not a copy that nobody counts.
        let mut large = frame(mac(2), mac(1), sent);
        large.resize(1514, 0);
        sent += u32::from(stations[0].send(&large));
        std::thread::sleep(Duration::from_micros(400));
    }
    let deadline = Instant::now() + Duration::from_secs(4);
    let carried = loop {
        let carried = far() - before;
        if carried >= u64::from(sent) || Instant::now() > deadline {
            break carried;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let ports = switch.state().ports;
    let (unread, target) = (ports[0].unread.unwrap(), &ports[1].counters);
    println!(
        "{sent} sent, {carried} carried; {} waited, {unread} dropped before they were read, {:?} after",
        target.waited, target.drops
    );
    assert!(target.waited > 10, "{ports:#?}");
    assert!(
        !target
            .drops
            .iter()
            .any(|(reason, _)| *reason == Reason::Stalled),
        "{ports:#?}"
    );
    assert_eq!(target.tx_frames + unread, u64::from(sent), "{ports:#?}");
    assert!(
        carried + unread + 8 >= u64::from(sent),
        "{carried} of {sent} arrived"
    );
}
