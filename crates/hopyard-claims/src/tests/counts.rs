//! What should not be there is counted, and how many figures decide for most of them.

use super::*;
use crate::figure::Figure;
use crate::place::Confidences;
use crate::rule::Over;

const NO_ERRORS: &str =
    "judge = \"level\"\nquantity = \"send_error_ratio\"\ncells = {}\nat_most = 0.0\n";

/// Ten blocks, or so many, with so many refused sends in block 3, of whose CPU time the hypervisor took this share.
fn refused(blocks: u32, errors: u64, steal: f64) -> Run {
    let mut run = hand_made(&["veth"]);
    for block in 0..blocks {
        let mut m = measured(1_000_000_000);
        if block == 3 {
            m.send_errors = errors;
            m.cpu.steal_ns = steal * m.cpu.elapsed_ns * f64::from(m.cpu.cpus);
        }
        push(&mut run, block, 0, 0, Outcome::Measured(Box::new(m)));
    }
    run
}

/// One of a thousand sends is enough to refute "none", though its mean is not shown to be above 0. What was seen while the hypervisor
/// took the CPU decides nothing.
#[test]
fn a_single_one_is_not_none() {
    use ClaimVerdict::{Fails, Holds, Undecided};
    for (blocks, errors, steal, verdict) in [
        (10, 0, 0.0, Holds),
        (10, 1, 0.0, Fails),
        (10, 1, 0.009, Fails),
        (10, 1, 0.02, Undecided),
        // None is none, whatever the hypervisor did.
        (10, 0, 0.02, Holds),
        // Seven blocks do not show that there is none, and show one that there is.
        (7, 0, 0.0, Undecided),
        (7, 1, 0.0, Fails),
    ] {
        let claim = judged(NO_ERRORS, refused(blocks, errors, steal));
        let case = format!("{blocks} blocks, {errors} errors, {steal}: {claim:#?}");
        assert_eq!(claim.verdict, verdict, "{case}");
        let said = format!("above 0 in 1 of {blocks} windows");
        assert_eq!(claim.sentence.contains(&said), errors > 0, "{case}");
        assert_eq!(claim.checks[0].smallest_effect, None, "{case}");
    }
}

/// Of other bounds it is the mean that counts.
#[test]
fn a_bound_above_none_is_one_of_the_mean() {
    let few = NO_ERRORS.replace("0.0", "0.001");
    let claim = judged(&few, refused(10, 1, 0.0));
    assert_eq!(claim.verdict, ClaimVerdict::Holds, "{claim:#?}");
}

/// Benjamini and Heller 2008: that at least u of n are within takes 1/(n − u + 1) of the risk for each.
#[test]
fn most_is_a_partial_conjunction() {
    let of = |over, figures, all| {
        let Confidences { within, outside } = Confidences::of(over, figures, all, 0.95);
        [within, outside].map(|confidence| (1e6 * (1.0 - confidence)).round() / 1e6)
    };
    // Five of eight within, four of eight outside.
    assert_eq!(of(Over::Most, 8, 8), [0.05 / 4.0, 0.05 / 5.0]);
    // Three of five within or outside.
    assert_eq!(of(Over::Most, 5, 5), [0.016_667, 0.016_667]);
    // All of them, and one of them: the intersection-union test and Bonferroni.
    assert_eq!(of(Over::Every, 8, 8), [0.05, 0.05 / 8.0]);
    // Beside another part of the claim with as many figures there is half of the risk for each part to fail.
    assert_eq!(of(Over::Every, 8, 16), [0.05, 0.05 / 16.0]);
    assert_eq!(of(Over::Most, 8, 16), [0.05 / 4.0, 0.05 / 10.0]);
    assert_eq!(of(Over::Every, 1, 1), [0.05, 0.05]);
}

/// Rates that scatter about 40 Gbit/s, in bit/s, and so many cells that have a tenth of that, or ten times as much.
fn eight(other: f64, others: usize) -> Run {
    let mut run = hand_made(&["veth"; 8]);
    for (cell, planned) in run.header.cells.iter_mut().enumerate() {
        planned.cell.axes.flows = 1 << cell;
    }
    for (block, rate) in (0..).zip(rates()) {
        for cell in 0..8 {
            let factor = if cell < others { other } else { 1.0 };
            let bytes = (factor * rate / 8.0 * 0.2) as u64;
            push(
                &mut run,
                block,
                0,
                cell,
                Outcome::Measured(Box::new(measured(bytes))),
            );
        }
    }
    run
}

fn rates() -> Vec<f64> {
    let scatter = [-2.0, 1.0, 0.0, 2.0, -1.0, 1.5, -1.5, 0.5, -0.5, 0.0];
    scatter.map(|step| 4e10 * (1.0 + 0.01 * step)).to_vec()
}

/// A bound between the ends that an interval has at two confidences.
fn between(end: fn(&crate::stats::Estimate) -> f64, one: f64, other: f64) -> f64 {
    let rates = Figure::Level(rates());
    let end = |confidence| end(&rates.interval(confidence).unwrap());
    f64::midpoint(end(one), end(other))
}

/// Five of eight figures are within by a fourth of the risk and not by an eighth; four are outside by a fifth of it and not by an eighth.
#[test]
fn most_hold_or_fail_by_the_risk_of_their_number() {
    let check = |bound: f64| {
        format!(
            "judge = \"level\"\nquantity = \"rate\"\ncells = {{}}\nat_least = {bound}\nover = \"most\"\n"
        )
    };
    let within = between(|interval| interval.low, 0.9875, 1.0 - 0.05 / 8.0);
    let claim = judged(&check(within), eight(0.1, 3));
    assert_eq!(claim.verdict, ClaimVerdict::Holds, "{claim:#?}");
    // One fewer is no majority.
    let claim = judged(&check(within), eight(0.1, 4));
    assert_eq!(claim.verdict, ClaimVerdict::Fails, "{claim:#?}");
    let outside = between(|interval| interval.high, 0.99, 1.0 - 0.05 / 8.0);
    let claim = judged(&check(outside), eight(10.0, 4));
    assert_eq!(claim.verdict, ClaimVerdict::Fails, "{claim:#?}");
    let surely = between(|interval| interval.high, 0.9875, 0.99);
    let claim = judged(&check(surely), eight(10.0, 4));
    assert_eq!(claim.verdict, ClaimVerdict::Undecided, "{claim:#?}");
}
