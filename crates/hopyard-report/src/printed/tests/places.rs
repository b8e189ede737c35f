//! Each printed place is filled from its own cell, which the test derives from the row's names.

use super::super::evidence::{Evidence, Value};
use super::super::file::{File, Table};
use super::super::spec::Here;
use super::{code, coded, evidence, file, of_plan, stored};
use crate::fixture;
use crate::model::{CellReport, LoadKind, Peer, RunReport};

const STREAM: LoadKind = LoadKind::TcpStream;
const MAERTS: LoadKind = LoadKind::TcpMaerts;

/// The figure here in a column of a row, by the report's names.
fn found(evidence: &Evidence<'_>, title: &str, key: &[&str], column: usize) -> f64 {
    match answer(evidence, title, key, column) {
        Ok(Value::Measured(estimate)) => estimate.value,
        other => panic!("{title} {key:?} {column}: {other:?}"),
    }
}

fn answer(
    evidence: &Evidence<'_>,
    title: &str,
    key: &[&str],
    column: usize,
) -> Result<Value, String> {
    let (table, form) = named(evidence.file, title);
    let row = table.rows.iter().find(|row| row.key == key).unwrap();
    let wanted = evidence
        .stand
        .wanted(&[&table.cells, &form.columns[column].cells, &row.cells]);
    evidence.value(form.here(row, column), &wanted, row)
}

fn named<'a>(file: &'a File, title: &str) -> (&'a Table, &'a super::super::file::Form) {
    let table = file.tables.iter().find(|t| t.title == title).unwrap();
    (table, &file.forms[&table.form])
}

fn near(found: f64, cell: &CellReport, factor: f64) {
    let expected = factor * code(&cell.path, cell.peer, cell.load, &cell.axes);
    let off = (found / expected - 1.0).abs();
    assert!(off < 1e-9, "{found} is not {expected} of {cell:?}");
}

#[test]
fn of_2014() {
    let mut report = of_plan("namespace-switching-2014", "veth");
    let paths = [
        ("veth", "veth"),
        ("bridge and veth", "bridge-nf"),
        ("Open vSwitch and veth", "ovs-veth"),
        ("Open vSwitch, internal ports", "ovs-internal"),
    ];
    let cell = |path: &str, flows: &str, offload: &str| {
        let set = [
            ("flows", flows),
            ("offload", offload),
            ("message_size", "131072"),
        ];
        coded(path, Peer::Local, STREAM, &set)
    };
    for (_, path) in paths {
        for flows in ["1", "2", "4", "8", "16"] {
            report
                .cells
                .extend(["on", "off"].map(|offload| cell(path, flows, offload)));
        }
    }
    let (file, run) = (file("namespace-switching-2014"), stored());
    let evidence = evidence(&file, &report, &run);
    let (new, old) = (
        "Linux 3.13.0.24, Open vSwitch 2.0.1 (Ubuntu 14.04)",
        "Linux 3.8.0.30, Open vSwitch 1.9 (Ubuntu 13.04)",
    );
    for (name, path) in paths {
        for flows in ["1", "2", "4", "8", "16"] {
            let key = [name, flows];
            let on = cell(path, flows, "on");
            near(found(&evidence, new, &key, 0), &on, 1e-3);
            near(found(&evidence, new, &key, 1), &on, 1.01);
            near(
                found(&evidence, new, &key, 2),
                &cell(path, flows, "off"),
                1e-3,
            );
            near(found(&evidence, old, &key, 0), &on, 1e-3);
            near(found(&evidence, old, &key, 1), &on, 1.01);
        }
    }
}

/// The scenarios as the posting numbers them: load, peer, size.
fn scenario(number: usize) -> (LoadKind, Peer, &'static str) {
    match number {
        1 => (STREAM, Peer::Far, "512"),
        2 => (STREAM, Peer::Far, "16384"),
        3 => (MAERTS, Peer::Far, "16384"),
        4 => (MAERTS, Peer::Far, "512"),
        5 => (STREAM, Peer::Host, "512"),
        6 => (STREAM, Peer::Host, "16384"),
        7 => (MAERTS, Peer::Host, "512"),
        _ => (MAERTS, Peer::Host, "16384"),
    }
}

/// For a plan: path → the cell of scenario, CPUs, queues, sessions.
fn every_scenario(plan: &str, of: impl Fn(usize, &str, &str, &str) -> Option<CellReport>) {
    let mut report = of_plan(plan, "queues=1");
    let numbers = ["1", "2", "4", "8"];
    let all = || {
        (1..=8).flat_map(move |s| {
            numbers.into_iter().flat_map(move |smp| {
                numbers
                    .into_iter()
                    .flat_map(move |n| [(s, smp, "1", n), (s, smp, smp, n)])
            })
        })
    };
    let cells = all().filter_map(|(s, smp, queues, n)| of(s, smp, queues, n));
    report.cells = crate::model::distinct(cells);
    let (file, run) = (file("multiqueue-tap-2011"), stored());
    let evidence = evidence(&file, &report, &run);
    let mut seen = 0;
    for table in &file.tables {
        let s: usize = table.title[..1].parse().unwrap();
        let is_multi = table.title.ends_with("multi-queue");
        for row in &table.rows {
            let (smp, n) = (row.key[0].as_str(), row.key[1].as_str());
            let key = [smp, n];
            match of(s, smp, if is_multi { smp } else { "1" }, n) {
                Some(cell) => {
                    near(found(&evidence, &table.title, &key, 0), &cell, 1.0);
                    near(found(&evidence, &table.title, &key, 1), &cell, 1.02 / 2.0);
                    near(found(&evidence, &table.title, &key, 2), &cell, 1.03);
                    seen += 1;
                }
                None => drop(answer(&evidence, &table.title, &key, 0).unwrap_err()),
            }
        }
    }
    assert!(seen == 64 || seen == 256, "{seen}");
}

#[test]
fn of_2011_with_the_stand_in() {
    every_scenario("multiqueue-tap-2011", |s, smp, queues, n| {
        let (load, peer, size) = scenario(s);
        let set = [
            ("flows", n),
            ("queues", queues),
            ("message_size", size),
            ("steering", "kernel"),
        ];
        (smp == "2").then(|| coded("tap-mq", peer, load, &set))
    });
}

#[test]
fn of_2011_with_guests() {
    every_scenario("multiqueue-tap-2011-scenarios", |s, smp, queues, n| {
        let (load, peer, size) = scenario(s);
        let set = [
            ("flows", n),
            ("queues", queues),
            ("message_size", size),
            ("guest_cpus", smp),
        ];
        Some(coded("vm", peer, load, &set))
    });
}

#[test]
fn of_2007() {
    let mut report = of_plan("netns-macvlan-2007", "native");
    let cases = [
        ("Native: no namespace", "native"),
        ("Namespace behind an etun pair, IP routing", "veth-route"),
        ("Namespace with a macvlan on the adapter", "macvlan"),
    ];
    let loads = [
        STREAM,
        MAERTS,
        LoadKind::TcpRr,
        LoadKind::UdpStream,
        LoadKind::UdpRr,
    ];
    let cell = |path: &str, load: LoadKind| {
        let size = if load == MAERTS { "87380" } else { "1400" };
        coded(
            path,
            Peer::Far,
            load,
            &[("message_size", size), ("rate", "1gbit")],
        )
    };
    for (_, path) in cases {
        report.cells.extend(loads.map(|load| cell(path, load)));
    }
    let (file, run) = (file("netns-macvlan-2007"), stored());
    let evidence = evidence(&file, &report, &run);
    let set = |title: &str, key: &[&str], column| match answer(&evidence, title, key, column) {
        Ok(Value::Set(value)) => value,
        other => panic!("{title} {key:?} {column}: {other:?}"),
    };
    for (case, path) in cases {
        for load in loads {
            let cell = cell(path, load);
            let title = format!("{case}: {}", load.to_string().to_uppercase());
            let at = |key: &[&str], column| found(&evidence, &title, key, column);
            match load {
                LoadKind::TcpStream | LoadKind::TcpMaerts => {
                    assert_eq!(
                        set(&title, &[], 2),
                        if load == MAERTS { 87380.0 } else { 1400.0 }
                    );
                    assert_eq!(set(&title, &[], 3), 0.3);
                    near(at(&[], 4), &cell, 1.0);
                    near(at(&[], 5), &cell, 1.02 / 2.0);
                    near(at(&[], 7), &cell, 1.04 * 1.024);
                    answer(&evidence, &title, &[], 8).unwrap_err();
                }
                LoadKind::UdpStream => {
                    // As many as in 20 s, or in 40 s.
                    let seconds = if path == "veth-route" { 40.0 } else { 20.0 };
                    near(at(&["local"], 3), &cell, 1.07e6 / 8.0 / 1400.0 * seconds);
                    near(at(&["local"], 4), &cell, 1.08 * seconds);
                    near(at(&["local"], 5), &cell, 1.07);
                    near(at(&["local"], 7), &cell, 1.04 * 1.024);
                    near(at(&["remote"], 3), &cell, 1.09 * seconds);
                    near(at(&["remote"], 5), &cell, 1.0);
                    answer(&evidence, &title, &["remote"], 6).unwrap_err();
                }
                _ => {
                    assert_eq!([2, 3].map(|at| set(&title, &["local"], at)), [1.0, 1.0]);
                    near(at(&["local"], 5), &cell, 1.05);
                    near(at(&["local"], 6), &cell, 1.02 / 2.0);
                    near(at(&["local"], 8), &cell, 1.06);
                }
            }
        }
    }
}

/// Each column has the figures and the CPUs of its own machine.
#[test]
fn ends_with_machines_of_their_own_fill_both_columns() {
    let title = "Native: no namespace: TCP_STREAM";
    let filled = |are_one_machine| {
        let set = [("message_size", "1400"), ("rate", "1gbit")];
        let mut cell = coded("native", Peer::Far, STREAM, &set);
        cell.endpoints = Some(fixture::ends(8, 5, are_one_machine));
        for (name, value) in [
            ("client_busy_cores", 0.8),
            ("server_busy_cores", 0.6),
            ("client_cpu_ns_per_byte", 3.0),
            ("server_cpu_ns_per_byte", 7.0),
        ] {
            let estimate = fixture::estimate(value, 0.001);
            cell.estimates.insert(name.to_owned(), estimate);
        }
        let mut report = of_plan("netns-macvlan-2007", "native");
        report.cells.push(cell.clone());
        let (file, run) = (file("netns-macvlan-2007"), stored());
        let evidence = evidence(&file, &report, &run);
        let figure = |column| match answer(&evidence, title, &[], column) {
            Ok(Value::Measured(estimate)) => Some((estimate.value * 1e6).round() / 1e6),
            _ => None,
        };
        ([5, 6, 7, 8].map(figure), cell)
    };
    let apart = [10.0, 12.0, 3.0 * 1.024, 7.0 * 1.024].map(Some);
    assert_eq!(filled(false).0, apart);
    let ([local, remote, _, _], cell) = filled(true);
    near(local.unwrap(), &cell, 1.02 / 2.0);
    assert_eq!(remote, None);
}

#[test]
fn of_2006() {
    let mut report = of_plan("netback-direct-2006", "bridge-nf");
    let cell = |path: &str, load, pace: &str| {
        coded(path, Peer::Far, load, &[("pace", pace), ("rate", "1gbit")])
    };
    let paths = [
        ("bridge, netfilter on", "bridge-nf"),
        ("bridge, netfilter off", "bridge"),
        ("netback switching", "direct"),
    ];
    for (_, path) in paths {
        for load in [MAERTS, STREAM] {
            // Unlimited senders come first, and must not be used.
            report
                .cells
                .extend(["none", "940mbit"].map(|pace| cell(path, load, pace)));
        }
    }
    let (file, run) = (file("netback-direct-2006"), stored());
    let evidence = evidence(&file, &report, &run);
    let title = "CPU of dom0, mean and half-width of the 99 % interval";
    for (name, path) in paths {
        for (direction, load) in [("receive", MAERTS), ("transmit", STREAM)] {
            let own = cell(path, load, "940mbit");
            near(found(&evidence, title, &[direction, name], 0), &own, 1.02);
            near(found(&evidence, title, &[direction, name], 1), &own, 1.04);
        }
    }
}

/// A run without any of it fills nothing.
#[test]
fn an_empty_run_fills_nothing() {
    for file in super::all() {
        for stand in &file.plans {
            let report: RunReport = of_plan(&stand.name, "veth");
            let run = stored();
            let evidence = evidence(&file, &report, &run);
            for table in &file.tables {
                let form = &file.forms[&table.form];
                for row in &table.rows {
                    for (column, of) in form.columns.iter().enumerate() {
                        let wanted = stand.wanted(&[&table.cells, &of.cells, &row.cells]);
                        let here = form.here(row, column);
                        let answer = evidence.value(here, &wanted, row);
                        assert!(
                            answer.is_err() || matches!(here, Here::Window),
                            "{answer:?}"
                        );
                    }
                }
            }
        }
    }
}
