use super::*;
use std::cell::RefCell;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::flow::events::{Client, Part};
use crate::flow::{Socket, rr_client, rr_server};
use crate::tally::Tally;

fn buffers(request: usize, response: usize, outstanding: u32, datagrams: bool) -> Responder {
    Responder {
        request: vec![0x5a; request],
        response: vec![0x5a; response],
        datagrams,
        outstanding,
        service_time_ns: 0,
        pause_ns: 0,
    }
}

/// What a client of so many requests in flight completed and gave up within a span over a socket, and how long it took, in ms.
struct Seen {
    transactions: u64,
    lost: u64,
    times: Times,
    took_ns: u64,
}

fn client_for(socket: impl Into<std::os::fd::OwnedFd>, mut buffers: Responder, ms: u64) -> Seen {
    let socket = Socket(socket.into());
    let (tally, stop) = (Tally::default(), AtomicBool::new(false));
    let began_ns = clock::monotonic_ns();
    let mut times = Times::new(began_ns, u64::MAX).unwrap();
    let context = Context {
        tally: &tally,
        stop: &stop,
        close_ns: u64::MAX,
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(ms));
            stop.store(true, Relaxed);
        });
        rr_client(&socket, &mut buffers, &mut times, context).unwrap();
    });
    let seen = tally.read();
    Seen {
        transactions: seen.received.transactions,
        lost: seen.timeouts,
        times,
        took_ns: clock::monotonic_ns() - began_ns,
    }
}

/// Serves a connection until the client closes it.
fn answers(listener: TcpListener, mut buffers: Responder) {
    std::thread::spawn(move || {
        let socket = Socket(listener.accept().unwrap().0.into());
        let (tally, stop) = (Tally::default(), AtomicBool::new(false));
        let context = Context {
            tally: &tally,
            stop: &stop,
            close_ns: 0,
        };
        rr_server(&socket, &mut buffers, context).unwrap();
    });
}

fn over_tcp(request: usize, response: usize, outstanding: u32, ms: u64) -> Seen {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut server = buffers(request, response, 1, false);
    server.service_time_ns = 20_000;
    answers(listener, server);
    let connection = TcpStream::connect(address).unwrap();
    connection.set_nodelay(true).unwrap();
    client_for(
        connection,
        buffers(request, response, outstanding, false),
        ms,
    )
}

/// The known answer (Little's law): with n requests in flight all the time, their times add up to n times the time it took.
#[expect(clippy::cast_precision_loss, reason = "counts of a test")]
fn in_flight(seen: &Seen) -> f64 {
    let times = seen.times.timings.histogram();
    assert_eq!(times.len(), seen.transactions);
    times.mean() * times.len() as f64 / seen.took_ns as f64
}

#[test]
fn as_many_are_in_flight_as_were_asked_for() {
    for outstanding in [2, 16, 256] {
        let seen = over_tcp(1, 1, outstanding, 200);
        let found = in_flight(&seen) / f64::from(outstanding);
        assert!((0.8..1.05).contains(&found), "{outstanding}: {found}");
        assert!(seen.transactions > u64::from(outstanding), "{outstanding}");
    }
}

/// Requests and responses that no socket buffer holds: neither end waits for the other for ever, and none is left when it ends.
/// Fewer are in flight than were asked for, since the others wait for room.
#[test]
fn large_messages_do_not_wait_for_each_other() {
    let seen = over_tcp(300_000, 300_000, 64, 200);
    assert!(seen.transactions > 64, "{}", seen.transactions);
    let found = in_flight(&seen);
    assert!((1.5..67.0).contains(&found), "{found}");
}

/// A server of datagrams that makes of the requests it has got so far what it is told to.
fn over_udp(
    size: usize,
    outstanding: u32,
    ms: u64,
    mut serve: impl FnMut(&UdpSocket, &[u8]) + Send + 'static,
) -> Seen {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.connect(client.local_addr().unwrap()).unwrap();
    client.connect(server.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(DATAGRAM_PATIENCE)).unwrap();
    server
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    std::thread::spawn(move || {
        let mut request = vec![0; size];
        while server.recv(&mut request).is_ok() {
            serve(&server, &request);
        }
    });
    client_for(client, buffers(size, size, outstanding, true), ms)
}

/// Responses in another order than the requests are each their own request's.
#[test]
fn datagrams_may_pass_each_other() {
    for size in [1, 8, 100] {
        let mut held: Vec<Vec<u8>> = Vec::new();
        let seen = over_udp(size, 16, 200, move |server, request| {
            held.push(request.to_vec());
            if held.len() == 8 {
                while let Some(last) = held.pop() {
                    // The client may have ended.
                    let _ = server.send(&last);
                }
            }
        });
        assert!(seen.transactions > 1000, "{size}: {}", seen.transactions);
        // The last ones wait for others that do not come.
        assert!(seen.lost < 8, "{size}: {} lost", seen.lost);
        let found = in_flight(&seen);
        assert!(found < 16.0 * 1.05, "{size}: {found}");
    }
}

/// A loss is known only when its window may be over.
#[test]
fn a_lost_request_is_one_of_the_window_in_which_it_began() {
    for outstanding in [1, 4] {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(silent.local_addr().unwrap()).unwrap();
        client.set_read_timeout(Some(DATAGRAM_PATIENCE)).unwrap();
        let (socket, mut buffers) = (Socket(client.into()), buffers(8, 8, outstanding, true));
        let (tally, stop) = (Tally::default(), AtomicBool::new(false));
        let began_ns = clock::monotonic_ns();
        let mut times = Times::new(began_ns, began_ns + PATIENCE_NS / 2).unwrap();
        let context = Context {
            tally: &tally,
            stop: &stop,
            close_ns: u64::MAX,
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(DATAGRAM_PATIENCE * 5 / 4);
                stop.store(true, Relaxed);
            });
            rr_client(&socket, &mut buffers, &mut times, context).unwrap();
        });
        let seen = tally.read();
        let each = u64::from(outstanding);
        assert_eq!((seen.timeouts, seen.lost_of_window), (2 * each, each));
    }
}

/// One request in a thousand is lost. Were each waited for, there would be four of them in a second.
#[test]
fn what_is_lost_holds_up_nothing_else() {
    let mut count = 0;
    let seen = over_udp(1, 64, 1000, move |server, request| {
        count += 1;
        if count % 1000 != 0 {
            let _ = server.send(request);
        }
    });
    assert!(seen.lost > 3, "{}", seen.lost);
    assert!(
        seen.transactions > 900 * seen.lost.saturating_sub(64),
        "{} lost of {}",
        seen.lost,
        seen.transactions
    );
    assert!(seen.transactions > 5_000, "{}", seen.transactions);
}

fn given_up(flying: &mut InFlight, now_ns: u64) -> u32 {
    let mut count = 0;
    flying.give_up(now_ns, |_| count += 1);
    count
}

/// A number is given again only after its request was answered or given up; the answer to one that was given up is nobody's.
#[test]
fn numbers_are_told_apart() {
    let mut flying = InFlight::beginning_with(0, 8);
    for wanted in 0..256 {
        let number = flying.number();
        assert_eq!(number, wanted);
        flying.add(number, number + 1);
    }
    assert_eq!(flying.answered(7), Some(8));
    assert_eq!(flying.answered(7), None);
    // Its slot is the only free one.
    assert_eq!(flying.number(), 256 + 7);
    flying.add(256 + 7, 1_000);
    assert_eq!(flying.answered(7), None);
    assert_eq!(flying.count, 256);
    assert_eq!(given_up(&mut flying, PATIENCE_NS + 10), 9);
    assert_eq!(flying.answered(3), None);
    assert_eq!(flying.answered(263), Some(1_000));
    assert_eq!(given_up(&mut flying, u64::MAX), 246);
    assert_eq!(flying.count, 0);
    // One byte knows the slot alone.
    let mut narrow = InFlight::beginning_with(300, 1);
    let number = narrow.number();
    narrow.add(number, 5);
    assert_eq!(narrow.answered(300 % 256), Some(5));
}

#[test]
fn requests_that_are_cut_off_count_with_their_time_so_far() {
    for outstanding in [1, 4] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        // It takes what comes and answers nothing.
        let _server = listener.accept().unwrap();
        let hung_up = connection.try_clone().unwrap();
        let socket = Socket(connection.into());
        let (tally, stop) = (Tally::default(), AtomicBool::new(false));
        let mut times = Times::new(clock::monotonic_ns(), u64::MAX).unwrap();
        let context = Context {
            tally: &tally,
            stop: &stop,
            close_ns: 0,
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(30));
                stop.store(true, Relaxed);
                hung_up.shutdown(std::net::Shutdown::Both).unwrap();
            });
            let mut buffers = buffers(1, 1, outstanding, false);
            rr_client(&socket, &mut buffers, &mut times, context).unwrap();
        });
        assert_eq!(times.timings.histogram().len(), u64::from(outstanding));
        assert!(times.timings.histogram().min() >= 20_000_000);
        assert_eq!(tally.read().received.transactions, 0);
    }
}

#[test]
fn requests_of_an_event_loop_that_are_cut_off_count() {
    let (tally, stop) = (Tally::default(), AtomicBool::new(false));
    let times = Times::new(clock::monotonic_ns(), u64::MAX).unwrap();
    let times = Rc::new(RefCell::new(times));
    let context = Context {
        tally: &tally,
        stop: &stop,
        close_ns: 0,
    };
    let mut client = Client::new(context, &buffers(1, 1, 3, false), Rc::clone(&times));
    while client.begin(&mut []) {}
    client.came(&[0]);
    assert_eq!(times.borrow().timings.histogram().len(), 1);
    drop(client);
    assert_eq!(times.borrow().timings.histogram().len(), 3);
}
