//! The worker's protocol, spoken by hand through pipes: to `hopyard worker`, and to `hopyard-worker` by its own tests
//! (`crates/hopyard-load/tests/program.rs`).

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use hopyard_net::clock::{monotonic_ns, process_cpu_ns};
use serde_json::{Value, json};

use crate::support::{beside, skip, tell, until, worker};
use hopyard_model::LoadKind;

const PATIENCE: Duration = Duration::from_secs(10);
const MS: u64 = 1_000_000;
/// How often a load is run whose window the machine took from an end.
const TRIES: u32 = 5;

pub(crate) struct Worker {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Worker {
    /// Starts one and takes its greeting.
    fn start() -> Self {
        Self::of(worker())
    }

    /// The same of a command that is one.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .try_for_each(|l| tell.send(l))
        });
        let mut worker = Self {
            stdin: child.stdin.take(),
            child,
            lines,
        };
        let hello = worker.hear();
        assert_eq!(hello["is"], "hello");
        assert_eq!(hello["protocol"], 10);
        assert_eq!(hello["version"], env!("CARGO_PKG_VERSION"));
        worker
    }

    fn write(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn say(&mut self, request: &Value) {
        self.write(format!("{request}\n").as_bytes());
    }

    pub(crate) fn hear(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    pub(crate) fn ask(&mut self, request: &Value) -> Value {
        self.say(request);
        self.hear()
    }

    /// Asks for what cannot be done; gives the cause.
    pub(crate) fn fails(&mut self, request: &Value) -> String {
        let answer = self.ask(request);
        assert_eq!(answer["is"], "failed", "{answer}");
        answer["cause"].as_str().unwrap().to_owned()
    }

    /// Waits for its end; (exit status, how long it took).
    fn ends(mut self) -> (Option<i32>, Duration) {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                return (status.code(), began.elapsed());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("the worker still runs");
    }

    pub(crate) fn hang_up(mut self) -> (Option<i32>, Duration) {
        self.stdin = None;
        self.ends()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn spec(kind: &str, flows: u32) -> Value {
    let congestion = if kind.starts_with("tcp") {
        json!("cubic")
    } else {
        Value::Null
    };
    json!({
        "kind": kind, "flows": flows, "message_size": 1400, "request_size": 1, "response_size": 1,
        "socket_buffer": null, "congestion": congestion,
        "pace_bps": if kind == "udp_paced" { json!(80_000_000) } else { Value::Null },
        "replay": if kind == "udp_trace" { json!([[100_000, 1400], [50_000, 64]]) } else { Value::Null },
        "connections_per_s": if kind == "tcp_conns" { json!(1000) } else { Value::Null },
    })
}

/// From now: traffic for `warm_up`, a window of `window`, 20 ms more.
pub(crate) fn timetable(warm_up_ms: u64, window_ms: u64) -> Value {
    let start = monotonic_ns() + 10 * MS;
    let open = start + warm_up_ms * MS;
    let close = open + window_ms * MS;
    json!({"do": "run", "start_ns": start, "open_ns": open, "close_ns": close, "stop_ns": close + 20 * MS, "slices": 5})
}

fn serve(kind: &str, flows: u32) -> Value {
    json!({"do": "serve", "spec": spec(kind, flows), "address": "127.0.0.1", "cpus": []})
}

fn connect(kind: &str, flows: u32, ports: &Value) -> Value {
    json!({"do": "connect", "spec": spec(kind, flows), "address": "127.0.0.1", "ports": ports, "cpus": [], "patience_ms": 1000})
}

/// Both ends of a load, ready to run.
fn pair(kind: &str, flows: u32) -> (Worker, Worker) {
    let (mut server, mut client) = (Worker::start(), Worker::start());
    let serving = server.ask(&serve(kind, flows));
    assert_eq!(serving["is"], "serving", "{serving}");
    assert_eq!(serving["ports"].as_array().unwrap().len(), flows as usize);
    let mut request = connect(kind, flows, &serving["ports"]);
    // The other end may have no CPU for a while.
    request["patience_ms"] = json!(5000);
    let connected = client.ask(&request);
    assert_eq!(connected["is"], "connected", "{connected}");
    let accepted = server.ask(&json!({"do": "accept", "patience_ms": 5000}));
    assert_eq!(accepted["is"], "connected", "{accepted}");
    (client, server)
}

/// Waits until the window is open and both ends have worked in it.
fn until_in_window(run: &Value, workers: [&Worker; 2]) {
    let open_ns = run["open_ns"].as_u64().unwrap();
    until("the window is open", PATIENCE, || monotonic_ns() > open_ns);
    for worker in workers {
        let pid = worker.child.id().cast_signed();
        let used_ns = || process_cpu_ns(pid).unwrap();
        let before_ns = used_ns();
        until("an end works", PATIENCE, || used_ns() > before_ns + MS);
    }
}

/// Runs a load for 100 ms, again where an end had no CPU when the window opened or closed: it sees another window
/// then, and perhaps nothing in it, or finds that the other has hung up. Gives the client and the server, and what each
/// of them counted.
fn on_time(kind: &str) -> ([Worker; 2], [Value; 2]) {
    for _ in 0..TRIES {
        let (mut client, mut server) = pair(kind, 2);
        let run = timetable(20, 100);
        server.say(&run);
        client.say(&run);
        let done = [client.hear(), server.hear()];
        // However late one is: it looks when the window opens or after that, and tells when it has looked.
        let longest = monotonic_ns() - run["open_ns"].as_u64().unwrap();
        if done.iter().any(|done| done["is"] == "failed") {
            tell(&format!("{kind} once more: {done:?}"));
            continue;
        }
        let mut is_whole = true;
        for (end, done) in ["client", "server"].into_iter().zip(&done) {
            assert_eq!(done["is"], "done", "{kind} at the {end}: {done}");
            assert_eq!(done["slices"].as_array().unwrap().len(), 5);
            let window = done["window_ns"].as_u64().unwrap();
            assert!((1..=longest).contains(&window), "{kind}: {window}");
            is_whole &= (90 * MS..300 * MS).contains(&window);
        }
        if is_whole {
            return ([client, server], done);
        }
    }
    panic!("{kind}: an end missed each of {TRIES} windows");
}

/// Connections stay from turn to turn, and what is counted goes on: the whole is at least the sum of the windows.
#[test]
fn turns_over_connections_that_stay() {
    let _beside = beside();
    for kind in [
        "tcp_stream",
        "tcp_maerts",
        "tcp_rr",
        "tcp_crr",
        "udp_stream",
        "udp_rr",
    ] {
        let (mut client, mut server) = pair(kind, 2);
        let (counted, receiver) = match kind {
            "tcp_stream" | "udp_stream" => ("bytes", 1),
            "tcp_maerts" => ("bytes", 0),
            _ => ("transactions", 0),
        };
        let mut windows = 0;
        for turn in 0..3 {
            let mut request = timetable(10, 20);
            request["do"] = json!("turn");
            request["slices"] = json!(1);
            server.say(&request);
            client.say(&request);
            let done = [client.hear(), server.hear()];
            for end in &done {
                assert_eq!(end["is"], "done", "{kind}, turn {turn}: {end}");
            }
            windows += done[receiver]["received"][counted].as_u64().unwrap();
            assert_eq!(
                done[0]["latency"].is_object(),
                counted == "transactions",
                "{kind}: {}",
                done[0]
            );
        }
        let finish = json!({"do": "finish"});
        let finished = [client.ask(&finish), server.ask(&finish)];
        for end in &finished {
            assert_eq!(end["is"], "done", "{kind}: {end}");
        }
        let whole = finished[receiver]["received"][counted].as_u64().unwrap();
        assert!(
            whole > 0 && whole >= windows,
            "{kind}: {whole} in all, {windows} in the windows"
        );
        assert!(
            finished[0]["window_ns"].as_u64().unwrap() >= 90 * MS,
            "{}",
            finished[0]
        );
        let again = client.fails(&json!({"do": "finish"}));
        assert!(again.starts_with("finish: neither"), "{again}");
    }
    let (mut client, _server) = pair("tcp_rr", 1);
    let early = client.fails(&json!({"do": "finish"}));
    assert_eq!(early, "finish: there was no turn before");
}

#[test]
fn every_load_over_loopback() {
    let _beside = beside();
    for load in LoadKind::ALL {
        let kind = load.name();
        let ([mut client, mut server], [at_client, at_server]) = on_time(kind);
        let at_end = if load.is_stream() && !load.is_from_server() {
            &at_server
        } else {
            &at_client
        };
        let (receiver, counted) = if load.is_stream() {
            (at_end, "bytes")
        } else {
            (at_end, "transactions")
        };
        let total = receiver["received"][counted].as_u64().unwrap();
        let slices: u64 = receiver["slices"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap())
            .sum();
        assert!(total > 0, "{kind}: {receiver}");
        assert_eq!(total, slices, "{kind}: the slices add up to the window");
        if counted == "transactions" {
            let quantiles = at_client["latency"]["quantiles"].as_array().unwrap();
            assert!(
                quantiles.is_sorted_by_key(|q| q[1].as_u64()),
                "{quantiles:?}"
            );
        }
        let numbered = load.is_numbered();
        assert_eq!(at_server.get("arrivals").is_some(), numbered, "{kind}");
        assert!(at_client.get("arrivals").is_none(), "{kind}");
        // A worker is ready for the next load.
        let again = server.ask(&serve(kind, 1));
        assert_eq!(again["is"], "serving");
        client.say(&json!({"do": "quit"}));
        assert_eq!(client.ends().0, Some(0));
        assert_eq!(server.hang_up().0, Some(0));
    }
}

#[test]
fn a_server_says_when_it_has_its_connections() {
    let _beside = beside();
    for kind in ["tcp_stream", "udp_rr", "udp_flood"] {
        let (mut client, mut server) = (Worker::start(), Worker::start());
        let early = server.ask(&json!({"do": "accept", "patience_ms": 1}));
        assert_eq!(early["is"], "failed", "{early}");
        let serving = server.ask(&serve(kind, 2));
        let nobody = server.ask(&json!({"do": "accept", "patience_ms": 20}));
        let cause = nobody["cause"].as_str().unwrap();
        assert_eq!(cause, "a flow has no connection after 20 ms");
        let mut request = connect(kind, 2, &serving["ports"]);
        request["patience_ms"] = json!(5000);
        assert_eq!(client.ask(&request)["is"], "connected");
        let accepted = server.ask(&json!({"do": "accept", "patience_ms": 5000}));
        assert_eq!(accepted["is"], "connected", "{accepted}");
    }
}

#[test]
fn nonsense_is_answered_and_survived() {
    let _beside = beside();
    let mut worker = Worker::start();
    for nonsense in [
        "",
        "garbage",
        "{}",
        "[]",
        "null",
        "{\"do\":\"dance\"}",
        "{\"do\":\"serve\"}",
        "{\"do\":\"run\",\"start_ns\":-1}",
        "{\"is\":\"hello\"}",
        "\u{0}",
        "{\"do\":\"quit\"",
        "9999999999999999999999",
    ] {
        worker.write(format!("{nonsense}\n").as_bytes());
        let answer = worker.hear();
        assert_eq!(answer["is"], "failed", "{nonsense}: {answer}");
        let cause = answer["cause"].as_str().unwrap();
        assert!(
            cause.starts_with("not a request of protocol 10: "),
            "{cause}"
        );
    }
    worker.write(b"\xff\xfe\n");
    let answer = worker.hear();
    assert_eq!(answer["is"], "failed", "bytes that are no text: {answer}");
    // Still of use.
    assert_eq!(worker.ask(&serve("tcp_rr", 1))["is"], "serving");
    worker.say(&json!({"do": "quit"}));
    assert_eq!(worker.ends().0, Some(0));
}

#[test]
fn requests_out_of_bounds_are_refused_with_the_bound() {
    let _beside = beside();
    let mut worker = Worker::start();
    let serving = |change: &dyn Fn(&mut Value)| {
        let mut request = serve("udp_stream", 1);
        change(&mut request);
        request
    };
    for (request, words) in [
        (
            serving(&|r| r["spec"]["message_size"] = json!(0)),
            "at least one byte",
        ),
        (
            serving(&|r| r["spec"]["message_size"] = json!(65508)),
            "65507",
        ),
        (
            serving(&|r| r["spec"]["flows"] = json!(0)),
            "between 1 and 1000",
        ),
        (
            serving(&|r| r["spec"]["flows"] = json!(1001)),
            "between 1 and 1000",
        ),
        (
            serving(&|r| {
                r["spec"]["kind"] = json!("udp_flood");
                r["spec"]["message_size"] = json!(31);
            }),
            "message_size 31 is too small for udp_flood",
        ),
        (
            serving(&|r| r["spec"]["kind"] = json!("udp_paced")),
            "udp_paced with no pace",
        ),
        (
            serving(&|r| r["address"] = json!("192.0.2.1")),
            "cannot listen at 192.0.2.1",
        ),
        (
            timetable(0, 10),
            "neither `serve` nor `connect` came before",
        ),
        (connect("tcp_rr", 2, &json!([1])), "2 flows, but 1 ports"),
        (
            connect("tcp_rr", 1, &json!([1])),
            "cannot connect to 127.0.0.1:1",
        ),
        (
            connect("udp_rr", 1, &json!([1])),
            "cannot time a first exchange with 127.0.0.1:1",
        ),
    ] {
        let cause = worker.fails(&request);
        assert!(cause.contains(words), "{cause}");
    }
    let mut request = serve("tcp_rr", 1);
    request["spec"]["congestion"] = json!("nosuch");
    let cause = worker.fails(&request);
    assert!(cause.contains("congestion control `nosuch`"), "{cause}");
    assert_eq!(worker.ask(&serve("tcp_rr", 1))["is"], "serving");
    let mut run = timetable(10, 20);
    run["slices"] = json!(0);
    assert!(worker.fails(&run).contains("at least one slice"));
}

#[test]
fn the_end_of_input_ends_a_worker_wherever_it_is() {
    let _beside = beside();
    // The window would take a minute.
    let soon = Duration::from_secs(5);
    // With nothing to do.
    let (_, took) = Worker::start().hang_up();
    assert!(took < soon, "{took:?}");
    // Listening, and connected.
    let (client, server) = pair("tcp_rr", 3);
    for worker in [client, server] {
        let (_, took) = worker.hang_up();
        assert!(took < soon, "{took:?}");
    }
    // In mid-window, at either end first.
    for kind in [
        "tcp_stream",
        "tcp_maerts",
        "tcp_rr",
        "tcp_crr",
        "udp_stream",
        "udp_rr",
    ] {
        for client_first in [true, false] {
            let (mut client, mut server) = pair(kind, 2);
            let run = timetable(50, 60_000);
            server.say(&run);
            client.say(&run);
            until_in_window(&run, [&client, &server]);
            let (first, second) = if client_first {
                (client, server)
            } else {
                (server, client)
            };
            for (which, worker) in [("first", first), ("second", second)] {
                let (_, took) = worker.hang_up();
                assert!(
                    took < soon,
                    "{kind}, client first: {client_first}, {which}: {took:?}"
                );
            }
        }
    }
}

#[test]
fn quit_in_mid_window_ends_a_worker() {
    let _beside = beside();
    let (mut client, mut server) = pair("tcp_stream", 1);
    let run = timetable(50, 60_000);
    server.say(&run);
    client.say(&run);
    until_in_window(&run, [&client, &server]);
    for mut worker in [client, server] {
        worker.say(&json!({"do": "quit"}));
        let (_, took) = worker.ends();
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}

#[test]
fn a_reader_that_is_gone_ends_a_worker() {
    let _beside = beside();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut child = worker()
        .stdin(Stdio::piped())
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    // Its controller went, which is no failure of its own: thousands of workers would say so otherwise.
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn a_worker_tells_where_it_is_and_which_way_it_sends() {
    let _beside = beside();
    let mut worker = Worker::start();
    let here = worker.ask(&json!({"do": "host"}));
    assert_eq!(here["is"], "host");
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(here["boot_id"], boot_id.trim());
    assert_eq!(here["pid"], worker.child.id());
    assert!(!here["cpus"].as_array().unwrap().is_empty());
    let way = worker.ask(&json!({"do": "way", "to": "127.0.0.1"}));
    assert_eq!((&way["is"], &way["device"]), (&json!("way"), &json!("lo")));
    let cause = worker.fails(&json!({"do": "way", "to": "255.255.255.255.1"}));
    assert!(cause.contains("not a request"), "{cause}");
}

/// Its stdin stays open, and so may that of what `kubectl exec` started when the connection is gone.
#[test]
fn a_worker_that_hears_nothing_any_more_ends_in_mid_window_too() {
    const SILENCE: Duration = Duration::from_millis(1500);
    let _beside = beside();
    let attend = json!({"do": "attend", "silence_ms": 1500, "beat_ms": 100});
    let (mut client, mut server) = pair("tcp_rr", 1);
    assert_eq!(client.ask(&attend)["is"], "attending");
    let run = timetable(50, 60_000);
    server.say(&run);
    client.say(&run);
    // It stays for as long as it hears beats, and says that it lives.
    let began = Instant::now();
    while began.elapsed() < 2 * SILENCE {
        client.say(&json!({"do": "beat"}));
        assert_eq!(client.hear()["is"], "beat");
    }
    let (status, took) = client.ends();
    assert_eq!(status, Some(3));
    tell(&format!("it ended after {took:?} of silence"));
    assert!(took > SILENCE / 2 && took < 4 * SILENCE, "{took:?}");
    server.hang_up();
    // One that is told to end does so at once, whatever holds its stdin open.
    let mut worker = Worker::start();
    assert_eq!(worker.ask(&attend)["is"], "attending");
    worker.say(&json!({"do": "quit"}));
    assert_eq!(worker.ends().0, Some(0));
}

/// What carries the lines may lose one, or pass it on twice.
#[test]
fn requests_that_are_numbered_come_each_once_and_answers_have_their_number() {
    let _beside = beside();
    let mut worker = Worker::start();
    let clock = |nr: u64| json!({"do": "clock", "nr": nr});
    let answer = worker.ask(&clock(1));
    assert_eq!((&answer["is"], &answer["nr"]), (&json!("clock"), &json!(1)));
    for (nr, words) in [
        (1, "request 1 came where request 2 was next"),
        (3, "request 3 came where request 2 was next"),
    ] {
        let cause = worker.fails(&clock(nr));
        assert!(cause.starts_with(words), "{cause}");
    }
    // Neither was carried out, and the next is what it was.
    assert_eq!(worker.ask(&clock(2))["nr"], 2);
    // By hand, without a number.
    let answer = worker.ask(&json!({"do": "clock"}));
    assert_eq!(
        (&answer["is"], &answer["nr"]),
        (&json!("clock"), &Value::Null)
    );
    assert_eq!(worker.ask(&clock(3))["nr"], 3);
}

/// Both ends on one machine, of which the client's worker reads the CPU time: the server's process is of the load.
#[test]
fn a_worker_reads_the_cpu_time_of_its_machine_over_the_window() {
    let _beside = beside();
    let (mut client, mut server) = pair("tcp_rr", 1);
    let pid_ns = server.ask(&json!({"do": "host"}))["pid_ns"].clone();
    let others = json!([{"pid_ns": pid_ns, "pid": server.child.id()}]);
    let metered = client.ask(&json!({"do": "meter", "others": others, "quiet_ms": 50}));
    assert_eq!(metered["is"], "metered", "{metered}");
    if let Some(why) = metered["quiet"]["unknown"].as_str() {
        assert!(why.contains("cannot be told from the load"), "{why}");
        // The inode of the kernel's first PID namespace (`PROC_PID_INIT_INO` of include/linux/proc_ns.h).
        let is_first = std::fs::metadata("/proc/self/ns/pid").unwrap().ino() == 0xEFFF_FFFC;
        skip("CPU time of all processes of the machine", is_first, why);
        return;
    }
    let used = &metered["quiet"]["used"];
    assert!(used["elapsed_ns"].as_f64() >= Some(50e6), "{metered}");
    let run = timetable(50, 200);
    server.say(&run);
    client.say(&run);
    let [client_done, server_done] = [client.hear(), server.hear()];
    let used = &client_done["cpu"]["used"];
    // Both ends spent their time on round trips.
    let own = used["workers_ns"].as_f64().unwrap();
    assert!(own > 0.0 && used["controller_ns"] == 0.0, "{used}");
    assert!(used["cpus"].as_u64() >= Some(1), "{used}");
    // Nobody asked the server.
    assert_eq!(server_done["cpu"], Value::Null);
    // One that cannot be seen is no process of the load, and would count as other people's.
    let metered =
        server.ask(&json!({"do": "meter", "others": [{"pid_ns": 1, "pid": 1}], "quiet_ms": 1}));
    let why = metered["quiet"]["unknown"].as_str().unwrap();
    assert!(
        why.contains("cannot see the process of the other end"),
        "{why}"
    );
}
