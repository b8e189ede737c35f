//! Verdicts of generated intervals and blocks.

use super::*;
use crate::bounds::Bounds;
use crate::place::combine;
use crate::position::by_intervals;
use crate::rule::Over;
use crate::stats::Estimate;
use proptest::prelude::*;

fn bounds() -> impl Strategy<Value = Bounds> {
    (0.1..2.0_f64, 0.0..2.0_f64).prop_map(|(low, width)| Bounds::new(Some(low), Some(low + width)))
}

fn interval() -> impl Strategy<Value = (f64, f64)> {
    (0.0..4.0_f64, 0.0..1.0_f64).prop_map(|(low, width)| (low, low + width))
}

proptest! {
    /// Known intervals: within is within, outside is outside, and nothing is both.
    #[test]
    fn an_interval_lies_in_one_way(bounds in bounds(), (low, high) in interval()) {
        let lies = bounds.lies(&estimate(low, high, 10));
        let inside = bounds.low <= low && high <= bounds.high;
        let outside = high < bounds.low || bounds.high < low;
        prop_assert!(!(inside && outside));
        prop_assert_eq!(lies == BoundPosition::Inside, inside);
        prop_assert_eq!(lies == BoundPosition::Outside, outside);
    }

    /// A wider interval never turns an undecided point into a decided one.
    #[test]
    fn wider_is_never_surer(bounds in bounds(), (low, high) in interval(), more in 0.0..1.0_f64) {
        let narrow = estimate(low, high, 10);
        let wide = estimate(low - more, high + more, 10);
        if by_intervals(bounds, &narrow, &narrow) == BoundPosition::Across {
            prop_assert_eq!(by_intervals(bounds, &wide, &wide), BoundPosition::Across);
        }
        // Fewer than 8 blocks decide nothing.
        prop_assert_eq!(by_intervals(bounds, &estimate(low, high, 7), &narrow), BoundPosition::Across);
    }

    /// Another point never makes a rule that failed hold, nor the other way round.
    #[test]
    fn another_point_never_turns_a_verdict_round(
        places in prop::collection::vec(prop::sample::select(vec![BoundPosition::Inside, BoundPosition::Outside, BoundPosition::Across]), 1..12),
        more in prop::sample::select(vec![BoundPosition::Inside, BoundPosition::Outside, BoundPosition::Across]),
    ) {
        let before = combine(Over::Every, &places, places.len());
        let mut after = places.clone();
        after.push(more);
        let after = combine(Over::Every, &after, after.len());
        prop_assert!(!(before == ClaimVerdict::Fails && after != ClaimVerdict::Fails));
        prop_assert!(!(before == ClaimVerdict::Undecided && after == ClaimVerdict::Holds));
        // Most of them: never both.
        let inside = places.iter().filter(|p| **p == BoundPosition::Inside).count();
        prop_assert_eq!(combine(Over::Most, &places, places.len()) == ClaimVerdict::Holds, 2 * inside > places.len());
    }

    /// Over generated blocks: a true ratio well within the rule is never said to fail, one well outside never to hold.
    #[test]
    fn verdicts_follow_the_figures(ratio in 0.5..1.5_f64, spread in 0.0..0.02_f64, blocks in 8..20_u32) {
        let run = made(&[("veth", 1e9), ("bridge", ratio * 1e9), ("direct", 1e9)], blocks, spread);
        let verdict = judged(RATIO, run).verdict;
        if (0.99..1.01).contains(&ratio) {
            prop_assert_ne!(verdict, ClaimVerdict::Fails);
        }
        if !(0.9..1.1).contains(&ratio) {
            prop_assert_ne!(verdict, ClaimVerdict::Holds);
        }
    }
}

fn estimate(low: f64, high: f64, n: usize) -> Estimate {
    Estimate {
        value: f64::midpoint(low, high),
        low,
        high,
        confidence: 0.95,
        n,
    }
}
