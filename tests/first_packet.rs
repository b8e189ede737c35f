//! The first packet of a flow: time to connect of `tcp_crr`, first exchange of fresh sockets of `udp_rr`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hopyard::lab::Lab;
use hopyard::model::{Latency, LoadKind, Peer};
use serde_json::Value;

use crate::support::cli::run;
use crate::support::plan::Room;
use crate::support::{alone, beside, cell, float, mostly, proved, tell};

/// The program that hopyard is compared with, built.
fn built(room: &Room) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/first_packet/reference.c");
    let program = room.at("reference");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O2", "-Wall", "-Werror", "-o"])
        .arg(&program)
        .arg(source);
    let said = compiler.output().unwrap();
    assert!(said.status.success(), "{said:?}");
    program
}

/// It in a namespace of the lab, and on the CPU that the cell's ends have.
fn reference(lab: &Lab, role: &str, program: &Path, arguments: &[&str]) -> Command {
    let cpus = hopyard_net::cpu::current_affinity().unwrap();
    let mut command = Command::new("taskset");
    command.args(["-c", &cpus.last().unwrap().to_string()]);
    command.arg(program).args(arguments).stdout(Stdio::piped());
    lab.space(role)
        .unwrap()
        .handle
        .ns()
        .adopt(&mut command)
        .unwrap();
    command
}

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The median that the other program sees, ns, of so many first packets of a client that is as fresh as hopyard's.
fn seen_by_reference(lab: &Lab, program: &Path, protocol: &str, count: u64) -> f64 {
    let host = lab.topology.server.addresses.v4.to_string();
    let of_both = [protocol, &host, "5001"];
    let serve = [&["server"], &of_both[..]].concat();
    let mut server = Server(reference(lab, "b", program, &serve).spawn().unwrap());
    let mut ready = String::new();
    let mut output = BufReader::new(server.0.stdout.take().unwrap());
    output.read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    let count = count.to_string();
    let ask = [&["client"], &of_both[..], &[&*count]].concat();
    let said = reference(lab, "a", program, &ask).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    String::from_utf8(said.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

fn median(latency: &Latency) -> f64 {
    let found = latency.quantiles.iter().find(|(q, _)| *q == 0.5);
    float(found.unwrap().1)
}

fn shortest(medians: Vec<f64>) -> f64 {
    medians.into_iter().fold(f64::INFINITY, f64::min)
}

/// Times of hopyard and of the other program, taken in turn in labs of their own.
const PAIRS: usize = 9;

/// How far the two may be apart.
const APART: f64 = 0.05;
/// A debug build of ours spends more around its system calls: 400 to 900 ns were seen.
const DEBUG_NS: f64 = if cfg!(debug_assertions) { 1000.0 } else { 0.0 };

/// A program that measures nothing else sees the same as a release build, within 5 %.
#[test]
fn another_program_sees_the_same() {
    let _alone = alone();
    let room = Room::new();
    let program = built(&room);
    for (load, protocol) in [(LoadKind::TcpCrr, "tcp"), (LoadKind::UdpRr, "udp")] {
        let cell = cell("veth", Peer::Local, load, &[("placement", "same")]);
        let path = hopyard::lab::path("veth").unwrap();
        let pair = |turn: usize| {
            let lab = Lab::build(path, Peer::Local, &cell.axes).unwrap();
            let others = |count| seen_by_reference(&lab, &program, protocol, count);
            // What is first in a lab is colder: each is, in its turn.
            let before = (turn % 2 == 1).then(|| others(first_packets(load)));
            let measured = proved(&lab, &cell, 200).unwrap();
            let first = measured.first_packet.as_ref().unwrap();
            if load == LoadKind::TcpCrr {
                let whole = measured.latency.as_ref().unwrap();
                // One may be at work at each edge of the window.
                assert!(
                    first.count.abs_diff(whole.count) <= 2,
                    "{} connected, {} done",
                    first.count,
                    whole.count
                );
                assert!(
                    median(first) < median(whole),
                    "connecting is a part of the transaction"
                );
            } else {
                assert_eq!(first.count, first_packets(load));
            }
            let after = before.unwrap_or_else(|| others(first.count));
            (median(first), after)
        };
        let sample = || {
            let (own, other): (Vec<f64>, Vec<f64>) = (0..PAIRS).map(pair).unzip();
            // A waking CPU answers in one of two times, whose shares change from lab to lab.
            let (own, other) = (shortest(own), shortest(other));
            let told =
                format!("{load}: first packet {own:.0} ns, by another program {other:.0} ns");
            tell(&told);
            (other * (1.0 - APART)..other * (1.0 + APART) + DEBUG_NS)
                .contains(&own)
                .then_some(())
                .ok_or(told)
        };
        mostly(sample).unwrap();
    }
}

/// How many the other program times where it is first: as many as hopyard, about.
fn first_packets(load: LoadKind) -> u64 {
    if load == LoadKind::TcpCrr { 2000 } else { 32 }
}

/// Of one window, of turns and of several flows: in samples, JSON, CSV and tables; absent of loads that have none.
#[test]
fn it_is_in_samples_documents_and_reports() {
    // Short windows are missed where others keep the CPUs.
    let _beside = beside();
    let room = Room::new();
    for (name, how) in [("turns", "on"), ("windows", "off")] {
        let out = room.name(name);
        run(&[
            "run",
            "--paths",
            "veth,bridge",
            "--loads",
            "tcp_crr,udp_rr,tcp_rr",
            "--set",
            "flows=1,3",
            "--turns",
            how,
            "--blocks",
            "2..2",
            "--window",
            "50ms",
            "--out",
            &out,
        ])
        .exits(0);
        let report = run(&["report", &out, "--format", "json"]).exits(0).json();
        for cell in report["cells"].as_array().unwrap() {
            let has = |name: &str| cell["estimates"][name]["value"].as_f64();
            let (connect, first) = (has("connect_p50_ns"), has("first_exchange_p50_ns"));
            let shown = format!("{how} {cell:#}");
            match cell["load"].as_str().unwrap() {
                "tcp_crr" => assert!(connect.unwrap() > 1000.0 && first.is_none(), "{shown}"),
                "udp_rr" => {
                    assert!(first.unwrap() > 1000.0 && connect.is_none(), "{shown}");
                    assert!(has("first_exchange_max_ns") >= first, "{shown}");
                }
                _ => assert!(connect.is_none() && first.is_none(), "{shown}"),
            }
        }
        let samples = std::fs::read_to_string(room.at(name).join("samples.jsonl")).unwrap();
        let of_samples: BTreeSet<(u64, u64)> = samples
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .filter(|s: &Value| !s["outcome"]["measured"]["first_packet"].is_null())
            .map(|s| ["block", "cell"].map(|key| s[key].as_u64().unwrap()).into())
            .collect();
        assert_eq!(of_samples.len(), 2 * 2 * 2 * 2, "{how}");
        run(&["report", &out, "--format", "csv"])
            .exits(0)
            .prints(&["connect_p50_ns", "first_exchange_p50_ns"]);
    }
    run(&["report", &room.name("windows")])
        .exits(0)
        .prints(&["connect p50 in", "first exchange p50 in"]);
}
