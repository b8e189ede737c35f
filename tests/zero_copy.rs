//! Axis `zerocopy`: sends without a copy, and what the kernel says of them.

use hopyard::lab::{Lab, LabKey};
use hopyard::model::{Cell, LoadKind, Measurement, Peer};

use crate::support::cli::run;
use crate::support::plan::Room;
use crate::support::{beside, cell, float, proved, tell, unless_disturbed};

const LOADS: [LoadKind; 4] = [
    LoadKind::TcpStream,
    LoadKind::TcpMaerts,
    LoadKind::UdpStream,
    LoadKind::UdpGso,
];
const APIS: [&str; 3] = ["sockets", "epoll", "uring"];

fn has(load: LoadKind, api: &str) -> bool {
    api == "sockets" || load.has_event_loops()
}

/// In the lab that it has in common with the first cell of the path. Others may take the CPUs of a window away.
fn measured(
    lab: &Lab,
    first: &Cell,
    load: LoadKind,
    set: &[(&str, &str)],
    window_ms: u64,
) -> Measurement {
    let cell = cell(&first.path, Peer::Local, load, set);
    assert_eq!(LabKey::of(&cell), LabKey::of(first), "another lab");
    unless_disturbed(|| proved(lab, &cell, window_ms)).unwrap()
}

/// Within one kernel the bytes are copied, and the kernel says so of every send.
#[test]
fn over_loopback_and_veth_the_kernel_copies_all_the_same() {
    let _beside = beside();
    for path in ["native", "veth"] {
        let first = cell(path, Peer::Local, LOADS[0], &[]);
        let built = Lab::build(hopyard::lab::path(path).unwrap(), Peer::Local, &first.axes);
        let lab = built.unwrap();
        for load in LOADS {
            for api in APIS.into_iter().filter(|api| has(load, api)) {
                for flows in ["1", "3"] {
                    let set = [("api", api), ("flows", flows)];
                    let with = [&set[..], &[("zerocopy", "on")]].concat();
                    let on = measured(&lab, &first, load, &with, 100);
                    let sends = on.zero_copy.expect("answers of the kernel");
                    let told = format!(
                        "{path}, {load}, api={api}, {flows} flows: {sends:?} of {:?}",
                        on.sent
                    );
                    tell(&told);
                    assert!(sends.answered > 50, "{told}");
                    // A call may send a part of a message, and several datagrams.
                    if load != LoadKind::UdpGso {
                        assert!(
                            float(sends.answered) > 0.5 * float(on.sent.messages),
                            "{told}"
                        );
                    }
                    let copied = float(sends.copied) / float(sends.answered);
                    assert!(copied > 0.99, "{told}");
                    let off = measured(&lab, &first, load, &set, 60);
                    assert_eq!(off.zero_copy, None, "{told}");
                }
            }
        }
    }
}

#[test]
fn a_report_says_that_the_kernel_copied() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("run");
    run(&[
        "run",
        "--paths",
        "veth",
        "--loads",
        "tcp_stream,udp_stream",
        "--set",
        "zerocopy=off,on",
        "--set",
        "api=sockets,uring",
        "--base",
        "zerocopy=off",
        "--blocks",
        "2..2",
        "--window",
        "50ms",
        "--out",
        &out,
    ])
    .exits(0);
    let report = run(&["report", &out, "--format", "json"]).exits(0).json();
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 8);
    for cell in cells {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        let copied = cell["estimates"]["zerocopy_copied_ratio"]["value"].as_f64();
        match cell["axes"]["zerocopy"].as_str().unwrap() {
            "on" => assert!(copied.unwrap() > 0.99, "{cell:#}"),
            _ => assert_eq!(copied, None, "{cell:#}"),
        }
    }
    let warnings = report["warnings"].as_array().unwrap();
    let told = warnings.iter().find(|one| one["code"] == "zero_copy");
    let told = told.unwrap()["message"].as_str().unwrap();
    assert!(
        told.starts_with("The kernel copied the bytes of 100.0 %"),
        "{told}"
    );
    run(&["report", &out])
        .exits(0)
        .prints(&["zerocopy", "all the same"]);
}

#[test]
fn what_has_no_such_sends_is_refused_by_name() {
    let _beside = beside();
    for load in ["tcp_rr", "tcp_crr", "udp_rr", "udp_paced", "udp_flood"] {
        run(&[
            "run",
            "--paths",
            "veth",
            "--loads",
            load,
            "--set",
            "zerocopy=on",
        ])
        .exits(2)
        .says(&["axis `zerocopy`", load, "choose load tcp_stream"]);
    }
    run(&[
        "run",
        "--paths",
        "veth",
        "--loads",
        "tcp_stream",
        "--set",
        "zerocopy=on",
        "--set",
        "mptcp=on",
    ])
    .exits(2)
    .says(&["zerocopy=on and mptcp=on", "Multipath TCP copies"]);
}
