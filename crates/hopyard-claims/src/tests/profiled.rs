//! What a profile beside a sample says.

use std::collections::BTreeMap;

use super::*;
use crate::evidence::series;
use crate::model::{ProfileWindow, Stack};
use crate::what::What;

/// One sample, and a profile of it with these chains of calls; the outermost function comes first.
fn run_with(outcome: Outcome, chains: &[(&[&str], u64)]) -> Run {
    let mut run = hand_made(&["veth"]);
    push(&mut run, 0, 0, 0, outcome);
    let mut frames = vec!["client".to_owned()];
    let mut stacks = Vec::new();
    for (functions, samples) in chains {
        let mut chain = vec![0];
        for function in *functions {
            chain.push(u32::try_from(frames.len()).unwrap());
            frames.push((*function).to_owned());
        }
        stacks.push(Stack {
            frames: chain,
            samples: *samples,
        });
    }
    run.profiles.push(ProfileWindow {
        block: 0,
        attempt: 0,
        cell: 0,
        span_ns: 500_000_000,
        frequency_hz: 997,
        cpus: 2,
        elsewhere: 0,
        lost: 0,
        frames,
        stacks,
    });
    run
}

fn value(run: &Run, what: &str) -> Result<f64, String> {
    let what: What = what.parse().unwrap();
    Ok(series(run, 0, &what)?[&0])
}

#[test]
fn what_a_switch_costs_is_its_share_of_the_cost() {
    let chains: [(&[&str], u64); 3] = [
        (&["handle_softirqs", "br_forward"], 200),
        (&["handle_softirqs", "nf_hook_slow"], 100),
        (&["[user]"], 700),
    ];
    let run = run_with(Outcome::Measured(Box::new(measured(25_000_000))), &chains);
    let cost = value(&run, "cost").unwrap();
    let near = |one: f64, two: f64| assert!((one / two - 1.0).abs() < 1e-9, "{one} {two}");
    near(value(&run, "cost of bridge").unwrap(), 0.2 * cost);
    near(value(&run, "cost of bridge+netfilter").unwrap(), 0.3 * cost);
    let mut without = run;
    without.profiles.clear();
    let why = value(&without, "cost of bridge").unwrap_err();
    assert!(why.contains("took no profiles"), "{why}");
}

#[test]
fn softirq_time_is_told_by_profiles_where_ticks_do_not_add_up() {
    let mut m = measured(25_000_000);
    m.cpu.closure = 0.9;
    let chains: [(&[&str], u64); 3] = [
        (&["asm_sysvec", "handle_softirqs", "tcp_v4_rcv"], 150),
        (&["__do_softirq.isra.0", "net_rx_action"], 100),
        (&["do_syscall_64", "tcp_sendmsg"], 750),
    ];
    let run = run_with(Outcome::Measured(Box::new(m.clone())), &chains);
    let busy = value(&run, "busy_ratio").unwrap();
    let softirq = value(&run, "softirq_ratio").unwrap();
    assert!((softirq - 0.25 * busy).abs() < 1e-9, "{softirq} of {busy}");
    let mut without = run;
    without.profiles.clear();
    let why = value(&without, "softirq_ratio").unwrap_err();
    assert!(why.contains("do not add up"), "{why}");
    // Where they add up, they count.
    m.cpu.closure = 1.0;
    let ticks = run_with(Outcome::Measured(Box::new(m)), &chains);
    assert_ne!(value(&ticks, "softirq_ratio").unwrap(), softirq);
}

/// ND5: functions of a bridge without netfilter are those of the bridge alone. Where calls are switched off, hooks are called and return
/// at once, which a kernel without them does not do.
#[test]
fn a_base_may_be_measured_by_a_quantity_of_its_own() {
    let mut run = hand_made(&["bridge-nf", "bridge"]);
    for block in 0..10 {
        for (cell, hooks) in [(0, 0.2), (1, 0.05)] {
            let outcome = Outcome::Measured(Box::new(measured(25_000_000)));
            push(&mut run, block, 0, cell, outcome);
            let bridge = 0.1 * (1.0 + 0.001 * f64::from((block + cell as u32) % 3));
            let shares = BTreeMap::from([
                ("bridge share_ratio", bridge),
                ("bridge+netfilter share_ratio", bridge + hooks),
            ]);
            run.profiles
                .extend(super::sample::profile(&shares, block, cell));
        }
    }
    let check = "judge = \"ratio\"\nquantity = \"share bridge+netfilter\"\ncells = { path = \"bridge-nf\" }\nto = [\"bridge\"]\nat_least = 2.5\n";
    let of = |check: &str, verdict: ClaimVerdict, ratio: f64, what: &str| {
        let claim = judged(check, run.clone());
        assert_eq!(claim.verdict, verdict, "{claim:#?}");
        let part = &claim.checks[0];
        let value = part.points[0].measured.value;
        assert!((value / ratio - 1.0).abs() < 0.01, "{value}, not {ratio}");
        assert_eq!(part.what, what);
    };
    let words = "profile share of bridge+netfilter, bridge-nf / bridge";
    of(check, ClaimVerdict::Fails, 2.0, words);
    let own = format!("{check}to_quantity = \"share bridge\"\n");
    let words =
        "profile share of bridge+netfilter over profile share of bridge, bridge-nf / bridge";
    of(&own, ClaimVerdict::Holds, 3.0, words);
    let nd5 = choose(reports().unwrap(), &["ND5".to_owned()]).unwrap()[0].claim;
    let base = nd5.checks[0].of_base().unwrap();
    assert_eq!(*base, "cost of bridge".parse::<What>().unwrap());
}

/// Leaving a thing out is the authority on what it costs; a profile stands beside it (ND1, ND2).
#[test]
fn what_leaving_out_takes_off_is_judged_and_a_profile_is_beside_it() {
    for id in ["ND1", "ND2"] {
        let claim = choose(reports().unwrap(), &[id.to_owned()]).unwrap()[0].claim;
        let of = |check: &Check| check.of_cells().unwrap().0.clone();
        assert_eq!(of(&claim.checks[0]), What::Cost, "{id}");
        let beside = of(&claim.beside[0].0);
        assert!(matches!(beside, What::CostShare(_)), "{id}: {beside:?}");
    }
}

/// Ten blocks of bridge, with a tenth of its samples in the bridge, and of direct, of which some blocks have none there.
fn without_a_sample_in(none: std::ops::Range<u32>) -> Run {
    let mut run = hand_made(&["bridge", "direct"]);
    for block in 0..10 {
        for cell in [0, 1] {
            let outcome = Outcome::Measured(Box::new(measured(25_000_000)));
            push(&mut run, block, 0, cell, outcome);
            let is_none = cell == 1 && none.contains(&block);
            let share = if is_none { 0.0 } else { 0.1 };
            let shares = BTreeMap::from([("bridge share_ratio", share)]);
            run.profiles
                .extend(super::sample::profile(&shares, block, cell));
        }
    }
    run
}

const OF_DIRECT: &str = "judge = \"ratio\"\nquantity = \"share bridge\"\ncells = { path = \"bridge\" }\nto = [\"direct\"]\n";

/// A window of the base without a sample counts as any other: the ratio is that of the sums.
#[test]
fn a_window_of_the_base_without_a_sample_counts() {
    let check = format!("{OF_DIRECT}at_least = 1.0\n");
    let claim = judged(&check, without_a_sample_in(0..1));
    assert_eq!(claim.verdict, ClaimVerdict::Undecided, "{claim:#?}");
    let value = claim.checks[0].points[0].measured.value;
    assert!((value - 10.0 / 9.0).abs() < 1e-4, "{value}");
    assert!(claim.checks[0].smallest_effect.is_some());
}

/// NM3: where one window of the base or none has a sample, the ratio is at least the one to a sample in each. A window has a million.
#[test]
fn to_hardly_any_sample_a_ratio_is_known_from_below() {
    for (none, least) in [(0..10, 1e5), (0..9, 1.0 / 0.100_009)] {
        let of = |bounds: &str| {
            let check = format!("{OF_DIRECT}{bounds}\n");
            let claim = judged(&check, without_a_sample_in(none.clone()));
            let value = claim.checks[0].points[0].measured.value;
            assert!((value / least - 1.0).abs() < 1e-3, "{value}, not {least}");
            let seen = 10 - none.len();
            let why =
                format!("{seen} of 10 windows of what it is compared with had a sample of it");
            assert!(claim.sentence.contains(&why), "{}", claim.sentence);
            claim.verdict
        };
        assert_eq!(of("at_most = 2e6"), ClaimVerdict::Undecided);
        assert_eq!(of("at_least = 2e6"), ClaimVerdict::Undecided);
    }
    let none = |bounds: &str| {
        judged(
            &format!("{OF_DIRECT}{bounds}\n"),
            without_a_sample_in(0..10),
        )
    };
    assert_eq!(none("at_least = 2.0").verdict, ClaimVerdict::Holds);
    assert_eq!(none("at_most = 2.0").verdict, ClaimVerdict::Fails);
}
