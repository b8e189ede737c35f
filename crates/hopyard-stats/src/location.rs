//! The location of a distribution, robust against a few outliers.

/// Of more values than this, the means of all pairs are counted and not kept: those of ten thousand values take 400 MB.
const MOST_TO_KEEP: usize = 2000;

/// The median of the means of all pairs, each value with itself included (Hodges and Lehmann 1963). It is about as
/// precise as the mean if values are normal (95 %), and a quarter of outliers moves it little. `None` without values,
/// or if one is not a number.
#[must_use]
pub fn hodges_lehmann(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    if values.len() > MOST_TO_KEEP && values.iter().all(|value| value.is_finite()) {
        return Some(middle_mean(values));
    }
    let pairs = values
        .iter()
        .enumerate()
        .flat_map(|(at, one)| values[at..].iter().map(move |two| 0.5 * (one + two)));
    median(pairs.filter(|mean| !mean.is_nan()).collect())
}

/// The median of the means of all pairs of finite values, found by counting how many of them are at most so much.
fn middle_mean(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len() * (sorted.len() + 1) / 2;
    let upper = nth_mean(&sorted, count / 2 + 1);
    if !count.is_multiple_of(2) {
        return upper;
    }
    0.5 * (nth_mean(&sorted, count / 2) + upper)
}

/// The `nth` least of the means of all pairs, from 1: the least number that so many of them are not above.
fn nth_mean(sorted: &[f64], nth: usize) -> f64 {
    let (mut low, mut high) = (in_order(sorted[0]), in_order(sorted[sorted.len() - 1]));
    while low < high {
        let middle = low + (high - low) / 2;
        if means_up_to(sorted, from_order(middle)) >= nth {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    from_order(low)
}

/// How many pairs, each value with itself included, have a mean of at most `most`.
fn means_up_to(sorted: &[f64], most: f64) -> usize {
    let mut partners = sorted.len();
    let mut count = 0;
    for (at, one) in sorted.iter().enumerate() {
        while partners > at && 0.5 * (one + sorted[partners - 1]) > most {
            partners -= 1;
        }
        if partners <= at {
            break;
        }
        count += partners - at;
    }
    count
}

/// Finite numbers as whole numbers in the same order (as [`f64::total_cmp`] compares them).
fn in_order(value: f64) -> i128 {
    let bits = value.to_bits().cast_signed();
    i128::from(if bits < 0 { bits ^ i64::MAX } else { bits })
}

fn from_order(number: i128) -> f64 {
    let bits = i64::try_from(number).unwrap_or_default();
    f64::from_bits(if bits < 0 { bits ^ i64::MAX } else { bits }.cast_unsigned())
}

/// The value in the middle, or the mean of the two there. `None` without values, or if one is not a number.
#[must_use]
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let count = values.len();
    let (below, upper, _) = values.select_nth_unstable_by(count / 2, f64::total_cmp);
    if !count.is_multiple_of(2) {
        return Some(*upper);
    }
    let lower = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(0.5 * (lower + *upper)).filter(|middle| !middle.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mean;
    use proptest::prelude::*;

    #[test]
    fn medians() {
        let (high, nan) = (f64::INFINITY, f64::NAN);
        for (values, is) in [
            (vec![], None),
            (vec![3.0, 1.0, 2.0], Some(2.0)),
            (vec![4.0, 1.0], Some(2.5)),
            (vec![4.0, 1.0, 2.0, 3.0], Some(2.5)),
            (vec![1.0, high, 2.0], Some(2.0)),
            (vec![-high, high], None),
            (vec![1.0, nan, 2.0], None),
        ] {
            assert_eq!(median(values.clone()), is, "{values:?}");
        }
    }

    /// Hollander and Wolfe, Nonparametric Statistical Methods, example 3.1 (depression scale): the estimate is −0.46.
    #[test]
    fn hollander_wolfe_depression() {
        let differences = [
            -0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010,
        ];
        let located = hodges_lehmann(&differences).unwrap();
        assert!((located + 0.46).abs() < 1e-9, "{located}");
    }

    #[test]
    fn a_quarter_of_values_far_off_moves_it_little() {
        let mut values: Vec<f64> = (0..16).map(|n| 1.0 + 0.01 * f64::from(n % 4)).collect();
        let before = hodges_lehmann(&values).unwrap();
        for value in values.iter_mut().take(4) {
            *value = 100.0;
        }
        let after = hodges_lehmann(&values).unwrap();
        assert!((after - before).abs() < 0.02, "{before} {after}");
        assert!(mean(&values).unwrap() > 20.0);
    }

    #[test]
    fn nothing_and_no_number() {
        assert_eq!(hodges_lehmann(&[]), None);
        assert_eq!(hodges_lehmann(&[1.0, f64::NAN]), None);
        assert_eq!(hodges_lehmann(&[3.0]), Some(3.0));
        assert_eq!(hodges_lehmann(&[f64::NEG_INFINITY, f64::INFINITY]), None);
        assert_eq!(hodges_lehmann(&[1.0, 1.0, 1.0, f64::INFINITY]), Some(1.0));
    }

    #[test]
    fn many_values_need_no_memory_for_their_pairs() {
        let values: Vec<f64> = (0..40_000).map(|n| f64::from(n % 1000) - 250.0).collect();
        assert_eq!(hodges_lehmann(&values), Some(249.5));
    }

    proptest! {
        #[test]
        fn counting_finds_what_keeping_all_means_finds(values in prop::collection::vec(-3.0..3.0_f64, 1..40)) {
            let values: Vec<f64> = values.iter().map(|value| (value * 8.0).round() / 8.0).collect();
            prop_assert_eq!(Some(middle_mean(&values)), hodges_lehmann(&values));
        }

        #[test]
        fn it_moves_with_the_values_and_stays_between_them(
            values in prop::collection::vec(-10.0..10.0_f64, 1..30),
            shift in -5.0..5.0_f64,
        ) {
            let located = hodges_lehmann(&values).unwrap();
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert!((least..=most).contains(&located));
            let moved: Vec<f64> = values.iter().map(|value| value + shift).collect();
            prop_assert!((hodges_lehmann(&moved).unwrap() - located - shift).abs() < 1e-9);
        }
    }
}
