//! Searches for a rate, with real traffic.

use hopyard::lab::Lab;
use hopyard::model::{Cell, LoadKind, Measurement, Peer};

use crate::support::cli::run;
use crate::support::plan::Room;
use crate::support::{alone, beside, cell, sampler, tell};

fn searched(cell: &Cell, window_ms: u64) -> Measurement {
    let path = hopyard::lab::path(&cell.path).unwrap();
    let lab = Lab::build(path, cell.peer, &cell.axes).unwrap();
    let sampler = sampler(window_ms, 100);
    let estimate = sampler.estimate(cell);
    let began = std::time::Instant::now();
    let measured = sampler.measure_in(&lab, cell, 0.0).unwrap();
    tell(&format!("{:?}, estimated {estimate:?}", began.elapsed()));
    measured
}

/// The shaper's queue takes up 21 ms of the rate, so that some 4 % more than it goes without loss in so short a time.
#[test]
fn a_shaped_wire_is_found() {
    let _alone = alone();
    for (search, loss) in [("ndr", 0.0), ("pdr:2%", 0.02)] {
        let set = [
            ("rate", "100mbit"),
            ("search", search),
            ("message_size", "1400"),
        ];
        let cell = cell("veth-route", Peer::Far, LoadKind::UdpPaced, &set);
        let wire = 100e6 / 8.0 / f64::from(1400 + 42);
        let mut tries = (0..4).map(|_| {
            let m = searched(&cell, 500);
            assert!(m.way.proved, "{:?}", m.way.problems);
            let found = m.search.unwrap();
            let throughput = found.result.throughput_per_s.unwrap() / wire;
            tell(&format!(
                "{search}: {throughput:.3} of the wire's rate in {} trials",
                found.trials.len()
            ));
            assert!(throughput < 1.08, "{found:?}");
            (throughput, found, m.open_loop.unwrap())
        });
        // Time that the hypervisor takes is loss to a search, which then finds less and never more.
        let found = tries.find(|(throughput, ..)| *throughput >= 0.95);
        let (_, found, open_loop) = found.expect("a search that comes near the wire's rate");
        assert!(found.result.regular, "{found:?}");
        assert!((found.goal.loss_ratio - loss).abs() < 1e-9);
        // The window that is told is one at the lower bound, which loses no more than was asked for.
        assert!(open_loop.loss_ratio().unwrap() <= loss, "{open_loop:?}");
        let due = crate::support::float(open_loop.due) / 0.5;
        assert!((due / found.result.lower_per_s.unwrap() - 1.0).abs() < 1e-3);
        // Overload was seen as what it was.
        assert!(found.trials[0].loss_ratio > 0.5, "{found:?}");
    }
}

#[test]
fn what_the_sender_cannot_send_is_lost() {
    let _beside = beside();
    // 64 B at 4 Gbit/s: 7.8 million a second, of one thread.
    let set = [("pace", "4gbit"), ("message_size", "64")];
    let cell = cell("veth", Peer::Local, LoadKind::UdpPaced, &set);
    let path = hopyard::lab::path("veth").unwrap();
    let lab = Lab::build(path, Peer::Local, &cell.axes).unwrap();
    let m = sampler(200, 50).measure_in(&lab, &cell, 0.0).unwrap();
    let open_loop = m.open_loop.unwrap();
    tell(&format!("overloaded: {open_loop:?}"));
    assert_eq!(open_loop.due, 1_562_500);
    assert!(open_loop.loss_ratio().unwrap() > 0.5);
}

#[test]
fn a_run_searches_and_reports() {
    let _beside = beside();
    let room = Room::new();
    let dir = room.at("run");
    let dir = dir.to_str().unwrap();
    let told = run(&[
        "run",
        "--paths",
        "veth",
        "--loads",
        "udp_paced",
        "--search",
        "ndr",
        "--set",
        "message_size=64",
        "--window",
        "100ms",
        "--blocks",
        "2",
        "--json",
        "--out",
        dir,
    ]);
    let report = told.exits(0).json();
    let cell = &report["cells"][0];
    assert_eq!(cell["axes"]["search"], "ndr");
    let searches = cell["searches"].as_array().unwrap();
    assert_eq!(searches.len(), 2);
    assert!(searches[0]["trials"].as_array().unwrap().len() > 3);
    let value = |name: &str| cell["estimates"][name]["value"].as_f64().unwrap();
    let throughput = value("throughput_packets_per_s");
    tell(&format!("veth, 64 B: {throughput:.0} a second"));
    assert!(throughput > 1000.0);
    assert!((value("throughput_bps") / throughput - 512.0).abs() < 1.0);
    assert!(value("latency_p99_ns") > 0.0);
    run(&["report", dir]).prints(&["throughput", "trials"]);
    run(&["report", dir, "--format", "csv"]).prints(&["throughput_packets_per_s"]);
    run(&["report", dir, "--format", "markdown"]).prints(&["throughput"]);
}

#[test]
fn wrong_searches_are_refused() {
    let _beside = beside();
    for (args, said) in [
        (
            &["--loads", "tcp_stream", "--search", "ndr"][..],
            "axis `search` does nothing for tcp_stream with peer local: leave it out, or choose load udp_paced",
        ),
        (
            &[
                "--loads",
                "udp_paced",
                "--search",
                "ndr",
                "--set",
                "pace=40mbit",
            ],
            "pace 40mbit and a search: a search finds the pace by itself, leave one of them out",
        ),
        (
            &["--loads", "udp_paced", "--search", "pdr:80%"],
            "`80%` is not a goal loss ratio: write a share from 0.0001% to 50%",
        ),
        (
            &["--loads", "udp_paced", "--search", "ndr", "--profile"],
            "--profile cannot be combined with a search",
        ),
    ] {
        run(&[&["run", "--paths", "veth"], args].concat())
            .exits(2)
            .says(&[said]);
    }
}
