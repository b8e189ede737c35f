use std::collections::BTreeMap;

use super::{fixture, from, page, text};
use crate::model::{
    Candidate, Choice, Feature, LoadKind, NoCandidate, Recommendation, RunReport, VerdictReport,
};
use crate::stats::Verdict;

pub(super) fn versus(
    base: &str,
    quantity: &str,
    ratio: f64,
    verdict: Verdict,
) -> (String, VerdictReport) {
    let report = VerdictReport {
        base: base.to_owned(),
        ratio: fixture::estimate(ratio, 0.02),
        verdict: Some(verdict),
        smallest_detectable: Some(0.05),
        trips_gate: None,
        gate_catches_ratio: None,
    };
    (quantity.to_owned(), report)
}

pub(super) fn candidate(
    report: &RunReport,
    path: &str,
    versus: Vec<(String, VerdictReport)>,
) -> Candidate {
    let is_own = |c: &&crate::model::CellReport| c.path == path && c.load == LoadKind::TcpStream;
    let cell = report.cells.iter().find(is_own).unwrap();
    Candidate {
        path: path.to_owned(),
        axes: cell.axes.clone(),
        figure: cell.estimates["goodput_bps"].clone(),
        cost: cell.estimates.get("cpu_ns_per_byte").cloned(),
        versus: versus.into_iter().collect::<BTreeMap<_, _>>(),
    }
}

/// A run whose recommendation has these paths for its stream.
pub(super) fn recommended(
    change: impl FnOnce(&RunReport, &mut Choice),
    needs: &[Feature],
    conditions: &[&str],
) -> RunReport {
    let mut report = fixture::paths();
    report.cells.retain(|cell| cell.load == LoadKind::TcpStream);
    let first = &report.cells[0];
    let mut choice = Choice {
        peer: first.peer,
        load: first.load,
        axes: first.axes.clone(),
        quantity: "goodput_bps".to_owned(),
        best: Vec::new(),
        others: Vec::new(),
        left_out: Vec::new(),
        reason: None,
    };
    change(&report, &mut choice);
    report.recommendation = Some(Recommendation {
        needs: needs.to_vec(),
        choices: vec![choice],
        conditions: conditions.iter().map(|&text| text.to_owned()).collect(),
    });
    report
}

#[test]
fn one_path_before_the_next() {
    let report = recommended(
        |report, choice| {
            choice.best = vec![candidate(report, "macvlan", Vec::new())];
            let rate = versus("macvlan", "goodput_bps", 0.892, Verdict::Different);
            let cost = versus("macvlan", "cpu_ns_per_byte", 1.1, Verdict::Inconclusive);
            choice.others = vec![candidate(report, "veth", vec![rate, cost])];
        },
        &[],
        &["It holds for placement=split."],
    );
    let said = text(&report);
    insta::assert_snapshot!(from(&said, "Recommendation"), @"
    Recommendation
    - tcp_stream · local: macvlan 24.0 Gbit/s (23.2 to 24.9) at 0.554 ns/byte; next is veth at 0.892× ≠,
      CPU cost 1.10× ? 5.0%.
    ");
    assert!(
        said.ends_with("CPU cost 1.10× ? 5.0%.\n"),
        "a run ends with it"
    );
    assert!(
        said.contains("What would change the recommendation\n- It holds for placement=split.\n")
    );
    assert!(page(&report, "html").contains("Recommendation</h2>"));
    assert!(page(&report, "markdown").contains("## What would change the recommendation"));
}

#[test]
fn a_tie_is_said_as_one() {
    let tie = |verdict| {
        let report = recommended(
            |report, choice| {
                let rate = versus("macvlan", "goodput_bps", 0.994, verdict);
                choice.best = vec![
                    candidate(report, "macvlan", Vec::new()),
                    candidate(report, "ipvlan", vec![rate]),
                ];
            },
            &[],
            &[],
        );
        from(&text(&report), "Recommendation").to_owned()
    };
    insta::assert_snapshot!(tie(Verdict::Inconclusive), @"
    Recommendation
    - tcp_stream · local: a tie, not told apart: macvlan 24.0 Gbit/s (23.2 to 24.9) at 0.554 ns/byte,
      ipvlan (0.994× ? 5.0%).
    ");
    insta::assert_snapshot!(tie(Verdict::Equivalent), @"
    Recommendation
    - tcp_stream · local: a tie, equivalent: macvlan 24.0 Gbit/s (23.2 to 24.9) at 0.554 ns/byte, ipvlan
      (0.994× =).
    ");
}

/// As fast as macvlan, at this part of its cost.
fn cheaper(cost: f64) -> Vec<(String, VerdictReport)> {
    vec![
        versus("macvlan", "goodput_bps", 0.994, Verdict::Inconclusive),
        versus("macvlan", "cpu_ns_per_byte", cost, Verdict::Different),
    ]
}

#[test]
fn a_cheaper_one_of_those_not_told_apart() {
    let report = recommended(
        |report, choice| {
            choice.best = vec![candidate(report, "ipvlan", cheaper(0.9))];
            choice.others = vec![candidate(report, "macvlan", Vec::new())];
        },
        &[],
        &[],
    );
    insta::assert_snapshot!(from(&text(&report), "Recommendation"), @"
    Recommendation
    - tcp_stream · local: ipvlan 24.0 Gbit/s (23.8 to 24.1) at 0.551 ns/byte: not told apart from
      macvlan (0.994× ? 5.0%) at 0.900× ≠ of its CPU cost; macvlan has 24.0 Gbit/s (23.2 to 24.9) at
      0.554 ns/byte.
    ");
}

#[test]
fn cheaper_ones_that_cost_alike() {
    let report = recommended(
        |report, choice| {
            choice.best = vec![
                candidate(report, "ipvlan", cheaper(0.9)),
                candidate(report, "veth", cheaper(0.903)),
            ];
            choice.others = vec![candidate(report, "macvlan", Vec::new())];
        },
        &[],
        &[],
    );
    insta::assert_snapshot!(from(&text(&report), "Recommendation"), @"
    Recommendation
    - tcp_stream · local: ipvlan 24.0 Gbit/s (23.8 to 24.1) at 0.551 ns/byte: not told apart from
      macvlan (0.994× ? 5.0%) at 0.900× ≠ of its CPU cost, in a tie with veth (0.903× ≠); macvlan has
      24.0 Gbit/s (23.2 to 24.9) at 0.554 ns/byte.
    ");
}

#[test]
fn nobody_offers_what_is_needed() {
    let report = recommended(
        |_, choice| {
            choice.reason = Some(
                "none of the measured paths can be recommended where vlan is needed".to_owned(),
            );
            let out = |path: &str, reason: &str| NoCandidate {
                path: path.to_owned(),
                reason: reason.to_owned(),
            };
            choice.left_out = vec![
                out("veth", "lacks vlan"),
                out("macvlan\u{1b}[31m", "lacks vlan"),
                out("netkit", "failed: no"),
            ];
        },
        &[Feature::Vlan, Feature::HostAccess],
        &[],
    );
    insta::assert_snapshot!(from(&text(&report), "Recommendation"), @"
    Recommendation where vlan and host-access are needed
    - tcp_stream · local: none of the measured paths can be recommended where vlan is needed.

    No candidates: veth, macvlan [31m (lacks vlan); netkit (failed: no).
    ");
}
