use super::{fixture, from, page, text};
use crate::model::{
    CellReport, FunctionCost, LoadKind, Peer, ProfileDifference, ProfileReport, RunReport,
    SubsystemCost, SubsystemDifference,
};
use crate::stats::Estimate;

fn around(value: f64, half: f64) -> Estimate {
    Estimate {
        value,
        low: value - half,
        high: value + half,
        confidence: 0.95,
        n: 8,
    }
}

fn subsystem(name: &str, share_ratio: f64, cost: f64, functions: &[(&str, f64)]) -> SubsystemCost {
    SubsystemCost {
        name: name.to_owned(),
        share_ratio,
        cost: around(cost, cost * 0.08),
        functions: functions
            .iter()
            .map(|(name, cost)| FunctionCost {
                name: (*name).to_owned(),
                cost: *cost,
            })
            .collect(),
    }
}

fn profiled(path: &str, whole: f64, subsystems: Vec<SubsystemCost>) -> CellReport {
    fixture::cell(path, Peer::Local, LoadKind::UdpStream)
        .estimate("goodput_bps", 4.1e9, 0.01)
        .estimate("cpu_ns_per_packet", whole, 0.02)
        .with(|cell| {
            cell.profile = Some(ProfileReport {
                quantity: "cpu_ns_per_packet".to_owned(),
                windows: 10,
                thin_windows: 0,
                window_s: 0.5,
                frequency_hz: 997,
                busy_samples: 3912,
                idle_samples: 4000,
                elsewhere_samples: 3,
                lost_samples: 0,
                subsystems,
                difference: None,
            });
        })
        .build()
}

fn bridges() -> RunReport {
    let mut report = fixture::run();
    let bridge = vec![
        subsystem(
            "udp",
            0.6,
            2400.0,
            &[("udp_sendmsg", 1400.0), ("udp_rcv", 1000.0)],
        ),
        subsystem("bridge", 0.4, 1600.0, &[("br_handle_frame", 1600.0)]),
    ];
    let filtered = vec![
        subsystem("udp", 0.5, 2500.0, &[("udp_sendmsg", 2500.0)]),
        subsystem("bridge", 0.3, 1500.0, &[("br_handle_frame", 1500.0)]),
        subsystem(
            "netfilter",
            0.2,
            1000.0,
            &[("nf_hook_slow", 612.3), ("br_nf_pre_routing", 387.7)],
        ),
    ];
    report.cells.push(profiled("bridge", 4000.0, bridge));
    let mut cell = profiled("bridge-nf", 5000.0, filtered);
    let part = |name: &str, value, half| SubsystemDifference {
        name: name.to_owned(),
        cost: around(value, half),
    };
    if let Some(profile) = &mut cell.profile {
        profile.lost_samples = 12;
        profile.thin_windows = 2;
        profile.windows = 7;
        profile.difference = Some(ProfileDifference {
            base: "bridge".to_owned(),
            total: around(1000.0, 63.0),
            subsystems: vec![
                part("netfilter", 1000.0, 41.0),
                part("udp", 100.0, 25.0),
                part("bridge", -100.0, 121.0),
            ],
        });
    }
    report.cells.push(cell);
    report
}

#[test]
fn what_each_subsystem_costs_and_what_netfilter_adds() {
    let text = text(&bridges());
    insta::assert_snapshot!(from(&text, "Where the CPU time goes"), @r"
    Where the CPU time goes: udp_stream · local · 1400 B messages
                      bridge  bridge-nf
    subsystem      ns/packet  ns/packet
    ───────────────────────────────────
    udp            2400 ±190  2500 ±200
    bridge         1600 ±130  1500 ±120
    netfilter         0       1000  ±80
    sum: measured  4000  ±80  5000 ±100
    Sampled at 997 Hz per CPU in 10 windows of 0.5 s beside the measured ones; busy samples: bridge
      3912.
    Sampled at 997 Hz per CPU in 7 windows of 0.5 s beside the measured ones; busy samples: bridge-nf
      3912.
    bridge-nf: 12 samples lost; 2 windows with too few busy samples to say much; 3 blocks without a
      profile, split as the others

    - bridge-nf adds 1000 ±63 ns/packet to bridge: netfilter +1000 ±41, udp +100 ±25, bridge −100 ±120

    The costliest functions, ns/packet
    - bridge: udp (udp_sendmsg 1400, udp_rcv 1000); bridge (br_handle_frame 1600)
    - bridge-nf: udp (udp_sendmsg 2500); bridge (br_handle_frame 1500); netfilter (nf_hook_slow 612,
      br_nf_pre_routing 388)

    ± half-width at 95 % confidence

    Path proof passed for both cells: the path's devices moved with the traffic, no other did.
    ");
}

#[test]
fn markdown_has_the_same() {
    let text = page(&bridges(), "markdown");
    assert!(text.contains("| sum: measured |"), "{text}");
    assert!(
        text.contains("## Where the CPU time goes: udp_stream"),
        "{text}"
    );
}

#[test]
fn a_sweep_has_a_section_for_each_value() {
    let mut report = bridges();
    for mut cell in bridges().cells {
        cell.axes.message_size_bytes = Some(64);
        report.cells.push(cell);
    }
    let text = text(&report);
    assert_eq!(text.matches("Where the CPU time goes").count(), 2, "{text}");
    assert!(text.contains("64 B messages"), "{text}");
}

#[test]
fn less_is_said_as_less_and_foreign_names_are_tamed() {
    let mut report = bridges();
    let profile = report.cells[1].profile.as_mut().unwrap();
    let difference = profile.difference.as_mut().unwrap();
    difference.total = around(-300.0, 20.0);
    profile.subsystems[0].name = "u\u{1b}[31m\ndp".to_owned();
    let text = text(&report);
    assert!(
        text.contains("bridge-nf takes 300 ±20 ns/packet off bridge"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn a_sum_stays_below_what_is_sorted() {
    let html = page(&bridges(), "html");
    let below = html.split("<tfoot>").nth(1).unwrap();
    let below = &below[..below.find("</tfoot>").unwrap()];
    assert!(below.contains("sum: measured"), "{below}");
    assert_eq!(below.matches("<tr>").count(), 1);
}

#[test]
fn parts_of_a_bar_can_be_told_apart_without_colour() {
    let mut report = bridges();
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    for cell in &mut report.cells {
        let parts = names.iter().map(|name| subsystem(name, 0.1, 400.0, &[]));
        cell.profile.as_mut().unwrap().subsystems = parts.collect();
    }
    let html = page(&report, "html");
    let picture = html
        .split("<figure>")
        .find(|f| f.contains("CPU cost by subsystem"));
    let picture = picture.unwrap().split("</figure>").next().unwrap();
    let has = |text: &str| {
        picture
            .split(['<', '>'])
            .filter(|part| part.trim() == text)
            .count()
    };
    for (entry, number) in [("1 a", "1"), ("7 g", "7"), ("8 3 others", "8")] {
        assert_eq!(has(entry), 1, "{entry}");
        assert_eq!(has(number), 2, "in both bars: {number}");
    }
    // No two parts have the same hue, and none is fainter than in the legend.
    for hue in 0..8 {
        let fill = format!("fill=\"var(--h{hue})\"");
        assert_eq!(picture.matches(&fill).count(), 3, "{fill}");
    }
    assert!(!picture.contains("opacity"));
}
