//! Devices that take no more: frames wait in their source.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hopyard_net::{BridgeSettings, Handle, LinkKind, NetNs, NewLink, Offload};
use hopyard_tap::switch::{NewSwitch, PortState, Reason};

use crate::stations::{BROADCAST, SOON, TAP, frame, joined, mac, until};
use crate::whole::stream;

/// Bridges that forward at once, and everything.
fn at_once() -> BridgeSettings {
    let settings = BridgeSettings::default().stp(false).forward_delay(0);
    settings.multicast_snooping(false)
}

/// The far end of the wire.
const FAR: &str = "far0";

/// A namespace behind a station's tap and a wire, which are bridged.
fn beyond(slow: &Handle) -> Handle {
    let far = Handle::new(&NetNs::create().unwrap()).unwrap();
    far.quiet_ipv6().unwrap();
    let pair = LinkKind::veth(FAR, Some(far.ns()));
    slow.add_link(&NewLink::new("wire0", pair)).unwrap();
    slow.add_link(&NewLink::new("br0", LinkKind::Bridge(at_once())))
        .unwrap();
    for device in [TAP, "wire0"] {
        slow.set_master(device, "br0").unwrap();
    }
    for (handle, device) in [(slow, "wire0"), (&far, FAR), (slow, "br0")] {
        handle.set_up(device).unwrap();
    }
    for (handle, device) in [(slow, "wire0"), (&far, FAR), (slow, "br0")] {
        handle.settle(device).unwrap();
    }
    far
}

/// Packets that came out of the wire.
fn packets(far: &Handle) -> u64 {
    let stats = far.device_stats().unwrap();
    stats.iter().find(|s| s.name == FAR).unwrap().rx_packets
}

/// The wire accepts no segments and no unfinished checksums: the kernel cuts each frame by its header, and the far end
/// checks the packets.
#[test]
fn joined_frames_are_cut_again_on_a_wire_and_arrive_as_they_were_sent() {
    let (switch, stations) = joined(2, NewSwitch::default());
    let near = &stations[1].handle;
    let far = beyond(near);
    far.add_address(FAR, [10, 7, 0, 9].into(), 24).unwrap();
    far.add_address(FAR, "fd07::9".parse().unwrap(), 64)
        .unwrap();
    let from = &stations[0].handle;
    from.add_address(TAP, "fd07::1".parse().unwrap(), 64)
        .unwrap();
    for offload in [Offload::TxChecksum, Offload::Tso, Offload::Gso] {
        near.set_offload("wire0", offload, false).unwrap();
    }
    for address in ["10.7.0.9:9000", "[fd07::9]:9000"] {
        let before = switch.state().ports[1].counters.clone();
        let packets = packets(&far);
        stream(from, &far, address, 8 << 20);
        let after = &switch.state().ports[1].counters;
        let (frames, joined) = (
            after.tx_frames - before.tx_frames,
            after.joined - before.joined,
        );
        println!("{address}: {joined} joined to {frames} frames");
        assert!(joined > 0, "{after:?}");
        assert!(self::packets(&far) - packets > frames, "{after:?}");
    }
}

/// Behind the second station's tap is a wire of 10 Mbit/s, so frames accumulate in its queue.
#[test]
fn frames_wait_for_a_slow_device_instead_of_being_lost() {
    // Fewer than the queue of a port holds.
    const SENT: u32 = 2000;
    let new = NewSwitch {
        send_buffer: 32 * 1024,
        // The wire stops while other programs use its CPU.
        patience: Duration::from_secs(30),
        ..NewSwitch::default()
    };
    let (switch, stations) = joined(2, new);
    let far = beyond(&stations[1].handle);
    stations[1].handle.shape("wire0", 10_000_000).unwrap();
    let before = packets(&far);
    // All at once what the wire carries in 2.4 s: the port's queue holds them all, the switch and the wire hold a few.
    for number in 0..SENT {
        // An unknown address: the bridge forwards the frame itself, not a copy that is not counted.
        let mut large = frame(mac(2), mac(1), number);
        large.resize(1514, 0);
        assert!(stations[0].send(&large));
    }
    until(&switch, "all are written or lost", |ports| {
        let target = &ports[1].counters;
        target.tx_frames + target.dropped() >= u64::from(SENT)
    });
    let deadline = Instant::now() + SOON;
    let carried = loop {
        let carried = packets(&far) - before;
        if carried + 8 >= u64::from(SENT) || Instant::now() > deadline {
            break carried;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let ports = switch.state().ports;
    let (unread, target) = (ports[0].unread.unwrap(), &ports[1].counters);
    println!(
        "{SENT} sent, {carried} carried; {} waited, {unread} dropped before they were read, {:?} after",
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
    assert_eq!(
        (target.tx_frames, unread),
        (u64::from(SENT), 0),
        "{ports:#?}"
    );
    assert!(
        carried + 8 >= u64::from(SENT),
        "{carried} of {SENT} arrived"
    );
}

fn stalled(port: &PortState) -> u64 {
    let drops = port.counters.drops.iter();
    let stalled = drops.filter(|(reason, _)| *reason == Reason::Stalled);
    stalled.map(|(_, count)| count).sum()
}

/// The first station floods the second, whose tap is stuck: behind it is a wire of 8 kbit/s. The third talks to the fourth.
#[test]
fn a_stuck_device_holds_up_the_others_once() {
    const PATIENCE: Duration = Duration::from_secs(2);
    const ROUNDS: u32 = 500;
    let new = NewSwitch {
        send_buffer: 32 * 1024,
        patience: PATIENCE,
        ..NewSwitch::default()
    };
    let (switch, stations) = joined(4, new);
    let _far = beyond(&stations[1].handle);
    stations[1].handle.shape("wire0", 8_000).unwrap();
    // The switch learns all addresses.
    for at in [1, 3] {
        assert!(stations[at as usize].send(&frame(BROADCAST, mac(at + 1), 0)));
        stations[2].hear(0);
    }
    let done = AtomicBool::new(false);
    let mut took = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut large = frame(mac(2), mac(1), 0);
            large.resize(1514, 0);
            while !done.load(Relaxed) {
                // The kernel drops what its own queue cannot hold.
                stations[0].send(&large);
            }
        });
        // By then more frames wait than the wire's own queue of 256 KiB holds.
        until(&switch, "the device is stuck", |ports| {
            stalled(&ports[1]) > 0
        });
        for number in 1..=ROUNDS {
            let began = Instant::now();
            assert!(stations[2].send(&frame(mac(4), mac(3), number)));
            stations[3].hear(number);
            took.push(began.elapsed());
            if took.iter().sum::<Duration>() > 10 * PATIENCE {
                break;
            }
        }
        done.store(true, Relaxed);
    });
    let held_up = took.iter().filter(|took| **took >= PATIENCE / 2).count();
    took.sort_unstable();
    println!(
        "of {} frames {held_up} were held up; the slowest took {:?}, the median {:?}",
        took.len(),
        took.last(),
        took[took.len() / 2]
    );
    // One may be delayed by a pause of the machine.
    assert!(held_up <= 1, "{:#?}", switch.state());
}
