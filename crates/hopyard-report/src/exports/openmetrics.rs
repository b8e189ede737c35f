//! OpenMetrics text, for a collector that reads files or scrapes a server of them: estimates and their intervals as
//! gauges, verdicts as state sets.
//!
//! Names and units are those of the document; a name ends with its unit, as the specification requires.

use std::collections::BTreeSet;

use super::{Export, Writer};
use crate::fields::{axes, axis_columns, number};
use crate::model::{CellReport, CellStatus, RunReport, VerdictReport};
use crate::openmetrics::{Label, Page};
use crate::stats::{Estimate, Verdict};

pub(super) static EXPORT: Export = Export {
    name: "openmetrics",
    title: "OpenMetrics",
    summary: "Estimates and verdicts in the text format that Prometheus and its like read",
    extension: "prom",
    ..Export::of_runs(Writer::Text(|report, _| Ok(render(report))))
};

/// All families, each with its samples, and the end mark.
fn render(report: &RunReport) -> String {
    let mut page = Page::default();
    run(&mut page, report);
    page.family(
        "hopyard_cell_ok",
        "gauge",
        "",
        "1 where every sample of the cell gave figures, else 0",
    );
    for cell in &report.cells {
        page.sample(
            "hopyard_cell_ok",
            &labels(cell),
            truth(cell.status == CellStatus::Ok),
        );
    }
    page.family(
        "hopyard_way_proved",
        "gauge",
        "",
        "1 where every sample has a path proof, else 0",
    );
    for cell in report.cells.iter().filter(|cell| cell.is_measured()) {
        page.sample("hopyard_way_proved", &labels(cell), truth(cell.way.proved));
    }
    let names: BTreeSet<&String> = report
        .cells
        .iter()
        .flat_map(|cell| cell.estimates.keys())
        .collect();
    for name in names {
        for (part, what, of) in PARTS {
            let family = format!("hopyard_{part}{name}");
            page.family(&family, "gauge", unit(name), &format!("{what} {name}"));
            // As in exports for other tools: traffic that went another way is not of the path that its labels name.
            for cell in report.cells.iter().filter(|cell| !cell.is_unproved()) {
                if let Some(estimate) = cell.estimates.get(name) {
                    page.sample(&family, &labels(cell), &number(of(estimate)));
                }
            }
        }
    }
    verdicts(&mut page, report);
    page.finish()
}

type Part = (&'static str, &'static str, fn(&Estimate) -> f64);

/// An estimate and the ends of its interval.
const PARTS: [Part; 3] = [
    ("", "Estimate of", |e| e.value),
    ("low_", "Lower end of the interval of", |e| e.low),
    ("high_", "Upper end of the interval of", |e| e.high),
];

fn run(page: &mut Page, report: &RunReport) {
    let (run, env) = (&report.run, &report.run.environment);
    let about = [
        ("id", run.id.as_str()),
        ("plan", &run.plan),
        ("started", &run.started),
        ("kernel", &env.kernel_release),
        ("cpu", &env.cpu_model),
        ("hopyard_version", &env.hopyard_version),
    ];
    let about: Vec<Label> = about.map(|(name, value)| (name, value.to_owned())).into();
    // Collectors that know the older text format only take no `info` and no `stateset`, and then nothing of the file.
    page.family(
        "hopyard_run_info",
        "gauge",
        "",
        "The run all samples are of",
    );
    page.sample("hopyard_run_info", &about, "1");
    for (name, help, value) in [
        ("hopyard_blocks", "Complete blocks", f64::from(run.blocks)),
        (
            "hopyard_confidence_ratio",
            "Confidence of every interval",
            run.confidence,
        ),
        (
            "hopyard_window_seconds",
            "Length of a measured window",
            run.window_s,
        ),
    ] {
        page.family(name, "gauge", unit(name), help);
        page.sample(name, &[], &number(value));
    }
}

/// Ratios to the base, and their verdicts.
fn verdicts(page: &mut Page, report: &RunReport) {
    let compared = || {
        report.cells.iter().flat_map(|cell| {
            let own = cell.verdicts.iter();
            own.map(move |(name, verdict)| (compared_labels(cell, name, verdict), verdict))
        })
    };
    for (part, what, of) in PARTS {
        let family = format!("hopyard_{part}versus_base_ratio");
        page.family(&family, "gauge", "ratio", &format!("{what} cell over base"));
        for (labels, verdict) in compared() {
            page.sample(&family, &labels, &number(of(&verdict.ratio)));
        }
    }
    page.family(
        "hopyard_verdict",
        "gauge",
        "",
        "What the comparison with the base came to; absent where it came to no verdict",
    );
    let verdicts = compared().filter_map(|(labels, report)| Some((labels, report.verdict?)));
    for (labels, found) in verdicts {
        for (state, verdict) in STATES {
            let mut labels = labels.clone();
            labels.push(("hopyard_verdict", state.to_owned()));
            page.sample("hopyard_verdict", &labels, truth(found == verdict));
        }
    }
}

const STATES: [(&str, Verdict); 3] = [
    ("different", Verdict::Different),
    ("equivalent", Verdict::Equivalent),
    ("inconclusive", Verdict::Inconclusive),
];

fn truth(so: bool) -> &'static str {
    if so { "1" } else { "0" }
}

/// The unit at the end of a name; empty for plain counts.
fn unit(name: &str) -> &str {
    const UNITS: [&str; 12] = [
        "ns_per_byte",
        "ns_per_packet",
        "ns_per_transaction",
        "bps_per_core",
        "bps_per_ghz",
        "bps_per_cpu_percent",
        "bps",
        "per_s",
        "ns",
        "seconds",
        "ratio",
        "packets",
    ];
    let ends = |unit: &&str| {
        name.strip_suffix(unit)
            .is_some_and(|start| start.ends_with('_'))
    };
    UNITS.into_iter().find(ends).unwrap_or("")
}

/// The labels that distinguish a cell.
fn labels(cell: &CellReport) -> Vec<Label> {
    let fixed = [
        ("path", cell.path.clone()),
        ("peer", cell.peer.to_string()),
        ("load", cell.load.to_string()),
    ];
    let axes = axis_columns().zip(axes(&cell.axes));
    fixed
        .into_iter()
        .chain(axes.filter_map(|(name, value)| Some((name, value.text()?))))
        .collect()
}

fn compared_labels(cell: &CellReport, name: &str, verdict: &VerdictReport) -> Vec<Label> {
    let mut labels = labels(cell);
    labels.push(("quantity", name.to_owned()));
    labels.push(("base", verdict.base.clone()));
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::model::{LoadKind, Peer};

    #[test]
    fn names_end_in_their_unit() {
        for (name, expected) in [
            ("goodput_bps", "bps"),
            ("cpu_ns_per_byte", "ns_per_byte"),
            ("latency_p99_ns", "ns"),
            ("transactions_per_s", "per_s"),
            ("lost_ratio", "ratio"),
            ("efficiency_bps_per_core", "bps_per_core"),
            ("queues_in_use", ""),
            ("bytes_per_skb", ""),
        ] {
            assert_eq!(unit(name), expected, "{name}");
        }
    }

    #[test]
    fn no_verdict_is_no_state() {
        let mut report = fixture::run();
        report.cells = vec![
            fixture::cell("bridge", Peer::Far, LoadKind::UdpRr)
                .estimate("transactions_per_s", 13_000.5, 0.02)
                .verdict("transactions_per_s", 1.1, 0.02, None)
                .build(),
        ];
        let page = render(&report);
        assert!(page.contains("\nhopyard_versus_base_ratio{"), "{page}");
        assert!(!page.contains("\nhopyard_verdict{"), "{page}");
    }

    #[test]
    fn families() {
        let mut report = fixture::run();
        report.run.plan = "a \"plan\"\\\nof two lines".to_owned();
        report.cells = vec![
            fixture::cell("bridge", Peer::Far, LoadKind::UdpRr)
                .estimate("transactions_per_s", 13_000.5, 0.02)
                .verdict("transactions_per_s", 1.1, 0.02, Some(Verdict::Different))
                .build(),
            fixture::cell("netkit", Peer::Local, LoadKind::TcpRr)
                .failed("no")
                .build(),
        ];
        insta::assert_snapshot!(render(&report), @r#"
        # TYPE hopyard_run_info gauge
        # HELP hopyard_run_info The run all samples are of
        hopyard_run_info{id="20260301T101500Z-paths",plan="a \"plan\"\\\nof two lines",started="2026-03-01T10:15:00Z",kernel="6.18.5",cpu="AMD EPYC 7B13",hopyard_version="0.1.0"} 1
        # TYPE hopyard_blocks gauge
        # HELP hopyard_blocks Complete blocks
        hopyard_blocks 10
        # TYPE hopyard_confidence_ratio gauge
        # UNIT hopyard_confidence_ratio ratio
        # HELP hopyard_confidence_ratio Confidence of every interval
        hopyard_confidence_ratio 0.95
        # TYPE hopyard_window_seconds gauge
        # UNIT hopyard_window_seconds seconds
        # HELP hopyard_window_seconds Length of a measured window
        hopyard_window_seconds 0.3
        # TYPE hopyard_cell_ok gauge
        # HELP hopyard_cell_ok 1 where every sample of the cell gave figures, else 0
        hopyard_cell_ok{path="bridge",peer="far",load="udp_rr",flows="1",request_size_bytes="1",response_size_bytes="1",placement="split",family="4",mtu_bytes="1500",rate_bps="none"} 1
        hopyard_cell_ok{path="netkit",peer="local",load="tcp_rr",flows="1",request_size_bytes="1",response_size_bytes="1",congestion="cubic",placement="split",family="4",mtu_bytes="1500"} 0
        # TYPE hopyard_way_proved gauge
        # HELP hopyard_way_proved 1 where every sample has a path proof, else 0
        hopyard_way_proved{path="bridge",peer="far",load="udp_rr",flows="1",request_size_bytes="1",response_size_bytes="1",placement="split",family="4",mtu_bytes="1500",rate_bps="none"} 1
        # TYPE hopyard_transactions_per_s gauge
        # UNIT hopyard_transactions_per_s per_s
        # HELP hopyard_transactions_per_s Estimate of transactions_per_s
        hopyard_transactions_per_s{path="bridge",peer="far",load="udp_rr",flows="1",request_size_bytes="1",response_size_bytes="1",placement="split",family="4",mtu_bytes="1500",rate_bps="none"} 13000.5
        # TYPE hopyard_low_transactions_per_s gauge
        # UNIT hopyard_low_transactions_per_s per_s
        # HELP hopyard_low_transactions_per_s Lower end of the interval of transactions_per_s
        hopyard_low_transactions_per_s{path="bridge",peer="far",load="udp_rr",flows="1",request_size_bytes="1",response_size_bytes="1",placement="split",family="4",mtu_bytes="1500",rate_bps="none"} 12740.49
        # TYPE hopyard_high_transactions_per_s gauge
        # UNIT hopyard_high_transactions_per_s per_s
        # HELP hopyard_high_transactions_per_s Upper end of the interval of transactions_per_s
        hopyard_high_transactions_per_s{path="bridge",peer="far",load="udp_rr",flows="1",request_size_bytes="1",response_size_bytes="1",placement="split",family="4",mtu_bytes="1500",rate_bps="none"} 13260.51
        # TYPE hopyard_versus_base_ratio gauge
        # UNIT hopyard_versus_base_ratio ratio
        # HELP hopyard_versus_base_ratio Estimate of cell over base
        hopyard_versus_base_ratio{path="bridge",peer="far",load="udp_rr",flows="1",request_size_bytes="1",response_size_bytes="1",placement="split",family="4",mtu_bytes="1500",rate_bps="none",quantity="transactions_per_s",base="veth"} 1.1
        # TYPE hopyard_low_versus_base_ratio gauge
        # UNIT hopyard_low_versus_base_ratio ratio
        # HELP hopyard_low_versus_base_ratio Lower end of the interval of cell over base
        hopyard_low_versus_base_ratio{path="bridge",peer="far",load="udp_rr",flows="1",request_size_bytes="1",response_size_bytes="1",placement="split",family="4",mtu_bytes="1500",rate_bps="none",quantity="transactions_per_s",base="veth"} 1.078
        # TYPE hopyard_high_versus_base_ratio gauge
        # UNIT hopyard_high_versus_base_ratio ratio
        # HELP hopyard_high_versus_base_ratio Upper end of the interval of cell over base
        hopyard_high_versus_base_ratio{path="bridge",peer="far",load="udp_rr",flows="1",request_size_bytes="1",response_size_bytes="1",placement="split",family="4",mtu_bytes="1500",rate_bps="none",quantity="transactions_per_s",base="veth"} 1.122
        # TYPE hopyard_verdict gauge
        # HELP hopyard_verdict What the comparison with the base came to; absent where it came to no verdict
        hopyard_verdict{path="bridge",peer="far",load="udp_rr",flows="1",request_size_bytes="1",response_size_bytes="1",placement="split",family="4",mtu_bytes="1500",rate_bps="none",quantity="transactions_per_s",base="veth",hopyard_verdict="different"} 1
        hopyard_verdict{path="bridge",peer="far",load="udp_rr",flows="1",request_size_bytes="1",response_size_bytes="1",placement="split",family="4",mtu_bytes="1500",rate_bps="none",quantity="transactions_per_s",base="veth",hopyard_verdict="equivalent"} 0
        hopyard_verdict{path="bridge",peer="far",load="udp_rr",flows="1",request_size_bytes="1",response_size_bytes="1",placement="split",family="4",mtu_bytes="1500",rate_bps="none",quantity="transactions_per_s",base="veth",hopyard_verdict="inconclusive"} 0
        # EOF
        "#);
    }
}
