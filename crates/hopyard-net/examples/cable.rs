//! Joins two throw-away namespaces by a veth pair, sends datagrams over it, and prints what the kernel counted. Run it as root.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::net::{Ipv4Addr, UdpSocket};

use hopyard_net::{Handle, LinkKind, NetNs, NewLink};

const DATAGRAMS: u64 = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let one = Handle::new(&NetNs::create()?)?;
    let two = Handle::new(&NetNs::create()?)?;
    for end in [&one, &two] {
        end.quiet_ipv6()?;
    }
    let cable = LinkKind::veth("eth0", Some(two.ns()));
    one.add_link(&NewLink {
        up: true,
        ..NewLink::new("eth0", cable)
    })?;
    two.set_up("eth0")?;
    for (end, host) in [(&one, 1), (&two, 2)] {
        end.add_address("eth0", Ipv4Addr::new(192, 0, 2, host).into(), 24)?;
        end.settle("eth0")?;
    }
    // A socket belongs to the namespace it was made in.
    let receiver = two.ns().run(|| UdpSocket::bind("192.0.2.2:9000"))??;
    let sender = one.ns().run(|| UdpSocket::bind("192.0.2.1:0"))??;
    let mut message = [0; 16];
    for _ in 0..DATAGRAMS {
        sender.send_to(b"hello", "192.0.2.2:9000")?;
        receiver.recv(&mut message)?;
    }
    for (name, end) in [("one", &one), ("two", &two)] {
        for stats in end.device_stats()? {
            if stats.name == "eth0" {
                println!(
                    "{name}: sent {} packets, {} bytes; received {} packets, {} bytes",
                    stats.tx_packets, stats.tx_bytes, stats.rx_packets, stats.rx_bytes
                );
            }
        }
    }
    Ok(())
}
