//! Tables as a terminal shows them.

use super::{evidence, file, of_plan, stored, text};
use crate::fixture::cell;
use crate::model::{CellReport, LoadKind, Peer, Switch};
use crate::stats::Verdict;

/// Two columns of offloads, ratios to the base, and the threads that were not measured.
#[test]
fn a_table_of_columns() {
    let mut report = of_plan("namespace-switching-2014", "veth");
    let flows = |path: &str, flows: u32, offload: Switch, goodput: f64| {
        cell(path, Peer::Local, LoadKind::TcpStream)
            .axes(|axes| {
                axes.flows = flows;
                axes.offload = Some(offload);
            })
            .estimate("goodput_bps", goodput, 0.01)
            .estimate("efficiency_bps_per_ghz", goodput / 5.0, 0.02)
    };
    report.cells = vec![
        flows("veth", 1, Switch::On, 37.8e9).build(),
        flows("veth", 1, Switch::Off, 4.1e9).build(),
        flows("veth", 2, Switch::On, 48.1e9).build(),
        flows("bridge-nf", 1, Switch::On, 30.2e9)
            .verdict("goodput_bps", 0.799, 0.01, Some(Verdict::Different))
            .verdict("cpu_ns_per_byte", 1.25, 0.02, Some(Verdict::Different))
            .build(),
        flows("bridge-nf", 1, Switch::Off, 2.99e9)
            .verdict("goodput_bps", 0.729, 0.005, Some(Verdict::Different))
            .build(),
    ];
    let (file, run) = (file("namespace-switching-2014"), stored());
    let title = "Linux 3.13.0.24, Open vSwitch 2.0.1 (Ubuntu 14.04)";
    insta::assert_snapshot!(text(&evidence(&file, &report, &run), title), @r"
    Linux 3.13.0.24, Open vSwitch 2.0.1 (Ubuntu 14.04) (first table of the article)
                                                  offloads on                   offloads on
                                                       Gbit/s                    Gbit/s/GHz
    connection                    threads  print         here  same?     print         here  same?
    ────────────────────────────────────────────────────────────────────────────────────────────────
    veth                          1        37.8    37.8 ±1.0%  = 1.00×    6.3    7.56 ±2.0%  ≠ 1.20×
    veth                          2        65.0    48.1 ±1.0%  ≠ 0.740×   5.4    9.62 ±2.0%  ≠ 1.78×
    veth                          4        54.6             –  ²          4.4             –  ²
    veth                          8        40.7             –  ³          3.2             –  ³
    veth                          16       37.4             –  ⁴          2.9             –  ⁴
    bridge and veth               1        33.3    30.2 ±1.0%  ≠ 0.907×   5.5    6.04 ±2.0%  ≠ 1.10×
    bridge and veth               2        54.3             –  ⁵          4.4             –  ⁵
    bridge and veth               4        43.9             –  ²          3.4             –  ²
    bridge and veth               8        32.1             –  ³          2.5             –  ³
    bridge and veth               16       34.0             –  ⁴          2.6             –  ⁴
    Open vSwitch and veth         1        35.0             –  ⁶          5.9             –  ⁶
    Open vSwitch and veth         2        51.5             –  ⁶          4.2             –  ⁶
    Open vSwitch and veth         4        47.3             –  ⁶          3.8             –  ⁶
    Open vSwitch and veth         8        36.0             –  ⁶          2.8             –  ⁶
    Open vSwitch and veth         16       36.5             –  ⁶          2.8             –  ⁶
    Open vSwitch, internal ports  1        37.0             –  ⁷          6.2             –  ⁷
    Open vSwitch, internal ports  2        65.6             –  ⁷          5.5             –  ⁷
    Open vSwitch, internal ports  4        74.3             –  ⁷          5.7             –  ⁷
    Open vSwitch, internal ports  8        74.3             –  ⁷          5.7             –  ⁷
    Open vSwitch, internal ports  16       73.4             –  ⁷          5.6             –  ⁷

                                                  offloads off
                                                        Gbit/s
    connection                    threads  print          here  same?
    ───────────────────────────────────────────────────────────────────
    veth                          1         3.7     4.10 ±1.0%  ≠ 1.11×
    veth                          2         7.9              –  ¹
    veth                          4        11.0              –  ²
    veth                          8        11.4              –  ³
    veth                          16       11.7              –  ⁴
    bridge and veth               1         2.7     2.99 ±1.0%  ≠ 1.11×
    bridge and veth               2         5.6              –  ⁵
    bridge and veth               4         6.9              –  ²
    bridge and veth               8         7.9              –  ³
    bridge and veth               16        7.9              –  ⁴
    Open vSwitch and veth         1         3.2              –  ⁶
    Open vSwitch and veth         2         6.7              –  ⁶
    Open vSwitch and veth         4         8.7              –  ⁶
    Open vSwitch and veth         8         7.5              –  ⁶
    Open vSwitch and veth         16        9.4              –  ⁶
    Open vSwitch, internal ports  1         3.3              –  ⁷
    Open vSwitch, internal ports  2         6.4              –  ⁷
    Open vSwitch, internal ports  4         6.3              –  ⁷
    Open vSwitch, internal ports  8        10.9              –  ⁷
    Open vSwitch, internal ports  16       12.6              –  ⁷
    ¹ this combination is not in this run
    ² flows=4 is not in this run
    ³ flows=8 is not in this run
    ⁴ flows=16 is not in this run
    ⁵ flows=2 is not in this run
    ⁶ ovs-veth is not in this run
    ⁷ ovs-internal is not in this run
    Offloads: tso, gso, lro and gro together. The article's divisor of efficiency is the CPU in use, as
      here.

    The same over veth: Linux 3.13.0.24, Open vSwitch 2.0.1 (Ubuntu 14.04)
                                                     offloads on                   offloads on
                                                          Gbit/s                    Gbit/s/GHz
    connection                    threads    print          here  same?    print          here  same?
    ─────────────────────────────────────────────────────────────────────────────────────────────────
    bridge and veth               1        0.881×   0.799× ±1.0%  ≠      0.873×   0.800× ±2.0%  ≠
    bridge and veth               2        0.835×              –  ¹      0.815×              –  ¹
    bridge and veth               4        0.804×              –  ²      0.773×              –  ²
    bridge and veth               8        0.789×              –  ³      0.781×              –  ³
    bridge and veth               16       0.909×              –  ⁴      0.897×              –  ⁴
    Open vSwitch and veth         1        0.926×              –  ⁵      0.937×              –  ⁵
    Open vSwitch and veth         2        0.792×              –  ⁵      0.778×              –  ⁵
    Open vSwitch and veth         4        0.866×              –  ⁵      0.864×              –  ⁵
    Open vSwitch and veth         8        0.885×              –  ⁵      0.875×              –  ⁵
    Open vSwitch and veth         16       0.976×              –  ⁵      0.966×              –  ⁵
    Open vSwitch, internal ports  1        0.979×              –  ⁶      0.984×              –  ⁶
    Open vSwitch, internal ports  2        1.01×               –  ⁶      1.02×               –  ⁶
    Open vSwitch, internal ports  4        1.36×               –  ⁶      1.30×               –  ⁶
    Open vSwitch, internal ports  8        1.83×               –  ⁶      1.78×               –  ⁶
    Open vSwitch, internal ports  16       1.96×               –  ⁶      1.93×               –  ⁶

                                                    offloads off
                                                          Gbit/s
    connection                    threads    print          here  same?
    ───────────────────────────────────────────────────────────────────
    bridge and veth               1        0.730×   0.729× ±0.5%  =
    bridge and veth               2        0.709×              –  ¹
    bridge and veth               4        0.627×              –  ²
    bridge and veth               8        0.693×              –  ³
    bridge and veth               16       0.675×              –  ⁴
    Open vSwitch and veth         1        0.865×              –  ⁵
    Open vSwitch and veth         2        0.848×              –  ⁵
    Open vSwitch and veth         4        0.791×              –  ⁵
    Open vSwitch and veth         8        0.658×              –  ⁵
    Open vSwitch and veth         16       0.803×              –  ⁵
    Open vSwitch, internal ports  1        0.892×              –  ⁶
    Open vSwitch, internal ports  2        0.810×              –  ⁶
    Open vSwitch, internal ports  4        0.573×              –  ⁶
    Open vSwitch, internal ports  8        0.956×              –  ⁶
    Open vSwitch, internal ports  16       1.08×               –  ⁶
    ¹ flows=2 is not in this run
    ² flows=4 is not in this run
    ³ flows=8 is not in this run
    ⁴ flows=16 is not in this run
    ⁵ ovs-veth is not in this run
    ⁶ ovs-internal is not in this run
    ");
}

fn datagrams(path: &str, factor: f64) -> CellReport {
    cell(path, Peer::Far, LoadKind::UdpStream)
        .axes(|axes| axes.message_size_bytes = Some(1400))
        .estimate("goodput_bps", 954.0e6 * factor, 0.001)
        .estimate("sent_bps", 961.0e6 * factor, 0.001)
        .estimate("packets_per_s", 85_000.0 * factor, 0.001)
        .estimate("busy_cores", 1.1, 0.05)
        .estimate("cpu_ns_per_byte", 9.0 / factor, 0.06)
        .build()
}

/// netperf's lines, with separate rows for sender and receiver of datagrams.
#[test]
fn a_table_of_lines() {
    let mut report = of_plan("netns-macvlan-2007", "native");
    report.cells = vec![datagrams("native", 1.0), datagrams("veth-route", 0.97)];
    let (file, run) = (file("netns-macvlan-2007"), stored());
    let title = "Namespace behind an etun pair, IP routing: UDP_STREAM";
    insta::assert_snapshot!(text(&evidence(&file, &report, &run), title), @r"
    Namespace behind an etun pair, IP routing: UDP_STREAM (attachment
    netperf-results-2.6.22-rc4-mm2-netns1-using-etun.txt)
                   Socket  Message  Elapsed       Messages  Messages                     CPU     Service
                     Size     Size     Time           Okay    Errors  Throughput        Util      Demand
    end             bytes    bytes    secs.              #         #  10^6bits/s        % SS       us/KB
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    local   print  110592     1400    40.00       12981742         0      3634.7       25.64       8.801
            here        –     1400      0.3  3330000 ±0.1%         –   932 ±0.1%  55.0 ±5.0%  9.50 ±6.0%
            same?       ¹        =        ≠       ≠ 0.256×         ²    ≠ 0.256×     ≠ 2.15×     ≠ 1.08×
    remote  print  107520             40.00        3409123                 954.5          -1          -1
            here        –               0.3  3300000 ±0.1%             925 ±0.1%           –           –
            same?       ¹                 ≠       ≠ 0.967×              ≠ 0.969×           ³           ³
    ¹ left to the kernel; hopyard sets none
    ² the run did not measure send errors
    ³ in the local column, which has both ends and all between
    The first line is of the sender, the second of the receiver. Demand: for each kilobyte that arrived.
    Messages: what the rates here come to in as many seconds as the printed test took.
    Where both ends are on one machine, CPU and demand are of both and all between, in the local
      columns.

    The same over native: Namespace behind an etun pair, IP routing: UDP_STREAM
                   Messages                CPU  Service
                       Okay  Throughput   Util   Demand
    end                   #  10^6bits/s   % SS    us/KB
    ───────────────────────────────────────────────────
    local   print     7.63×       3.81×  3.75×    3.74×
            here          –           –      –        –
            same?         ¹           ¹      ¹        ¹
    remote  print     2.00×       1.00×
            here          –           –
            same?         ¹           ¹
    ¹ fewer than two blocks have both it and native
    ");
}

#[test]
fn percent_and_what_it_comes_to() {
    let mut report = of_plan("netback-direct-2006", "bridge-nf");
    let paced = |path: &str, load, cores: f64| {
        cell(path, Peer::Far, load)
            .axes(|axes| axes.pace_bps = Some(crate::model::Rate(Some(940_000_000))))
            .estimate("busy_cores", cores, 0.004)
            .estimate("cpu_ns_per_byte", cores * 8.51, 0.004)
    };
    report.cells = vec![
        paced("bridge-nf", LoadKind::TcpMaerts, 0.85).build(),
        paced("bridge", LoadKind::TcpMaerts, 0.71)
            .verdict("cpu_ns_per_byte", 0.84, 0.02, Some(Verdict::Different))
            .build(),
        paced("direct", LoadKind::TcpMaerts, 0.62)
            .verdict("cpu_ns_per_byte", 0.73, 0.02, Some(Verdict::Different))
            .build(),
    ];
    for cell in &mut report.cells {
        for verdict in cell.verdicts.values_mut() {
            "bridge-nf".clone_into(&mut verdict.base);
        }
    }
    let (file, run) = (file("netback-direct-2006"), stored());
    let title = "CPU of dom0, mean and half-width of the 99 % interval";
    insta::assert_snapshot!(text(&evidence(&file, &report, &run), title), @r"
    CPU of dom0, mean and half-width of the 99 % interval (table 1)
                                                   CPU of dom0
                                                             %
    direction  switching                    print         here  same?
    ────────────────────────────────────────────────────────────────────
    receive    bridge, netfilter on   85.00 ±0.38   85.0 ±0.4%  = 1.00×
    receive    bridge, netfilter off  73.97 ±0.23   71.0 ±0.4%  ≠ 0.960×
    receive    netback switching      72.17 ±0.56   62.0 ±0.4%  ≠ 0.859×
    transmit   bridge, netfilter on   77.13 ±0.49            –  ¹
    transmit   bridge, netfilter off  68.86 ±0.73            –  ²
    transmit   netback switching      66.34 ±0.52            –  ³

                                                       derived
                                                       ns/byte
    direction  switching                     print        here  same?
    ────────────────────────────────────────────────────────────────────
    receive    bridge, netfilter on   7.234 ±0.032  7.23 ±0.4%  = 1.00×
    receive    bridge, netfilter off  6.295 ±0.020  6.04 ±0.4%  ≠ 0.960×
    receive    netback switching      6.142 ±0.048  5.28 ±0.4%  ≠ 0.859×
    transmit   bridge, netfilter on   6.564 ±0.042           –  ¹
    transmit   bridge, netfilter off  5.860 ±0.062           –  ²
    transmit   netback switching      5.646 ±0.044           –  ³
    ¹ bridge-nf tcp_stream far is not in this run
    ² bridge tcp_stream far is not in this run
    ³ direct tcp_stream far is not in this run
    Here it is the CPU of the whole path, both ends of the connection included, in percent of one CPU:
      differences weigh less. Ratios to the bridge compare.
    ns/byte of print is derived: its percentage at 940 Mbit/s.

    The same over bridge-nf: CPU of dom0, mean and half-width of the 99 % interval
                                                      CPU of dom0
                                                                %
    direction  switching                       print         here  same?
    ────────────────────────────────────────────────────────────────────
    receive    bridge, netfilter off  0.870× ±0.0047            –  ¹
    receive    netback switching      0.849× ±0.0076            –  ¹
    transmit   bridge, netfilter off  0.893×  ±0.011            –  ²
    transmit   netback switching      0.860× ±0.0087            –  ³

                                                           derived
                                                           ns/byte
    direction  switching                       print          here  same?
    ─────────────────────────────────────────────────────────────────────
    receive    bridge, netfilter off  0.870× ±0.0047  0.840× ±2.0%  ≠
    receive    netback switching      0.849× ±0.0076  0.730× ±2.0%  ≠
    transmit   bridge, netfilter off  0.893×  ±0.011             –  ²
    transmit   netback switching      0.860× ±0.0087             –  ³
    ¹ fewer than two blocks have both it and bridge-nf
    ² bridge tcp_stream far is not in this run
    ³ direct tcp_stream far is not in this run
    ");
}
