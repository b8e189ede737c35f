//! How often a claim that is looked at several times gets a verdict, right or wrong: what docs/claims.md says of it, by simulation.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::bounds::Bounds;
use crate::figure::Figure;
use crate::further::{EARLY, MOST_TIMES, Seen, at_once, missing};
use crate::model::FOR_A_VERDICT;
use crate::place::CONFIDENCE;
use crate::stats::{Samples, mean_interval, standard_normal};

/// What came of claims that lie at one distance from their bound.
#[derive(Debug, Default)]
struct Outcomes {
    right: f64,
    wrong: f64,
    blocks: f64,
}

/// Figures whose mean is so many standard deviations of a block above the bound, each measured and looked at until it has a verdict or
/// got more blocks as often as may be.
fn outcomes(distance: f64, claims: u32) -> Outcomes {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let bounds = Bounds::new(Some(0.0), None);
    let mut all = Outcomes::default();
    for _ in 0..claims {
        let mut values = Vec::new();
        let mut more = f64::from(FOR_A_VERDICT);
        let mut lies = BoundPosition::Across;
        for look in 0..=MOST_TIMES {
            values.extend((0..more.ceil() as u32).map(|_| distance + standard_normal(&mut rng)));
            let risk = if look < MOST_TIMES { EARLY } else { 1.0 };
            let confidence = 1.0 - risk * (1.0 - CONFIDENCE);
            let seen = mean_interval(&Samples::new(&values).unwrap(), confidence).unwrap();
            lies = bounds.lies(&seen);
            if lies != BoundPosition::Across {
                break;
            }
            let seen = Seen::of(&seen, &Figure::Level(values.clone()));
            let missing = missing(&seen, confidence, bounds);
            more = at_once(values.len() as f64, missing);
        }
        let share = 1.0 / f64::from(claims);
        match lies {
            BoundPosition::Inside => all.right += share,
            BoundPosition::Outside => all.wrong += share,
            BoundPosition::Across => {}
        }
        all.blocks += share * values.len() as f64;
    }
    all
}

/// 5 % are asked for, 7 % were seen: few looks, and blocks whose number depends on what was seen. 20,000 claims have a standard error of
/// 0.2 %.
#[test]
fn on_the_bound_hardly_more_get_a_verdict_than_in_one_look() {
    let on = outcomes(0.0, 20_000);
    let verdicts = on.right + on.wrong;
    assert!((0.05..=0.078).contains(&verdicts), "{on:?}");
}

#[test]
fn off_the_bound_most_get_the_right_one() {
    for (distance, least, most_blocks) in [(1.0, 0.99, 18.0), (0.5, 0.94, 43.0), (0.35, 0.76, 55.0)]
    {
        let off = outcomes(distance, 4_000);
        assert!(off.right >= least && off.blocks <= most_blocks, "{off:?}");
        assert!(off.wrong <= 0.005, "{off:?}");
    }
}
