//! Makes a switch in a throw-away namespace, binds two guests to it, sends datagrams from one to the other, prints the counters, and removes
//! the switch. Run it as root.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::net::{Ipv4Addr, UdpSocket};

use hopyard_net::{Handle, LinkKind, NetNs, NewLink};
use hopyard_switch::{NewPort, NewSwitch, Switch};

const DATAGRAMS: usize = 100;
const PORTS: [&str; 2] = ["port1", "port2"];

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let hub = Handle::new(&NetNs::create()?)?;
    let guests = [
        guest(&hub, PORTS[0], Ipv4Addr::new(192, 0, 2, 1))?,
        guest(&hub, PORTS[1], Ipv4Addr::new(192, 0, 2, 2))?,
    ];
    let name = format!("example-{}", std::process::id());
    // A switch finds its devices in the namespace of the calling thread.
    hub.ns().run(|| {
        let mut switch = Switch::create(&NewSwitch {
            name: &name,
            ..NewSwitch::default()
        })?;
        let done = use_it(&mut switch, &guests);
        // It would outlive this process.
        switch.delete()?;
        done
    })?
}

/// A guest behind a port of the hub.
fn guest(hub: &Handle, port: &str, address: Ipv4Addr) -> Outcome<Handle> {
    let guest = Handle::new(&NetNs::create()?)?;
    guest.quiet_ipv6()?;
    let cable = LinkKind::veth("eth0", Some(guest.ns()));
    hub.add_link(&NewLink {
        up: true,
        ..NewLink::new(port, cable)
    })?;
    guest.set_up("eth0")?;
    guest.add_address("eth0", address.into(), 24)?;
    guest.settle("eth0")?;
    hub.settle(port)?;
    Ok(guest)
}

fn use_it(switch: &mut Switch, guests: &[Handle; 2]) -> Outcome<()> {
    for device in PORTS {
        switch.add_port(&NewPort {
            device,
            ..NewPort::default()
        })?;
    }
    let sender = guests[0].ns().run(|| UdpSocket::bind("192.0.2.1:0"))??;
    let receiver = guests[1].ns().run(|| UdpSocket::bind("192.0.2.2:9000"))??;
    let mut message = [0; 16];
    for _ in 0..DATAGRAMS {
        sender.send_to(b"hello", "192.0.2.2:9000")?;
        receiver.recv(&mut message)?;
    }
    for party in switch.stats()? {
        println!(
            "{}: {} packets from it, {} to it",
            party.party, party.counters.rx_packets, party.counters.tx_packets
        );
    }
    for warning in &switch.show()?.warnings {
        println!("{warning}");
    }
    Ok(())
}
