use std::collections::BTreeMap;

use super::{fixture, from, page, text};
use crate::model::{
    CellStatus, Family, LoadKind, Peer, Published, PublishedFigure, Rate, RunReport, WarningCode,
};
use crate::stats::Verdict;

#[test]
fn six_paths_under_five_loads() {
    insta::assert_snapshot!(text(&fixture::paths()), @r"
    23 of 25 comparisons are decided; the largest differences: macvlan (tcp_stream, local) is 12 %
    faster than veth, bridge-nf (tcp_stream, local) is 23 % slower than veth.

    Speed and CPU cost relative to veth
               tcp_stream     tcp_rr         tcp_crr        udp_stream     udp_rr
    path       speed / CPU    speed / CPU    speed / CPU    speed / CPU    speed / CPU
    ────────────────────────────────────────────────────────────────────────────────────
    veth       base           base           base           base           base
    bridge     0.91≠ / 1.10≠  0.91≠ / 1.10≠  0.91≠ / 1.10≠  0.91≠ / 1.10≠  0.91≠ / 1.10≠
    bridge-nf  0.77≠ / 1.31≠  0.77≠ / 1.31≠  0.77≠ / 1.31≠  0.77≠ / 1.31≠  0.77≠ / 1.31≠
    macvlan    1.12≠ / 0.91≠  1.12≠ / 0.91≠  1.12≠ / 0.91≠  1.12≠ / 0.91≠  1.12≠ / 0.91≠
    ipvlan     1.12≠ / 0.90≠  1.12≠ / 0.90≠  1.12≠ / 0.90≠  1.12≠ / 0.90≠  1.12≠ / 0.90≠
    netkit     ?2.2% / ?2.2%  1.00= / 0.99=  ?5.0% / ?5.0%  1.00= / 0.99=  1.00= / 0.99=

    ± half-width at 95 % confidence · ≠ different · = equivalent within ±2 %
    ? inconclusive (x%: the smallest difference detectable with 80 % power)

    hopyard run: paths · 10 blocks × 0.3 s · 95 % confidence · seed 42 · compared with veth
    Linux 6.18.5 · AMD EPYC 7B13, 2 CPUs · under KVM · 2026-03-01T10:15:00Z
    every cell: 1 flow, TCP cubic, ends on different CPUs, IPv4, MTU 1500

    tcp_stream · local · 16 KiB messages (bulk TCP, client to server)
                  goodput                    CPU cost                  busy
    path           Gbit/s  vs veth            ns/byte  vs veth        cores
    ───────────────────────────────────────────────────────────────────────
    veth       21.4 ±0.4%  base           0.612 ±0.4%  base            1.64
    bridge     19.5 ±1.2%  0.912× ≠       0.676 ±1.2%  1.10×  ≠        1.64
    bridge-nf  16.4 ±0.8%  0.767× ≠       0.803 ±0.8%  1.31×  ≠        1.64
    macvlan    24.0 ±3.6%  1.12×  ≠       0.554 ±3.6%  0.905× ≠        1.64
    ipvlan     24.0 ±0.6%  1.12×  ≠       0.551 ±0.6%  0.899× ≠        1.64
    netkit     21.5 ±1.6%  1.00×  ? 2.2%  0.609 ±1.6%  0.995× ? 2.2%   1.64
    Zero everywhere: retransmits.
    Bytes per skb: 61400 everywhere.

    tcp_rr · local · 1 B requests and responses (request/response over a standing TCP connection)
               transactions                  CPU cost            latency  latency   busy
    path                k/s  vs veth   µs/transaction  vs veth    p50 µs   p99 µs  cores
    ────────────────────────────────────────────────────────────────────────────────────
    veth         13.1 ±1.0%  base          62.9 ±1.0%  base         71.9      132  0.826
    bridge       12.0 ±0.4%  0.912× ≠      69.4 ±0.4%  1.10×  ≠     79.4      146  0.826
    bridge-nf    10.1 ±1.2%  0.767× ≠      82.5 ±1.2%  1.31×  ≠     94.3      173  0.826
    macvlan      14.7 ±0.8%  1.12×  ≠      56.9 ±0.8%  0.905× ≠     65.1      119  0.826
    ipvlan       14.7 ±3.6%  1.12×  ≠      56.5 ±3.6%  0.899× ≠     64.6      118  0.826
    netkit       13.2 ±0.6%  1.00×  =      62.6 ±0.6%  0.995× =     71.5      131  0.826

    tcp_crr · local · 1 B requests and responses (connect, request, response, close over TCP)
               transactions                       CPU cost                 latency  latency   busy
    path                k/s  vs veth        µs/transaction  vs veth         p50 µs   p99 µs  cores
    ──────────────────────────────────────────────────────────────────────────────────────────────
    veth         9.81 ±1.6%  base                171 ±1.6%  base              98.3      162   1.68
    bridge       8.95 ±1.0%  0.912× ≠            189 ±1.0%  1.10×  ≠         109        179   1.68
    bridge-nf    7.53 ±0.4%  0.767× ≠            225 ±0.4%  1.31×  ≠         129        212   1.68
    macvlan     11.0  ±1.2%  1.12×  ≠            155 ±1.2%  0.905× ≠          89.0      146   1.68
    ipvlan      11.0  ±0.8%  1.12×  ≠            154 ±0.8%  0.899× ≠          88.4      145   1.68
    netkit       9.85 ±3.6%  1.00×  ? 5.0%       170 ±3.6%  0.995× ? 5.0%     97.8      161   1.68

    udp_stream · local · 1400 B messages (datagrams, client to server, as fast as the client can)
                  goodput            packets  loss    CPU cost             busy
    path           Gbit/s  vs veth       k/s     %   ns/packet  vs veth   cores
    ───────────────────────────────────────────────────────────────────────────
    veth       4.12 ±0.6%  base          368  12.6  5380 ±0.6%  base       1.98
    bridge     3.75 ±1.6%  0.912× ≠      335  12.6  5940 ±1.6%  1.10×  ≠   1.98
    bridge-nf  3.16 ±1.0%  0.767× ≠      282  12.6  7050 ±1.0%  1.31×  ≠   1.98
    macvlan    4.62 ±0.4%  1.12×  ≠      412  12.6  4870 ±0.4%  0.905× ≠   1.98
    ipvlan     4.60 ±1.2%  1.12×  ≠      411  12.6  4830 ±1.2%  0.899× ≠   1.98
    netkit     4.13 ±0.8%  1.00×  =      369  12.6  5350 ±0.8%  0.995× =   1.98
    Bytes per skb: 1400 everywhere.

    udp_rr · local · 1 B requests and responses (request/response over UDP)
               transactions                  CPU cost            latency  latency   busy
    path                k/s  vs veth   µs/transaction  vs veth    p50 µs   p99 µs  cores
    ────────────────────────────────────────────────────────────────────────────────────
    veth         13.1 ±3.6%  base          62.9 ±3.6%  base         71.9      132  0.826
    bridge       12.0 ±0.6%  0.912× ≠      69.4 ±0.6%  1.10×  ≠     79.4      146  0.826
    bridge-nf    10.1 ±1.6%  0.767× ≠      82.5 ±1.6%  1.31×  ≠     94.3      173  0.826
    macvlan      14.7 ±1.0%  1.12×  ≠      56.9 ±1.0%  0.905× ≠     65.1      119  0.826
    ipvlan       14.7 ±0.4%  1.12×  ≠      56.5 ±0.4%  0.899× ≠     64.6      118  0.826
    netkit       13.2 ±1.2%  1.00×  =      62.6 ±1.2%  0.995× =     71.5      131  0.826

    What the verdicts support, relative to veth
    - tcp_stream · local: macvlan carries the most, 1.12× (not told apart from ipvlan 1.12×); ipvlan
      costs the least CPU per byte, 0.899× (not told apart from macvlan 0.905×); bridge-nf costs the
      most, 1.31×.
    - tcp_rr · local; tcp_crr · local; udp_rr · local: macvlan completes the most, 1.12× (not told apart
      from ipvlan 1.12×); ipvlan costs the least CPU per transaction, 0.899× (not told apart from
      macvlan 0.905×); bridge-nf costs the most, 1.31×.
    - udp_stream · local: macvlan carries the most, 1.12× (not told apart from ipvlan 1.12×); ipvlan
      costs the least CPU per packet, 0.899× (not told apart from macvlan 0.905×); bridge-nf costs the
      most, 1.31×.

    Warnings
    - the setting: This machine's default congestion control is bbr; the run used cubic, as asked, so
      programs that choose nothing will see other figures: pass --set congestion=bbr to measure those.
    - the machine: The hypervisor took 1.4 % of the CPU time.

    Path proof passed for all 30 cells: the path's devices moved with the traffic, no other did.
    ");
}

#[test]
fn markdown() {
    let mut report = fixture::paths();
    report.cells.truncate(12);
    report.cells[4] = fixture::cell("ipvlan", Peer::Local, LoadKind::TcpStream)
        .failed(
            "worker a died: signal 9 | out of memory, while the kernel had *no* <free> pages left",
        )
        .build();
    insta::assert_snapshot!(page(&report, "markdown"), @r"
    # hopyard run: paths

    **8 of 9 comparisons are decided; the largest differences: macvlan (tcp_stream, local) is 12 % faster than veth, bridge-nf (tcp_stream, local) is 23 % slower than veth.**

    ## Speed and CPU cost relative to veth

    | path      | tcp_stream speed / CPU | tcp_rr speed / CPU |
    | --------- | ---------------------- | ------------------ |
    | veth      | base                   | base               |
    | bridge    | 0.91≠ / 1.10≠          | 0.91≠ / 1.10≠      |
    | bridge-nf | 0.77≠ / 1.31≠          | 0.77≠ / 1.31≠      |
    | macvlan   | 1.12≠ / 0.91≠          | 1.12≠ / 0.91≠      |
    | ipvlan    | no figures             | 1.12≠ / 0.90≠      |
    | netkit    | ?2.2% / ?2.2%          | 1.00= / 0.99=      |

    ± half-width at 95 % confidence · ≠ different · = equivalent within ±2 % · ? inconclusive (x%: the smallest difference detectable with 80 % power)

    10 blocks × 0.3 s · 95 % confidence · seed 42 · compared with veth

    Linux 6.18.5 · AMD EPYC 7B13, 2 CPUs · under KVM · 2026-03-01T10:15:00Z

    every cell: 1 flow, TCP cubic, ends on different CPUs, IPv4, MTU 1500

    ## tcp_stream · local · 16 KiB messages (bulk TCP, client to server)

    | path      |                                               goodput Gbit/s | vs veth      | CPU cost ns/byte | vs veth       | busy cores |
    | --------- | -----------------------------------------------------------: | ------------ | ---------------: | ------------- | ---------: |
    | veth      |                                                   21.4 ±0.4% | base         |      0.612 ±0.4% | base          |       1.64 |
    | bridge    |                                                   19.5 ±1.2% | 0.912× ≠     |      0.676 ±1.2% | 1.10× ≠       |       1.64 |
    | bridge-nf |                                                   16.4 ±0.8% | 0.767× ≠     |      0.803 ±0.8% | 1.31× ≠       |       1.64 |
    | macvlan   |                                                   24.0 ±3.6% | 1.12× ≠      |      0.554 ±3.6% | 0.905× ≠      |       1.64 |
    | ipvlan    | failed: worker a died: signal 9 \| out of memory, while the… |              |                  |               |            |
    | netkit    |                                                   21.5 ±1.6% | 1.00× ? 2.2% |      0.609 ±1.6% | 0.995× ? 2.2% |       1.64 |

    - Zero everywhere: retransmits.
    - Bytes per skb: 61400 everywhere.

    ## tcp_rr · local · 1 B requests and responses (request/response over a standing TCP connection)

    | path      | transactions k/s | vs veth  | CPU cost µs/transaction | vs veth  | latency p50 µs | latency p99 µs | busy cores |
    | --------- | ---------------: | -------- | ----------------------: | -------- | -------------: | -------------: | ---------: |
    | veth      |       13.1 ±1.0% | base     |              62.9 ±1.0% | base     |           71.9 |            132 |      0.826 |
    | bridge    |       12.0 ±0.4% | 0.912× ≠ |              69.4 ±0.4% | 1.10× ≠  |           79.4 |            146 |      0.826 |
    | bridge-nf |       10.1 ±1.2% | 0.767× ≠ |              82.5 ±1.2% | 1.31× ≠  |           94.3 |            173 |      0.826 |
    | macvlan   |       14.7 ±0.8% | 1.12× ≠  |              56.9 ±0.8% | 0.905× ≠ |           65.1 |            119 |      0.826 |
    | ipvlan    |       14.7 ±3.6% | 1.12× ≠  |              56.5 ±3.6% | 0.899× ≠ |           64.6 |            118 |      0.826 |
    | netkit    |       13.2 ±0.6% | 1.00× =  |              62.6 ±0.6% | 0.995× = |           71.5 |            131 |      0.826 |

    ## What the verdicts support, relative to veth

    - tcp_stream · local: macvlan carries the most, 1.12×; macvlan costs the least CPU per byte, 0.905×; bridge-nf costs the most, 1.31×.
    - tcp_rr · local: macvlan completes the most, 1.12× (not told apart from ipvlan 1.12×); ipvlan costs the least CPU per transaction, 0.899× (not told apart from macvlan 0.905×); bridge-nf costs the most, 1.31×.

    ## Warnings

    - the setting: This machine's default congestion control is bbr; the run used cubic, as asked, so programs that choose nothing will see other figures: pass --set congestion=bbr to measure those.
    - the machine: The hypervisor took 1.4 % of the CPU time.

    ## Without figures

    - ipvlan (tcp_stream · local) failed: worker a died: signal 9 | out of memory, while the kernel had \*no\* &lt;free> pages left

    Path proof passed for all 11 cells with figures: the path's devices moved with the traffic, no other did.
    ");
}

#[test]
fn a_run_without_cells() {
    insta::assert_snapshot!(text(&fixture::run()), @r"
    hopyard run: paths · 10 blocks × 0.3 s · 95 % confidence · seed 42
    Linux 6.18.5 · AMD EPYC 7B13, 2 CPUs · under KVM · 2026-03-01T10:15:00Z

    There are no figures: the run has no cells.
    ");
}

#[test]
fn what_was_not_measured_is_a_dash() {
    let mut report = fixture::run();
    report.cells = vec![
        fixture::cell("veth", Peer::Host, LoadKind::UdpRr)
            .estimate("transactions_per_s", 812.0, 0.11)
            .build(),
        fixture::cell("bridge", Peer::Host, LoadKind::UdpRr).build(),
        fixture::cell("macvlan", Peer::Host, LoadKind::UdpRr)
            .estimate("transactions_per_s", 0.0, 0.0)
            .verdict("transactions_per_s", 0.0, 0.0, Some(Verdict::Different))
            .build(),
    ];
    let text = text(&report);
    assert!(!text.contains("NaN") && !text.contains("inf"));
    insta::assert_snapshot!(from(&text, "udp_rr"), @r"
    udp_rr · host · 1 B requests and responses (request/response over UDP)
             transactions
    path               /s  vs veth
    ──────────────────────────────
    veth         812 ±11%  base
    bridge              –  –
    macvlan        0       0× ≠
    Not measured: CPU cost.

    What the verdicts support, relative to veth
    - udp_rr · host: no path is shown to beat veth.

    Path proof passed for all 3 cells: the path's devices moved with the traffic, no other did.
    ");
}

#[test]
fn ipv6_over_a_shaped_wire() {
    let mut report = fixture::run();
    for (path, ratio) in [("veth", 1.0), ("macvlan", 1.001)] {
        for load in [LoadKind::TcpStream, LoadKind::TcpRr] {
            let name = if load.is_stream() {
                "goodput_bps"
            } else {
                "transactions_per_s"
            };
            let value = if load.is_stream() { 95.65e6 } else { 11_200.0 };
            let mut cell = fixture::cell(path, Peer::Far, load)
                .axes(|axes| {
                    axes.family = Family::V6;
                    axes.rate_bps = Some(Rate(Some(100_000_000)));
                    if !load.is_stream() {
                        axes.response_size_bytes = Some(1024);
                    }
                })
                .estimate(name, value * ratio, 0.002);
            if path != "veth" {
                cell = cell.verdict(name, ratio, 0.003, Some(Verdict::Equivalent));
            }
            report.cells.push(cell.build());
        }
    }
    insta::assert_snapshot!(text(&report), @r"
    All are as fast as veth within 2 %; what CPU time they cost is not known.

    Speed and CPU cost relative to veth
             tcp_stream   tcp_rr
    path     speed / CPU  speed / CPU
    ─────────────────────────────────
    veth     base         base
    macvlan  1.00= / –    1.00= / –

    ± half-width at 95 % confidence · = equivalent within ±2 %

    hopyard run: paths · 10 blocks × 0.3 s · 95 % confidence · seed 42 · compared with veth
    Linux 6.18.5 · AMD EPYC 7B13, 2 CPUs · under KVM · 2026-03-01T10:15:00Z
    every cell: 1 flow, TCP cubic, ends on different CPUs, IPv6, MTU 1500

    tcp_stream · far · 16 KiB messages · wire at 100 Mbit/s (bulk TCP, client to server)
                goodput
    path         Mbit/s  vs veth
    ────────────────────────────
    veth     95.7 ±0.2%  base
    macvlan  95.7 ±0.2%  1.00× =
    Not measured: CPU cost.

    tcp_rr · far · 1 B requests · 1 KiB responses · wire at 100 Mbit/s
             transactions
    path              k/s  vs veth
    ──────────────────────────────
    veth       11.2 ±0.2%  base
    macvlan    11.2 ±0.2%  1.00× =
    Not measured: CPU cost.

    What the verdicts support, relative to veth
    - tcp_stream · far: macvlan carries as much as veth.
    - tcp_rr · far: macvlan completes as much as veth.

    Path proof passed for all 4 cells: the path's devices moved with the traffic, no other did.
    ");
}

#[test]
fn names_from_outside_cannot_break_the_page() {
    let mut report = fixture::run();
    report.run.plan = "a\nb\u{1b}[2J".to_owned();
    report.run.environment.cpu_model = "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz ".repeat(2);
    report.cells = vec![
        fixture::cell("odd\npath", Peer::Local, LoadKind::TcpStream)
            .with(|cell| cell.status = CellStatus::Failed)
            .build(),
    ];
    fixture::warn(&mut report, WarningCode::Way, &"word ".repeat(60));
    let text = text(&report);
    assert!(!text.contains('\u{1b}'));
    insta::assert_snapshot!(text, @r"
    Nothing could be measured: the causes stand below.

    hopyard run: a b [2J · 10 blocks × 0.3 s · 95 % confidence · seed 42
    Linux 6.18.5
    Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz, 2 CPUs
    under KVM · 2026-03-01T10:15:00Z
    every cell: 1 flow, TCP cubic, ends on different CPUs, IPv4, MTU 1500

    tcp_stream · local · 16 KiB messages (bulk TCP, client to server)
    path
    ────────
    odd path  failed

    Warnings
    - the run: word word word word word word word word word word word word word word word word word word
      word word word word word word word word word word word word word word word word word word word
      word word word word word word word word word word word word word word word word word word word
      word word word word

    Without figures
    - odd path (tcp_stream · local) failed
    ");
}

#[test]
fn what_was_published_stands_beside_what_is_measured() {
    let mut report = fixture::paths();
    let figure = |path: &str, value| PublishedFigure {
        path: path.to_owned(),
        load: LoadKind::TcpStream,
        peer: None,
        called: format!("a {path}"),
        value,
        set: BTreeMap::new(),
        half_width: Some(0.5),
    };
    report.published = vec![Published {
        source: "A. Author, A title, somewhere, 2006".to_owned(),
        quantity: "cpu_ns_per_byte".to_owned(),
        what: "% of a CPU".to_owned(),
        remark: "Published is one CPU alone.".to_owned(),
        figures: vec![
            figure("veth", 50.0),
            figure("bridge", 60.0),
            figure("not measured here", 70.0),
        ],
    }];
    let text = text(&report);
    let block = from(&text, "As published").split("\n\n").next().unwrap();
    insta::assert_snapshot!(block, @r"
    As published: A. Author, A title, somewhere, 2006
                                                          published           measured here
    load        path               then called           % of a CPU  vs veth        ns/byte  vs veth
    ────────────────────────────────────────────────────────────────────────────────────────────────
    tcp_stream  veth               a veth               50.0 ±0.500   base      0.612 ±0.4%  base
    tcp_stream  bridge             a bridge             60.0 ±0.500  1.20×      0.676 ±1.2%  1.10× ≠
    tcp_stream  not measured here  a not measured here  70.0 ±0.500  1.40×                –  –
    Published is one CPU alone.
    ");
}

#[test]
fn what_a_filter_in_the_hub_sees() {
    let mut report = fixture::paths();
    report.cells.retain(|cell| cell.load == LoadKind::TcpRr);
    let said = |report: &RunReport| {
        let text = text(report);
        let filters = text
            .lines()
            .skip_while(|line| !line.starts_with("Packet filter"));
        filters.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(said(&report), "", "an old run says nothing");
    for cell in &mut report.cells {
        cell.filter_sees = Some(cell.path == "bridge-nf");
    }
    insta::assert_snapshot!(said(&report), @"Packet filter rules in the hub (nftables, iptables) see the traffic of bridge-nf (local); they do not see that of veth (local), bridge (local), macvlan (local), ipvlan (local), netkit (local).");
    report.cells.retain(|cell| cell.path == "veth");
    insta::assert_snapshot!(said(&report), @"Packet filter rules in the hub (nftables, iptables) see none of this: veth (local).");
}

/// `veth` has no cells with peer `far`, so that these are compared with another path.
#[test]
fn each_table_names_its_own_base() {
    const RATE: &str = "transactions_per_s";
    let cell = |path, peer| {
        let cell = fixture::cell(path, peer, LoadKind::TcpRr);
        cell.estimate(RATE, 13_000.0, 0.02)
    };
    let other = |peer| {
        let verdict = Some(Verdict::Different);
        cell("bridge", peer)
            .verdict(RATE, 0.9, 0.01, verdict)
            .build()
    };
    let mut report = fixture::run();
    report.cells = vec![
        cell("veth", Peer::Local).build(),
        other(Peer::Local),
        cell("native", Peer::Far).build(),
        other(Peer::Far),
    ];
    for verdict in report.cells[3].verdicts.values_mut() {
        verdict.base = "native".to_owned();
    }
    let text = text(&report);
    let far = from(&text, "tcp_rr · far");
    let local = from(&text, "tcp_rr · local");
    let local = &local[..local.find("tcp_rr · far").unwrap()];
    assert!(
        local.contains("vs veth") && !local.contains("native"),
        "{text}"
    );
    assert!(far.contains("vs native"), "{text}");
    let row = |table: &str, path: &str| {
        let row = table
            .lines()
            .find(|line| line.trim_start().starts_with(path));
        row.unwrap().contains("base")
    };
    assert!(row(local, "veth") && row(far, "native"), "{text}");
    let findings = from(&text, "What the verdicts support");
    assert!(
        findings.contains("no path is shown to beat native"),
        "{text}"
    );
    assert!(
        !findings.lines().next().unwrap().contains("relative"),
        "{text}"
    );
}
