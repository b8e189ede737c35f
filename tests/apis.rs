//! Axis `api`: which calls a worker makes, as strace sees them; and what is refused.

use std::collections::BTreeMap;
use std::process::Command;

use hopyard::lab::{Lab, LabKey};
use hopyard::model::{LoadKind, Peer};
use serde_json::{Value, json};

use crate::protocol::{Worker, spec, timetable};
use crate::support::cli::{PROGRAM, run};
use crate::support::plan::Room;
use crate::support::{beside, cell, proved, tell};

const LOADS: [&str; 5] = ["tcp_stream", "tcp_maerts", "udp_stream", "tcp_rr", "udp_rr"];

/// Least number of an end's most frequent call. The greetings of three flows are some six calls.
const LEAST_CALLS: u64 = 150;

/// How often the threads of flows make each call.
type Calls = BTreeMap<String, u64>;

/// A worker under strace, which writes into a file.
fn traced(file: &str) -> Worker {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "--decode-pids=comm", "-e", "signal=none", "-o"]);
    command.args([file, "--", PROGRAM, "worker"]);
    Worker::of(command)
}

/// The calls of flows' threads while there was traffic: what they make as good as never beside others is of the beginning, such as
/// the first exchanges of `udp_rr`.
fn calls(room: &Room, file: &str) -> Calls {
    let text = std::fs::read_to_string(room.at(file)).unwrap();
    let mut calls = Calls::new();
    for line in text.lines() {
        // PID<flow-0> recvfrom(...
        let Some((_, call)) = line
            .split_once("<flow-")
            .and_then(|(_, l)| l.split_once("> "))
        else {
            continue;
        };
        let Some((name, _)) = call.trim_start().split_once('(') else {
            continue;
        };
        // The end of a call that another thread's came into.
        if name.starts_with('<') {
            continue;
        }
        *calls.entry(name.to_owned()).or_default() += 1;
    }
    let most = calls.values().max().copied().unwrap_or(0);
    calls.retain(|_, count| *count > most / 20);
    calls
}

/// What the client and the server of a load call, by this API with so many flows. The window is made longer until there are so many calls
/// that those of the flows' greetings, which use sockets, are less than a twentieth.
fn of_both(room: &Room, load: &str, api: &str, flows: u32) -> [Calls; 2] {
    let mut seen = Err("no window".to_owned());
    for window_ms in [600, 2400, 6000] {
        seen = in_window(room, load, (api, flows), window_ms);
        if seen.is_ok() {
            break;
        }
    }
    seen.unwrap()
}

/// The same in a window of this length; an error if there were too few calls or messages in it.
fn in_window(
    room: &Room,
    load: &str,
    (api, flows): (&str, u32),
    window_ms: u64,
) -> Result<[Calls; 2], String> {
    let (mut server, mut client) = (traced(&room.name("server")), traced(&room.name("client")));
    let mut spec = spec(load, flows);
    spec["api"] = json!(api);
    // One thread for all flows.
    let cpus = json!([0]);
    let serving =
        server.ask(&json!({"do": "serve", "spec": spec, "address": "127.0.0.1", "cpus": cpus}));
    assert_eq!(serving["is"], "serving", "{serving}");
    let connected = client.ask(&json!({
        "do": "connect", "spec": spec, "address": "127.0.0.1", "ports": serving["ports"], "cpus": cpus, "patience_ms": 5000
    }));
    assert_eq!(connected["is"], "connected", "{connected}");
    let run = timetable(100, window_ms);
    for end in [&mut server, &mut client] {
        end.say(&run);
    }
    let told = [&mut client, &mut server].map(Worker::hear);
    let messages = |end: &Value| end["received"]["messages"].as_u64().unwrap_or(0);
    client.hang_up();
    server.hang_up();
    let calls = ["client", "server"].map(|end| calls(room, end));
    let most = calls.each_ref().map(|end| end.values().max().copied());
    let is_enough = most.iter().all(|most| *most > Some(LEAST_CALLS));
    if !is_enough || told.iter().all(|end| messages(end) <= 50) {
        return Err(format!("{load} by {api}: {most:?} calls, {told:#?}"));
    }
    Ok(calls)
}

#[test]
fn a_worker_makes_the_calls_of_its_api_and_no_others() {
    // Short windows are missed where others keep the CPUs.
    let _beside = beside();
    let room = Room::new();
    for load in LOADS {
        for (api, flows) in [
            ("sockets", 1),
            ("epoll", 1),
            ("epoll", 3),
            ("uring", 1),
            ("uring", 3),
        ] {
            let both = of_both(&room, load, api, flows);
            tell(&format!(
                "{load}, api={api}, {flows} flows: client {:?}, server {:?}",
                both[0], both[1]
            ));
            for calls in &both {
                let has = |name: &str| calls.contains_key(name);
                let data = has("sendto") || has("recvfrom");
                assert_eq!(data, api != "uring", "{load}, {api}: {calls:?}");
                assert_eq!(
                    has("epoll_wait"),
                    api == "epoll",
                    "{load}, {api}: {calls:?}"
                );
                assert_eq!(
                    has("io_uring_enter"),
                    api == "uring",
                    "{load}, {api}: {calls:?}"
                );
                assert!(
                    !has("poll") && !has("epoll_ctl"),
                    "{load}, {api}: {calls:?}"
                );
            }
        }
    }
}

#[test]
fn every_api_carries_a_load_over_a_path_that_is_proved() {
    let _beside = beside();
    let first = cell("bridge", Peer::Local, LoadKind::TcpStream, &[]);
    let path = hopyard::lab::path("bridge").unwrap();
    let lab = Lab::build(path, Peer::Local, &first.axes).unwrap();
    for load in LOADS {
        for api in ["epoll", "uring"] {
            for flows in ["1", "3"] {
                let load: LoadKind = load.parse().unwrap();
                let set = [("api", api), ("flows", flows)];
                let cell = cell("bridge", Peer::Local, load, &set);
                assert_eq!(LabKey::of(&cell), LabKey::of(&first), "another lab");
                proved(&lab, &cell, 100).unwrap();
            }
        }
    }
}

/// A sweep, whose cells take turns over standing connections.
#[test]
fn a_sweep_takes_turns() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("run");
    run(&[
        "run",
        "--paths",
        "veth",
        "--loads",
        &LOADS.join(","),
        "--set",
        "api=sockets,epoll,uring",
        "--set",
        "flows=1,2",
        "--blocks",
        "1..1",
        "--window",
        "50ms",
        "--out",
        &out,
    ])
    .exits(0);
    let report = run(&["report", &out, "--format", "json"]).exits(0).json();
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), LOADS.len() * 6);
    for cell in cells {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        assert_eq!(cell["way"]["proved"], true, "{cell:#}");
    }
    run(&["report", &out])
        .exits(0)
        .prints(&["api", "epoll", "uring"]);
}

#[test]
fn a_load_without_it_is_refused_by_name() {
    let _beside = beside();
    for load in ["tcp_crr", "tcp_conns", "udp_gso", "udp_flood", "udp_paced"] {
        run(&[
            "run",
            "--paths",
            "veth",
            "--loads",
            load,
            "--set",
            "api=epoll",
        ])
        .exits(2)
        .says(&["axis `api`", load, "choose load tcp_stream"]);
    }
    run(&[
        "run", "--paths", "veth", "--loads", "tcp_rr", "--set", "api=aio",
    ])
    .exits(2)
    .says(&["aio", "sockets, epoll, uring"]);
    // A worker that is asked by another program.
    let mut worker = Worker::of(crate::support::worker());
    let mut wrong = spec("udp_paced", 1);
    wrong["api"] = json!("uring");
    let why =
        worker.fails(&json!({"do": "serve", "spec": wrong, "address": "127.0.0.1", "cpus": []}));
    assert_eq!(why, "udp_paced has no api `uring`");
}

/// A sandbox that forbids `io_uring_setup`, as those of container engines do, with the answer that the kernel gives where
/// `kernel.io_uring_disabled` forbids it.
const FORBIDS: &str = r"
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 425), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
filter = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *one) for one in code))
program = struct.pack('HxxxxxxP', len(code), ctypes.addressof(filter))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
given = ctypes.create_string_buffer(program)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.addressof(given), 0, 0):
    raise OSError(ctypes.get_errno(), 'prctl')
os.execv(sys.argv[1], sys.argv[1:])
";

#[test]
fn where_io_uring_is_forbidden_a_run_is_refused_and_a_worker_says_so() {
    let _beside = beside();
    let forbidden = |arguments: &[&str]| {
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-c", FORBIDS, PROGRAM]).args(arguments);
        command
    };
    let said = forbidden(&[
        "run",
        "--paths",
        "veth",
        "--loads",
        "tcp_rr",
        "--set",
        "api=uring",
    ])
    .output()
    .unwrap();
    let text = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(2), "{text}");
    for word in ["api=uring", "io_uring", "allows io_uring_setup"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let mut worker = Worker::of(forbidden(&["worker"]));
    let mut spec = spec("tcp_rr", 1);
    spec["api"] = json!("uring");
    let serving =
        worker.ask(&json!({"do": "serve", "spec": spec, "address": "127.0.0.1", "cpus": []}));
    let mut client = Worker::of(forbidden(&["worker"]));
    client.ask(&json!({
        "do": "connect", "spec": spec, "address": "127.0.0.1", "ports": serving["ports"], "cpus": [], "patience_ms": 1000
    }));
    let why = client.fails(&timetable(10, 20));
    assert!(
        why.contains("this host has no io_uring for this process"),
        "{why}"
    );
}
