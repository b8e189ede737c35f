//! What has to be so for a rule to be tested, what can show a rule and not refute it, and figures beyond two bounds.

use super::*;
use crate::assess::testing::curves::{Shown, published, senders};

/// A claim of the reports judged by a run, its plan's name being that of the claim.
fn of_report(id: &str, mut run: Run, plan: &str) -> crate::model::ClaimReport {
    run.header.plan = plan.to_owned();
    for planned in &mut run.header.cells {
        if planned.cell.load == LoadKind::UdpFlood {
            planned.cell.axes.message_size_bytes = Some(1024);
        }
    }
    let evidence = Evidence {
        runs: vec![run],
        ..Evidence::default()
    };
    judge(
        choose(reports().unwrap(), &[id.to_owned()]).unwrap()[0],
        &evidence,
    )
}

/// PL4 and PL5: a core that one native sender fills says nothing of the number that fills it, and has nothing to leap.
#[test]
fn a_core_that_one_sender_fills_tells_nothing() {
    let plan = "planetlab-containers-2007";
    for id in ["PL4", "PL5"] {
        let whole = of_report(id, senders(published), plan);
        assert_eq!(whole.verdict, ClaimVerdict::Holds, "{whole:#?}");
        let full = |own, n| Shown {
            busy: 1.0,
            ..published(own, n)
        };
        let claim = of_report(id, senders(full), plan);
        assert_eq!(claim.verdict, ClaimVerdict::Untestable, "{claim:#?}");
        let words = ["one native sender", "the senders' CPU is "];
        for words in words {
            assert!(claim.sentence.contains(words), "{}", claim.sentence);
        }
        // Some of the core is left, but nobody knows how much.
        let across = |own, n: f64| Shown {
            busy: if n > 1.0 { 1.0 } else { 0.98 },
            ..published(own, n)
        };
        let mut run = senders(across);
        run.samples.retain(|sample| sample.block < 7);
        let claim = of_report(id, run, plan);
        assert_eq!(claim.verdict, ClaimVerdict::Untestable, "{claim:#?}");
    }
}

/// The premise is about cells of its own: others do not stand in for them.
#[test]
fn a_premise_that_was_not_measured_is_none() {
    let mut run = senders(published);
    run.header
        .cells
        .retain(|planned| planned.cell.axes.flows > 1);
    let left = run.header.cells.len();
    run.samples.retain(|sample| sample.cell < left);
    let claim = of_report("PL5", run, "planetlab-containers-2007");
    assert_eq!(claim.verdict, ClaimVerdict::Untestable, "{claim:#?}");
    assert!(claim.sentence.contains("that was not measured"));
}

const ONE: &str = "judge = \"ratio\"\nquantity = \"cost\"\ncells = { path = \"bridge-nf\" }\nto = [\"bridge\"]\nat_least = 1.05\n";

/// ND4: what stands in costs less than what is claimed. More than the bound shows the claim, less shows nothing.
#[test]
fn a_weaker_stand_in_shows_a_claim_and_refutes_none() {
    // The cost is the same CPU time over other numbers of bytes.
    let with = |check: &str, cost: f64| {
        let run = made(&[("bridge-nf", 1e9 / cost), ("bridge", 1e9)], 10, 0.001);
        judged(check, run)
    };
    let weaker = format!("{ONE}weaker = \"hooks are left\"\n");
    for (cost, whole, verdict) in [
        (1.2, ClaimVerdict::Holds, ClaimVerdict::Holds),
        (1.01, ClaimVerdict::Fails, ClaimVerdict::Untestable),
        (1.05, ClaimVerdict::Undecided, ClaimVerdict::Undecided),
    ] {
        assert_eq!(with(ONE, cost).verdict, whole, "{cost}");
        let claim = with(&weaker, cost);
        assert_eq!(claim.verdict, verdict, "{cost}: {claim:#?}");
        let says = claim.sentence.contains("hooks are left");
        assert_eq!(says, verdict == ClaimVerdict::Untestable);
    }
}

/// PL10, the last part: a figure that is other than 1, one way or the other.
#[test]
fn beyond_two_bounds() {
    let check = "judge = \"ratio\"\nquantity = \"rate\"\ncells = { path = \"bridge\" }\nto = [\"veth\"]\nbeyond = true\nat_least = 0.8\nat_most = 1.25\n";
    let with = |bridge: f64| judged(check, made(&[("veth", 1e9), ("bridge", bridge)], 10, 0.001));
    for (bridge, verdict) in [
        (0.5e9, ClaimVerdict::Holds),
        (1.5e9, ClaimVerdict::Holds),
        (1e9, ClaimVerdict::Fails),
        (1.25e9, ClaimVerdict::Undecided),
    ] {
        let claim = with(bridge);
        assert_eq!(claim.verdict, verdict, "{bridge}: {claim:#?}");
    }
    insta::assert_snapshot!(with(1e9).sentence, @"X1 fails: goodput, bridge / veth is 1.00 (0.998 to 1.00) where the rule asks for below 0.8 or above 1.25.");
}

/// PL15: one of 16 containers takes 12 µs a turn and one of 16 native senders 10; alone they take 9 and 8 already.
#[test]
fn what_differs_anyway_is_taken_off() {
    let report = reports().unwrap();
    let chosen = choose(report, &["PL15".to_owned()]).unwrap()[0];
    let planned = super::oracle::planned("planetlab-containers-2007");
    let judged = |turn: &dyn Fn(bool, u32) -> f64| {
        let mut run = hand_made(&["veth"]);
        run.header.plan.clone_from(&planned.plan.name);
        let first = run.header.cells.remove(0);
        for (place, cell) in planned.cells.iter().enumerate() {
            let mut own = first.clone();
            own.cell.clone_from(cell);
            run.header.cells.push(own);
            if cell.load != LoadKind::UdpRr {
                continue;
            }
            let is_own = cell.axes.containers.is_some_and(|c| c.to_string() == "own");
            for block in 0..10 {
                let wobble = 1.0 + 0.001 * f64::from((block * 3 + place as u32) % 5);
                let ns = 1000.0 * turn(is_own, cell.axes.flows) * wobble;
                let values = [("client_cpu_ns_per_switch", ns)].into();
                let outcome = Outcome::Measured(Box::new(super::sample::sample(&values)));
                push(&mut run, block, 0, place, outcome);
            }
        }
        let evidence = Evidence {
            runs: vec![run],
            ..Evidence::default()
        };
        judge(chosen, &evidence)
    };
    let claim = judged(&|own, n| match (own, n) {
        (true, 16) => 12.0,
        (true, _) => 9.0,
        (false, 16) => 10.0,
        (false, _) => 8.0,
    });
    assert_eq!(claim.verdict, ClaimVerdict::Holds, "{claim:#?}");
    let value = claim.checks[0].points[0].measured.value;
    assert!((value - 1.1).abs() < 0.005, "{value}");
    // All of it is there when one is alone: a fifth more in all, and nothing of the switch.
    let claim = judged(&|own, n| match (own, n) {
        (true, 16) => 12.0,
        (true, _) | (false, 16) => 10.0,
        (false, _) => 8.0,
    });
    assert_eq!(claim.verdict, ClaimVerdict::Fails, "{claim:#?}");
}

/// ND13: senders that are paced say nothing of what paths carry; all others do.
#[test]
fn a_pace_does_not_make_paths_alike() {
    let planned = super::oracle::planned("netback-direct-2006");
    let judged = |unpaced: f64| {
        let mut run = hand_made(&["veth"]);
        run.header.plan.clone_from(&planned.plan.name);
        let first = run.header.cells.remove(0);
        for (place, cell) in planned.cells.iter().enumerate() {
            let mut own = first.clone();
            own.cell.clone_from(cell);
            run.header.cells.push(own);
            let slow = cell.axes.pace_bps.is_none() && cell.path == "bridge-nf";
            for block in 0..10 {
                let wobble = 1.0 + 0.0001 * f64::from((block * 3 + place as u32) % 5);
                let bytes = 1e8 * wobble * if slow { unpaced } else { 1.0 };
                push(
                    &mut run,
                    block,
                    0,
                    place,
                    Outcome::Measured(Box::new(measured(bytes as u64))),
                );
            }
        }
        of_report("ND13", run, &planned.plan.name)
    };
    assert_eq!(judged(1.0).verdict, ClaimVerdict::Holds);
    let claim = judged(0.9);
    assert_eq!(claim.verdict, ClaimVerdict::Fails, "{claim:#?}");
}
