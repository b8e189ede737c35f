//! Sockets that send streams leave the map, and nothing is lost by it.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use aya::maps::{Map, MapData, SockHash};

use crate::bench::{PATIENCE, counters, pair, ping, world};
use crate::world::World;

/// Longer than any message that goes by the shortcut.
const LONG: usize = 16 << 10;

/// How many sockets are in the map.
fn in_the_map(world: &World) -> usize {
    let file = Path::new("/sys/fs/bpf/hopyard/switch").join(world.name());
    let map = MapData::from_pin(file.join("shortcut_sockets")).unwrap();
    let map: SockHash<_, u64> = Map::from_map_data(map).unwrap().try_into().unwrap();
    map.keys().filter(Result::is_ok).count()
}

fn octet(at: usize) -> u8 {
    (at.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

/// Reads on where the kernel ends a blocking call for the other thread of the socket (`--accept blocking`), which loses nothing.
fn read_whole(mut from: &TcpStream, mut rest: &mut [u8]) {
    let end = Instant::now() + PATIENCE;
    while !rest.is_empty() {
        match from.read(rest) {
            Ok(0) => panic!("the stream ended {} octets early", rest.len()),
            Ok(n) => rest = &mut rest[n..],
            Err(error) => assert!(
                error.kind() == ErrorKind::WouldBlock && Instant::now() < end,
                "{error}"
            ),
        }
    }
}

/// Sends octets that nobody answers, and holds what arrives against them.
fn stream(mut from: &TcpStream, to: &TcpStream, messages: usize, size: usize) {
    thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..messages {
                let message: Vec<u8> = (n * size..(n + 1) * size).map(octet).collect();
                from.write_all(&message).unwrap();
            }
        });
        let mut got = vec![0; size];
        for n in 0..messages {
            read_whole(to, &mut got);
            let wrong = (n * size..).zip(&got).find(|(at, got)| octet(*at) != **got);
            assert_eq!(wrong, None, "in message {n}");
        }
    });
}

/// Streams until so many are in the map.
fn stream_until(world: &World, from: &TcpStream, to: &TcpStream, left: usize) {
    let end = Instant::now() + PATIENCE;
    while in_the_map(world) != left {
        assert!(Instant::now() < end, "{} in the map", in_the_map(world));
        stream(from, to, 100, LONG);
    }
}

#[test]
fn a_socket_that_sends_a_stream_leaves_the_map() {
    let world = world("stream", 2, false);
    let (mut client, mut server) = pair(&world);
    ping(&mut client, &mut server);
    assert_eq!(in_the_map(&world), 2);
    stream_until(&world, &client, &server, 1);
    // For good, and both ways: what is sent to it goes by frames.
    let before = [counters(&world, "p0"), counters(&world, "p1")];
    for _ in 0..20 {
        ping(&mut client, &mut server);
    }
    assert_eq!(before, [counters(&world, "p0"), counters(&world, "p1")]);
    stream_until(&world, &server, &client, 0);
    ping(&mut client, &mut server);
}

#[test]
fn short_messages_that_nobody_answers_are_a_stream() {
    let world = world("small", 2, false);
    let (mut client, mut server) = pair(&world);
    ping(&mut client, &mut server);
    // Behind a message by frames that nobody answered nothing goes by the shortcut.
    stream(&client, &server, 1, LONG);
    let end = Instant::now() + PATIENCE;
    while in_the_map(&world) != 1 {
        assert!(Instant::now() < end, "{} in the map", in_the_map(&world));
        stream(&client, &server, 20_000, 100);
    }
    ping(&mut client, &mut server);
}

/// Long requests and responses are no stream: either end may send short ones next.
#[test]
fn conversations_stay_in_the_map() {
    let world = world("talk", 2, false);
    let (mut client, mut server) = pair(&world);
    for _ in 0..500 {
        ping(&mut client, &mut server);
        stream(&client, &server, 3, LONG);
        stream(&server, &client, 3, LONG);
    }
    assert_eq!(in_the_map(&world), 2);
}

/// The kernel would throw it away.
#[test]
fn a_socket_with_unread_messages_stays_until_they_are_read() {
    let world = world("unread", 2, false);
    let (mut client, mut server) = pair(&world);
    ping(&mut client, &mut server);
    let before = counters(&world, "p0").tx_messages;
    server.write_all(b"to be read later").unwrap();
    assert_eq!(counters(&world, "p0").tx_messages, before + 1);
    stream(&client, &server, 1000, LONG);
    assert_eq!(in_the_map(&world), 2);
    // What comes now goes by frames, and is read behind it.
    server.write_all(b", and more").unwrap();
    thread::sleep(Duration::from_millis(50));
    let mut got = [0; 26];
    client.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"to be read later, and more");
    stream_until(&world, &client, &server, 1);
    ping(&mut client, &mut server);
}

/// Streams both ways, with short messages among them, while sockets leave.
#[test]
fn nothing_is_lost_while_both_leave() {
    let world = world("leave", 2, false);
    for round in 0..10 {
        let (mut client, mut server) = pair(&world);
        ping(&mut client, &mut server);
        thread::scope(|scope| {
            scope.spawn(|| stream(&client, &server, 300, LONG));
            for n in 0..20 {
                stream(&server, &client, 5 + n, 100 + 700 * n);
            }
            stream(&server, &client, 300, LONG);
        });
        ping(&mut client, &mut server);
        assert!(in_the_map(&world) < 2, "round {round}");
        drop((client, server));
    }
}
