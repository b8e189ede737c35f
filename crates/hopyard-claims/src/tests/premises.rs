//! What has to be so for a rule to be tested, what can show a rule and not refute it, and figures beyond two bounds.

use super::*;
use crate::model::Containers;

/// A claim of the reports judged by a run.
pub(super) fn of_run(id: &str, run: Run) -> crate::model::ClaimReport {
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
    // How busy the senders' core is with so many of them.
    let of = |busy: &dyn Fn(bool, u32) -> f64| {
        showing("planetlab-containers-2007", |cell| {
            let is_own = cell.axes.containers == Some(Containers::Own);
            vec![("client_cpu_busy_ratio", busy(is_own, cell.axes.flows))]
        })
    };
    for id in ["PL4", "PL5"] {
        let published = |own: bool, n: u32| if own || n > 18 { 1.0 } else { 0.45 };
        let whole = of_run(id, of(&published));
        assert_eq!(whole.verdict, ClaimVerdict::Holds, "{whole:#?}");
        let claim = of_run(id, of(&|_, _| 1.0));
        assert_eq!(claim.verdict, ClaimVerdict::Untestable, "{claim:#?}");
        let words = ["one native sender", "the senders' CPU is "];
        for words in words {
            assert!(claim.sentence.contains(words), "{}", claim.sentence);
        }
        // Some of the core is left, but nobody knows how much.
        let mut run = of(&|_, n| if n > 1 { 1.0 } else { 0.98 });
        run.samples.retain(|sample| sample.block < 7);
        let claim = of_run(id, run);
        assert_eq!(claim.verdict, ClaimVerdict::Untestable, "{claim:#?}");
    }
}

/// A run of a plan of the reports whose cells show what `of` says of them.
pub(super) fn showing(
    name: &str,
    of: impl Fn(&crate::model::Cell) -> Vec<(&'static str, f64)>,
) -> Run {
    let planned = super::oracle::planned(name);
    let mut run = hand_made(&["veth"]);
    run.header.plan = name.to_owned();
    let first = run.header.cells.remove(0);
    for (place, cell) in planned.cells.iter().enumerate() {
        let mut own = first.clone();
        own.cell.clone_from(cell);
        run.header.cells.push(own);
        for block in 0..10 {
            let wobble = 1.0 + 0.001 * f64::from((block * 3 + place as u32) % 5);
            let values = of(cell)
                .into_iter()
                .map(|(name, value)| (name, wobble * value));
            let m = super::sample::sample(&values.collect());
            push(&mut run, block, 0, place, Outcome::Measured(Box::new(m)));
        }
    }
    run
}

/// MQ14: what causes a loss is asked where there is one, for each peer by itself.
#[test]
fn without_a_loss_its_cause_is_not_asked_for() {
    // What two queues carry of one, by the kernel's choice to the wire and to the host, and where flows are pinned.
    let judged = |far: f64, host: f64, pinned: f64| {
        let steering = crate::model::axis("steering").unwrap();
        let run = showing("multiqueue-tap-2011", |cell| {
            let is_pinned = (steering.show)(&cell.axes).as_deref() == Some("pinned");
            let factor = match (cell.axes.queues, cell.peer) {
                (Some(2), _) if is_pinned => pinned,
                (Some(2), Peer::Far) => far,
                (Some(2), _) => host,
                _ => 1.0,
            };
            vec![
                ("goodput_bps", 1e10 * factor),
                ("queue_changes_per_flow_per_s", 0.0),
            ]
        });
        of_run("MQ14", run)
    };
    use ClaimVerdict::{Fails, Holds, Untestable};
    for (far, host, pinned, verdict, places) in [
        (0.8, 0.7, 1.0, Holds, vec!["far", "host"]),
        (0.8, 0.7, 0.8, Fails, vec!["far", "host"]),
        // There is a loss to the wire alone, which pinned flows have too or not.
        (0.8, 1.0, 0.8, Fails, vec![""]),
        (0.8, 1.0, 1.0, Untestable, vec![""]),
        (1.0, 1.0, 1.0, Untestable, vec![]),
        (1.0, 1.0, 0.8, Untestable, vec![]),
    ] {
        let claim = judged(far, host, pinned);
        let case = format!("{far} {host} {pinned}: {claim:#?}");
        assert_eq!(claim.verdict, verdict, "{case}");
        let points = &claim.checks[0].points;
        let at: Vec<&str> = points.iter().map(|point| point.at.as_str()).collect();
        assert_eq!(at, places, "{case}");
        let words = "no loss is shown here that a choice of queues could explain (goodput, ";
        let says = claim.sentence.contains(words);
        assert_eq!(says, verdict == Untestable, "{case}");
    }
}

/// PL12: what switches are compared with has to be past saturation, at each size of messages.
#[test]
fn a_base_below_saturation_is_none() {
    let judged = |busy: &dyn Fn(u32) -> f64, switches: &dyn Fn(u32, u32) -> f64| {
        let run = showing("planetlab-containers-2007", |cell| {
            let size = cell.axes.message_size_bytes.unwrap_or(1);
            vec![
                ("client_cpu_busy_ratio", busy(size)),
                (
                    "client_context_switches_per_s",
                    1e5 * switches(size, cell.axes.flows),
                ),
            ]
        });
        of_run("PL12", run)
    };
    let alike = |_: u32, _: u32| 1.0;
    let full = judged(&|_| 1.0, &alike);
    assert_eq!(full.verdict, ClaimVerdict::Holds, "{full:#?}");
    // At 1 kB two senders have idle time, and so fewer switches than more of them have.
    let idle = |size: u32| if size == 1024 { 0.5 } else { 1.0 };
    let half = |is_so: bool| if is_so { 0.5 } else { 1.0 };
    let fewer = |size: u32, flows: u32| half(size == 1024 && flows == 2);
    let claim = judged(&idle, &fewer);
    assert_eq!(claim.verdict, ClaimVerdict::Untestable, "{claim:#?}");
    let says = [
        "two senders do not fill the core",
        "50.",
        "what can be tested of it holds",
    ];
    for words in says {
        assert!(claim.sentence.contains(words), "{}", claim.sentence);
    }
    assert_eq!(claim.checks[0].points.len(), 28, "of 42");
    // What is past saturation can still refute it.
    let later = |size: u32, flows: u32| half(size == 64 && flows == 32);
    assert_eq!(judged(&idle, &later).verdict, ClaimVerdict::Fails);
}

/// The premise is about cells of its own: others do not stand in for them.
#[test]
fn a_premise_that_was_not_measured_is_none() {
    let mut run = showing("planetlab-containers-2007", |_| {
        vec![("client_cpu_busy_ratio", 1.0)]
    });
    let cells = &run.header.cells;
    let several = (0..cells.len()).filter(|at| cells[*at].cell.axes.flows > 1);
    let several: Vec<usize> = several.collect();
    super::chance::keep_cells(&mut run, &several);
    let claim = of_run("PL5", run);
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
        // What decides nothing does not hold either.
        assert!(!claim.sentence.contains("tested of it holds"));
    }
}

/// NM2 and NM7: on one machine CPU time is that of both ends, and its ratio is nearer to 1 than that of one of them.
#[test]
fn a_ratio_of_both_ends_shows_what_that_of_one_would_show_all_the_more() {
    for (bounds, cost, verdict) in [
        ("at_least = 1.05", 1.2, ClaimVerdict::Holds),
        ("at_least = 1.05", 1.01, ClaimVerdict::Untestable),
        (
            "at_least = 0.9\nat_most = 1.1",
            1.01,
            ClaimVerdict::Untestable,
        ),
        ("at_least = 0.9\nat_most = 1.1", 1.2, ClaimVerdict::Fails),
        ("at_most = 1.0", 0.9, ClaimVerdict::Holds),
        ("at_most = 1.0", 1.1, ClaimVerdict::Fails),
    ] {
        let check = ONE.replace("at_least = 1.05", bounds);
        let run = || made(&[("bridge-nf", 1e9 / cost), ("bridge", 1e9)], 10, 0.001);
        let of_both = judged(&check, run());
        assert_ne!(
            of_both.verdict,
            ClaimVerdict::Untestable,
            "{bounds}, {cost}"
        );
        let claim = judged(&check.replace("\"cost\"", "\"local cost\""), run());
        assert_eq!(claim.verdict, verdict, "{bounds}, {cost}: {claim:#?}");
        let says = claim.sentence.contains("that of both ends");
        assert_eq!(says, verdict == ClaimVerdict::Untestable, "{claim:#?}");
    }
}

/// ND3: what stands in has more of an effect than what is claimed. Too little of it refutes the claim, enough shows nothing.
#[test]
fn a_stronger_stand_in_refutes_a_claim_and_shows_none() {
    let least = format!("{ONE}stronger = \"hooks are left\"\n");
    for (cost, verdict) in [
        (1.2, ClaimVerdict::Untestable),
        (1.01, ClaimVerdict::Fails),
        (1.05, ClaimVerdict::Undecided),
    ] {
        let run = made(&[("bridge-nf", 1e9 / cost), ("bridge", 1e9)], 10, 0.001);
        let claim = judged(&least, run);
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
    let planned = super::oracle::planned("planetlab-switches-2007");
    let judged = |turn: &dyn Fn(bool, u32) -> f64| {
        let mut run = hand_made(&["veth"]);
        run.header.plan.clone_from(&planned.plan.name);
        let first = run.header.cells.remove(0);
        for (place, cell) in planned.cells.iter().enumerate() {
            let mut own = first.clone();
            own.cell.clone_from(cell);
            run.header.cells.push(own);
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
    let judged = |plan: &str, of_bridge: f64| {
        let planned = super::oracle::planned(plan);
        let mut run = hand_made(&["veth"]);
        run.header.plan.clone_from(&planned.plan.name);
        let first = run.header.cells.remove(0);
        for (place, cell) in planned.cells.iter().enumerate() {
            let mut own = first.clone();
            own.cell.clone_from(cell);
            run.header.cells.push(own);
            for block in 0..10 {
                let wobble = 1.0 + 0.0001 * f64::from((block * 3 + place as u32) % 5);
                let bytes = 1e8
                    * wobble
                    * if cell.path == "bridge-nf" {
                        of_bridge
                    } else {
                        1.0
                    };
                push(
                    &mut run,
                    block,
                    0,
                    place,
                    Outcome::Measured(Box::new(measured(bytes as u64))),
                );
            }
        }
        of_run("ND13", run)
    };
    let [paced, unpaced] = ["netback-direct-2006", "netback-direct-2006-unpaced"];
    assert_eq!(judged(paced, 1.0).verdict, ClaimVerdict::Untestable);
    assert_eq!(judged(unpaced, 1.0).verdict, ClaimVerdict::Holds);
    let claim = judged(unpaced, 0.9);
    assert_eq!(claim.verdict, ClaimVerdict::Fails, "{claim:#?}");
}
