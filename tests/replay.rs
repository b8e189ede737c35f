//! Load `udp_trace`: the datagrams of a trace, with their sizes and at their instants.

mod capture;

use std::process::Command;

use hopyard::lab::Lab;
use hopyard::model::{Cell, LoadKind, Measurement, Peer};

use crate::support::cli::run;
use crate::support::plan::Room;
use crate::support::{
    alone, beside, cell, float, proved, sampler, skip_part, tell, unless_disturbed,
};

fn built(path: &str, set: &[(&str, &str)]) -> (Lab, Cell) {
    let cell = cell(path, Peer::Local, LoadKind::UdpTrace, set);
    let path = hopyard::lab::path(path).unwrap();
    (Lab::build(path, Peer::Local, &cell.axes).unwrap(), cell)
}

fn median(m: &Measurement) -> f64 {
    let latency = m.latency.as_ref().unwrap();
    let found = latency.quantiles.iter().find(|(q, _)| *q == 0.5);
    float(found.unwrap().1)
}

/// Each window has the trace from its beginning: all of its datagrams and bytes, and nothing else.
#[test]
fn a_window_has_what_the_trace_has() {
    let _alone = alone();
    let room = Room::new();
    // 100 ms: two datagrams at once, a large one that is cut into fragments, and a pause.
    let trace = room.file(
        "t.csv",
        "gap_s,bytes\n0.001,100\n0,32\n0.009,4000\n0.090,1400\n",
    );
    let span = (4, 100 + 32 + 4000 + 1400);
    for (path, family, flows) in [("veth", "4", 1), ("bridge", "6", 1), ("veth", "4", 3)] {
        let set = [
            ("trace", &*trace),
            ("family", family),
            ("flows", &*flows.to_string()),
        ];
        let (lab, cell) = built(path, &set);
        unless_disturbed(|| {
            let m = proved(&lab, &cell, 1000).unwrap();
            let arrivals = m.arrivals.as_ref().unwrap();
            let open_loop = m.open_loop.unwrap();
            let rounds = 10 * flows;
            tell(&format!(
                "{path}, IPv{family}, {flows} flows: {} of {} due, {} B, median {:.0} µs",
                arrivals.packets(),
                open_loop.due,
                arrivals.bytes(),
                median(&m) / 1e3
            ));
            assert_eq!(open_loop.due, rounds * span.0);
            let whole = (arrivals.packets(), arrivals.bytes());
            let wanted = (rounds * span.0, rounds * span.1);
            // What is due at the window's edge may come after it.
            let edge = (flows, flows * 1400);
            let alike =
                whole.0.abs_diff(wanted.0) <= edge.0 && whole.1.abs_diff(wanted.1) <= edge.1;
            (alike && median(&m) < 2e6 && open_loop.arrived >= open_loop.due - flows)
                .then_some(())
                .ok_or(format!("{whole:?}, not {wanted:?}: {open_loop:?}"))
        })
        .unwrap();
    }
}

/// Gaps are kept at the receiver: bursts stay bursts.
#[test]
fn gaps_are_those_of_the_trace() {
    let _beside = beside();
    let room = Room::new();
    let trace = room.file("t.csv", "0.0001,200\n0.0001,200\n0.0001,200\n0.0097,200\n");
    let (lab, cell) = built("veth", &[("trace", &*trace)]);
    unless_disturbed(|| {
        let m = proved(&lab, &cell, 1000).unwrap();
        let gaps = m.arrivals.as_ref().unwrap().interarrival.as_ref().unwrap();
        let at = |q: f64| float(gaps.quantiles.iter().find(|(of, _)| *of == q).unwrap().1) / 1e3;
        let (short, long) = (at(0.5), at(0.9));
        tell(&format!(
            "gaps of 100 µs and 9700 µs: median {short:.0}, p90 {long:.0} µs"
        ));
        ((60.0..180.0).contains(&short) && (9500.0..9900.0).contains(&long))
            .then_some(())
            .ok_or(format!("{short} and {long} µs"))
    })
    .unwrap();
}

/// Sample, document, table and comparison; what a trace is stands in each.
#[test]
fn a_run_says_what_it_replayed() {
    let _beside = beside();
    let room = Room::new();
    let calm = room.file("calm.csv", "0.001,500\n");
    let bursts = room.file("bursts.csv", "0.004,500\n0,500\n0,500\n0,500\n");
    let out = room.name("run");
    let traces = format!("trace={calm},{bursts}");
    run(&[
        "run",
        "--paths",
        "veth,bridge",
        "--loads",
        "udp_trace",
        "--set",
        &traces,
        "--blocks",
        "3..3",
        "--window",
        "400ms",
        "--out",
        &out,
    ])
    .exits(0);
    let report = run(&["report", &out, "--format", "json"]).exits(0).json();
    let told = report["run"]["traces"].as_array().unwrap();
    assert_eq!(told.len(), 2, "{told:#?}");
    assert_eq!(
        (told[1]["datagrams"].as_u64(), told[1]["span_ns"].as_u64()),
        (Some(4), Some(4_000_000))
    );
    let digest = told[0]["trace"]
        .as_str()
        .unwrap()
        .rsplit_once('#')
        .unwrap()
        .1;
    assert_eq!(digest.len(), 12);
    for cell in report["cells"].as_array().unwrap() {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        assert_eq!(cell["way"]["proved"], true, "{cell:#}");
        let value = |name: &str| cell["estimates"][name]["value"].as_f64();
        let rate = value("packets_per_s").unwrap();
        assert!((950.0..1050.0).contains(&rate), "{cell:#}");
        let bits = value("goodput_bps").unwrap();
        assert!((bits / rate - 4000.0).abs() < 1.0, "{cell:#}");
        assert!(
            value("latency_p50_ns").unwrap() > 0.0 && value("lost_ratio").is_some(),
            "{cell:#}"
        );
    }
    run(&["report", &out]).exits(0).prints(&[
        "udp_trace",
        "4 datagrams within 4.00 ms",
        "500 B each",
        digest,
    ]);
    // A comparison is by the datagrams: the same trace under another name of the same file would be another value.
    run(&["report", &out, "--format", "csv"])
        .exits(0)
        .prints(&[digest, "trace"]);
}

#[test]
fn what_cannot_be_replayed_is_refused_before_anything_is_built() {
    let _beside = beside();
    let room = Room::new();
    for (name, text, words) in [
        (
            "a.csv",
            "0.1,100\n0.1,x\n",
            ["a.csv: line 2, column 5", "no number of bytes"],
        ),
        (
            "b.csv",
            "gap_s,bytes\n0.1,20\n",
            ["b.csv: line 2, column 5", "at least 32"],
        ),
        ("c.csv", "", ["c.csv: line 1, column 1", "no datagram"]),
        (
            "d.csv",
            "0,100\n0,100\n",
            ["d.csv: line 2", "at most 10000000 a second"],
        ),
        (
            "e.csv",
            "\u{1b}[31m,1\n",
            ["e.csv: line 1, column 1", "no time in seconds"],
        ),
    ] {
        let set = format!("trace={}", room.file(name, text));
        let said = run(&[
            "run",
            "--paths",
            "veth",
            "--loads",
            "udp_trace",
            "--set",
            &set,
        ]);
        said.exits(2).says(&words);
        assert!(!said.stderr.contains('\u{1b}'), "{said}");
    }
    let missing = format!("trace={}", room.name("none.csv"));
    run(&[
        "run",
        "--paths",
        "veth",
        "--loads",
        "udp_trace",
        "--set",
        &missing,
    ])
    .exits(2)
    .says(&["cannot read the trace", "none.csv", "No such file"]);
    for (load, set) in [
        ("udp_trace", "pace=1mbit"),
        ("udp_trace", "message_size=100"),
        ("udp_paced", "trace=sample"),
    ] {
        run(&["run", "--paths", "veth", "--loads", load, "--set", set])
            .exits(2)
            .says(&["does nothing for"]);
    }
    run(&[
        "run",
        "--paths",
        "veth",
        "--loads",
        "udp_trace",
        "--search",
        "ndr",
    ])
    .exits(2)
    .says(&["axis `search`"]);
}

/// A trace that the machine cannot send in time, and one that is longer than a window: both are said.
#[test]
fn a_trace_that_is_too_fast_or_too_long_is_said() {
    let _beside = beside();
    let room = Room::new();
    let fast = room.file("fast.csv", "0.0000001,64\n".repeat(1000));
    let out = room.name("fast");
    run(&[
        "run",
        "--paths",
        "veth",
        "--loads",
        "udp_trace",
        "--set",
        &format!("trace={fast}"),
        "--blocks",
        "2..2",
        "--window",
        "100ms",
        "--out",
        &out,
    ])
    .exits(0)
    .prints(&["too fast for the sender of veth/local/udp_trace"]);
    let report = run(&["report", &out, "--format", "json"]).exits(0).json();
    let lost = report["cells"][0]["estimates"]["lost_ratio"]["value"].as_f64();
    assert!(lost.unwrap() > 0.5, "{report:#}");
    let long = room.file("long.csv", "0.1,64\n0.1,64\n3,64\n");
    let out = room.name("long");
    let set = format!("trace={long}");
    let what = [
        "run",
        "--paths",
        "veth",
        "--loads",
        "udp_trace",
        "--set",
        &set,
    ];
    run(&[
        &what[..],
        &["--blocks", "2..2", "--window", "500ms", "--out", &out],
    ]
    .concat())
    .exits(0);
    let report = run(&["report", &out, "--format", "json"]).exits(0).json();
    let warnings = report["warnings"].as_array().unwrap();
    let of = |code: &str| warnings.iter().find(|one| one["code"] == code);
    let told = of("trace").unwrap()["message"].as_str().unwrap();
    for word in [
        "first part of the trace alone",
        "goes on to 3.200 s",
        "--window 4s",
    ] {
        assert!(told.contains(word), "{told}");
    }
    assert!(of("pace").is_none(), "{warnings:#?}");
}

/// What changes while a run goes on is no sample.
#[test]
fn a_trace_that_changed_is_no_sample() {
    let _beside = beside();
    let room = Room::new();
    let file = room.file("t.csv", "0.001,500\n");
    let read = room.file("read.csv", "0.001,500\n");
    let digest = {
        let out = room.name("run");
        let set = format!("trace={read}");
        run(&[
            "run",
            "--paths",
            "veth",
            "--loads",
            "udp_trace",
            "--set",
            &set,
            "--blocks",
            "1..1",
            "--window",
            "50ms",
            "--out",
            &out,
        ])
        .exits(0);
        let report = run(&["report", &out, "--format", "json"]).exits(0).json();
        let trace = report["run"]["traces"][0]["trace"]
            .as_str()
            .unwrap()
            .to_owned();
        trace.rsplit_once('#').unwrap().1.to_owned()
    };
    let known = format!("{file}#{digest}");
    let (lab, cell) = built("veth", &[("trace", &*known)]);
    sampler(50, 20).measure_in(&lab, &cell, 0.0).unwrap();
    room.file("t.csv", "0.001,501\n");
    let error = sampler(50, 20).measure_in(&lab, &cell, 0.0).unwrap_err();
    let error = hopyard::chain(&error);
    assert!(
        error.contains("other datagrams than when the run began"),
        "{error}"
    );
}

/// The commands of the page make a trace of a capture: every UDP datagram, its gap and its payload.
#[test]
fn the_documented_commands_make_a_trace_of_a_capture() {
    let _beside = beside();
    let room = Room::new();
    std::fs::write(room.at("capture.pcap"), capture::capture()).unwrap();
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/datagrams.md"
    ))
    .unwrap();
    let wanted = "0.000000000,1200\n0.000012500,32\n1.000000000,300\n";
    for program in ["tcpdump", "tshark"] {
        // From its line to the next one that is no continuation.
        let start = page
            .find(&format!("{program} -"))
            .unwrap_or_else(|| panic!("no command of {program}"));
        let command: String = page[start..]
            .split("\n```")
            .next()
            .unwrap()
            .split("\n\n")
            .next()
            .unwrap()
            .to_owned();
        let there = Command::new("sh")
            .args(["-c", &format!("command -v {program}")])
            .output()
            .unwrap();
        if !there.status.success() {
            skip_part(program, false, "it is not installed");
            continue;
        }
        let said = Command::new("sh")
            .args(["-c", &command])
            .current_dir(room.path())
            .output()
            .unwrap();
        assert!(said.status.success(), "{command}: {said:?}");
        let made = std::fs::read_to_string(room.at("calls.csv")).unwrap();
        let trace = hopyard::model::Replay::parse(&made)
            .unwrap_or_else(|e| panic!("{program}: {e}: {made}"));
        let text = trace.text();
        assert_eq!(
            text.split_once('\n').unwrap().1,
            wanted,
            "{program}: {made}"
        );
    }
}
