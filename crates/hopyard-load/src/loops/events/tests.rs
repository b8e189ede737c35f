use std::net::{IpAddr, Ipv4Addr};

use hopyard_net::clock;

use super::*;
use crate::protocol::Timetable;
use crate::session::{Beside, Session};
use hopyard_model::{Api, Axes, LoadKind, Peer, Rate};

const APIS: [Api; 2] = [Api::Epoll, Api::Uring];
const LOADS: [LoadKind; 5] = [
    LoadKind::TcpStream,
    LoadKind::TcpMaerts,
    LoadKind::UdpStream,
    LoadKind::TcpRr,
    LoadKind::UdpRr,
];

fn spec(load: LoadKind, api: Api, flows: u32) -> LoadSpec {
    let mut axes = Axes::default().for_cell(load, Peer::Local, &[]);
    axes.api = Some(api);
    axes.flows = flows;
    LoadSpec::new(load, &axes)
}

fn soon(open_ms: u64, window_ms: u64) -> Timetable {
    let start_ns = clock::monotonic_ns() + 5_000_000;
    let open_ns = start_ns + open_ms * 1_000_000;
    let close_ns = open_ns + window_ms * 1_000_000;
    Timetable {
        start_ns,
        open_ns,
        close_ns,
        stop_ns: close_ns + 20_000_000,
        slices: 1,
        other_behind_ns: 0,
        edge_ns: 0,
    }
}

fn wait(until_ns: u64) -> Result<(), String> {
    clock::sleep_until_monotonic_ns(until_ns).map_err(|e| e.to_string())
}

fn both(spec: &LoadSpec) -> [Session; 2] {
    spec.check().unwrap();
    let here = IpAddr::from(Ipv4Addr::LOCALHOST).into();
    let (mut server, ports) = Session::serve(spec, &here, &[0]).unwrap();
    let patience = Duration::from_secs(5);
    let client = Session::connect(spec, &here, &ports, &[0], patience).unwrap();
    server.accept(patience).unwrap();
    [client, server]
}

/// What both ends of a load over loopback count in 50 ms.
fn carried(spec: &LoadSpec) -> [Tallied; 2] {
    carried_for(spec, 50)
}

fn carried_for(spec: &LoadSpec, window_ms: u64) -> [Tallied; 2] {
    let sessions = both(spec);
    let timetable = soon(10, window_ms);
    let run = |session: Session| session.run(timetable, Beside::default(), wait).unwrap();
    std::thread::scope(|scope| {
        let [client, server] = sessions;
        let client = scope.spawn(|| run(client));
        let server = run(server);
        [client.join().unwrap(), server]
    })
}

/// Tries for ten seconds, and five times at least, since others may have the CPUs for all of a window. They make no loop faster.
fn with_its_cpu(mut so: impl FnMut() -> Result<(), String>) {
    const PATIENCE: Duration = Duration::from_secs(10);
    let began = std::time::Instant::now();
    let mut failed = Vec::new();
    while let Err(why) = so() {
        failed.push(why);
        assert!(failed.len() < 5 || began.elapsed() < PATIENCE, "{failed:?}");
    }
}

#[test]
fn every_load_runs_by_every_api_with_one_flow_and_with_several_of_a_thread() {
    for api in APIS {
        for load in LOADS {
            for flows in [1, 3] {
                let [client, server] = carried(&spec(load, api, flows));
                let told = format!("{load} by {api}, {flows} flows: {client:?} {server:?}");
                let receiver = match load {
                    LoadKind::TcpStream | LoadKind::UdpStream => &server,
                    _ => &client,
                };
                assert!(receiver.received.messages > 50, "{told}");
                assert_eq!(receiver.flows.len(), flows as usize, "{told}");
                let has_come = |flow: &hopyard_model::Counted| flow.bytes > 0;
                assert!(receiver.flows.iter().all(has_come), "{told}");
                assert_eq!((client.timeouts, client.send_errors), (0, 0), "{told}");
                if load.has_standing_transactions() {
                    let times = client.latency.as_ref().expect(&told);
                    assert!(times.count > 50, "{told}");
                    // Each end counts at its own instant.
                    let apart =
                        (client.received.transactions).abs_diff(server.received.transactions);
                    assert!(apart <= client.received.transactions / 4 + 20, "{told}");
                }
            }
        }
    }
}

#[test]
fn many_requests_are_in_flight() {
    for api in APIS {
        for load in [LoadKind::TcpRr, LoadKind::UdpRr] {
            for (request_size, response_size) in [(64, 64), (2000, 30_000)] {
                let spec = LoadSpec {
                    outstanding: 32,
                    request_size,
                    response_size,
                    socket_buffer: Some(4 * 1024 * 1024),
                    ..spec(load, api, 2)
                };
                // Where others have the CPUs, the first and last requests are most of all.
                with_its_cpu(|| {
                    let [client, _] = carried(&spec);
                    let latency = client.latency.as_ref().ok_or("no transaction")?;
                    #[expect(clippy::cast_precision_loss, reason = "counts of 50 ms")]
                    let rate = client.received.transactions as f64 / client.window_ns as f64;
                    let flying = rate * latency.mean_ns;
                    // Little's law; over a short window the first and last requests are a part of all.
                    (30.0..90.0).contains(&flying).then_some(()).ok_or(format!(
                        "{load} by {api}, {request_size} and {response_size} B: {flying} of 64 in flight"
                    ))
                });
            }
        }
    }
}

/// One response at a time, which the server's kernel takes in parts. An acknowledgement of each part may take 40 ms.
#[test]
fn a_response_larger_than_the_send_buffer_goes_in_parts() {
    for api in APIS {
        let spec = LoadSpec {
            response_size: 100_000,
            send_buffer: Some(16 * 1024),
            ..spec(LoadKind::TcpRr, api, 1)
        };
        let [client, _] = carried_for(&spec, 500);
        assert!(client.received.transactions > 1, "{api}: {client:?}");
    }
}

/// In turns, a client pauses with nothing on its way, and goes on over the same connections; a server waits meanwhile.
#[test]
fn turns_follow_each_other() {
    for api in APIS {
        for load in LOADS.into_iter().filter(|load| load.pauses()) {
            with_its_cpu(|| {
                let [mut client, mut server] = both(&spec(load, api, 2));
                let turns = [0; 3].map(|_| {
                    let timetable = soon(5, 20);
                    std::thread::scope(|scope| {
                        let other = scope.spawn(|| server.turn(timetable, wait).unwrap());
                        let one = client.turn(timetable, wait).unwrap();
                        one.received.messages + other.join().unwrap().received.messages
                    })
                });
                let [client, server] = [client, server].map(|end| end.finish().unwrap());
                let messages = client.received.messages + server.received.messages;
                assert!(messages >= turns.iter().sum(), "{load} by {api}");
                (turns.iter().all(|turn| *turn > 10))
                    .then_some(())
                    .ok_or(format!("{load} by {api}: {turns:?}"))
            });
        }
    }
}

#[test]
fn a_paced_stream_keeps_its_pace() {
    for api in APIS {
        for load in [LoadKind::TcpStream, LoadKind::UdpStream] {
            let mut axes = Axes::default().for_cell(load, Peer::Local, &[]);
            axes.api = Some(api);
            axes.message_size_bytes = Some(1000);
            // 2000 messages a second: 100 in the window.
            axes.pace_bps = Some(Rate(Some(16_000_000)));
            with_its_cpu(|| {
                let [client, _] = carried(&LoadSpec::new(load, &axes));
                let sent = client.sent.messages;
                assert!(sent < 115, "{load} by {api}: {sent}");
                (sent >= 85)
                    .then_some(())
                    .ok_or(format!("{load} by {api}: {sent}"))
            });
        }
    }
}

#[test]
fn the_loops_have_a_ceiling_without_a_path() {
    for api in APIS {
        for load in LOADS {
            let spec = spec(load, api, 1);
            let span = Duration::from_millis(20);
            with_its_cpu(|| {
                let most = spec.loops().ceiling(&spec, span).unwrap();
                let done = most.received.messages + most.sent.messages;
                (done > 1000)
                    .then_some(())
                    .ok_or(format!("{load} by {api}: {most:?}"))
            });
        }
    }
}

#[test]
fn other_loads_have_no_other_api() {
    for load in LoadKind::ALL {
        for api in APIS {
            let checked = spec(load, api, 1).check();
            match checked {
                Ok(()) => assert!(LOADS.contains(&load), "{load}"),
                Err(why) => {
                    assert!(!LOADS.contains(&load), "{load}");
                    assert_eq!(why, format!("{load} has no api `{api}`"));
                }
            }
        }
    }
}

/// A datagram without an answer is given up, and the flow goes on; another one of the thread is not held up.
#[test]
fn lost_datagrams_are_given_up() {
    use std::net::UdpSocket;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use crate::tally::Tally;

    for api in APIS {
        let spec = spec(LoadKind::UdpRr, api, 1);
        let (tallies, stop) = ([Tally::default(), Tally::default()], AtomicBool::new(false));
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let deaf = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sockets = [&server, &deaf].map(|to| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(to.local_addr().unwrap()).unwrap();
            Socket(socket.into())
        });
        let responder = Responder::of(&spec);
        let times = Rc::new(RefCell::new(Times::new(0, u64::MAX).unwrap()));
        let context = |tally| Context {
            tally,
            stop: &stop,
            close_ns: u64::MAX,
        };
        let flows = sockets.iter().zip(tallies.iter().map(context)).collect();
        let waiter = match api {
            Api::Uring => Waiter::Uring,
            _ => Waiter::Epoll,
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                server
                    .set_read_timeout(Some(Duration::from_millis(100)))
                    .unwrap();
                let mut buffer = [0; 8];
                // Longer than the client asks.
                let until = std::time::Instant::now() + Duration::from_millis(1500);
                while std::time::Instant::now() < until {
                    if let Ok((bytes, from)) = server.recv_from(&mut buffer) {
                        server.send_to(&buffer[..bytes], from).unwrap();
                    }
                }
            });
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(900));
                stop.store(true, Relaxed);
            });
            let part = |context| NumberedClient::new(context, &responder, times.clone());
            let run = waiter.ready(flows, exchanging(&spec, 1, 1), part).unwrap();
            run().unwrap();
        });
        let [heard, lost] = tallies.each_ref().map(Tally::read);
        assert!((2..=5).contains(&lost.timeouts), "{api}: {lost:?}");
        assert_eq!(heard.timeouts, 0, "{api}: {heard:?}");
        assert!(heard.received.transactions > 1000, "{api}: {heard:?}");
    }
}

/// CPU time, ns, that a paced sender of so many messages a second takes in 300 ms, at the end of which its socket is shut down.
fn cpu_of_a_paced_sender(
    api: Api,
    message_size: u32,
    per_s: u64,
    zero_copy: bool,
    reads: bool,
) -> u64 {
    use std::io::Read;
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use crate::tally::Tally;

    let spec = LoadSpec {
        message_size,
        pace_bps: Some(u64::from(message_size) * 8 * per_s),
        zero_copy,
        ..spec(LoadKind::TcpStream, api, 1)
    };
    let (tally, stop) = (Tally::default(), AtomicBool::new(false));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut receiver, _) = listener.accept().unwrap();
    let socket = Socket(sender.into());
    let context = Context {
        tally: &tally,
        stop: &stop,
        close_ns: 0,
    };
    let waiter = match api {
        Api::Uring => Waiter::Uring,
        _ => Waiter::Epoll,
    };
    std::thread::scope(|scope| {
        if reads {
            scope.spawn(move || {
                let mut buffer = vec![0; 65536];
                while receiver.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
            });
        }
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            stop.store(true, Relaxed);
            SockRef::from(&socket).shutdown(Shutdown::Both).unwrap();
        });
        let schedule = Schedule::new(&spec, clock::monotonic_ns(), 0);
        let part = |context| Sender::new(context, schedule.clone());
        let run = waiter
            .ready(vec![(&socket, context)], sending(&spec, 1), part)
            .unwrap();
        let before_ns = clock::thread_cpu_ns();
        run().unwrap();
        clock::thread_cpu_ns() - before_ns
    })
}

/// What spins takes nearly all of the 300 ms.
#[test]
fn a_paced_sender_sleeps_while_there_is_no_room_and_until_the_next_message_is_due() {
    const MOST_NS: u64 = 120_000_000;
    for api in APIS {
        let stuck = cpu_of_a_paced_sender(api, 65536, 2000, false, false);
        assert!(stuck < MOST_NS, "{api}: {stuck} ns while there was no room");
    }
    // io_uring needs Linux 6.2 for it.
    let told = cpu_of_a_paced_sender(Api::Epoll, 65536, 20, true, true);
    assert!(told < MOST_NS, "{told} ns while the kernel told of sends");
}
