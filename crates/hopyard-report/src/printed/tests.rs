//! Synthetic runs whose figures identify their cell, so that a figure at the wrong place is noticed.

mod data;
mod places;
mod profiles;
mod reasons;
mod senders;
mod tables;
mod verdicts;

use super::evidence::Evidence;
use super::file::{File, all};
use crate::assess::testing;
use crate::fixture;
use crate::model::stored::Run;
use crate::model::{Axes, CellReport, LoadKind, Peer, RunReport, axis};

/// The report with that name.
fn file(name: &str) -> File {
    all().into_iter().find(|file| file.report == name).unwrap()
}

/// A run of a plan without cells.
fn of_plan(plan: &str, base: &str) -> RunReport {
    let mut report = fixture::run();
    report.run.plan = plan.to_owned();
    report.run.base = Some(base.to_owned());
    report
}

/// A stored run without anything that the report does not have.
fn stored() -> Run {
    testing::run(&[])
}

fn evidence<'a>(file: &'a File, report: &'a RunReport, run: &'a Run) -> Evidence<'a> {
    Evidence {
        file,
        stand: file.stand(&report.run.plan).unwrap(),
        report,
        run,
        seen: &[],
    }
}

/// A number that no other cell has: one or more digits for everything that distinguishes cells.
fn code(path: &str, peer: Peer, load: LoadKind, axes: &Axes) -> f64 {
    let paths = [
        "native",
        "veth-route",
        "macvlan",
        "veth",
        "bridge-nf",
        "ovs-veth",
        "ovs-internal",
        "bridge",
        "direct",
        "tap-mq",
        "vm",
    ];
    let loads = [
        LoadKind::TcpStream,
        LoadKind::TcpMaerts,
        LoadKind::TcpRr,
        LoadKind::UdpStream,
        LoadKind::UdpRr,
    ];
    let place = |at: Option<usize>| at.unwrap() as f64 + 1.0;
    let value = |name: &str| (axis(name).unwrap().show)(axes);
    let number = |name: &str| {
        value(name)
            .and_then(|v| crate::number::leading(&v))
            .unwrap_or(0.0)
    };
    place(paths.iter().position(|p| *p == path)) * 1e8
        + place(loads.iter().position(|l| *l == load)) * 1e7
        + place(
            [Peer::Local, Peer::Host, Peer::Far]
                .iter()
                .position(|p| *p == peer),
        ) * 1e6
        + number("flows") * 1e4
        + number("queues") * 1e3
        + if value("message_size").as_deref() == Some("512 B") {
            1e2
        } else {
            0.0
        }
        + if value("offload").as_deref() == Some("off") {
            2e2
        } else {
            0.0
        }
        + if value("pace").as_deref() == Some("940mbit") {
            4e2
        } else {
            0.0
        }
        + number("guest_cpus") * 10.0
}

/// A cell in which each quantity has its own number, in units of the report.
fn coded(path: &str, peer: Peer, load: LoadKind, set: &[(&str, &str)]) -> CellReport {
    let own = ["queues", "steering", "guest_cpus", "rate", "containers"];
    let mut axes = Axes::default();
    for (name, value) in set {
        (axis(name).unwrap().set)(&mut axes, value).unwrap();
    }
    let axes = axes.for_cell(load, peer, &own);
    let value = code(path, peer, load, &axes);
    // Each quantity differs by its own share.
    let quantities = [
        ("goodput_bps", 1e6),
        ("efficiency_bps_per_ghz", 1e9 * 1.01),
        ("busy_cores", 0.01 * 1.02),
        ("normalized_bps_per_cpu_percent", 1e6 * 1.03),
        ("cpu_ns_per_byte", 1.04),
        ("transactions_per_s", 1.05),
        ("cpu_ns_per_transaction", 1e3 * 1.06),
        ("sent_bps", 1e6 * 1.07),
        ("send_errors_per_s", 1.08),
        ("packets_per_s", 1.09),
    ];
    let cell = fixture::cell(path, peer, load).axes(|of| *of = axes);
    let cell = quantities.iter().fold(cell, |cell, (name, unit)| {
        cell.estimate(name, value * unit, 0.001)
    });
    cell.build()
}

/// The tables in lines, as a terminal shows them.
fn text(evidence: &Evidence<'_>, title: &str) -> String {
    let table = evidence.file.tables.iter().find(|t| t.title == title);
    crate::exports::text::page(evidence.table(table.unwrap()))
}
