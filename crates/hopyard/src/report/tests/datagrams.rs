use super::{fixture, from, text};
use crate::model::{CellReport, LoadKind, Peer, RunReport};
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

    ± half-width at 95 % confidence · ≠ different

    What the verdicts support, relative to veth
    - udp_flood · local: no path is shown to beat veth.

    The way was proved for both cells: every device on it moved with the traffic, no other did.
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

    The way was proved for all 4 cells: every device on it moved with the traffic, no other did.
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
            .estimate("jitter_pdv_ns", 41_000.0 * slower, 0.3)
            .estimate("receiver_busy_ratio", 0.04, 0.02)
            .estimate("receiver_dropped_ratio", 0.0125, 0.02)
    };
    let bridge = cell("bridge", 1.1).verdict("latency_p50_ns", 1.1, 0.03, Some(Verdict::Different));
    let report = report(vec![cell("veth", 1.0).build(), bridge.build()]);
    insta::assert_snapshot!(from(&text(&report), "udp_paced"), @"
    udp_paced · local · 1400 B messages
               goodput  packets  loss     CPU cost     latency           latency       PDV  receiver
    path        Mbit/s      k/s     %    ns/packet      p50 µs  vs veth   p99 µs  p99.9 µs    busy %
    ────────────────────────────────────────────────────────────────────────────────────────────────
    veth    100 ±<0.1%     8.93     0  21000 ±2.0%  31.0 ±2.0%  base        99.0      41.0      4.00
    bridge  100 ±<0.1%     8.93     0  23100 ±2.0%  34.1 ±2.0%  1.10× ≠    109        45.1      4.00

            receiver
    path     drops %
    ────────────────
    veth        1.25
    bridge      1.25

    ± half-width at 95 % confidence · ≠ different

    The way was proved for both cells: every device on it moved with the traffic, no other did.
    ");
}
