//! Queues under traffic: MQ9 (single-queue programs), MQ10 (attach and detach), MQ17 (tun).

use std::time::Instant;

use hopyard_net::NetNs;
use hopyard_tap::{
    Device, Error, MAX_QUEUES, NewDevice, Pins, Queue, Queues, State, Steering, TunLayer,
};

use crate::world::{SOON, Sender, arrival, make, namespace, next, number, world};

/// So many that no queue is left out by chance.
const FLOWS: u64 = 64;

fn multi(name: &str, queues: usize) -> NewDevice {
    NewDevice {
        queues: Queues::Multi(queues),
        ..NewDevice::tap(name)
    }
}

/// Exchanges source and destination of an Ethernet frame or IP packet with UDP over IPv4; checksums stay right.
fn turn_round(layer: TunLayer, frame: &mut [u8]) {
    let ip = match layer {
        TunLayer::Tap => 14,
        TunLayer::Tun => 0,
    };
    let swaps = [(ip + 12, ip + 16, 4), (ip + 20, ip + 22, 2)];
    for (a, b, length) in swaps {
        for at in 0..length {
            frame.swap(a + at, b + at);
        }
    }
    if layer == TunLayer::Tap {
        for at in 0..6 {
            frame.swap(at, 6 + at);
        }
    }
}

/// The next numbered datagram of any of the queues: index of the queue, and length of the frame.
fn read(queues: &[Queue], frame: &mut [u8]) -> (usize, usize) {
    let start = Instant::now();
    while start.elapsed() < SOON {
        for (at, queue) in queues.iter().enumerate() {
            if let Ok(length) = queue.read(frame)
                && number(queue.device().layer(), &frame[..length]).is_some()
            {
                return (at, length);
            }
        }
    }
    panic!("no datagram arrived");
}

fn there_and_back(new: NewDevice) {
    let (handle, device, queues) = world(new);
    let sender = Sender::new(&handle, "10.9.0.2", 0);
    sender.socket.set_read_timeout(Some(SOON)).unwrap();
    for (round, queue) in queues.iter().cycle().take(64).enumerate() {
        sender.send(round as u64).unwrap();
        let mut frame = [0; 2048];
        let (_, length) = read(&queues, &mut frame);
        turn_round(device.layer(), &mut frame[..length]);
        assert_eq!(queue.write(&frame[..length]).unwrap(), length);
        let mut answer = [0; 16];
        assert_eq!(sender.socket.recv(&mut answer).unwrap(), 8);
        assert_eq!(answer[..8], (round as u64).to_be_bytes());
    }
}

#[test]
fn a_single_queue_device_is_as_ever() {
    there_and_back(NewDevice::tap("tap0"));
    there_and_back(NewDevice::tun("tun0"));
    let (_handle, device, queues) = world(NewDevice::tap("tap0"));
    assert!(!device.is_multi_queue());
    for refused in [
        queues[0].detach().unwrap_err(),
        queues[0].attach().unwrap_err(),
        device.open_queue().unwrap_err(),
    ] {
        assert!(matches!(refused, Error::NotMultiQueue { .. }), "{refused}");
    }
    let again = device
        .ns()
        .run(|| Device::open("tap0"))
        .unwrap()
        .unwrap_err();
    assert!(matches!(again, Error::InUse { .. }), "{again}");
}

#[test]
fn many_queues_carry_frames_and_packets() {
    there_and_back(multi("tap0", 4));
    let tun = NewDevice::tun("tun0");
    there_and_back(NewDevice {
        queues: Queues::Multi(4),
        ..tun
    });
}

#[test]
fn a_detached_queue_gets_nothing_and_its_frames_go_to_the_others() {
    let (handle, device, queues) = world(multi("tap%d", 3));
    assert_eq!(device.name(), "tap0");
    let senders: Vec<Sender> = (0..FLOWS)
        .map(|_| Sender::new(&handle, "10.9.0.2", 0))
        .collect();
    let share = || {
        let mut share = vec![0_u64; queues.len()];
        for (number, sender) in senders.iter().enumerate() {
            sender.send(number as u64).unwrap();
            let (queue, got) = arrival(&queues);
            assert_eq!(got, number as u64);
            share[queue] += 1;
        }
        share
    };
    assert!(
        share().iter().all(|&count| count > 0),
        "many flows, 3 queues"
    );
    queues[0].detach().unwrap();
    assert_eq!(queues[0].state().unwrap(), State::Detached);
    let link = device
        .ns()
        .run(|| Device::find("tap0"))
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!((link.attached, link.detached), (Some(2), Some(1)));
    let now = share();
    assert_eq!(now[0], 0);
    assert_eq!(now.iter().sum::<u64>(), FLOWS);
    queues[1].detach().unwrap();
    assert_eq!(share(), [0, 0, FLOWS]);
    queues[0].attach().unwrap();
    assert_eq!(queues[0].state().unwrap(), State::Attached);
    let now = share();
    assert!(now[0] > 0 && now[1] == 0 && now[2] > 0, "{now:?}");

    // None left: frames are dropped and counted; then everything is as before.
    queues[0].detach().unwrap();
    queues[2].detach().unwrap();
    let dropped = || {
        handle
            .device_stats()
            .unwrap()
            .iter()
            .map(|stats| stats.tx_dropped)
            .sum::<u64>()
    };
    let before = dropped();
    for sender in &senders {
        sender.send(0).unwrap();
    }
    assert_eq!(dropped() - before, FLOWS);
    queues.iter().for_each(|queue| queue.attach().unwrap());
    assert!(share().iter().all(|&count| count > 0));
}

#[test]
fn a_detached_queue_still_writes() {
    let (handle, _device, queues) = world(multi("tap0", 2));
    let sender = Sender::new(&handle, "10.9.0.2", 0);
    sender.send(1).unwrap();
    let mut frame = [0; 2048];
    let (at, length) = read(&queues, &mut frame);
    queues[at].detach().unwrap();
    turn_round(TunLayer::Tap, &mut frame[..length]);
    queues[at].write(&frame[..length]).unwrap();
    let mut answer = [0; 16];
    sender.socket.set_read_timeout(Some(SOON)).unwrap();
    assert_eq!(sender.socket.recv(&mut answer).unwrap(), 8);
}

#[test]
fn up_to_the_limit_and_beyond() {
    let (handle, device, mut queues) = world(multi("tap0", MAX_QUEUES));
    assert_eq!(queues.len(), 256);
    let sender = Sender::new(&handle, "10.9.0.2", 0);
    let mut pins = Pins::new(TunLayer::Tap).unwrap();
    queues[0].steer(Steering::Pinned(&pins)).unwrap();
    for at in 0..256 {
        pins.pin(&sender.flow(), at).unwrap();
        sender.send(u64::from(at)).unwrap();
        assert_eq!(next(&queues[usize::from(at)]), Some(u64::from(at)));
    }
    let beyond = device.open_queue().unwrap_err();
    assert!(matches!(beyond, Error::TooManyQueues { .. }), "{beyond}");
    queues[7].detach().unwrap();
    let beyond = device.open_queue().unwrap_err();
    assert!(matches!(beyond, Error::TooManyQueues { .. }), "{beyond}");
    queues.remove(7);
    queues.push(device.open_queue().unwrap());
    // Queue 255 got the number 7 when that one was detached; the new one is the last.
    pins.pin(&sender.flow(), 7).unwrap();
    sender.send(1).unwrap();
    assert_eq!(next(&queues[254]), Some(1));
    pins.pin(&sender.flow(), 255).unwrap();
    sender.send(2).unwrap();
    assert_eq!(next(&queues[255]), Some(2));
    drop(queues);
    assert!(handle.link("tap0").is_err());
    let refused = handle.ns().run(|| multi("tap1", 257).create()).unwrap();
    assert!(matches!(refused, Err(Error::TooManyQueues { .. })));
}

#[test]
fn a_device_is_followed_through_renaming_and_moving() {
    let handle = namespace();
    let elsewhere = namespace();
    let (device, queues) = make(&handle, &multi("tap0", 1));
    handle.rename("tap0", "other").unwrap();
    let lost = device.open_queue().unwrap_err();
    assert!(matches!(lost, Error::Missing { .. }), "{lost}");
    assert!(handle.link("tap0").is_err(), "and nothing was made");
    handle.move_to("other", elsewhere.ns()).unwrap();
    let found = queues[0].find_device().unwrap();
    assert_eq!(found.name(), "other");
    assert_eq!(found.ns().inode().unwrap(), elsewhere.ns().inode().unwrap());
    let second = found.open_queue().unwrap();
    assert_eq!(second.state().unwrap(), State::Attached);
    let link = elsewhere.tun_link("other").unwrap().unwrap();
    assert_eq!(link.attached, Some(2));
    assert_ne!(
        NetNs::current().unwrap().inode().unwrap(),
        found.ns().inode().unwrap()
    );
}

#[test]
fn carrier_and_send_buffer_are_set() {
    let handle = namespace();
    let (_device, queues) = make(
        &handle,
        &NewDevice {
            no_carrier: true,
            ..NewDevice::tap("tap0")
        },
    );
    handle.set_up("tap0").unwrap();
    for on in [false, true, false] {
        if on || handle.link("tap0").unwrap().carrier {
            queues[0].set_carrier(on).unwrap();
        }
        handle.settle("tap0").unwrap();
        assert_eq!(handle.link("tap0").unwrap().carrier, on);
    }
    assert_eq!(queues[0].send_buffer().unwrap(), i32::MAX.unsigned_abs());
    queues[0].set_send_buffer(65_536).unwrap();
    assert_eq!(queues[0].send_buffer().unwrap(), 65_536);
    assert!(matches!(
        queues[0].set_send_buffer(0),
        Err(Error::Invalid { .. })
    ));
}

#[test]
fn a_queue_holds_as_many_frames_as_it_is_told() {
    let (handle, _device, queues) = world(NewDevice::tap("tap0"));
    handle.set_tx_queue_len("tap0", 10).unwrap();
    let sender = Sender::new(&handle, "10.9.0.2", 0);
    for number in 0..25 {
        sender.send(number).unwrap();
    }
    let read: Vec<u64> = std::iter::from_fn(|| next(&queues[0])).collect();
    assert_eq!(read, (0..10).collect::<Vec<_>>(), "the first ones");
    let stats = handle.device_stats().unwrap();
    let dropped: u64 = stats.iter().map(|stats| stats.tx_dropped).sum();
    assert_eq!(dropped, 15, "and the others are counted");
}
