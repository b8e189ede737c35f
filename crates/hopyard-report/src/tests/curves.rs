use std::collections::BTreeMap;

use super::{fixture, from, page, text};
use crate::model::{
    Axes, Containers, CurveReport, FullInterval, LoadKind, Peer, QuantityCurve, RunReport,
    Saturation, SeriesReport, Settling, StepReport,
};
use crate::stats::{Knee, Slopes, Straight};

fn axes(kind: Containers, flows: u32) -> Axes {
    let axes = Axes {
        containers: Some(kind),
        flows,
        ..Axes::default()
    };
    axes.for_cell(LoadKind::UdpFlood, Peer::Far, &["containers"])
}

fn quantity(first: f64, last: f64, change: f64, knee: Option<f64>) -> QuantityCurve {
    let estimate = fixture::estimate;
    let slopes = |at| Knee {
        at: estimate(at, 0.1),
        slopes: Slopes {
            before: estimate(first / 10.0, 0.1),
            after: estimate(last / 10.0, 0.1),
            after_minus_twice_before: estimate(1.0, 0.1),
        },
        p: 0.002,
        is_shown: true,
    };
    QuantityCurve {
        values: vec![1.0, 8.0, 32.0],
        estimates: vec![
            estimate(first, 0.01),
            estimate(last, 0.02),
            estimate(last, 0.02),
        ],
        over_first: Vec::new(),
        exponent: Some(estimate((last / first).ln() / 32f64.ln(), 0.1)),
        line: Straight {
            slope: estimate(1.0, 0.1),
            intercept: estimate(1.0, 0.1),
            r_squared: Some(estimate(0.87, 0.1)),
        },
        step: Some(StepReport {
            from: 8.0,
            to: 32.0,
            change: estimate(change, 0.1),
            is_leap: (change - 1.0).abs() > 0.4,
        }),
        knee: knee.map(slopes),
    }
}

fn curve(kind: Containers, first_full: Option<f64>) -> CurveReport {
    let mut quantities = BTreeMap::new();
    quantities.insert(
        "packets_per_s".to_owned(),
        quantity(1.1e5, 1.1e5, 1.0, None),
    );
    quantities.insert(
        "client_cpu_busy_ratio".to_owned(),
        quantity(0.45, 1.0, 0.55, None),
    );
    quantities.insert(
        "interarrival_sd_ns".to_owned(),
        quantity(2e5, 3e6, 3.0, Some(12.0)),
    );
    CurveReport {
        path: "macvlan".to_owned(),
        peer: Peer::Far,
        load: LoadKind::UdpFlood,
        axis: "flows".to_owned(),
        axes: axes(kind, 1),
        values: vec![1.0, 8.0, 32.0],
        client_cpus_full: Some(Saturation {
            last_not_full: Some(32.0),
            first_full,
            interval: Some(FullInterval {
                low: Some(8.0),
                high: None,
            }),
            most_busy_ratio: 0.93,
        }),
        cpus_full: None,
        quantities,
    }
}

fn report() -> RunReport {
    let mut report = fixture::run();
    for kind in [Containers::Native, Containers::Own] {
        for flows in [1, 8, 32] {
            let cell = fixture::cell("macvlan", Peer::Far, LoadKind::UdpFlood)
                .axes(|own| *own = axes(kind, flows))
                .estimate("packets_per_s", 1.1e5, 0.01);
            report.cells.push(cell.build());
        }
    }
    let mut own = curve(Containers::Own, Some(1.0));
    if let Some(full) = &mut own.client_cpus_full {
        full.last_not_full = None;
        full.interval = None;
    }
    report.curves = vec![curve(Containers::Native, None), own];
    report
}

#[test]
fn curves_for_people() {
    insta::assert_snapshot!(from(&text(&report()), "Against"), @"
    Against flows: udp_flood · far
    containers  client's CPUs full               all CPUs full
    ──────────────────────────────────────────────────────────
    native      not up to 32 (93%) [8 to never]  –
    own         from 1 on                        –

    packets in k/s
    containers  at 1  at 32    grows as    R²  largest change  knee
    ───────────────────────────────────────────────────────────────
    native       110    110  0.00 ±0.00  0.87  8→32 ×1.00      –
    own          110    110  0.00 ±0.00  0.87  8→32 ×1.00      –

    client's CPUs busy in %
    containers  at 1  at 32    grows as    R²  largest change           knee
    ────────────────────────────────────────────────────────────────────────
    native      45.0    100  0.23 ±0.02  0.87  8→32 +55 points, a leap  –
    own         45.0    100  0.23 ±0.02  0.87  8→32 +55 points, a leap  –

    jitter (sd of gaps) in ms
    containers   at 1  at 32    grows as    R²  largest change      knee
    ─────────────────────────────────────────────────────────────────────────────
    native      0.200   3.00  0.78 ±0.08  0.87  8→32 ×3.00, a leap  12 [11 to 13]
    own         0.200   3.00  0.78 ±0.08  0.87  8→32 ×3.00, a leap  12 [11 to 13]
    Full: not idle for 99 % of the time or more. In brackets the interval at 95 % confidence, where it
      is wider.
    Grows as: the e of quantity ∝ countᵉ, so 1 is in proportion, 0 independent, -1 an equal share for
      each. R²: how much of it a straight line accounts for.
    Largest change: between two neighbours. It is a leap where it is at 95 % confidence more than 40
      points of a share, and of anything else more than a factor of 1.5 and more than the count's own.
      Knee: where two straight lines meet, if they fit better than one at that confidence, with its
      interval.

    ± half-width at 95 % confidence

    Path proof passed for all 6 cells: the path's devices moved with the traffic, no other did.
    ");
}

#[test]
fn jitter_over_time_for_people() {
    let mut report = report();
    report.curves.clear();
    for (i, cell) in report.cells.iter_mut().enumerate() {
        cell.series = Some(SeriesReport {
            interval_s: 5.0,
            traffic_before_s: 0.0,
            packets_per_s: vec![1e5; 120],
            interarrival_sd_ns: (0..120)
                .map(|at| Some(if at < 10 { 5e6 } else { 1.2e6 }))
                .collect(),
            interarrival_sd_interval_ns: Vec::new(),
            jitter_rfc3550_ns: vec![None; 120],
            settling: Some(Settling {
                settled_samples: [8, 3, 0][i % 3],
                samples: 8,
                time_s: (i % 3 == 0).then(|| fixture::estimate(52.5, 0.1)),
            }),
        });
    }
    insta::assert_snapshot!(from(&text(&report), "Jitter from"), @"
    Jitter from the start of the traffic
                                ms in the  ms in the  settled
    flows  containers  path     first 5 s   last 5 s  (steps of 5 s)
    ─────────────────────────────────────────────────────────────────────────────
        1      native  macvlan       5.00       1.20  after 52.5 s (47.2 to 57.8)
        8      native  macvlan       5.00       1.20  3 of 8 times within 600 s
       32      native  macvlan       5.00       1.20  not within 600 s
        1         own  macvlan       5.00       1.20  after 52.5 s (47.2 to 57.8)
        8         own  macvlan       5.00       1.20  3 of 8 times within 600 s
       32         own  macvlan       5.00       1.20  not within 600 s
    Settled: from then on within 10 % of its final value, the median of the last quarter. Jitter:
      standard deviation of the time between two arrivals of the same flow, all flows together.

    ± half-width at 95 % confidence

    Path proof passed for all 6 cells: the path's devices moved with the traffic, no other did.
    ");
}

#[test]
fn curves_in_markdown_are_tables() {
    let markdown = page(&report(), "markdown");
    assert!(
        markdown.contains("## Against flows: udp_flood · far"),
        "{markdown}"
    );
    assert!(markdown.contains("| containers"), "{markdown}");
}

/// The pictures of a page as text: titles and descriptions.
fn pictures(report: &RunReport) -> String {
    let html = page(report, "html");
    let figures = html.split("<figcaption>").skip(1);
    let told = figures.map(|figure| {
        let title = &figure[..figure.find('<').unwrap()];
        let about = figure.split("<desc").nth(1).unwrap();
        let about = &about[about.find('>').unwrap() + 1..about.find("</desc>").unwrap()];
        format!("{title}\n  {}", about.replace("; ", "\n  "))
    });
    told.collect::<Vec<_>>().join("\n")
}

#[test]
fn pictures_show_what_the_tables_say() {
    let mut report = report();
    let full = report.curves[0].client_cpus_full.as_mut().unwrap();
    (full.last_not_full, full.first_full) = (Some(8.0), Some(32.0));
    full.most_busy_ratio = 1.0;
    // Drawn against the count, so not with the cells again.
    let cost = quantity(9000.0, 12_000.0, 1.2, None);
    report.curves[0]
        .quantities
        .insert("cpu_ns_per_packet".to_owned(), cost);
    insta::assert_snapshot!(pictures(&report), @"
    goodput
      In bit/s. containers native by flows: 1 none, 8 none, 32 none
      containers own by flows: 1 none, 8 none, 32 none.
    packets
      In k/s. containers native by flows: 1 110 (109 to 111), 8 110 (108 to 112), 32 110 (108 to 112)
      containers own by flows: 1 110 (109 to 111), 8 110 (108 to 112), 32 110 (108 to 112)
      full of containers native: between 8 and 32 [8 to never]
      full of containers own: from 1 on.
    client's CPUs busy
      In %. containers native by flows: 1 45.0 (44.5 to 45.5), 8 100 (98.0 to 102), 32 100 (98.0 to 102)
      containers own by flows: 1 45.0 (44.5 to 45.5), 8 100 (98.0 to 102), 32 100 (98.0 to 102)
      full of containers native: between 8 and 32 [8 to never]
      leap of containers native: 8→32 +55 points, a leap
      full of containers own: from 1 on
      leap of containers own: 8→32 +55 points, a leap.
    CPU cost
      In ns/packet. containers native by flows: 1 9000 (8910 to 9090), 8 12000 (11800 to 12200), 32 12000 (11800 to 12200)
      full of containers native: between 8 and 32 [8 to never].
    jitter (sd of gaps)
      In ms. containers native by flows: 1 0.200 (0.198 to 0.202), 8 3.00 (2.94 to 3.06), 32 3.00 (2.94 to 3.06)
      containers own by flows: 1 0.200 (0.198 to 0.202), 8 3.00 (2.94 to 3.06), 32 3.00 (2.94 to 3.06)
      full of containers native: between 8 and 32 [8 to never]
      leap of containers native: 8→32 ×3.00, a leap
      knee of containers native: 12 [11 to 13]
      full of containers own: from 1 on
      leap of containers own: 8→32 ×3.00, a leap
      knee of containers own: 12 [11 to 13].
    ");
}

#[test]
fn a_picture_for_each_setting_and_a_line_for_each_mode() {
    let mut report = report();
    for bytes in [64, 1024] {
        for kind in [Containers::Native, Containers::Own] {
            let mut curve = curve(kind, None);
            curve.axes.message_size_bytes = Some(bytes);
            report.curves.push(curve);
            let cell = fixture::cell("macvlan", Peer::Far, LoadKind::UdpFlood).axes(|own| {
                *own = axes(kind, 1);
                own.message_size_bytes = Some(bytes);
            });
            report.cells.push(cell.build());
        }
    }
    report.curves.drain(..2);
    report.cells.drain(..6);
    let told = pictures(&report);
    let is_of_size = |line: &&str| line.starts_with("packets · ");
    let titles: Vec<&str> = told.lines().filter(is_of_size).collect();
    assert_eq!(
        titles,
        ["packets · 64 B messages", "packets · 1 KiB messages"]
    );
    assert!(
        told.contains("containers native by flows: 1 110 (109 to 111)"),
        "{told}"
    );
}

#[test]
fn jitter_over_time_in_a_picture() {
    let mut report = report();
    report.curves.clear();
    for cell in &mut report.cells {
        cell.series = Some(SeriesReport {
            interval_s: 5.0,
            traffic_before_s: 0.0,
            packets_per_s: vec![1e5; 3],
            interarrival_sd_ns: vec![Some(5e6), None, Some(1e6)],
            interarrival_sd_interval_ns: vec![Some((4e6, 6e6)), None, Some((-1e5, 2.1e6))],
            jitter_rfc3550_ns: vec![None; 3],
            settling: Some(Settling {
                settled_samples: 8,
                samples: 8,
                time_s: Some(fixture::estimate(12.0, 0.1)),
            }),
        });
    }
    let told = pictures(&report);
    insta::assert_snapshot!(from(&told, "jitter"), @"
    jitter (sd of gaps) · 1 flow
      In ms. containers native by s from the start of the traffic: 5 5.00 (4.00 to 6.00), 10 none, 15 1.00 (0 to 2.10)
      containers own by s from the start of the traffic: 5 5.00 (4.00 to 6.00), 10 none, 15 1.00 (0 to 2.10)
      settled of containers native: after 12.0 s (10.8 to 13.2)
      settled of containers own: after 12.0 s (10.8 to 13.2).
    jitter (sd of gaps) · 8 flows
      In ms. containers native by s from the start of the traffic: 5 5.00 (4.00 to 6.00), 10 none, 15 1.00 (0 to 2.10)
      containers own by s from the start of the traffic: 5 5.00 (4.00 to 6.00), 10 none, 15 1.00 (0 to 2.10)
      settled of containers native: after 12.0 s (10.8 to 13.2)
      settled of containers own: after 12.0 s (10.8 to 13.2).
    jitter (sd of gaps) · 32 flows
      In ms. containers native by s from the start of the traffic: 5 5.00 (4.00 to 6.00), 10 none, 15 1.00 (0 to 2.10)
      containers own by s from the start of the traffic: 5 5.00 (4.00 to 6.00), 10 none, 15 1.00 (0 to 2.10)
      settled of containers native: after 12.0 s (10.8 to 13.2)
      settled of containers own: after 12.0 s (10.8 to 13.2).
    ");
}
