use std::cell::RefCell;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::spec::LoadSpec;
use crate::tally::Tally;
use hopyard_model::{Axes, LoadKind, Peer, Rate};

/// Takes what it has room for, then would have to wait.
struct Room(RefCell<Vec<usize>>);

impl Io for Room {
    fn send(&self, message: &[u8]) -> io::Result<usize> {
        match self.0.borrow_mut().pop() {
            Some(room) => Ok(room.min(message.len())),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.send(buffer)
    }
}

fn with<T>(rooms: &[usize], test: impl FnOnce(&Room, Context<'_>) -> T) -> T {
    let (tally, stop) = (Tally::default(), AtomicBool::new(false));
    let context = Context {
        tally: &tally,
        stop: &stop,
        close_ns: u64::MAX,
    };
    let rooms = rooms.iter().rev().copied().collect();
    test(&Room(RefCell::new(rooms)), context)
}

#[test]
fn the_messages_of_a_call_in_parts_count_once() {
    with(&[100, 30, 70, 100], |io, context| {
        let mut flow = Sending::new(io, context, 3);
        let mut steps = Vec::new();
        for _ in 0..5 {
            steps.push(flow.step(&[0; 100]).unwrap());
        }
        use Step::{Waits, Went};
        assert_eq!(steps, [Went, Went, Went, Went, Waits]);
        let sent = context.tally.read().sent;
        assert_eq!((sent.bytes, sent.messages), (300, 3 * 3));
    });
}

/// Takes two messages at a time.
struct Pairs(Room);

impl Io for Pairs {
    fn send(&self, message: &[u8]) -> io::Result<usize> {
        self.0.send(message)
    }

    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.recv(buffer)
    }

    fn take(&self, buffer: &mut [u8]) -> io::Result<(usize, u64)> {
        Ok((self.recv(buffer)?, 2))
    }
}

#[test]
fn a_call_counts_as_many_messages_as_it_takes() {
    with(&[], |_, context| {
        let io = Pairs(Room(RefCell::new(vec![20, 14])));
        let mut flow = Receiving::new(&io, context);
        for _ in 0..2 {
            assert_eq!(flow.step(&mut [0; 64]).unwrap(), Step::Went);
        }
        let received = context.tally.read().received;
        assert_eq!((received.bytes, received.messages), (34, 4));
    });
}

#[test]
fn a_paced_flow_keeps_its_mean() {
    const MESSAGES: usize = 20;
    const INTERVAL_NS: u64 = 1_000_000;
    let (tally, stop) = (Tally::default(), AtomicBool::new(false));
    let start_ns = clock::monotonic_ns();
    let context = Context {
        tally: &tally,
        stop: &stop,
        close_ns: start_ns,
    };
    // The socket is gone after these, which ends the flow.
    let room = Ended(RefCell::new(vec![100; MESSAGES]));
    let mut axes = Axes::default().for_cell(LoadKind::UdpStream, Peer::Local, &[]);
    axes.message_size_bytes = Some(100);
    axes.pace_bps = Some(Rate(Some(800 * 1_000_000_000 / INTERVAL_NS)));
    let spec = LoadSpec::new(LoadKind::UdpStream, &axes);
    let schedule = Schedule::new(&spec, start_ns, 0).unwrap();
    transmit_paced(&room, &mut Message::plain(100), context, schedule).unwrap();
    let took = clock::monotonic_ns() - start_ns;
    assert_eq!(tally.read().sent.messages, MESSAGES as u64);
    assert!(took >= INTERVAL_NS * MESSAGES as u64, "{took}");
}

/// Twenty messages, one due each ms, by a sender that sleeps for 5 ms at a time: it sends what is due at once, and no sooner.
#[test]
fn a_sender_that_rests_sends_what_is_due_together() {
    const MESSAGES: u64 = 20;
    const INTERVAL_NS: u64 = 1_000_000;
    const PAUSE_NS: u64 = 5_000_000;
    let (tally, stop) = (Tally::default(), AtomicBool::new(false));
    let start_ns = clock::monotonic_ns();
    let context = Context {
        tally: &tally,
        stop: &stop,
        close_ns: start_ns,
    };
    let io = Noting {
        left: RefCell::new(MESSAGES),
        sent_ns: RefCell::default(),
    };
    let mut axes = Axes::default().for_cell(LoadKind::UdpStream, Peer::Local, &[]);
    axes.message_size_bytes = Some(100);
    axes.pace_bps = Some(Rate(Some(800 * 1_000_000_000 / INTERVAL_NS)));
    axes.pace_pause_ns = Some("5ms".parse().unwrap());
    let spec = LoadSpec::new(LoadKind::UdpStream, &axes);
    let schedule = Schedule::new(&spec, start_ns, 0).unwrap();
    transmit_paced(&io, &mut Message::plain(100), context, schedule).unwrap();
    let sent_ns = io.sent_ns.borrow();
    for (number, at_ns) in (0..).zip(sent_ns.iter()) {
        assert!(*at_ns >= start_ns + number * INTERVAL_NS, "{number}");
    }
    let rests = sent_ns
        .windows(2)
        .filter(|pair| pair[1] - pair[0] >= PAUSE_NS - INTERVAL_NS);
    // The first message is due at once, so nobody sleeps before it. On a busy machine sleeps last longer, and are fewer.
    assert!(
        rests.count() as u64 <= MESSAGES * INTERVAL_NS / PAUSE_NS,
        "{sent_ns:?}"
    );
    let close = sent_ns
        .windows(2)
        .filter(|pair| pair[1] - pair[0] < INTERVAL_NS / 2);
    assert!(close.count() >= 10, "{sent_ns:?}");
}

/// Takes some messages and notes when; then it is closed.
struct Noting {
    left: RefCell<u64>,
    sent_ns: RefCell<Vec<u64>>,
}

impl Io for Noting {
    fn send(&self, message: &[u8]) -> io::Result<usize> {
        let mut left = self.left.borrow_mut();
        *left = left.checked_sub(1).ok_or(io::ErrorKind::BrokenPipe)?;
        self.sent_ns.borrow_mut().push(clock::monotonic_ns());
        Ok(message.len())
    }

    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.send(buffer)
    }
}

/// Takes some messages; then it is closed.
struct Ended(RefCell<Vec<usize>>);

impl Io for Ended {
    fn send(&self, message: &[u8]) -> io::Result<usize> {
        let room = self.0.borrow_mut().pop().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(room.min(message.len()))
    }

    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.send(buffer)
    }
}

#[test]
fn a_turn_ends_where_a_flow_would_wait() {
    with(&[10; 6], |io, context| {
        let mut flow = Receiving::new(io, context);
        let mut of_four = || turn(4, || flow.step(&mut [0; 10])).unwrap();
        assert_eq!(of_four(), Step::Went);
        assert_eq!(of_four(), Step::Went);
        assert_eq!(of_four(), Step::Waits);
        assert_eq!(context.tally.read().received.messages, 6);
    });
}
