use super::{fixture, from, page, text};
use crate::model::{
    CellReport, CellStatus, Datapath, DatapathKind, Hook, LatencyReport, LoadKind, Peer,
    WarningCode,
};

#[test]
fn failed_and_unsupported_cells_say_why() {
    let mut report = fixture::paths();
    let missing =
        "the kernel has no netkit support: build it with CONFIG_NETKIT or choose another path";
    for cell in report.cells.iter_mut().filter(|c| c.path == "netkit") {
        *cell = fixture::cell("netkit", cell.peer, cell.load)
            .unsupported(missing)
            .build();
    }
    report.cells[2] = fixture::cell("bridge-nf", Peer::Local, LoadKind::TcpStream)
        .failed("the receiver got nothing for 2 s:\n\u{1b}[31mcheck the rules of bridge br0")
        .build();
    report.cells.truncate(12);
    report.warnings.clear();
    insta::assert_snapshot!(text(&report), @r"
    7 of 7 comparisons are decided; the largest differences: macvlan (tcp_stream, local) is 12 % faster
    than veth, bridge-nf (tcp_rr, local) is 23 % slower than veth.

    Speed and CPU cost relative to veth
               tcp_stream     tcp_rr
    path       speed / CPU    speed / CPU
    ───────────────────────────────────────
    veth       base           base
    bridge     0.91≠ / 1.10≠  0.91≠ / 1.10≠
    bridge-nf  no figures     0.77≠ / 1.31≠
    macvlan    1.12≠ / 0.91≠  1.12≠ / 0.91≠
    ipvlan     1.12≠ / 0.90≠  1.12≠ / 0.90≠
    netkit     no figures     no figures

    ± half-width at 95 % confidence · ≠ different

    hopyard run: paths · 10 blocks × 0.3 s · 95 % confidence · seed 42 · compared with veth
    Linux 6.18.5 · AMD EPYC 7B13, 2 CPUs · under KVM · 2026-03-01T10:15:00Z
    every cell: 1 flow, TCP cubic, ends on different CPUs, IPv4, MTU 1500

    tcp_stream · local · 16 KiB messages (bulk TCP, client to server)
                  goodput               CPU cost             busy
    path           Gbit/s  vs veth       ns/byte  vs veth   cores
    ─────────────────────────────────────────────────────────────
    veth       21.4 ±0.4%  base      0.612 ±0.4%  base       1.64
    bridge     19.5 ±1.2%  0.912× ≠  0.676 ±1.2%  1.10×  ≠   1.64
    bridge-nf  failed: the receiver got nothing for 2 s: [31mcheck the rules of bridge br0
    macvlan    24.0 ±3.6%  1.12×  ≠  0.554 ±3.6%  0.905× ≠   1.64
    ipvlan     24.0 ±0.6%  1.12×  ≠  0.551 ±0.6%  0.899× ≠   1.64
    netkit     unsupported: the kernel has no netkit support: build it with CONFIG_NETKIT or choose ano…
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
    netkit     unsupported: the kernel has no netkit support: build it with CONFIG_NETKIT or choose ano…

    What the verdicts support, relative to veth
    - tcp_stream · local: macvlan carries the most, 1.12× (not told apart from ipvlan 1.12×); ipvlan
      costs the least CPU per byte, 0.899× (not told apart from macvlan 0.905×); bridge costs the most,
      1.10×.
    - tcp_rr · local: macvlan completes the most, 1.12× (not told apart from ipvlan 1.12×); ipvlan costs
      the least CPU per transaction, 0.899× (not told apart from macvlan 0.905×); bridge-nf costs the
      most, 1.31×.

    Without figures
    - bridge-nf (tcp_stream · local) failed: the receiver got nothing for 2 s: [31mcheck the rules of
      bridge br0
    - netkit (all its cells) unsupported: the kernel has no netkit support: build it with CONFIG_NETKIT
      or choose another path

    Path proof passed for all 9 cells with figures: the path's devices moved with the traffic, no other
    did.
    ");
}

#[test]
fn all_failed() {
    let mut report = fixture::run();
    report.cells = ["veth", "bridge"]
        .map(|path| {
            fixture::cell(path, Peer::Local, LoadKind::TcpRr)
                .failed("no memory")
                .build()
        })
        .to_vec();
    insta::assert_snapshot!(from(&text(&report), "tcp_rr"), @r"
    tcp_rr · local · 1 B requests and responses (request/response over a standing TCP connection)
    path
    ──────
    veth    failed: no memory
    bridge  failed: no memory

    Without figures
    - veth (tcp_rr · local) failed: no memory
    - bridge (tcp_rr · local) failed: no memory
    ");
}

#[test]
fn quick_look() {
    let mut report = fixture::paths();
    report.run.quick_look = true;
    report.run.blocks = 1;
    report.cells.truncate(3);
    report.warnings.clear();
    for cell in &mut report.cells {
        cell.estimates.values_mut().for_each(|e| e.n = 1);
        cell.verdicts.values_mut().for_each(|v| v.verdict = None);
    }
    insta::assert_snapshot!(text(&report), @r"
    Quick look: 1 block, no verdicts; at least 8 are needed.

    hopyard run: paths · 1 block × 0.3 s · 95 % confidence · seed 42 · compared with veth
    Linux 6.18.5 · AMD EPYC 7B13, 2 CPUs · under KVM · 2026-03-01T10:15:00Z
    every cell: 1 flow, TCP cubic, ends on different CPUs, IPv4, MTU 1500

    tcp_stream · local · 16 KiB messages (bulk TCP, client to server)
               goodput           CPU cost            busy
    path        Gbit/s  vs veth   ns/byte  vs veth  cores
    ─────────────────────────────────────────────────────
    veth         21.4   base       0.612   base      1.64
    bridge       19.5   0.912×     0.676   1.10×     1.64
    bridge-nf    16.4   0.767×     0.803   1.31×     1.64
    Zero everywhere: retransmits.
    Bytes per skb: 61400 everywhere.

    Path proof passed for all 3 cells: the path's devices moved with the traffic, no other did.
    ");
}

#[test]
fn cut_short() {
    let mut report = fixture::paths();
    report.run.complete = false;
    report.run.blocks = 4;
    report.cells.truncate(2);
    report.warnings.clear();
    insta::assert_snapshot!(text(&report), @r"
    bridge is 8.8 % slower than veth.

    hopyard run: paths · 4 blocks × 0.3 s · 95 % confidence · seed 42 · compared with veth
    Linux 6.18.5 · AMD EPYC 7B13, 2 CPUs · under KVM · 2026-03-01T10:15:00Z
    every cell: 1 flow, TCP cubic, ends on different CPUs, IPv4, MTU 1500

    Cut short after 4 blocks: the figures below are from those.

    tcp_stream · local · 16 KiB messages (bulk TCP, client to server)
               goodput               CPU cost            busy
    path        Gbit/s  vs veth       ns/byte  vs veth  cores
    ─────────────────────────────────────────────────────────
    veth    21.4 ±0.4%  base      0.612 ±0.4%  base      1.64
    bridge  19.5 ±1.2%  0.912× ≠  0.676 ±1.2%  1.10× ≠   1.64
    Zero everywhere: retransmits.
    Bytes per skb: 61400 everywhere.

    ± half-width at 95 % confidence · ≠ different

    What the verdicts support, relative to veth
    - tcp_stream · local: no path is shown to beat veth; none is shown to cost less CPU per byte; bridge
      costs the most, 1.10×.

    Path proof passed for both cells: the path's devices moved with the traffic, no other did.
    ");
}

#[test]
fn two_modes_and_unsettled_windows() {
    let mut report = fixture::paths();
    report.cells.truncate(6);
    report.warnings.clear();
    report.cells[1]
        .two_modes
        .insert("goodput_bps".into(), [12.1e9, 24.4e9]);
    report.cells[1]
        .estimates
        .insert("retransmits_per_s".into(), fixture::estimate(17.3, 0.4));
    report.cells[3].unsettled_samples = 3;
    report.cells[3].failed_samples = 1;
    report.cells[3].status = CellStatus::Failed;
    report.cells[3].cause = Some("the lab could not be built: device busy".to_owned());
    report.cells[4].way.proved = false;
    report.cells[4].way.problems = vec![
        "device ipvl0 in a sent 12 packets, expected 41 800 at least".to_owned(),
        "device lo in a moved 41 788 packets though it is not on the path".to_owned(),
    ];
    insta::assert_snapshot!(from(&text(&report), "tcp_stream"), @r"
    tcp_stream · local · 16 KiB messages (bulk TCP, client to server)
                  goodput                    CPU cost                  busy
    path           Gbit/s  vs veth            ns/byte  vs veth        cores
    ───────────────────────────────────────────────────────────────────────
    veth       21.4 ±0.4%  base           0.612 ±0.4%  base            1.64
    bridge ¹   19.5 ±1.2%  0.912× ≠       0.676 ±1.2%  1.10×  ≠        1.64
    bridge-nf  16.4 ±0.8%  0.767× ≠       0.803 ±0.8%  1.31×  ≠        1.64
    macvlan ²  24.0 ±3.6%  1.12×  ≠       0.554 ±3.6%  0.905× ≠        1.64
    ipvlan ³   24.0 ±0.6%  1.12×  ≠       0.551 ±0.6%  0.899× ≠        1.64
    netkit     21.5 ±1.6%  1.00×  ? 2.2%  0.609 ±1.6%  0.995× ? 2.2%   1.64
    ¹ bridge: goodput has two modes, 12.1 and 24.4 Gbit/s: the figure lies between them
    ² macvlan: 3 windows never settled; 1 sample failed: the lab could not be built: device busy
    ³ ipvlan: path proof failed, see below
    Retransmits: bridge 17.3 per second.
    Bytes per skb: 61400 everywhere.

    What the verdicts support, relative to veth
    - tcp_stream · local: macvlan carries the most, 1.12×; macvlan costs the least CPU per byte, 0.905×;
      bridge-nf costs the most, 1.31×.

    Path proof failed for 1 of 6 cells
    - ipvlan · tcp_stream · local: device ipvl0 in a sent 12 packets, expected 41 800 at least; device
      lo in a moved 41 788 packets though it is not on the path
    ");
}

#[test]
fn without_its_base_a_table_says_so() {
    let mut report = fixture::paths();
    report.warnings.clear();
    report.cells.truncate(8);
    report.cells[0] = fixture::cell("veth", Peer::Local, LoadKind::TcpStream)
        .failed("device busy")
        .build();
    for cell in &mut report.cells[..6] {
        cell.verdicts.clear();
    }
    report.cells.drain(2..6);
    insta::assert_snapshot!(from(&text(&report), "tcp_stream"), @r"
    tcp_stream · local · 16 KiB messages (bulk TCP, client to server)
               goodput     CPU cost   busy    bytes
    path        Gbit/s      ns/byte  cores  per skb
    ───────────────────────────────────────────────
    veth    failed: device busy
    bridge  19.5 ±1.2%  0.676 ±1.2%   1.64    61400
    Zero everywhere: retransmits.

    No comparison: veth has no figures here.

    tcp_rr · local · 1 B requests and responses (request/response over a standing TCP connection)
            transactions                  CPU cost           latency  latency   busy
    path             k/s  vs veth   µs/transaction  vs veth   p50 µs   p99 µs  cores
    ────────────────────────────────────────────────────────────────────────────────
    veth      13.1 ±1.0%  base          62.9 ±1.0%  base        71.9      132  0.826
    bridge    12.0 ±0.4%  0.912× ≠      69.4 ±0.4%  1.10× ≠     79.4      146  0.826

    What the verdicts support, relative to veth
    - tcp_rr · local: no path is shown to beat veth; none is shown to cost less CPU per transaction;
      bridge costs the most, 1.10×.

    Without figures
    - veth (tcp_stream · local) failed: device busy

    Path proof passed for all 3 cells with figures: the path's devices moved with the traffic, no other
    did.
    ");
}

/// A switch that uses another hook if it has many ports, and one with both hooks on request.
#[test]
fn who_forwarded_is_told_by_flows_where_they_decide() {
    let at = |hook| {
        Some(Datapath {
            switch: "the direct switch".to_owned(),
            version: String::new(),
            kind: DatapathKind::Kernel,
            hook: Some(hook),
        })
    };
    let forwarded = |asked: [(u32, Hook); 3]| {
        let mut report = fixture::paths();
        report.cells.truncate(3);
        for (cell, (flows, hook)) in report.cells.iter_mut().zip(asked) {
            cell.path = "direct".to_owned();
            cell.axes.flows = flows;
            cell.datapath = at(hook);
        }
        let words: Vec<_> = text(&report)
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        words.join(" ")
    };
    let (tcx, clsact) = (Hook::Tcx, Hook::Clsact);
    for (asked, wanted) in [
        (
            [(1, tcx), (10, tcx), (100, clsact)],
            "direct with 1, 10 flows: the direct switch at tcx hooks. \
             direct with 100 flows: the direct switch at clsact hooks.",
        ),
        (
            [(1, tcx), (1, clsact), (10, tcx)],
            "direct: the direct switch at tcx hooks. direct: the direct switch at clsact hooks.",
        ),
        (
            [(1, tcx), (10, tcx), (100, tcx)],
            "direct: the direct switch at tcx hooks.",
        ),
    ] {
        let text = forwarded(asked);
        assert!(text.contains(wanted), "`{wanted}` is missing: {text}");
    }
}

#[test]
fn no_format_for_people_shows_the_code_of_a_warning() {
    let all = schemars::schema_for!(WarningCode).to_value();
    let codes: Vec<String> = all["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|code| code["const"].as_str().unwrap().to_owned())
        .collect();
    assert!(codes.len() > 25, "{all:#}");
    let mut report = fixture::paths();
    report.warnings.clear();
    for code in &codes {
        let code = serde_json::from_value(code.as_str().into()).unwrap();
        fixture::warn(&mut report, code, &format!("It is about {}.", code.words()));
    }
    let json = page(&report, "json");
    for format in ["text", "markdown", "html", "netperf"] {
        let page = page(&report, format);
        for code in &codes {
            assert!(json.contains(&format!("\"code\": \"{code}\"")), "{code}");
            // Codes of one word may occur in sentences.
            if code.contains('_') {
                assert!(!page.contains(code.as_str()), "{format}: {code}");
            }
            let is_prose = ["text", "markdown"].contains(&format);
            assert!(
                !(is_prose && page.contains(&format!("{code}:"))),
                "{format}: {code}"
            );
        }
    }
}

#[test]
fn what_few_paths_have_or_nobody_has_is_a_note() {
    let mut report = fixture::paths();
    report.cells.truncate(6);
    let told = |cell: &mut CellReport, name: &str, value| {
        let estimate = fixture::estimate(value, 0.1);
        cell.estimates.insert(name.to_owned(), estimate);
    };
    told(&mut report.cells[3], "queue_changes_per_flow_per_s", 0.31);
    told(&mut report.cells[3], "queues_in_use", 1.98);
    told(&mut report.cells[0], "retransmits_per_s", 2.0);
    told(&mut report.cells[4], "retransmits_per_s", 235.0);
    told(&mut report.cells[2], "guest_steal_ratio", 0.0);
    told(&mut report.cells[5], "bytes_per_skb", 1440.0);
    let table = text(&report);
    let table = from(&table, "tcp_stream").split("\n\n").next().unwrap();
    insta::assert_snapshot!(table, @"
    tcp_stream · local · 16 KiB messages (bulk TCP, client to server)
                  goodput                    CPU cost                  busy    bytes
    path           Gbit/s  vs veth            ns/byte  vs veth        cores  per skb
    ────────────────────────────────────────────────────────────────────────────────
    veth       21.4 ±0.4%  base           0.612 ±0.4%  base            1.64    61400
    bridge     19.5 ±1.2%  0.912× ≠       0.676 ±1.2%  1.10×  ≠        1.64    61400
    bridge-nf  16.4 ±0.8%  0.767× ≠       0.803 ±0.8%  1.31×  ≠        1.64    61400
    macvlan    24.0 ±3.6%  1.12×  ≠       0.554 ±3.6%  0.905× ≠        1.64    61400
    ipvlan     24.0 ±0.6%  1.12×  ≠       0.551 ±0.6%  0.899× ≠        1.64    61400
    netkit     21.5 ±1.6%  1.00×  ? 2.2%  0.609 ±1.6%  0.995× ? 2.2%   1.64     1440
    Retransmits: veth 2.00, ipvlan 235 per second.
    Queue changes of a flow: macvlan 0.310 /s.
    Queues in use: macvlan 1.98.
    ");
    // If most have it, it is a column.
    for cell in &mut report.cells[..4] {
        told(cell, "queue_changes_per_flow_per_s", 0.31);
        told(cell, "retransmits_per_s", 0.0);
    }
    told(&mut report.cells[4], "retransmits_per_s", 0.0);
    let table = text(&report);
    let table = from(&table, "tcp_stream").split("\n\n").next().unwrap();
    insta::assert_snapshot!(table, @"
    tcp_stream · local · 16 KiB messages (bulk TCP, client to server)
                  goodput                    CPU cost                  busy    bytes  queue changes
    path           Gbit/s  vs veth            ns/byte  vs veth        cores  per skb       /flow /s
    ───────────────────────────────────────────────────────────────────────────────────────────────
    veth       21.4 ±0.4%  base           0.612 ±0.4%  base            1.64    61400          0.310
    bridge     19.5 ±1.2%  0.912× ≠       0.676 ±1.2%  1.10×  ≠        1.64    61400          0.310
    bridge-nf  16.4 ±0.8%  0.767× ≠       0.803 ±0.8%  1.31×  ≠        1.64    61400          0.310
    macvlan    24.0 ±3.6%  1.12×  ≠       0.554 ±3.6%  0.905× ≠        1.64    61400          0.310
    ipvlan     24.0 ±0.6%  1.12×  ≠       0.551 ±0.6%  0.899× ≠        1.64    61400           –
    netkit     21.5 ±1.6%  1.00×  ? 2.2%  0.609 ±1.6%  0.995× ? 2.2%   1.64     1440           –
    Queues in use: macvlan 1.98.
    Zero everywhere: retransmits.
    ");
}

/// A time limit makes blocks short. The report says how long they were, and which paths have no 99th percentile for that reason.
#[test]
fn short_blocks_are_told_and_what_they_are_too_short_for() {
    let mut report = fixture::paths();
    report.cells.retain(|cell| cell.load == LoadKind::TcpRr);
    assert!(text(&report).contains("10 blocks × 0.3 s ·"));
    let times = LatencyReport {
        count: 9000,
        min_ns: 60_000,
        max_ns: 200_000,
        quantiles: vec![(0.5, 72_000), (0.99, 132_000)],
        classes: vec![(250_000.0, 9000)],
    };
    for (cell, window_s) in report.cells.iter_mut().zip([0.04, 0.05, 0.28]) {
        cell.latency = Some(times.clone());
        cell.window_s = Some(window_s);
    }
    for path in ["bridge", "macvlan"] {
        let cell = report.cells.iter_mut().find(|cell| cell.path == path);
        cell.unwrap().estimates.remove("latency_p99_ns");
    }
    let told = text(&report);
    let short = "10 blocks × 0.04 to 0.28 s (0.3 s asked for)";
    assert!(told.contains(short), "{told}");
    // No latency of macvlan was measured at all, so its blocks were not too short.
    assert!(
        told.contains("No latency p99 for bridge: it takes 1000"),
        "{told}"
    );
    for cell in &mut report.cells {
        cell.estimates.remove("latency_p99_ns");
        cell.latency = Some(times.clone());
    }
    assert!(text(&report).contains("No latency p99: it takes 1000"));
    report.cells.iter_mut().for_each(|cell| cell.latency = None);
    assert!(!text(&report).contains("No latency p99"));
}
