use super::*;
use crate::conflist::Network;
use crate::plan::Plan;
use hopyard_stats::Verdict;

pub(crate) fn run(blocks: u32, times: impl Fn(&str, u32, u32) -> u64) -> Run {
    let network = |name: &str| Network {
        name: name.to_owned(),
        cni_version: "1.0.0".to_owned(),
        plugins: Vec::new(),
    };
    let plan = Plan {
        name: "made".to_owned(),
        networks: ["one", "two", "same"].map(network).into(),
        base: "one".to_owned(),
        ports: vec![1],
        beside: vec![2],
        blocks,
        attachments: 20,
        margin: 0.02,
        confidence: 0.95,
        cni_path: Vec::new(),
        uplink: "up0".to_owned(),
        left_out: Vec::new(),
    };
    let mut visits = Vec::new();
    for block in 0..blocks {
        for round in 0..10 {
            for network in &plan.networks {
                let time = times(&network.name, block, round);
                visits.push(Visit {
                    block,
                    ports: 1,
                    beside: 2,
                    round,
                    network: network.name.clone(),
                    add_ns: vec![time, time + 2000],
                    answer_ns: vec![time + 1_000_000; 2],
                    del_ns: vec![time * 2; 2],
                    cpu_ns: time,
                    rest_ns: 0,
                    failed: None,
                });
            }
        }
    }
    Run {
        plan,
        seed: 1,
        started: "2026-01-01T00:00:00+00:00".to_owned(),
        kernel: "6.18".to_owned(),
        cpus: 2,
        plugins: BTreeMap::new(),
        steal: 0.0,
        unsettled: 0,
        visits,
        cleared: Vec::new(),
        end: End::Complete,
        broken: None,
    }
}

/// Drift from round to round that all share, and noise of 1 % of their own.
pub(crate) fn drifting(network: &str, block: u32, round: u32) -> u64 {
    let drift = 10_000_000 + u64::from(block * 10 + round) * 500_000;
    let own = u64::from((block * 7 + round * 3 + u32::from(network == "same")) % 5);
    let noisy = drift / 1000 * (998 + own);
    if network == "two" { noisy / 2 } else { noisy }
}

fn versus<'a>(document: &'a Document, network: &str, quantity: &str) -> &'a Versus {
    let cell = document.cells.iter().find(|cell| cell.network == network);
    cell.unwrap().figures[quantity].versus.as_ref().unwrap()
}

#[test]
fn half_is_half_though_everything_drifts_and_the_same_is_equivalent() {
    let document = assess(run(8, drifting));
    let half = versus(&document, "two", "del_p50_ns");
    assert!((half.ratio.value - 0.5).abs() < 1e-3, "{half:?}");
    assert!(half.ratio.low <= 0.5 && half.ratio.high < 0.51);
    assert_eq!(half.verdict, Some(Verdict::Different));
    let same = versus(&document, "same", "del_p50_ns");
    assert_eq!(same.verdict, Some(Verdict::Equivalent), "{same:?}");
    assert!(document.warnings.is_empty(), "{:?}", document.warnings);
    let base = document
        .cells
        .iter()
        .find(|cell| cell.network == "one")
        .unwrap();
    assert!(base.figures.values().all(|figure| figure.versus.is_none()));
    assert_eq!(base.attachments, 160);
}

#[test]
fn few_blocks_give_no_verdict() {
    let document = assess(run(3, drifting));
    assert_eq!(versus(&document, "two", "add_p50_ns").verdict, None);
    assert!(
        document.warnings[0].contains("quick look"),
        "{:?}",
        document.warnings
    );
}

#[test]
fn what_failed_is_told_and_the_rest_counts() {
    let mut made = run(8, drifting);
    for visit in made
        .visits
        .iter_mut()
        .filter(|v| v.network == "two" && v.block == 0)
    {
        visit.failed = Some("ADD of plugin `x`: no".to_owned());
        visit.add_ns.clear();
    }
    let document = assess(made);
    let cell = document
        .cells
        .iter()
        .find(|cell| cell.network == "two")
        .unwrap();
    assert_eq!(cell.failed, Some((10, "ADD of plugin `x`: no".to_owned())));
    assert_eq!(cell.attachments, 140);
    assert_eq!(versus(&document, "two", "add_p50_ns").ratio.n, 7);
    assert!(
        document.warnings[0].contains("10 of 80 visits failed"),
        "{:?}",
        document.warnings
    );
}

/// Of 1,000 values the ranks are some 990 ± 1.96 √9.9.
#[test]
fn a_quantile_has_the_interval_of_its_order_statistics_or_none() {
    let found = quantile((1..=1000).rev().collect(), 0.95).unwrap();
    assert_eq!((found.value, found.n), (990.0, 1000));
    assert!((981.0..=984.0).contains(&found.low), "{found:?}");
    assert!((995.0..=998.0).contains(&found.high), "{found:?}");
    assert_eq!(quantile((1..=100).collect(), 0.95), None);
    assert_eq!(quantile(Vec::new(), 0.95), None);
}

#[test]
fn a_run_that_was_cut_short_says_so_and_has_verdicts_only_from_enough_blocks() {
    let warnings = |planned: u32, end: End| {
        let mut cut = run(3, drifting);
        cut.plan.blocks = planned;
        cut.end = end;
        assess(cut).warnings.join("; ")
    };
    assert!(!warnings(3, End::Complete).contains("figures come from"));
    let limited = warnings(8, End::TimeLimit);
    assert!(
        limited.contains("the time limit came in block 3 of 8"),
        "{limited}"
    );
    assert!(limited.contains("a quick look"), "{limited}");
    let interrupted = warnings(8, End::Interrupted);
    assert!(
        interrupted.contains("it was interrupted in block 3 of 8"),
        "{interrupted}"
    );
    let mut broken = run(3, drifting);
    broken.plan.blocks = 8;
    broken.broken = Some("the process ended early (signal: 9)".to_owned());
    let broken = assess(broken).warnings.join("; ");
    let expected =
        "the process ended early (signal: 9) in block 3 of 8: figures come from what there is";
    assert!(broken.contains(expected), "{broken}");
}
