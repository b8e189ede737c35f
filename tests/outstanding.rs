//! Axis `outstanding`: several requests of a flow in flight, in real namespaces.

use hopyard::lab::Lab;
use hopyard::model::{LoadKind, Measurement, Peer};

use crate::support::cli::run;
use crate::support::plan::Room;
use crate::support::{beside, cell, float, proved, unless_disturbed};

fn measured(load: LoadKind, set: &[(&str, &str)]) -> Measurement {
    let cell = cell("veth", Peer::Local, load, set);
    let path = hopyard::lab::path("veth").unwrap();
    let lab = Lab::build(path, Peer::Local, &cell.axes).unwrap();
    proved(&lab, &cell, 200).unwrap()
}

/// The known answer (Little's law): what is in flight is the rate times the mean time.
fn in_flight(m: &Measurement) -> f64 {
    let latency = m.latency.as_ref().unwrap();
    let rate = float(m.received.transactions) / float(m.window_ns);
    rate * latency.mean_ns
}

#[test]
fn as_many_requests_are_in_flight_as_were_asked_for() {
    let _beside = beside();
    for load in [LoadKind::TcpRr, LoadKind::UdpRr] {
        for (outstanding, flows) in [(1, 1), (32, 1), (256, 1), (8, 2)] {
            let set = [
                ("outstanding", &*outstanding.to_string()),
                ("flows", &*flows.to_string()),
                ("request_size", "64"),
                ("response_size", "200"),
                // The kernel's own holds some 190 datagrams, and what it has no room for is lost.
                ("socket_buffer", "212992"),
            ];
            // Of the times, those of requests that the window cuts are left out.
            let sample = || {
                let found = in_flight(&measured(load, &set)) / f64::from(outstanding * flows);
                let told = format!(
                    "{load}, {outstanding} of {flows} flows: {found} of them are in flight"
                );
                (0.75..1.15).contains(&found).then_some(()).ok_or(told)
            };
            unless_disturbed(sample).unwrap();
        }
    }
}

/// A sweep, with cells that take turns: nothing stays in flight from one to the next, and no response is lost.
#[test]
fn a_sweep_takes_turns() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("run");
    let what = ["run", "--paths", "veth,bridge", "--loads", "tcp_rr,udp_rr"];
    let how = [
        "--set",
        "outstanding=1,16,64",
        "--blocks",
        "2..2",
        "--window",
        "50ms",
        "--out",
        &out,
    ];
    run(&[&what[..], &how].concat()).exits(0);
    let report = run(&["report", &out, "--format", "json"]).exits(0).json();
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2 * 2 * 3);
    for cell in cells {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        assert_eq!(cell["way"]["proved"], true, "{cell:#}");
        assert!(
            [1, 16, 64]
                .map(Into::into)
                .contains(&cell["axes"]["outstanding"]),
            "{cell:#}"
        );
        assert!(
            cell["estimates"]["latency_p50_ns"]["value"]
                .as_f64()
                .unwrap()
                > 0.0
        );
        if cell["load"] == "udp_rr" {
            assert_eq!(cell["estimates"]["lost_ratio"]["value"], 0.0, "{cell:#}");
        }
    }
    let samples = std::fs::read_to_string(room.at("run/samples.jsonl")).unwrap();
    assert!(samples.contains("\"turns\":["), "no cell took turns");
    run(&["report", &out]).exits(0).prints(&["outstanding"]);
}

#[test]
fn what_cannot_be_in_flight_is_refused() {
    let _beside = beside();
    for bad in ["0", "257", "many", "-1"] {
        let set = format!("outstanding={bad}");
        run(&["run", "--paths", "veth", "--loads", "tcp_rr", "--set", &set])
            .exits(2)
            .says(&["outstanding"]);
    }
}
