//! Nothing goes by the shortcut that the switch would not let pass.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;

use hopyard_net::{Handle, NetNs};
use hopyard_switch::{NewPort, PortChange, ShortcutCounters};
use nix::sys::socket::SockaddrIn;

use crate::bench::{
    PATIENCE, PORT, change, connect, counters, give_address, join, listen, nothing_arrives, pair,
    ping, v4, world,
};
use crate::world::World;

#[test]
fn the_same_addresses_on_two_switches_and_in_two_vlans_stay_apart() {
    let worlds = [world("one", 2, false), world("other", 2, false)];
    let pairs = [pair(&worlds[0]), pair(&worlds[1])];
    apart(&pairs);
    for world in &worlds {
        assert!(counters(world, "p0").joined == 1 && counters(world, "p1").joined == 1);
    }
    let vlans = World::with("vlans", 4, false, |n, port| {
        port.vlan = Some(7 + n as u16 / 2);
    });
    for n in 0..4 {
        give_address(&vlans, &format!("g{n}"), "eth0", n % 2 + 1);
    }
    join(&vlans);
    let pairs = [["g0", "g1"], ["g2", "g3"]]
        .map(|[client, server]| connect(&vlans, client, &listen(&vlans, server, v4(2), PORT)));
    apart(&pairs);
    for n in 0..4 {
        assert_eq!(counters(&vlans, &format!("p{n}")).joined, 1);
    }
}

/// Each pair hears its own.
fn apart(pairs: &[(TcpStream, TcpStream)]) {
    for (n, (client, server)) in (0_u8..).zip(pairs) {
        let (mut client, mut server) = (client, server);
        for round in 0..5 {
            client.write_all(&[n, round]).unwrap();
            let mut got = [0; 2];
            server.read_exact(&mut got).unwrap();
            assert_eq!(got, [n, round]);
            server.write_all(&[n, round]).unwrap();
            client.read_exact(&mut got).unwrap();
            assert_eq!(got, [n, round]);
        }
    }
}

#[test]
fn the_host_and_the_wire_are_never_joined() {
    let world = world("wire", 2, true);
    for (party, device, n) in [("host", "up0", 250), ("wire", "far0", 251)] {
        give_address(&world, party, device, n);
        let (mut client, mut server) = connect(&world, "g0", &listen(&world, party, v4(n), PORT));
        ping(&mut client, &mut server);
        let (mut client, mut server) = connect(&world, party, &listen(&world, "g1", v4(2), PORT));
        ping(&mut client, &mut server);
    }
    for port in ["p0", "p1"] {
        assert_eq!(counters(&world, port), ShortcutCounters::default());
    }
}

#[test]
fn a_port_that_is_isolated_gets_nothing_by_the_shortcut_until_it_is_no_more() {
    let world = world("isolated", 2, false);
    let (mut client, mut server) = pair(&world);
    ping(&mut client, &mut server);
    let isolate = |isolated| {
        change(&world, |switch| {
            let change = PortChange {
                device: "p1",
                isolated: Some(isolated),
                ..PortChange::default()
            };
            switch.set_port(&change).unwrap();
        });
    };
    isolate(true);
    let before = counters(&world, "p1");
    nothing_arrives(&mut client, &mut server, b"secret");
    assert_eq!(counters(&world, "p1"), before);
    isolate(false);
    client.write_all(b" again").unwrap();
    let mut got = [0; 12];
    server.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"secret again");
    // What was by frames is read by now, so the shortcut goes on.
    ping(&mut client, &mut server);
    assert!(counters(&world, "p1").tx_messages > before.tx_messages);
}

/// Connects a socket to nobody (`connect(2)`, AF_UNSPEC), after which it can connect again.
fn disconnect(stream: &TcpStream) {
    let nobody = libc::sockaddr {
        sa_family: libc::AF_UNSPEC as libc::sa_family_t,
        sa_data: [0; 14],
    };
    let size = size_of_val(&nobody) as libc::socklen_t;
    // SAFETY: the address is there for the call, with its size.
    let done = unsafe { libc::connect(stream.as_raw_fd(), &raw const nobody, size) };
    assert_eq!(done, 0);
}

/// Its former peer knows the socket by its cookie, which it keeps.
#[test]
fn a_socket_that_connects_to_another_sends_to_that_one_alone() {
    let world = world("reconnected", 3, false);
    let (mut client, mut first) = pair(&world);
    ping(&mut client, &mut first);
    disconnect(&client);
    let listener = listen(&world, "g2", v4(3), PORT + 1);
    let address = SockaddrIn::new(198, 18, 0, 3, PORT + 1);
    nix::sys::socket::connect(client.as_raw_fd(), &address).unwrap();
    let (mut second, _) = listener.accept().unwrap();
    second.set_read_timeout(Some(PATIENCE)).unwrap();
    let before = counters(&world, "p0");
    client.write_all(b"secret").unwrap();
    let mut got = [0; 6];
    second.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"secret");
    let heard = first.read(&mut got);
    assert!(!matches!(heard, Ok(1..)), "{heard:?}");
    // Its former peer cannot reach it.
    let _ = first.write(b"late");
    ping(&mut client, &mut second);
    assert_eq!(counters(&world, "p0"), before, "it went by the shortcut");
}

#[test]
fn a_socket_that_was_shut_down_sends_nothing() {
    let world = world("shut", 2, false);
    let (mut client, mut server) = pair(&world);
    ping(&mut client, &mut server);
    client.shutdown(Shutdown::Write).unwrap();
    let mut got = [0];
    assert_eq!(server.read(&mut got).unwrap(), 0);
    let refused = client.write(b"x").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::BrokenPipe);
    assert_eq!(server.read(&mut got).unwrap(), 0);
    // The other way is open.
    server.write_all(b"y").unwrap();
    client.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"y");
}

/// Frames of the sockets that stayed behind would not reach the switch.
#[test]
fn nothing_goes_by_the_shortcut_once_the_guests_end_is_elsewhere() {
    let world = world("elsewhere", 2, false);
    let (mut client, mut server) = pair(&world);
    ping(&mut client, &mut server);
    let elsewhere = NetNs::create().unwrap();
    world.inside("g0", || {
        Handle::here().unwrap().move_to("eth0", &elsewhere).unwrap();
    });
    let there = Handle::new(&elsewhere).unwrap();
    there.set_up("eth0").unwrap();
    assert!(there.settle("eth0").unwrap());
    let before = counters(&world, "p1");
    nothing_arrives(&mut client, &mut server, b"secret");
    nothing_arrives(&mut server, &mut client, b"secret");
    assert_eq!(counters(&world, "p1"), before);
}

/// Frames of such a port take the queue of the host's end, for filters and shapers there.
#[test]
fn a_queued_port_is_never_joined() {
    let world = World::with("queued", 3, false, |n, port| port.queued = n == 1);
    for n in 0..3 {
        give_address(&world, &format!("g{n}"), "eth0", n + 1);
    }
    join(&world);
    let (mut client, mut server) = pair(&world);
    ping(&mut client, &mut server);
    let (mut client, mut server) = connect(&world, "g1", &listen(&world, "g2", v4(3), PORT));
    ping(&mut client, &mut server);
    for port in ["p0", "p1", "p2"] {
        assert_eq!(counters(&world, port), ShortcutCounters::default());
    }
    let (mut client, mut server) = connect(&world, "g0", &listen(&world, "g2", v4(3), PORT + 1));
    ping(&mut client, &mut server);
    assert_eq!(counters(&world, "p0").joined, 1);
}

#[test]
fn a_port_that_comes_back_with_another_rule_gets_nothing_by_the_shortcut() {
    let world = world("again", 2, false);
    let (mut client, mut server) = pair(&world);
    ping(&mut client, &mut server);
    let add = |vlan| {
        change(&world, |switch| {
            switch.remove_port("p1").unwrap();
            let port = NewPort {
                device: "p1",
                vlan,
                ..NewPort::default()
            };
            switch.add_port(&port).unwrap();
        });
    };
    // Device and slot are those that they were.
    add(Some(7));
    nothing_arrives(&mut client, &mut server, b"from another VLAN");
    assert_eq!(counters(&world, "p1"), ShortcutCounters::default());
    add(None);
    let mut got = [0; 17];
    server.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"from another VLAN");
    // By frames from now on: the port is another one.
    ping(&mut client, &mut server);
    assert_eq!(counters(&world, "p1"), ShortcutCounters::default());
}

#[test]
fn nothing_goes_by_the_shortcut_while_a_port_is_down() {
    let world = world("down", 2, false);
    for (party, device) in [("host", "p0"), ("host", "p1")] {
        let (mut client, mut server) = connect(&world, "g0", &listen(&world, "g1", v4(2), PORT));
        ping(&mut client, &mut server);
        let set = |up| {
            world.inside(party, || {
                let handle = Handle::here().unwrap();
                if up {
                    handle.set_up(device)
                } else {
                    handle.set_down(device)
                }
                .unwrap();
            });
        };
        set(false);
        nothing_arrives(&mut client, &mut server, b"down");
        set(true);
        let mut got = [0; 4];
        server.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"down");
        let before = counters(&world, "p1");
        ping(&mut client, &mut server);
        assert!(counters(&world, "p1").tx_messages > before.tx_messages);
    }
}
