//! What was sent is what arrives.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hopyard_switch::SHORTCUT_MAX_MESSAGE;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrIn, recv, sendto, socket,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::bench::{PATIENCE, PORT, change, connect, counters, listen, pair, ping, v4, v6, world};

fn octets(seed: u64, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    ChaCha8Rng::seed_from_u64(seed).fill(&mut octets[..]);
    octets
}

fn send_in_pieces(mut to: &TcpStream, all: &[u8], seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut left = all;
    while !left.is_empty() {
        let most = if rng.random_bool(0.8) { 3000 } else { 40_000 };
        let size = rng.random_range(1..=most).min(left.len());
        to.write_all(&left[..size]).unwrap();
        left = &left[size..];
    }
}

fn receive_in_pieces(mut from: &TcpStream, len: usize, seed: u64) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut all = vec![0; len];
    let end = Instant::now() + 2 * PATIENCE;
    let mut at = 0;
    while at < len {
        let size = rng.random_range(1..=20_000).min(len - at);
        let n = match from.read(&mut all[at..at + size]) {
            // Woken for nothing, as another thread sends: `Loss::Blocking`.
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < end => continue,
            read => read.unwrap(),
        };
        assert!(n > 0, "the stream ended after {at} of {len}");
        at += n;
        if rng.random_bool(0.02) {
            thread::sleep(Duration::from_millis(1));
        }
    }
    all
}

/// A `sendto` that also connects does not run the message program.
#[test]
fn what_was_given_to_the_stack_while_connecting_is_not_overtaken() {
    let world = world("connecting", 2, false);
    let listener = listen(&world, "g1", v4(2), PORT);
    let stream = world.inside("g0", || {
        let flags = SockFlag::SOCK_CLOEXEC;
        socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap()
    });
    let address = SockaddrIn::new(198, 18, 0, 2, PORT);
    let flags = MsgFlags::from_bits_retain(nix::libc::MSG_FASTOPEN);
    sendto(stream.as_raw_fd(), b"head", &address, flags).unwrap();
    let mut client = TcpStream::from(stream);
    client.write_all(b"body").unwrap();
    thread::sleep(Duration::from_millis(100));
    let (mut server, _) = listener.accept().unwrap();
    for stream in [&client, &server] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    let mut got = [0; 8];
    server.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"headbody");
    // They were joined, and use the shortcut once that was answered.
    ping(&mut client, &mut server);
    ping(&mut client, &mut server);
    assert!(counters(&world, "p0").rx_messages > 0);
}

#[test]
fn many_connections_at_once_carry_what_was_sent() {
    const LEN: usize = 600_000;
    let world = world("many", 2, false);
    for (server_address, port) in [(v4(2), PORT), (v6(2), PORT + 1)] {
        let before = counters(&world, "p1");
        let listener = listen(&world, "g1", server_address, port);
        let pairs: Vec<_> = (0..24).map(|_| connect(&world, "g0", &listener)).collect();
        thread::scope(|scope| {
            for (n, (client, server)) in (0_u64..).zip(&pairs) {
                for (from, to, seed) in [(client, server, 2 * n), (server, client, 2 * n + 1)] {
                    scope.spawn(move || send_in_pieces(from, &octets(seed, LEN), seed));
                    scope.spawn(move || {
                        let got = receive_in_pieces(to, LEN, seed);
                        // Not by assert_eq, which would print them.
                        assert!(
                            got == octets(seed, LEN),
                            "connection {n} carried something else"
                        );
                    });
                }
            }
        });
        let after = counters(&world, "p1");
        assert!(after.joined - before.joined >= 20, "{before:?} {after:?}");
        assert!(
            after.tx_bytes - before.tx_bytes > 100_000,
            "{before:?} {after:?}"
        );
    }
}

/// Requests and responses, some of them longer than the shortcut takes, so that the ways change all the time.
#[test]
fn many_conversations_at_once_say_what_was_said() {
    const TURNS: usize = 300;
    let world = world("turns", 2, false);
    let listener = listen(&world, "g1", v4(2), PORT);
    let pairs: Vec<_> = (0..24).map(|_| connect(&world, "g0", &listener)).collect();
    thread::scope(|scope| {
        for (n, (client, server)) in (0_u64..).zip(&pairs) {
            let mut rng = ChaCha8Rng::seed_from_u64(n);
            let turns: Vec<[usize; 2]> = (0..TURNS)
                .map(|_| [rng.random_range(1..=9500), rng.random_range(1..=9500)])
                .collect();
            let theirs = turns.clone();
            scope.spawn(move || {
                for (turn, [request, response]) in (0..).zip(turns) {
                    let seed = n << 32 | turn;
                    send_in_pieces(client, &octets(seed, request), seed);
                    let got = receive_in_pieces(client, response, seed);
                    assert!(
                        got == octets(!seed, response),
                        "turn {turn} of connection {n}"
                    );
                }
            });
            scope.spawn(move || {
                for (turn, [request, response]) in (0..).zip(theirs) {
                    let seed = n << 32 | turn;
                    let got = receive_in_pieces(server, request, seed);
                    assert!(
                        got == octets(seed, request),
                        "turn {turn} of connection {n}"
                    );
                    send_in_pieces(server, &octets(!seed, response), seed);
                }
            });
        }
    });
    let by_shortcut = counters(&world, "p1");
    let frames = change(&world, |switch| switch.stats().unwrap());
    let frames = frames
        .iter()
        .find(|stats| stats.party == "p1")
        .unwrap()
        .counters;
    assert!(by_shortcut.tx_bytes > 10_000_000, "{by_shortcut:?}");
    assert!(frames.tx_bytes > 1_000_000, "{frames:?}");
}

#[test]
fn what_is_counted_is_what_was_sent() {
    let world = world("counted", 2, false);
    let (mut client, mut server) = pair(&world);
    ping(&mut client, &mut server);
    let before = [counters(&world, "p0"), counters(&world, "p1")];
    for _ in 0..10 {
        client.write_all(&[1; 100]).unwrap();
        server.read_exact(&mut [0; 100]).unwrap();
    }
    let after = [counters(&world, "p0"), counters(&world, "p1")];
    assert_eq!(after[0].rx_messages - before[0].rx_messages, 10);
    assert_eq!(after[0].rx_bytes - before[0].rx_bytes, 1000);
    assert_eq!(after[1].tx_messages - before[1].tx_messages, 10);
    assert_eq!(after[1].tx_bytes - before[1].tx_bytes, 1000);
    assert_eq!([after[0].joined, after[1].joined], [1, 1]);
    // Longer than the shortcut takes: by frames.
    let long = vec![3; SHORTCUT_MAX_MESSAGE as usize + 1];
    client.write_all(&long).unwrap();
    server.read_exact(&mut long.clone()).unwrap();
    assert_eq!(counters(&world, "p0"), after[0]);
}

#[test]
fn an_end_that_goes_in_the_middle_hangs_nobody() {
    let world = world("killed", 2, false);
    let listener = listen(&world, "g1", v4(2), PORT);
    for round in 0..30 {
        let (mut client, mut server) = connect(&world, "g0", &listener);
        ping(&mut client, &mut server);
        thread::scope(|scope| {
            let sender = scope.spawn(|| {
                let message = [5; 1000];
                while client.write_all(&message).is_ok() {}
            });
            let mut taken = 0;
            while taken < 3000 * round {
                taken += server.read(&mut [0; 5000]).unwrap();
            }
            drop(server);
            sender.join().unwrap();
        });
    }
}

/// A process is killed that has one end, with bytes unread.
#[test]
fn a_process_that_is_killed_ends_its_connections() {
    let world = world("sigkill", 2, false);
    let listener = listen(&world, "g1", v4(2), PORT);
    for _ in 0..5 {
        let (mut client, mut server) = connect(&world, "g0", &listener);
        ping(&mut client, &mut server);
        // It holds the socket and reads nothing.
        let mut child = Command::new("sleep")
            .arg("60")
            .stdin(Stdio::from(OwnedFd::from(server)))
            .spawn()
            .unwrap();
        client.write_all(&[5; 3000]).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let end = Instant::now() + PATIENCE;
        let error = loop {
            assert!(Instant::now() < end, "the sender is not told");
            if let Err(error) = client.write_all(&[5; 3000]) {
                break error.kind();
            }
        };
        let kinds = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
        assert!(kinds.contains(&error), "{error}");
    }
}

/// Such a reader looks at the queue of the stack alone until its call ends.
#[test]
fn a_reader_that_waits_for_all_gets_it_in_order() {
    const LEN: usize = 3_000_000;
    let world = world("waitall", 2, false);
    let listener = listen(&world, "g1", v4(2), PORT);
    for seed in 0..4 {
        let (mut client, mut server) = connect(&world, "g0", &listener);
        ping(&mut client, &mut server);
        let all = octets(seed, LEN);
        thread::scope(|scope| {
            scope.spawn(|| send_in_pieces(&client, &all, seed));
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut got = vec![0; LEN];
            let mut at = 0;
            let end = Instant::now() + 2 * PATIENCE;
            while at < LEN {
                let most = rng.random_range(1..=60_000).min(LEN - at);
                match recv(
                    server.as_raw_fd(),
                    &mut got[at..at + most],
                    MsgFlags::MSG_WAITALL,
                ) {
                    Ok(n) => {
                        assert!(n > 0, "the stream ended after {at}");
                        at += n;
                    }
                    Err(errno) => {
                        assert_eq!(errno, nix::errno::Errno::EAGAIN);
                        assert!(Instant::now() < end, "{at} of {LEN} arrived");
                    }
                }
            }
            assert!(got == all, "something else arrived");
        });
    }
}
