use std::time::Duration;

use super::{fixture, from, page, text};
use crate::model::{LoadKind, Peer, Published, PublishedFigure, RunReport, Switch};
use crate::stats::{Estimate, Verdict};

const KIB: u32 = 1024;

fn by_message_size(paths: &[(&str, f64)], sizes: &[u32]) -> RunReport {
    let mut report = fixture::run();
    for (i, &size) in sizes.iter().enumerate() {
        for &(path, speed) in paths {
            let value = 21e9 * speed * f64::from(size) / f64::from(size + 2 * KIB);
            let half = 0.012 * f64::from(u32::try_from(i).unwrap() + 1);
            let mut cell = fixture::cell(path, Peer::Local, LoadKind::TcpStream)
                .axes(|axes| axes.message_size_bytes = Some(size))
                .estimate("goodput_bps", value, half)
                .estimate("cpu_ns_per_byte", 1.6e10 / value, half);
            if path != "veth" {
                let verdict = if (speed - 1.0).abs() > half {
                    Verdict::Different
                } else {
                    Verdict::Inconclusive
                };
                cell = cell
                    .verdict("goodput_bps", speed, half, Some(verdict))
                    .verdict("cpu_ns_per_byte", 1.0 / speed, half, Some(verdict));
            }
            report.cells.push(cell.build());
        }
    }
    report
}

#[test]
fn one_axis() {
    let paths = [("veth", 1.0), ("bridge", 0.94), ("macvlan", 1.03)];
    let mut report = by_message_size(&paths, &[64, KIB, 16 * KIB, 128 * KIB]);
    report.cells[4]
        .two_modes
        .insert("goodput_bps".into(), [2.1e9, 4.4e9]);
    report.cells[8] = fixture::cell("macvlan", Peer::Local, LoadKind::TcpStream)
        .axes(|axes| axes.message_size_bytes = Some(16 * KIB))
        .failed("the connection was refused")
        .build();
    insta::assert_snapshot!(text(&report), @"
    6 of 7 comparisons are decided; the largest differences: macvlan (tcp_stream, local, 64 B messages)
    is 3 % faster than veth, bridge (tcp_stream, local, 64 B messages) is 6 % slower than veth.

    hopyard run: paths · 10 blocks × 0.3 s · 95 % confidence · seed 42 · compared with veth
    Linux 6.18.5 · AMD EPYC 7B13, 2 CPUs · under KVM · 2026-03-01T10:15:00Z
    every cell: 1 flow, TCP cubic, ends on different CPUs, IPv4, MTU 1500

    tcp_stream · local (bulk TCP, client to server)
    goodput in Gbit/s           veth
         message_size         (base)           bridge         macvlan
    ─────────────────────────────────────────────────────────────────
                 64 B   0.636 ±1.2%    0.598 ±1.2% ≠    0.655 ±1.2% ≠
                1 KiB   7.00  ±2.4%    6.58  ±2.4% ≠¹   7.21  ±2.4% ≠
               16 KiB  18.7   ±3.6%   17.5   ±3.6% ≠           failed
              128 KiB  20.7   ±4.8%   19.4   ±4.8% ≠   21.3   ±4.8% ?

    CPU cost in ns/byte           veth
           message_size         (base)           bridge         macvlan
    ───────────────────────────────────────────────────────────────────
                   64 B  25.1   ±1.2%   26.7   ±1.2% ≠   24.4   ±1.2% ≠
                  1 KiB   2.29  ±2.4%    2.43  ±2.4% ≠¹   2.22  ±2.4% ≠
                 16 KiB   0.857 ±3.6%    0.912 ±3.6% ≠           failed
                128 KiB   0.774 ±4.8%    0.823 ±4.8% ≠    0.751 ±4.8% ?
    ¹ bridge: goodput has two modes, 2.10 and 4.40 Gbit/s: the figure lies between them

    ± half-width at 95 % confidence · ≠ different · ? inconclusive

    What the verdicts support, relative to veth
    - tcp_stream · local · 64 B messages; tcp_stream · local · 1 KiB messages: macvlan carries the most,
      1.03×; macvlan costs the least CPU per byte, 0.971×; bridge costs the most, 1.06×.
    - tcp_stream · local · 16 KiB messages: no path is shown to beat veth; none is shown to cost less
      CPU per byte; bridge costs the most, 1.06×.
    - tcp_stream · local · 128 KiB messages: no path is shown to beat veth; none is shown to cost less
      CPU per byte; bridge costs the most, 1.06× (not told apart from macvlan 0.971×).

    Without figures
    - macvlan (tcp_stream · local · 16 KiB messages) failed: the connection was refused

    Path proof passed for all 11 cells with figures: the path's devices moved with the traffic, no other
    did.
    ");
}

#[test]
fn many_paths_go_on_in_further_grids() {
    let paths = [
        "veth",
        "bridge",
        "bridge-nf",
        "macvlan",
        "ipvlan",
        "netkit",
        "ovs-veth",
        "ovs-internal",
        "direct",
    ]
    .map(|path| (path, if path == "veth" { 1.0 } else { 0.9 }));
    let report = by_message_size(&paths, &[64, 16 * KIB]);
    let text = text(&report);
    insta::assert_snapshot!(from(&text, "tcp_stream").split("\n\n").take(3).collect::<Vec<_>>().join("\n\n"), @r"
    tcp_stream · local (bulk TCP, client to server)
    goodput in Gbit/s           veth
         message_size         (base)          bridge       bridge-nf         macvlan          ipvlan
    ────────────────────────────────────────────────────────────────────────────────────────────────
                 64 B   0.636 ±1.2%    0.573 ±1.2% ≠   0.573 ±1.2% ≠   0.573 ±1.2% ≠   0.573 ±1.2% ≠
               16 KiB  18.7   ±2.4%   16.8   ±2.4% ≠  16.8   ±2.4% ≠  16.8   ±2.4% ≠  16.8   ±2.4% ≠

    goodput in Gbit/s
         message_size          netkit        ovs-veth    ovs-internal          direct
    ─────────────────────────────────────────────────────────────────────────────────
                 64 B   0.573 ±1.2% ≠   0.573 ±1.2% ≠   0.573 ±1.2% ≠   0.573 ±1.2% ≠
               16 KiB  16.8   ±2.4% ≠  16.8   ±2.4% ≠  16.8   ±2.4% ≠  16.8   ±2.4% ≠

    CPU cost in ns/byte           veth
           message_size         (base)          bridge       bridge-nf         macvlan          ipvlan
    ──────────────────────────────────────────────────────────────────────────────────────────────────
                   64 B  25.1   ±1.2%   27.9   ±1.2% ≠  27.9   ±1.2% ≠  27.9   ±1.2% ≠  27.9   ±1.2% ≠
                 16 KiB   0.857 ±2.4%    0.952 ±2.4% ≠   0.952 ±2.4% ≠   0.952 ±2.4% ≠   0.952 ±2.4% ≠
    ");
    let markdown = page(&report, "markdown");
    assert!(markdown.contains(" veth (base) |"));
}

#[test]
fn one_path_alone_is_a_list() {
    let report = by_message_size(&[("veth", 1.0)], &[64, 16 * KIB]);
    insta::assert_snapshot!(from(&text(&report), "tcp_stream"), @r"
    tcp_stream · local (bulk TCP, client to server)
                             goodput      CPU cost
    message_size  path        Gbit/s       ns/byte
    ──────────────────────────────────────────────
            64 B  veth   0.636 ±1.2%  25.1   ±1.2%
          16 KiB  veth  18.7   ±2.4%   0.857 ±2.4%

    ± half-width at 95 % confidence

    Path proof passed for both cells: the path's devices moved with the traffic, no other did.
    ");
}

#[test]
fn two_axes() {
    let report = by_flows_and_offload();
    insta::assert_snapshot!(text(&report), @"
    4 of 4 comparisons are decided; the largest differences: bridge (tcp_stream, local, 1 flow, offload
    on) is 15 % slower than veth.

    hopyard run: paths · 10 blocks × 0.3 s · 95 % confidence · seed 42 · compared with veth
    Linux 6.18.5 · AMD EPYC 7B13, 2 CPUs · under KVM · 2026-03-01T10:15:00Z
    every cell: TCP cubic, ends on different CPUs, IPv4, MTU 1500

    tcp_stream · local · 16 KiB messages (bulk TCP, client to server)
    offload on
    goodput in Gbit/s         veth
                flows       (base)        bridge
    ────────────────────────────────────────────
                    1  18.7 ±1.2%   15.9 ±1.2% ≠
                    8  18.7 ±1.2%   15.9 ±1.2% ≠

    CPU cost in ns/byte          veth
                  flows        (base)        bridge
    ───────────────────────────────────────────────
                      1  0.857 ±1.2%   1.01 ±1.2% ≠
                      8  0.857 ±1.2%   1.01 ±1.2% ≠

    offload off
    goodput in Gbit/s         veth
                flows       (base)        bridge
    ────────────────────────────────────────────
                    1  18.7 ±1.2%   15.9 ±1.2% ≠
                    8  18.7 ±1.2%   15.9 ±1.2% ≠

    CPU cost in ns/byte          veth
                  flows        (base)        bridge
    ───────────────────────────────────────────────
                      1  0.857 ±1.2%   1.01 ±1.2% ≠
                      8  0.857 ±1.2%   1.01 ±1.2% ≠

    ± half-width at 95 % confidence · ≠ different

    What the verdicts support, relative to veth
    - tcp_stream · local · 1 flow · offload on; tcp_stream · local · 1 flow · offload off; tcp_stream ·
      local · 8 flows · offload on; tcp_stream · local · 8 flows · offload off: no path is shown to beat
      veth; none is shown to cost less CPU per byte; bridge costs the most, 1.18×.

    Path proof passed for all 8 cells: the path's devices moved with the traffic, no other did.
    ");
}

fn by_flows_and_offload() -> RunReport {
    let mut report = fixture::run();
    for flows in [1, 8] {
        for offload in [Switch::On, Switch::Off] {
            let base = by_message_size(&[("veth", 1.0), ("bridge", 0.85)], &[16 * KIB]);
            report.cells.extend(base.cells.into_iter().map(|mut cell| {
                cell.axes.flows = flows;
                cell.axes.offload = Some(offload);
                cell
            }));
        }
    }
    report
}

/// On one path, the axis of the base goes across. Loads and further axes have grids of their own, and an axis with one
/// value everywhere is not shown.
#[test]
fn published_figures_of_one_path_have_the_base_s_axis_across() {
    let mut report = by_flows_and_offload();
    report.cells.retain(|cell| cell.path == "bridge");
    for verdict in report
        .cells
        .iter_mut()
        .flat_map(|c| c.verdicts.values_mut())
    {
        verdict.base = "offload=on".to_owned();
    }
    let figure = |load, flows: &str, offload: &str, value| PublishedFigure {
        path: "bridge".to_owned(),
        load,
        peer: Some(Peer::Local),
        called: format!("scenario {load}, {offload}"),
        value,
        set: [("flows", flows), ("offload", offload), ("family", "4")]
            .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
            .into(),
        half_width: None,
    };
    let (there, back) = (LoadKind::TcpStream, LoadKind::TcpMaerts);
    report.published = vec![Published {
        source: "A. Author, A title, somewhere, 2011".to_owned(),
        quantity: "goodput_bps".to_owned(),
        what: "Gbit/s".to_owned(),
        remark: "Four cores.".to_owned(),
        figures: vec![
            figure(there, "1", "off", 0.5),
            figure(there, "8", "off", 0.25),
            figure(there, "1", "on", 5.0),
            figure(there, "8", "on", 2.0),
            figure(back, "1", "off", 3.0),
        ],
    }];
    let text = text(&report);
    let block = from(&text, "As published").split("\n± ").next().unwrap();
    insta::assert_snapshot!(block, @"
    As published: A. Author, A title, somewhere, 2011
    tcp_stream local
    Gbit/s  offload off              offload on
     flows         then        here        then        here
    ───────────────────────────────────────────────────────
         1       0.500   15.9 ±1.2%       5.00   15.9 ±1.2%
         8       0.250   15.9 ±1.2%       2.00   15.9 ±1.2%

    vs offload=on  offload off            offload on
            flows         then      here        then      here
    ──────────────────────────────────────────────────────────
                1       0.100×  0.850× ≠        base  0.850× ≠
                8       0.125×  0.850× ≠        base  0.850× ≠
    Then called: offload off: scenario tcp_stream, off; offload on: scenario tcp_stream, on.

    tcp_maerts local
    Gbit/s  offload off
     flows         then  here
    ─────────────────────────
         1        3.00      –
    Then called: offload off: scenario tcp_maerts, off.

    Four cores.
    ");
}

/// Ratios of efficiency are the inverse of those of CPU cost.
#[test]
fn published_figures_of_two_axes_are_grids() {
    let mut report = by_flows_and_offload();
    for cell in &mut report.cells {
        let cost = cell.estimates["cpu_ns_per_byte"].clone();
        let efficiency = Estimate {
            value: 8e9 / cost.value,
            low: 8e9 / cost.high,
            high: 8e9 / cost.low,
            ..cost
        };
        let name = "efficiency_bps_per_core".to_owned();
        cell.estimates.insert(name, efficiency);
    }
    let figure = |path: &str, flows: &str, offload: &str, value| PublishedFigure {
        path: path.to_owned(),
        load: LoadKind::TcpStream,
        peer: None,
        called: format!("a {path}"),
        value,
        set: [("flows", flows), ("offload", offload)]
            .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
            .into(),
        half_width: None,
    };
    report.published = vec![Published {
        source: "A. Author, A title, somewhere, 2014".to_owned(),
        quantity: "efficiency_bps_per_core".to_owned(),
        what: "Gbit/s per core".to_owned(),
        remark: "Four cores.".to_owned(),
        figures: vec![
            figure("veth", "1", "on", 6.3),
            figure("bridge", "1", "on", 5.5),
            figure("veth", "8", "on", 3.2),
            figure("ovs-veth", "8", "on", 2.5),
            figure("veth", "1", "off", 0.5),
        ],
    }];
    let text = text(&report);
    let block = from(&text, "As published").split("\n± ").next().unwrap();
    insta::assert_snapshot!(block, @"
    As published: A. Author, A title, somewhere, 2014
    offload on
    Gbit/s per core, here Gbit/s/core   veth              bridge              ovs-veth
                                flows   then        here    then        here      then  here
    ────────────────────────────────────────────────────────────────────────────────────────
                                    1  6.30   9.33 ±1.2%   5.50   7.93 ±1.2%         –     –
                                    8  3.20   9.33 ±1.2%       –           –     2.50      –

    vs veth  veth        bridge            ovs-veth
      flows  then  here    then      here      then  here
    ─────────────────────────────────────────────────────
          1  base  base  0.873×  0.850× ≠     –         –
          8  base  base   –             –    0.781×     –

    offload off
    Gbit/s per core, here Gbit/s/core    veth
                                flows    then        here
    ─────────────────────────────────────────────────────
                                    1  0.500   9.33 ±1.2%

    vs veth  veth
      flows  then  here
    ───────────────────
          1  base  base
    Then called: veth: a veth; bridge: a bridge; ovs-veth: a ovs-veth.

    Four cores.
    ");
}

#[test]
fn one_path_over_three_axes() {
    let mut report = by_message_size(&[("bridge-nf", 1.0)], &[64, KIB]);
    for (flows, rules) in [(1, 0), (4, 0), (1, 100), (4, 100)] {
        let mut cells = by_message_size(&[("bridge-nf", 1.0)], &[64, KIB, 16 * KIB]).cells;
        for cell in &mut cells {
            cell.axes.flows = flows;
            cell.axes.rules = Some(rules);
            cell.verdicts.clear();
        }
        report.cells.extend(cells);
    }
    report.cells.drain(..2);
    insta::assert_snapshot!(from(&text(&report), "tcp_stream"), @r"
    tcp_stream · local (bulk TCP, client to server)
    no rules
       goodput in Gbit/s
    message_size \ flows              1              4
    ──────────────────────────────────────────────────
                    64 B   0.636 ±1.2%    0.636 ±1.2%
                   1 KiB   7.00  ±2.4%    7.00  ±2.4%
                  16 KiB  18.7   ±3.6%   18.7   ±3.6%

     CPU cost in ns/byte
    message_size \ flows              1              4
    ──────────────────────────────────────────────────
                    64 B  25.1   ±1.2%   25.1   ±1.2%
                   1 KiB   2.29  ±2.4%    2.29  ±2.4%
                  16 KiB   0.857 ±3.6%    0.857 ±3.6%

    100 rules
       goodput in Gbit/s
    message_size \ flows              1              4
    ──────────────────────────────────────────────────
                    64 B   0.636 ±1.2%    0.636 ±1.2%
                   1 KiB   7.00  ±2.4%    7.00  ±2.4%
                  16 KiB  18.7   ±3.6%   18.7   ±3.6%

     CPU cost in ns/byte
    message_size \ flows              1              4
    ──────────────────────────────────────────────────
                    64 B  25.1   ±1.2%   25.1   ±1.2%
                   1 KiB   2.29  ±2.4%    2.29  ±2.4%
                  16 KiB   0.857 ±3.6%    0.857 ±3.6%

    ± half-width at 95 % confidence

    Path proof passed for all 12 cells: the path's devices moved with the traffic, no other did.
    ");
}

#[test]
fn a_wide_list_goes_on_below_with_its_keys() {
    let mut report = fixture::paths();
    report.warnings.clear();
    report.cells.retain(|cell| cell.load == LoadKind::UdpStream);
    report.cells.truncate(3);
    let mut more = report.cells.clone();
    for cell in &mut more {
        cell.axes.flows = 8;
        cell.axes.offload = Some(Switch::Off);
        cell.axes.mtu_bytes = 9000;
    }
    more[1] = fixture::cell("bridge", Peer::Local, LoadKind::UdpStream)
        .axes(|axes| *axes = more[1].axes.clone())
        .failed("no buffers: raise net.core.wmem_max")
        .build();
    report.cells.extend(more);
    report.cells[2].path = "ovs-internal".to_owned();
    let text = text(&report);
    insta::assert_snapshot!(from(&text, "udp_stream"), @"
    udp_stream · local · 1400 B messages (datagrams, client to server, as fast as the client can)
                                           goodput            packets  loss    CPU cost            busy
    flows   mtu  offload  path              Gbit/s  vs veth       k/s     %   ns/packet  vs veth  cores
    ───────────────────────────────────────────────────────────────────────────────────────────────────
        1  1500        –  veth          4.12 ±0.6%  base          368  12.6  5380 ±0.6%  base      1.98
        1  1500        –  bridge        3.75 ±1.6%  0.912× ≠      335  12.6  5940 ±1.6%  1.10× ≠   1.98
        1  1500        –  ovs-internal  3.16 ±1.0%  0.767× ≠      282  12.6  7050 ±1.0%  1.31× ≠   1.98
        8  9000      off  veth          4.12 ±0.6%  base          368  12.6  5380 ±0.6%  base      1.98
        8  9000      off  bridge        failed: no buffers: raise net.core.wmem_max
        8  9000      off  bridge-nf     3.16 ±1.0%  0.767× ≠      282  12.6  7050 ±1.0%  1.31× ≠   1.98
    Bytes per skb: 1400 everywhere.

    ± half-width at 95 % confidence · ≠ different

    What the verdicts support, relative to veth
    - udp_stream · local · 1 flow · MTU 1500: no path is shown to beat veth; none is shown to cost less
      CPU per packet; ovs-internal costs the most, 1.31×.
    - udp_stream · local · 8 flows · MTU 9000 · offload off: no path is shown to beat veth; none is
      shown to cost less CPU per packet; bridge-nf costs the most, 1.31×.

    Without figures
    - bridge (udp_stream · local · 8 flows · MTU 9000 · offload off) failed: no buffers: raise
      net.core.wmem_max

    Path proof passed for all 5 cells with figures: the path's devices moved with the traffic, no other
    did.
    ");
}

/// CPU time of this thread: others may have the CPUs meanwhile.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn five_hundred_cells_are_a_page_at_once() {
    let sizes: Vec<u32> = (1..=100).map(|n| 64 * n).collect();
    let paths = [
        ("veth", 1.0),
        ("bridge", 0.94),
        ("bridge-nf", 0.9),
        ("direct", 0.99),
        ("macvlan", 1.03),
    ];
    let report = by_message_size(&paths, &sizes);
    assert_eq!(report.cells.len(), 500);
    let began = cpu_time();
    let text = text(&report);
    let took = cpu_time() - began;
    println!("500 cells in {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    // Two grids of a hundred rows, and nothing wider than a page.
    assert!(text.lines().filter(|line| line.contains('±')).count() >= 200);
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest.unwrap() <= 100);
}
