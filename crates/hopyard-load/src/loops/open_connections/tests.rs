use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hopyard_model::{Axes, LoadKind, Peer};
use hopyard_net::clock;

use super::*;
use crate::flow::{Context, Opened};
use crate::protocol::{Tallied, Timetable};
use crate::session::{Beside, Session};
use crate::socket::Settings;
use crate::sockets::Target;
use crate::tally::Tally;

const MS: u64 = 1_000_000;
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn spec(rate: u32, flows: u32) -> LoadSpec {
    let load = LoadKind::TcpConns;
    let mut axes = Axes::default().for_cell(load, Peer::Local, &[]);
    axes.connections_per_s = Some(rate);
    axes.flows = flows;
    LoadSpec::new(load, &axes)
}

/// A window of so many ms that opens in 20 ms.
fn window(ms: u64) -> Timetable {
    let start_ns = clock::monotonic_ns() + 5 * MS;
    let open_ns = start_ns + 20 * MS;
    let close_ns = open_ns + ms * MS;
    Timetable {
        start_ns,
        open_ns,
        close_ns,
        stop_ns: close_ns + 60 * MS,
        slices: 1,
        other_behind_ns: 0,
        edge_ns: 0,
    }
}

fn carried(spec: &LoadSpec, ms: u64) -> Tallied {
    let (server, ports) = Session::serve(spec, &HERE.into(), &[]).unwrap();
    let patience = Duration::from_secs(5);
    let client = Session::connect(spec, &HERE.into(), &ports, &[], patience).unwrap();
    let timetable = window(ms);
    let wait = |until| clock::sleep_until_monotonic_ns(until).map_err(|e| e.to_string());
    std::thread::scope(|scope| {
        let client = scope.spawn(|| client.run(timetable, Beside::default(), wait).unwrap());
        server.run(timetable, Beside::default(), wait).unwrap();
        client.join().unwrap()
    })
}

#[test]
fn connections_are_opened_at_the_rate_asked_for() {
    for (rate, flows) in [(500, 1), (2000, 4)] {
        let seen = carried(&spec(rate, flows), 200);
        let due = u64::from(rate) / 5;
        assert!(
            seen.due.unwrap().abs_diff(due) <= u64::from(flows),
            "{rate}: {seen:?}"
        );
        let latency = seen.latency.unwrap();
        assert_eq!(latency.count, seen.due.unwrap());
        assert_eq!(seen.finished, seen.due);
        // Of those before and after the window, few fall into it.
        assert!(
            seen.received.transactions.abs_diff(due) <= due / 2,
            "{rate}"
        );
        let connects = seen.first_packet.unwrap();
        assert_eq!(connects.count, latency.count);
        assert!(connects.min_ns > 0 && connects.min_ns < latency.max_ns);
    }
}

/// A client alone, over a window of so many ms, whose server is made here.
fn against(server: SocketAddr, spec: &LoadSpec, ms: u64) -> Opened {
    let server = Target::from(server);
    let settings = Settings::of(spec, |_, _| Ok(()));
    let timetable = window(ms);
    let client = ConnsClient::new(&server, &settings, [1, 1], timetable).unwrap();
    let schedule = Schedule::new(spec, timetable.start_ns, 0).unwrap();
    let (tally, stop) = (Tally::default(), AtomicBool::new(false));
    let context = Context {
        tally: &tally,
        stop: &stop,
        close_ns: timetable.close_ns,
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            clock::sleep_until_monotonic_ns(timetable.stop_ns).unwrap();
            stop.store(true, Relaxed);
        });
        client.run(schedule, context).unwrap()
    })
}

/// Accepts and answers, and sleeps once, 100 ms after the first connection.
fn stalling() -> SocketAddr {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let began = clock::monotonic_ns();
        let mut stalled = false;
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            if !stalled && clock::monotonic_ns() > began + 125 * MS {
                stalled = true;
                std::thread::sleep(Duration::from_millis(100));
            }
            let mut request = [0; 1];
            // The client ends with the window.
            if connection.read_exact(&mut request).is_err()
                || connection.write_all(&request).is_err()
            {
                return;
            }
        }
    });
    address
}

/// The known answer: 1000 connections a second, and a stall of 100 ms. Those that are due in it wait from 100 ms to nothing, so all of
/// them together for 5 s; a loop that waits for each would have one that took 100 ms.
#[test]
#[expect(clippy::cast_precision_loss, reason = "counts of a test")]
fn a_stall_is_not_hidden() {
    let seen = against(stalling(), &spec(1000, 1), 400);
    let latency = seen.latency.histogram();
    assert_eq!(latency.len(), seen.due);
    let waited_s = latency.mean() * latency.len() as f64 / 1e9;
    assert!((4.5..12.0).contains(&waited_s), "{waited_s} s");
    let over = latency.len() - latency.count_between(0, 50 * MS);
    assert!(
        (45..120).contains(&over),
        "{over} of {} waited for 50 ms and more",
        seen.due
    );
    assert_eq!(seen.finished, seen.due);
}

/// What does not end counts as unfinished, with the time that it has waited; so does what there was no room for.
#[test]
fn what_does_not_end_is_counted() {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    // The kernel connects, and nobody answers. The second rate has more on their way than there is room for.
    for rate in [500, 8000] {
        let seen = against(address, &spec(rate, 1), 100);
        let latency = seen.latency.histogram();
        assert_eq!((seen.finished, latency.len()), (0, seen.due), "{rate}");
        assert!(
            seen.due.abs_diff(u64::from(rate) / 10) <= 1,
            "{rate}: {}",
            seen.due
        );
        assert!(
            latency.min() >= 50 * MS && latency.max() >= 150 * MS,
            "{rate}"
        );
    }
}

#[test]
fn a_rate_is_needed_and_is_not_too_low() {
    let mut none = spec(1000, 1);
    none.connections_per_s = None;
    let error = none.check().unwrap_err();
    assert!(
        error.starts_with("tcp_conns with no connection_rate"),
        "{error}"
    );
    assert_eq!(spec(20, 1).check(), Ok(()));
    let error = spec(20, 2).check().unwrap_err();
    assert!(
        error.starts_with("20 connections per second over 2 flows are too seldom"),
        "{error}"
    );
}

/// Ends the server's loop, also when a test fails.
struct Ends<'a>(&'a AtomicBool, &'a socket2::Socket);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
        let _ = self.1.shutdown(std::net::Shutdown::Both);
    }
}

/// A server of requests of 8 bytes; responses are so many bytes.
fn served(response_size: u32, test: impl FnOnce(SocketAddr)) {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let listener = socket2::Socket::from(listener);
    let spec = LoadSpec {
        request_size: 8,
        response_size,
        ..spec(1, 1)
    };
    let (tally, stop) = (Tally::default(), AtomicBool::new(false));
    let context = Context {
        tally: &tally,
        stop: &stop,
        close_ns: u64::MAX,
    };
    std::thread::scope(|scope| {
        let server = ConnsServer::new(&listener, Responder::of(&spec)).unwrap();
        let answers = scope.spawn(move || server.run(context));
        let ends = Ends(&stop, &listener);
        test(address);
        drop(ends);
        answers.join().unwrap().unwrap();
    });
}

fn open(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).unwrap();
    let patience = Some(Duration::from_secs(5));
    stream.set_read_timeout(patience).unwrap();
    stream
}

/// Sends the rest of a request, and takes a response of so many bytes and the end of the connection.
fn answered(mut stream: TcpStream, rest: &[u8], wanted: usize) {
    stream.write_all(rest).unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).unwrap();
    assert_eq!(response.len(), wanted);
}

/// Of three connections the first sends half of its request, and the rest when the others were answered.
#[test]
fn a_late_request_holds_up_no_other_connection() {
    served(4, |server| {
        let mut late = open(server);
        late.write_all(&[1; 4]).unwrap();
        for _ in 0..2 {
            answered(open(server), &[2; 8], 4);
        }
        answered(late, &[1; 4], 4);
    });
}

/// A server that waited for the connections before it, if only for a tick, would be late every time.
#[test]
fn a_connection_is_answered_at_once_though_requests_of_others_are_late() {
    served(4, |server| {
        let mut late = Vec::new();
        let took = [(); 20].map(|()| {
            late.push(open(server));
            let began = Instant::now();
            answered(open(server), &[2; 8], 4);
            began.elapsed()
        });
        let least = took.iter().min().unwrap();
        assert!(*least < Duration::from_millis(2), "{took:?}");
    });
}

/// The response is larger than what the kernel takes of it at once.
#[test]
fn a_client_that_is_slow_to_read_holds_up_no_other_connection() {
    const LARGE: u32 = 16 << 20;
    served(LARGE, |server| {
        let mut slow = open(server);
        slow.write_all(&[1; 8]).unwrap();
        answered(open(server), &[2; 8], LARGE as usize);
        answered(slow, &[], LARGE as usize);
    });
}
