use super::text;
use crate::fixture;
use crate::model::{LoadKind, Peer, axis};

#[test]
fn what_is_at_its_default_is_not_named() {
    let cell = fixture::cell("bridge", Peer::Far, LoadKind::UdpStream);
    assert_eq!(cell.build().name(), "path=bridge/load=udp_stream/peer=far");
}

#[test]
fn an_axis_is_named_where_it_is_not_at_its_default() {
    for (name, given, shown) in [
        ("flows", "4", "4"),
        ("mtu", "9000", "9000"),
        ("congestion", "bbr", "bbr"),
        ("family", "6", "6"),
        ("ports", "2", "2"),
        ("rate", "1gbit", "1gbit"),
        ("client_cpus", "0-3", "0+1+2+3"),
        ("offload", "off", "off"),
    ] {
        let axis = axis(name).unwrap();
        let cell = fixture::cell("veth", Peer::Far, LoadKind::TcpStream)
            .axes(|axes| (axis.set)(axes, given).unwrap());
        assert_eq!(
            cell.build().name(),
            format!("path=veth/load=tcp_stream/{name}={shown}/peer=far")
        );
    }
}

#[test]
fn a_path_of_any_name_is_one_word() {
    let cell = fixture::cell("a/b \u{1b}[31m\nBenchmark x", Peer::Local, LoadKind::TcpRr);
    assert_eq!(
        cell.build().name(),
        "path=a_b_[31m_Benchmark_x/load=tcp_rr/peer=local"
    );
}

/// Three switches of devices are wider than the table.
#[test]
fn a_value_that_is_too_long_for_a_column_has_a_number() {
    let mut report = fixture::run();
    for (path, switches) in [
        (
            "veth",
            "offload@a/eth0=off+offload@b/eth0=off+tso@hub/up0=off",
        ),
        ("bridge", "gro@hub/br0=off"),
        (
            "bridge",
            "offload@a/eth0=off+offload@b/eth0=off+tso@hub/up0=off",
        ),
    ] {
        let cell = fixture::cell(path, Peer::Local, LoadKind::TcpStream);
        let cell = cell.axes(|axes| axes.device_offload = Some(switches.parse().unwrap()));
        report.cells.push(cell.build());
    }
    let said = text(&report);
    let starts = |what: &str| {
        let rows = said.lines();
        rows.filter(|line| line.trim_start().starts_with(what))
            .count()
    };
    // A row of each in the grids of goodput and cost.
    assert_eq!((starts("#1 "), starts("#2 ")), (2, 2), "{said}");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("device_offload #1: offload@a/eth0=off+offload@b/eth0=off+tso@hub/up0=off."),
        "{said}"
    );
    assert!(
        words.contains("device_offload #2: gro@hub/br0=off."),
        "{said}"
    );
}
