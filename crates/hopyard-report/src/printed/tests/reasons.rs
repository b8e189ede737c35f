//! A place that a run cannot fill has a reason.

use super::{coded, evidence, file, of_plan, stored, text};
use crate::model::{CellStatus, Datapath, DatapathKind, LoadKind, OPEN_VSWITCH, Peer};
use crate::printed::{Error, render};
use crate::{export, fixture};

const MULTI: &str = "4. External host to guest, TCP, 512 B: multi-queue";

fn notes(text: &str) -> String {
    let is_note = |line: &&str| line.starts_with(|c: char| "¹²³⁴⁵⁶⁷⁸⁹".contains(c) || c == ' ');
    let lines: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with('¹'))
        .take_while(is_note)
        .collect();
    lines.join("\n")
}

#[test]
fn rows_of_more_cpus_say_so() {
    let mut report = of_plan("multiqueue-tap-2011", "queues=1");
    let set = [
        ("flows", "1"),
        ("queues", "2"),
        ("message_size", "512"),
        ("steering", "kernel"),
    ];
    report.cells = vec![coded("tap-mq", Peer::Far, LoadKind::TcpMaerts, &set)];
    report.run.environment.cpus = 4;
    let (file, run) = (file("multiqueue-tap-2011"), stored());
    insta::assert_snapshot!(notes(&text(&evidence(&file, &report, &run), MULTI)), @r"
    ¹ this plan plays a guest of 2 CPUs and no other; `hopyard run multiqueue-tap-2011-scenarios` has
      others
    ² flows=2 is not in this run
    ³ flows=4 is not in this run
    ⁴ flows=8 is not in this run
    ⁵ takes 8 CPUs; this machine has 4
    ");
}

#[test]
fn what_was_left_out_failed_or_is_not_there() {
    let mut report = of_plan("namespace-switching-2014", "veth");
    let cell = |path: &str, flows: &str| {
        let set = [("flows", flows), ("offload", "on")];
        coded(path, Peer::Local, LoadKind::TcpStream, &set)
    };
    let mut failed = cell("veth", "1");
    failed.status = CellStatus::Failed;
    failed.cause = Some("the connection was refused".to_owned());
    failed.estimates.clear();
    let mut unsupported = cell("bridge-nf", "1");
    unsupported.status = CellStatus::Unsupported;
    unsupported.cause = Some("the kernel has no br_netfilter".to_owned());
    unsupported.estimates.clear();
    let mut no_clock = cell("veth", "2");
    no_clock.estimates.remove("efficiency_bps_per_ghz");
    let mut in_user_space = cell("ovs-internal", "1");
    in_user_space.datapath = Some(Datapath {
        switch: OPEN_VSWITCH.to_owned(),
        version: "3.1.0".to_owned(),
        kind: DatapathKind::Userspace,
        hook: None,
    });
    report.cells = vec![failed, unsupported, no_clock, in_user_space];
    let mut run = stored();
    run.header.left_out = vec![(
        "ovs-veth".to_owned(),
        "the package openvswitch-switch is missing".to_owned(),
    )];
    let file = file("namespace-switching-2014");
    let text = text(
        &evidence(&file, &report, &run),
        "Linux 3.13.0.24, Open vSwitch 2.0.1 (Ubuntu 14.04)",
    );
    insta::assert_snapshot!(notes(&text), @r"
    ¹ it failed: the connection was refused
    ² offload=off is not in this run
    ³ the clock rate of this machine's CPUs is not known
    ⁴ flows=4 is not in this run
    ⁵ flows=8 is not in this run
    ⁶ flows=16 is not in this run
    ⁷ not on this machine: the kernel has no br_netfilter
    ⁸ flows=2 is not in this run
    ⁹ ovs-veth was left out: the package openvswitch-switch is missing
    ¹⁰ the openvswitch kernel module is missing, and its userspace datapath does not count
    ");
}

#[test]
fn traffic_that_went_another_way_fills_no_place() {
    let mut report = of_plan("namespace-switching-2014", "veth");
    let set = [("flows", "1"), ("offload", "on")];
    let title = "Linux 3.13.0.24, Open vSwitch 2.0.1 (Ubuntu 14.04)";
    let (file, run) = (file("namespace-switching-2014"), stored());
    let why = "its path proof failed: the traffic went another way";
    for proved in [true, false] {
        let mut cell = coded("veth", Peer::Local, LoadKind::TcpStream, &set);
        cell.way.proved = proved;
        report.cells = vec![cell];
        let notes = notes(&text(&evidence(&file, &report, &run), title));
        assert_eq!(notes.contains(why), !proved, "{notes}");
    }
}

#[test]
fn plans_and_formats_that_have_no_tables() {
    let run = stored();
    let said = |report: &_, format: &str| {
        let format = export(format).unwrap();
        let error = render(format, &run, report, &[]).unwrap_err();
        assert!(error.is_request(), "{error}");
        error
    };
    let other = said(&fixture::paths(), "text");
    assert!(matches!(other, Error::NoReport { .. }));
    insta::assert_snapshot!(other, @"plan `paths` belongs to none of the reports; those of netns-macvlan-2007, multiqueue-tap-2011, multiqueue-tap-2011-guest, multiqueue-tap-2011-scenarios, namespace-switching-2014, netback-direct-2006, planetlab-containers-2007, planetlab-rotation-2007, planetlab-settling-2007, planetlab-settling-groups-2007 do");
    let report = of_plan("netns-macvlan-2007", "native");
    insta::assert_snapshot!(said(&report, "csv"), @"published tables are not written as CSV: choose text, markdown, html");
}

/// Whatever a run contains, all printed tables are there and fit a terminal.
#[test]
fn every_plan_has_its_report_in_every_format_for_people() {
    let run = stored();
    for file in super::all() {
        for stand in &file.plans {
            let report = of_plan(&stand.name, "veth");
            for format in ["text", "markdown", "html"] {
                let written = render(export(format).unwrap(), &run, &report, &[]).unwrap();
                let written = String::from_utf8(written).unwrap();
                let rows = file.tables.iter().flat_map(|table| &table.rows);
                for print in rows.flat_map(|row| &row.print) {
                    let text = print.cell().plain();
                    let value = text.split(' ').next().unwrap_or_default();
                    assert!(written.contains(value), "{}: {value}", stand.name);
                }
                if format == "text" {
                    let widest = written.lines().map(|line| line.chars().count()).max();
                    assert!(widest <= Some(100), "{}: {widest:?}", stand.name);
                }
            }
        }
    }
}
