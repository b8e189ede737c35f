//! A switch with a shortcut, and connections between its guests.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::{Handle, own_cgroup};
use hopyard_switch::{NewShortcut, SelfTest, ShortcutCounters, Switch};

use crate::world::World;

pub(crate) const PORT: u16 = 5000;
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The address of a guest by its number; the host has 250, what is beyond the wire 251.
pub(crate) fn v4(n: u8) -> IpAddr {
    [198, 18, 0, n].into()
}

pub(crate) fn v6(n: u16) -> IpAddr {
    [0x2001, 2, 0, 0, 0, 0, 0, n].into()
}

pub(crate) fn give_address(world: &World, party: &str, device: &str, n: u8) {
    world.inside(party, || {
        let handle = Handle::here().unwrap();
        handle.add_address(device, v4(n), 24).unwrap();
        handle.add_address(device, v6(n.into()), 64).unwrap();
    });
}

/// A switch with a shortcut and guests with addresses.
pub(crate) fn world(name: &str, guests: usize, uplink: bool) -> World {
    let world = World::new(name, guests, uplink);
    for n in 0..guests {
        give_address(&world, &format!("g{n}"), "eth0", n as u8 + 1);
    }
    join(&world);
    world
}

/// The self-test is tried by tests of its own.
pub(crate) fn join(world: &World) {
    change(world, |switch| {
        let new = NewShortcut {
            cgroup: &own_cgroup().unwrap(),
            accept: &[],
        };
        switch
            .set_tested_shortcut(&new, &SelfTest::default())
            .unwrap();
    });
}

pub(crate) fn change<T: Send>(world: &World, f: impl FnOnce(&mut Switch) -> T + Send) -> T {
    world.in_hub(|| f(&mut Switch::open(world.name()).unwrap()))
}

pub(crate) fn counters(world: &World, port: &str) -> ShortcutCounters {
    let stats = change(world, |switch| switch.stats().unwrap());
    let party = stats.iter().find(|stats| stats.party == port).unwrap();
    party.shortcut.unwrap()
}

pub(crate) fn listen(world: &World, party: &str, address: IpAddr, port: u16) -> TcpListener {
    let address = SocketAddr::from((address, port));
    world.inside(party, || {
        let end = Instant::now() + PATIENCE;
        loop {
            match TcpListener::bind(address) {
                // An IPv6 address of a fresh device.
                Err(error) if Instant::now() < end => {
                    assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
                    thread::sleep(Duration::from_millis(20));
                }
                bound => return bound.unwrap(),
            }
        }
    })
}

pub(crate) fn connect(
    world: &World,
    party: &str,
    listener: &TcpListener,
) -> (TcpStream, TcpStream) {
    let address = listener.local_addr().unwrap();
    let client = world
        .inside(party, || TcpStream::connect_timeout(&address, PATIENCE))
        .unwrap();
    let (server, _) = listener.accept().unwrap();
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
    }
    (client, server)
}

/// A connection from `g0` to `g1`.
pub(crate) fn pair(world: &World) -> (TcpStream, TcpStream) {
    connect(world, "g0", &listen(world, "g1", v4(2), PORT))
}

/// Goes to and fro some times, by which two ends find each other.
pub(crate) fn ping(client: &mut TcpStream, server: &mut TcpStream) {
    for n in 0..4 {
        client.write_all(&[n]).unwrap();
        let mut got = [9];
        server.read_exact(&mut got).unwrap();
        assert_eq!(got, [n]);
        server.write_all(&[n]).unwrap();
        client.read_exact(&mut got).unwrap();
        assert_eq!(got, [n]);
    }
}

/// Sends, and hears nothing of it at the other end.
pub(crate) fn nothing_arrives(client: &mut TcpStream, server: &mut TcpStream, text: &[u8]) {
    client.write_all(text).unwrap();
    server
        .set_read_timeout(Some(Duration::from_millis(150)))
        .unwrap();
    let heard = server.read(&mut vec![0; text.len()]);
    assert_eq!(heard.unwrap_err().kind(), ErrorKind::WouldBlock);
    server.set_read_timeout(Some(PATIENCE)).unwrap();
}
