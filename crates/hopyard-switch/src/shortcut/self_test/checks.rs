//! What every TCP socket does, and a joined one has to.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{MsgFlags, recv, setsockopt, sockopt::Linger};

use super::{Bench, Checked, PATIENCE, ensure, read_on, said};
use crate::shortcut::SHORTCUT_MAX_MESSAGE;

type Check = fn(&Bench) -> Checked;

pub(super) const CHECKS: [(&str, Check); 13] = [
    ("joining", |bench| bench.joined().map(drop)),
    ("data both ways", both_ways),
    ("streams", streams),
    ("order while joining", order_while_joining),
    ("order for a waiting reader", order_for_a_waiting_reader),
    ("half-close", half_close),
    ("close after sending", close_after_sending),
    ("reset", reset_is_seen),
    ("closed peer", closed_peer),
    ("slow reader", slow_reader),
    ("MSG_PEEK", peek),
    ("poll", polled),
    ("epoll", edges),
];

/// Sizes of messages: short and long, at and about the limit of the shortcut.
fn sizes() -> impl Iterator<Item = usize> {
    let limit = SHORTCUT_MAX_MESSAGE as usize;
    let odd = [1, 100, limit, 3, limit + 1, 1448, 7, 70_000, limit - 1, 2];
    odd.into_iter().cycle()
}

/// After so many octets a stream is the same again: a prime, so that no size of messages is in step with it.
const PERIOD: usize = 65_521;

/// The octets of a stream, which tell all places near each other apart.
static STREAM: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let octet = |at: usize| (at.wrapping_mul(0x9e37_79b1) >> 13) as u8;
    (0..PERIOD).map(octet).collect()
});

/// So many octets of a stream from a place on, in pieces. In pieces they are compared as fast as they come, without optimization too.
fn pieces(from: usize, len: usize) -> impl Iterator<Item = &'static [u8]> {
    let end = from + len;
    let mut at = from;
    std::iter::from_fn(move || {
        let begin = at % PERIOD;
        let piece = &STREAM[begin..PERIOD.min(begin + end - at)];
        at += piece.len();
        (!piece.is_empty()).then_some(piece)
    })
}

fn stretch(from: usize, len: usize) -> Vec<u8> {
    pieces(from, len).collect::<Vec<_>>().concat()
}

/// Sends so many octets, in messages of these sizes.
fn send_all(mut to: &TcpStream, total: usize, sizes: impl Iterator<Item = usize>) -> Checked {
    let mut at = 0;
    for size in sizes {
        let len = size.min(total - at);
        said("send", to.write_all(&stretch(at, len)))?;
        at += len;
        if at == total {
            break;
        }
    }
    Ok(())
}

/// Reads so many octets that [`send_all`] sent, from a place on.
fn receive_all(from: &TcpStream, begin: usize, total: usize) -> Checked {
    let mut buffer = vec![0; 50_000];
    let mut at = begin;
    while at < total {
        let most = buffer.len().min(total - at);
        let (n, _) = read_on(from, &mut buffer[..most])?;
        ensure(n > 0, || {
            format!("the stream ended after {at} of {total} octets")
        })?;
        let mut got = &buffer[..n];
        for piece in pieces(at, n) {
            let (found, rest) = got.split_at(piece.len());
            ensure(found == piece, || {
                format!(
                    "one of octets {at} to {} of {total} is another one",
                    at + piece.len() - 1
                )
            })?;
            got = rest;
            at += piece.len();
        }
    }
    Ok(())
}

/// Is this the end of the stream?
fn expect_end(mut from: &TcpStream) -> Checked {
    let n = said("receive the end", from.read(&mut [0; 10]))?;
    ensure(n == 0, || format!("{n} octets came after the end"))
}

fn joined_by<T>(thread: thread::ScopedJoinHandle<'_, Checked<T>>) -> Checked<T> {
    thread.join().unwrap_or_else(|_| Err("it panicked".into()))
}

/// A conversation goes by the shortcut. Streams both ways may, until their senders leave the map: the first may have left before the
/// other begins.
fn both_ways(bench: &Bench) -> Checked {
    const TOTAL: usize = 4 << 20;
    let (client, server) = bench.joined()?;
    let before = bench.counters()?;
    let short: Vec<usize> = sizes()
        .take(50)
        .filter(|size| *size <= SHORTCUT_MAX_MESSAGE as usize)
        .collect();
    for &size in &short {
        for (from, to) in [(&client, &server), (&server, &client)] {
            send_all(from, size, std::iter::once(size))?;
            receive_all(to, 0, size)?;
        }
    }
    let after = bench.counters()?;
    let all = before
        .iter()
        .zip(after)
        .all(|(b, a)| a.rx_messages >= b.rx_messages + short.len() as u64);
    ensure(all || !bench.joins, || {
        format!(
            "of {} messages each way not all went by the shortcut: {before:?}, then {after:?}",
            short.len()
        )
    })?;
    thread::scope(|scope| {
        let threads = [
            scope.spawn(|| send_all(&client, TOTAL, sizes())),
            scope.spawn(|| send_all(&server, TOTAL, sizes().skip(3))),
            scope.spawn(|| receive_all(&client, 0, TOTAL)),
            scope.spawn(|| receive_all(&server, 0, TOTAL)),
        ];
        threads.into_iter().try_for_each(joined_by)
    })
}

/// Sends before the other end is in the map, and while its reader has not read what came by the stack.
/// A socket that sends a stream leaves the map, but not before it has read what came by the shortcut.
fn streams(bench: &Bench) -> Checked {
    const TOTAL: usize = 4 << 20;
    let (mut client, mut server) = bench.joined()?;
    said("send", server.write_all(b"?"))?;
    for _ in 0..2 {
        thread::scope(|scope| {
            let sent = scope.spawn(|| send_all(&client, TOTAL, std::iter::repeat(16 << 10)));
            receive_all(&server, 0, TOTAL)?;
            joined_by(sent)
        })?;
        let mut got = [0];
        said("receive", client.read_exact(&mut got))?;
        ensure(&got == b"?", || {
            "a message before a stream is another one".into()
        })?;
        said("send", server.write_all(b"?"))?;
    }
    for text in [b"!", b"!"] {
        said("send", client.write_all(text))?;
        said("receive", server.read_exact(&mut [0]))?;
        said("send", server.write_all(text))?;
    }
    let mut got = [0; 3];
    said("receive", client.read_exact(&mut got))?;
    ensure(&got == b"?!!", || {
        "messages behind a stream are others".into()
    })
}

fn order_while_joining(bench: &Bench) -> Checked {
    const TOTAL: usize = 120_000;
    for round in 0..40 {
        let client = bench.open()?;
        thread::scope(|scope| {
            let sender = scope.spawn(|| send_all(&client, TOTAL, sizes().skip(round)));
            let server = bench.accept()?;
            receive_all(&server, 0, 5)?;
            if round % 4 == 0 {
                thread::sleep(Duration::from_millis(2));
            }
            receive_all(&server, 5, TOTAL)?;
            joined_by(sender)
        })?;
    }
    Ok(())
}

/// A reader that waits for more than has come by the stack looks there alone until its call ends: nothing may overtake
/// what comes there meanwhile.
fn order_for_a_waiting_reader(bench: &Bench) -> Checked {
    const SHORT: usize = 100;
    const LONG: usize = SHORTCUT_MAX_MESSAGE as usize + 1;
    let (client, server) = bench.joined()?;
    let send = |at, len| said("send", (&client).write_all(&stretch(at, len)));
    send(0, LONG)?;
    receive_all(&server, 0, LONG)?;
    send(LONG, SHORT)?;
    let soon = Duration::from_millis(10);
    thread::sleep(soon);
    let got = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut got = [0; 3 * SHORT];
            let n = recv(server.as_raw_fd(), &mut got, MsgFlags::MSG_WAITALL)
                .map_err(|errno| format!("receive: {errno}"))?;
            ensure(got[..n] == stretch(LONG, n), || {
                "other octets came first".into()
            })?;
            Ok(n)
        });
        thread::sleep(soon);
        send(LONG + SHORT, SHORT)?;
        thread::sleep(soon);
        send(LONG + 2 * SHORT, LONG)?;
        joined_by(reader)
    })?;
    receive_all(&server, LONG + got, 2 * (LONG + SHORT))
}

fn half_close(bench: &Bench) -> Checked {
    let (client, server) = bench.joined()?;
    send_all(&client, 5000, sizes())?;
    said("shut down", client.shutdown(Shutdown::Write))?;
    thread::sleep(Duration::from_millis(5));
    receive_all(&server, 0, 5000)?;
    expect_end(&server)?;
    if (&client).write(b"x").is_ok() {
        return Err("a socket that was shut down sent something".to_owned());
    }
    send_all(&server, 5000, sizes())?;
    drop(server);
    receive_all(&client, 0, 5000)?;
    expect_end(&client)
}

fn close_after_sending(bench: &Bench) -> Checked {
    let (client, server) = bench.joined()?;
    send_all(&client, 9000, [3000].into_iter().cycle())?;
    drop(client);
    thread::sleep(Duration::from_millis(20));
    receive_all(&server, 0, 9000)?;
    expect_end(&server)
}

/// Closes a connection by RST.
#[expect(clippy::needless_pass_by_value, reason = "it is closed here")]
pub(super) fn reset(stream: TcpStream) -> Checked {
    let at_once = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    setsockopt(&stream, Linger, &at_once).map_err(|errno| format!("set SO_LINGER: {errno}"))
}

fn reset_is_seen(bench: &Bench) -> Checked {
    let (client, mut server) = bench.joined()?;
    reset(client)?;
    match server.read(&mut [0; 10]) {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(()),
        other => Err(format!("the reader got {other:?}")),
    }
}

/// Who sends to a closed socket is told so.
fn closed_peer(bench: &Bench) -> Checked {
    let (mut client, server) = bench.joined()?;
    drop(server);
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Err(error) = client.write(b"are you there?") {
            let kinds = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
            return ensure(kinds.contains(&error.kind()), || {
                format!("the sender got {error}")
            });
        }
        thread::sleep(Duration::from_millis(2));
    }
    Err("the sender is not told".into())
}

/// What a sender may have under way to a reader that does not read: net.ipv4.tcp_wmem and tcp_rmem, with room to spare.
const UNDER_WAY: usize = 32 << 20;

fn slow_reader(bench: &Bench) -> Checked {
    let (mut client, server) = bench.joined()?;
    said("set a socket up", client.set_nonblocking(true))?;
    let mut at = 0;
    let mut waited = Instant::now();
    let mut message = stretch(at, 4096);
    while waited.elapsed() < Duration::from_millis(100) {
        match client.write(&message) {
            Ok(n) => {
                at += n;
                message = stretch(at, 4096);
                waited = Instant::now();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(format!("send: {error}")),
        }
        ensure(at < UNDER_WAY, || {
            format!("{at} octets were sent to a reader that reads none")
        })?;
    }
    said("set a socket up", client.set_nonblocking(false))?;
    let total = at + 100_000;
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut to = &client;
            said("send", to.write_all(&stretch(at, total - at)))
        });
        receive_all(&server, 0, total)?;
        joined_by(sender)
    })
}

fn peek(bench: &Bench) -> Checked {
    let (client, server) = bench.joined()?;
    send_all(&client, 3000, sizes())?;
    thread::sleep(Duration::from_millis(10));
    let mut seen = [0; 50];
    for _ in 0..2 {
        let n = said("peek", server.peek(&mut seen))?;
        ensure(n > 0 && seen[..n] == stretch(0, n), || {
            "it shows other octets".into()
        })?;
    }
    receive_all(&server, 0, 3000)
}

/// Waits for something to read, at most so long.
fn is_readable(stream: &TcpStream, patience: Duration) -> Checked<bool> {
    let mut polled = [PollFd::new(stream.as_fd(), PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    poll(&mut polled, timeout)
        .map(|ready| ready > 0)
        .map_err(|errno| format!("poll: {errno}"))
}

fn polled(bench: &Bench) -> Checked {
    let (mut client, mut server) = bench.joined()?;
    let soon = Duration::from_millis(10);
    ensure(!is_readable(&server, soon)?, || {
        "readable before anything came".into()
    })?;
    thread::scope(|scope| {
        let waiter = scope.spawn(|| is_readable(&server, PATIENCE));
        thread::sleep(soon);
        said("send", client.write_all(b"wake up"))?;
        ensure(joined_by(waiter)?, || "nobody woke the poller".into())
    })?;
    said("receive", server.read_exact(&mut [0; 7]))?;
    said("set a socket up", server.set_nonblocking(true))?;
    let empty = server.read(&mut [0; 7]);
    ensure(
        matches!(&empty, Err(error) if error.kind() == ErrorKind::WouldBlock),
        || format!("the empty socket gave {empty:?}"),
    )?;
    ensure(!is_readable(&server, soon)?, || {
        "readable after all was read".into()
    })?;
    drop(client);
    ensure(is_readable(&server, PATIENCE)?, || {
        "the end wakes nobody".into()
    })
}

/// One edge for each message that finds an empty queue.
fn edges(bench: &Bench) -> Checked {
    let (mut client, mut server) = bench.joined()?;
    let failed = |errno| format!("epoll: {errno}");
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed)?;
    let event = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, 0);
    epoll.add(&server, event).map_err(failed)?;
    let wait = |patience: Duration| {
        let timeout = EpollTimeout::try_from(patience).unwrap_or(EpollTimeout::NONE);
        let mut events = [EpollEvent::empty()];
        epoll.wait(&mut events, timeout).map_err(failed)
    };
    for _ in 0..3 {
        said("send", client.write_all(b"ten octets"))?;
        ensure(wait(PATIENCE)? == 1, || "no edge for a message".into())?;
        said("receive", server.read_exact(&mut [0; 10]))?;
        ensure(wait(Duration::from_millis(5))? == 0, || {
            "an edge for nothing".into()
        })?;
    }
    Ok(())
}
