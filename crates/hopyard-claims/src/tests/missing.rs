//! What was not measured, or failed, of what a rule is about.

use super::premises::{of_run, showing};
use super::*;
use crate::model::Cell;

/// Macvlan is cheaper than the routed pair under every load.
fn cheaper() -> Run {
    showing("netns-macvlan-2007", |cell| {
        let cost = if cell.path == "macvlan" { 0.7 } else { 1.0 };
        vec![
            ("cpu_ns_per_byte", 0.1 * cost),
            ("cpu_ns_per_packet", 1000.0 * cost),
            ("cpu_ns_per_transaction", 10_000.0 * cost),
        ]
    })
}

/// Cells and their samples, of those that are wanted.
fn keep(run: &mut Run, wanted: impl Fn(&Cell) -> bool) {
    let cells = run.header.cells.iter().enumerate();
    let kept: Vec<usize> = cells
        .filter(|(_, planned)| wanted(&planned.cell))
        .map(|(at, _)| at)
        .collect();
    super::chance::keep_cells(run, &kept);
}

/// NM10 is about five loads. A run for another claim has one of them.
#[test]
fn a_claim_does_not_hold_by_a_part_of_the_cells_that_it_is_about() {
    let whole = of_run("NM10", cheaper());
    assert_eq!(whole.verdict, ClaimVerdict::Holds, "{whole:#?}");
    let mut part = cheaper();
    keep(&mut part, |cell| cell.load == LoadKind::UdpStream);
    let claim = of_run("NM10", part);
    assert_eq!(claim.verdict, ClaimVerdict::Untestable, "{claim:#?}");
    let words = "4 of the 5 figures that the rule is about are not in this run";
    assert!(claim.sentence.contains(words), "{}", claim.sentence);
}

/// MQ15 says something of the most of eight scenarios: two of them refute nothing.
#[test]
fn half_of_those_that_were_measured_do_not_refute_what_is_said_of_most() {
    let run = || {
        showing("multiqueue-tap-2011", |cell| {
            let is_far_receiver = cell.load == LoadKind::TcpMaerts && cell.peer == Peer::Far;
            let less = cell.axes.queues == Some(2) && !is_far_receiver;
            let per_cpu = if less { 0.6 } else { 1.0 };
            vec![("normalized_bps_per_cpu_percent", 1e8 * per_cpu)]
        })
    };
    let whole = of_run("MQ15", run());
    assert_eq!(whole.verdict, ClaimVerdict::Holds, "{whole:#?}");
    let mut part = run();
    keep(&mut part, |cell| {
        cell.load == LoadKind::TcpMaerts && cell.peer == Peer::Far
    });
    let claim = of_run("MQ15", part);
    assert_ne!(claim.verdict, ClaimVerdict::Fails, "{claim:#?}");
    assert_ne!(claim.verdict, ClaimVerdict::Holds, "{claim:#?}");
}

#[test]
fn a_claim_does_not_hold_by_the_windows_that_did_not_fail() {
    let fail = |which: &dyn Fn(u32) -> bool| {
        let mut run = cheaper();
        for sample in &mut run.samples {
            let cell = &run.header.cells[sample.cell].cell;
            if cell.path == "veth-route" && cell.load == LoadKind::TcpRr && which(sample.block) {
                let cause = "nothing arrived".to_owned();
                sample.outcome = Outcome::Failed { cause };
            }
        }
        of_run("NM10", run)
    };
    for (which, words) in [
        (
            &(|block: u32| block < 2) as &dyn Fn(u32) -> bool,
            "veth-route: 2 of 10 windows failed: nothing arrived",
        ),
        (
            &|_| true,
            "veth-route: its 10 windows failed: nothing arrived",
        ),
    ] {
        let claim = fail(which);
        assert_eq!(claim.verdict, ClaimVerdict::Untestable, "{claim:#?}");
        assert!(claim.sentence.contains(words), "{}", claim.sentence);
    }
}

/// The whole run was made in a guest whose CPU is a program.
#[test]
fn an_emulated_guest_decides_nothing() {
    let mut run = cheaper();
    run.header.environment.cpu_model = "QEMU TCG CPU version 2.5+".to_owned();
    let claim = of_run("NM10", run);
    assert_eq!(claim.verdict, ClaimVerdict::Untestable, "{claim:#?}");
    let words = "whose figures have a shape and no size";
    assert!(claim.sentence.contains(words), "{}", claim.sentence);
}

#[test]
fn a_share_is_not_below_none() {
    let values = vec![-0.001, 0.001, 0.0, 0.0005];
    let share = figure::Figure::Share(values.clone())
        .interval(0.95)
        .unwrap();
    let level = figure::Figure::Level(values).interval(0.95).unwrap();
    assert!(level.low < 0.0, "{level:?}");
    assert_eq!((share.low, share.high), (0.0, level.high));
}
