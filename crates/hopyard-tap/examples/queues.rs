//! Makes a multi-queue tap in a namespace of its own, sends datagrams of several flows to it, and prints what each
//! queue got: by the kernel's choice, by hash, and pinned. Run it as root.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::net::UdpSocket;

use hopyard_net::{Handle, NetNs};
use hopyard_tap::{Flow, NewDevice, Pins, Queue, Queues, Steering, TunLayer};

const FLOWS: usize = 12;
const DATAGRAMS: usize = 10;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let ns = NetNs::create()?;
    let new = NewDevice {
        queues: Queues::Multi(4),
        nonblocking: true,
        ..NewDevice::tap("tap0")
    };
    let (device, queues) = ns.run(|| new.create())??;
    let handle = Handle::new(&ns)?;
    handle.quiet_ipv6()?;
    handle.set_up(device.name())?;
    handle.add_address(device.name(), "10.9.0.1".parse()?, 24)?;
    handle.add_neighbour(device.name(), "10.9.0.2".parse()?, [2, 0, 0, 0, 0, 2])?;

    let sockets = ns.run(sockets)??;
    let mut pins = Pins::new(TunLayer::Tap)?;
    for (at, socket) in (0u16..).zip(&sockets) {
        let flow = Flow::udp(socket.local_addr()?, socket.peer_addr()?);
        pins.pin(&flow, at % 2)?;
    }
    println!("{FLOWS} flows of {DATAGRAMS} datagrams, frames and bytes by queue");
    for (name, steering) in [
        ("kernel", Steering::Kernel),
        ("hash", Steering::Hash),
        ("pinned to 0 and 1", Steering::Pinned(&pins)),
    ] {
        queues[0].steer(steering)?;
        for _ in 0..DATAGRAMS {
            for socket in &sockets {
                socket.send(b"hello")?;
            }
        }
        let counts: Vec<_> = queues.iter().map(count).collect();
        println!("{name:20}{counts:?}");
    }
    Ok(())
}

fn sockets() -> std::io::Result<Vec<UdpSocket>> {
    (0..FLOWS)
        .map(|_| {
            let socket = UdpSocket::bind("10.9.0.1:0")?;
            socket.connect("10.9.0.2:9000")?;
            Ok(socket)
        })
        .collect()
}

/// Reads everything in a queue; returns frames and bytes.
fn count(queue: &Queue) -> (u64, u64) {
    let mut frame = [0; 2048];
    let mut counts = (0, 0);
    while let Ok(length) = queue.read(&mut frame) {
        counts.0 += 1;
        counts.1 += length as u64;
    }
    counts
}
