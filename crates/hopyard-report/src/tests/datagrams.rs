use super::{fixture, from, text};
use crate::model::{CellReport, LoadKind, Peer, RunReport, SearchFor};
use crate::stats::Verdict;

fn flood(path: &str, flows: u32, slower: f64) -> CellReport {
    let one = f64::from(flows);
    let mut cell = fixture::cell(path, Peer::Local, LoadKind::UdpFlood)
        .axes(|axes| {
            axes.flows = flows;
            axes.message_size_bytes = Some(64);
        })
        .estimate("goodput_bps", 131e6 / slower, 0.02)
        .estimate("packets_per_s", 256_000.0 / slower, 0.02)
        .estimate("lost_ratio", 0.0002, 0.3)
        .estimate("cpu_ns_per_packet", 3100.0 * slower, 0.01)
        .estimate("jitter_pdv_ns", 1800.0 * one, 0.1)
        .estimate("reordered_ratio", 0.0, 0.0)
        .estimate("receiver_busy_ratio", 0.561, 0.02)
        .estimate("receiver_dropped_ratio", 0.0, 0.0);
    if flows > 1 {
        cell = cell.estimate("run_length_p50_packets", 1080.0 / slower, 0.02);
    }
    if path != "veth" {
        cell = cell.verdict("goodput_bps", 1.0 / slower, 0.03, Some(Verdict::Different));
    }
    cell.build()
}

fn report(cells: Vec<CellReport>) -> RunReport {
    let mut report = fixture::run();
    report.cells = cells;
    report
}

#[test]
fn a_flood() {
    let report = report(vec![flood("veth", 4, 1.0), flood("bridge", 4, 1.25)]);
    insta::assert_snapshot!(from(&text(&report), "udp_flood"), @"
    udp_flood · local · 64 B messages
              goodput            packets    loss    CPU cost     run       PDV  receiver
    path       Mbit/s  vs veth       k/s       %   ns/packet  length  p99.9 µs    busy %
    ────────────────────────────────────────────────────────────────────────────────────
    veth    131 ±2.0%  base          256  0.0200  3100 ±1.0%    1080      7.20      56.1
    bridge  105 ±2.0%  0.800× ≠      205  0.0200  3880 ±1.0%     864      7.20      56.1
    Zero everywhere: reordered, receiver dropped.

    ± half-width at 95 % confidence · ≠ different

    What the verdicts support, relative to veth
    - udp_flood · local: no path is shown to beat veth.

    Path proof passed for both cells: the path's devices moved with the traffic, no other did.
    ");
}

#[test]
fn a_flood_by_its_senders() {
    let cells = [1, 32].map(|flows| [flood("veth", flows, 1.0), flood("bridge", flows, 1.25)]);
    let report = report(cells.into_iter().flatten().collect());
    insta::assert_snapshot!(from(&text(&report), "udp_flood"), @"
    udp_flood · local · 64 B messages
    goodput in Mbit/s        veth
                flows      (base)       bridge
    ──────────────────────────────────────────
                    1  131 ±2.0%   105 ±2.0% ≠
                   32  131 ±2.0%   105 ±2.0% ≠

    CPU cost in ns/packet         veth
                    flows       (base)       bridge
    ───────────────────────────────────────────────
                        1  3100 ±1.0%   3880 ±1.0%
                       32  3100 ±1.0%   3880 ±1.0%

    loss in %     veth
        flows   (base)   bridge
    ───────────────────────────
            1  0.0200   0.0200
           32  0.0200   0.0200

    PDV (p99.9) in µs         veth
                flows       (base)       bridge
    ───────────────────────────────────────────
                    1   1.80 ±10%    1.80 ±10%
                   32  57.6  ±10%   57.6  ±10%

    run length (median) in packets         veth
                             flows       (base)      bridge
    ───────────────────────────────────────────────────────
                                 1            –           –
                                32  1080 ±2.0%   864 ±2.0%

    ± half-width at 95 % confidence · ≠ different

    What the verdicts support, relative to veth
    - udp_flood · local · 1 flow; udp_flood · local · 32 flows: no path is shown to beat veth.

    Path proof passed for all 4 cells: the path's devices moved with the traffic, no other did.
    ");
}

#[test]
fn a_search() {
    let cell = |path, slower: f64| {
        fixture::cell(path, Peer::Local, LoadKind::UdpPaced)
            .axes(|axes| {
                axes.pace_bps = None;
                axes.search = Some(SearchFor::NDR);
            })
            .estimate("throughput_packets_per_s", 151_000.0 / slower, 0.02)
            .estimate("throughput_bps", 1.69e9 / slower, 0.02)
            .estimate("throughput_lower_packets_per_s", 151_000.0 / slower, 0.02)
            .estimate("throughput_upper_packets_per_s", 152_000.0 / slower, 0.02)
            .estimate("search_trials", 11.5, 0.1)
            .estimate("goodput_bps", 1.69e9 / slower, 0.02)
            .estimate("cpu_ns_per_packet", 7_000.0 * slower, 0.02)
            .estimate("latency_p99_ns", 99_000.0 * slower, 0.2)
            .estimate("receiver_busy_ratio", 0.5, 0.02)
    };
    let (main, different) = ("throughput_packets_per_s", Some(Verdict::Different));
    let bridge = cell("bridge", 1.25).verdict(main, 0.8, 0.03, different);
    let direct = cell("direct", 0.9).verdict(main, 1.11, 0.03, different);
    let report = report(vec![
        cell("veth", 1.0).build(),
        bridge.build(),
        direct.build(),
    ]);
    insta::assert_snapshot!(from(&text(&report), "udp_paced"), @"
    udp_paced · local · 1400 B messages
            throughput            throughput  lower  upper            CPU cost  latency  receiver
    path           k/s  vs veth       Gbit/s    k/s    k/s  trials   ns/packet   p99 µs    busy %
    ─────────────────────────────────────────────────────────────────────────────────────────────
    veth     151 ±2.0%  base            1.69    151    152    11.5  7000 ±2.0%     99.0      50.0
    bridge   121 ±2.0%  0.800× ≠        1.35    121    122    11.5  8750 ±2.0%    124        50.0
    direct   168 ±2.0%  1.11×  ≠        1.88    168    169    11.5  6300 ±2.0%     89.1      50.0

    What the verdicts support, relative to veth
    - udp_paced · local: direct carries the most within its loss, 1.11×.

    Path proof passed for all 3 cells: the path's devices moved with the traffic, no other did.
    ");
}

#[test]
fn an_open_loop() {
    let cell = |path, slower: f64| {
        fixture::cell(path, Peer::Local, LoadKind::UdpPaced)
            .estimate("goodput_bps", 100e6, 0.0001)
            .estimate("packets_per_s", 8929.0, 0.0001)
            .estimate("lost_ratio", 0.0, 0.0)
            .estimate("cpu_ns_per_packet", 21_000.0 * slower, 0.02)
            .estimate("latency_p50_ns", 31_000.0 * slower, 0.02)
            .estimate("latency_p99_ns", 99_000.0 * slower, 0.2)
            .estimate("latency_p999_ns", 199_000.0 * slower, 0.2)
            .estimate("latency_max_ns", 1_990_000.0 * slower, 0.2)
            .estimate("jitter_pdv_ns", 41_000.0 * slower, 0.3)
            .estimate("receiver_busy_ratio", 0.04, 0.02)
            .estimate("receiver_dropped_ratio", 0.0125, 0.02)
    };
    let bridge = cell("bridge", 1.1).verdict("latency_p99_ns", 1.1, 0.03, Some(Verdict::Different));
    let report = report(vec![cell("veth", 1.0).build(), bridge.build()]);
    insta::assert_snapshot!(from(&text(&report), "udp_paced"), @"
    udp_paced · local · 1400 B messages
               latency           latency   latency  latency  packets     CPU cost       PDV  receiver
    path        p99 µs  vs veth   p50 µs  p99.9 µs   max ms      k/s    ns/packet  p99.9 µs    busy %
    ─────────────────────────────────────────────────────────────────────────────────────────────────
    veth     99.0 ±20%  base        31.0       199     1.99     8.93  21000 ±2.0%      41.0      4.00
    bridge  109   ±20%  1.10× ≠     34.1       219     2.19     8.93  23100 ±2.0%      45.1      4.00

            receiver
    path     drops %
    ────────────────
    veth        1.25
    bridge      1.25
    Zero everywhere: loss.

    ± half-width at 95 % confidence · ≠ different

    What the verdicts support, relative to veth
    - udp_paced · local: no path is shown to beat veth.

    Path proof passed for both cells: the path's devices moved with the traffic, no other did.
    ");
}
