//! When to check the precision of a run, and whether it is enough.

/// Numbers of blocks after which to check the widths: `min`, then 10, 20, 40, … below `max`, and `max` itself; sorted,
/// each once. Few checks, fixed beforehand, keep the coverage of the final interval close to the stated one; a check
/// after every block would not.
#[must_use]
pub fn looks(min: usize, max: usize) -> Vec<usize> {
    let doublings = std::iter::successors(Some(10_usize), |n| n.checked_mul(2));
    let mut looks = vec![min.min(max)];
    looks.extend(doublings.take_while(|n| *n < max).filter(|n| *n > min));
    looks.push(max);
    looks.dedup();
    looks.retain(|n| *n > 0);
    looks
}

/// The same for a run that continues until a width is reached: each check at a quarter more blocks than the previous
/// one, so that little time is wasted. It checks only widths, which does not affect the coverage.
#[must_use]
pub fn frequent_looks(min: usize, max: usize) -> Vec<usize> {
    let next = |n: &usize| Some((n + n.div_ceil(4)).min(max)).filter(|next| next > n);
    std::iter::successors(Some(min.min(max)), next).collect()
}

/// Whether a quantile may be printed: there must be at least 10/(1 − q) observations, so that some ten are beyond it.
/// False for a `q` outside 0..1.
#[must_use]
pub fn enough_for_quantile(observations: u64, q: f64) -> bool {
    // 1 − 0.9 is slightly below 0.1 in binary; 100 observations must be enough nevertheless.
    (0.0..1.0).contains(&q) && observations as f64 * (1.0 - q) >= 10.0 * (1.0 - 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn looks_double_from_ten() {
        assert_eq!(looks(8, 100), [8, 10, 20, 40, 80, 100]);
        assert_eq!(looks(10, 40), [10, 20, 40]);
        assert_eq!(looks(3, 5), [3, 5]);
        assert_eq!(looks(15, 30), [15, 20, 30]);
        assert_eq!(looks(9, 4), [4]);
        assert_eq!(looks(0, 1), [1]);
        assert!(looks(0, 0).is_empty());
    }

    #[test]
    fn frequent_looks_grow_by_a_quarter() {
        assert_eq!(frequent_looks(8, 30), [8, 10, 13, 17, 22, 28, 30]);
        assert_eq!(frequent_looks(8, 8), [8]);
        assert_eq!(frequent_looks(9, 4), [4]);
    }

    #[test]
    fn ten_beyond_the_quantile() {
        for (q, n) in [
            (0.5, 20),
            (0.9, 100),
            (0.99, 1000),
            (0.999, 10_000),
            (0.9999, 100_000),
        ] {
            assert!(enough_for_quantile(n, q), "{q}");
            assert!(!enough_for_quantile(n - 1, q), "{q}");
        }
        assert!(!enough_for_quantile(u64::MAX, 1.0));
        assert!(!enough_for_quantile(u64::MAX, f64::NAN));
    }

    proptest! {
        #[test]
        fn looks_are_sorted_and_end_at_max(min in 0..5000_usize, max in 1..5000_usize) {
            let looks = looks(min, max);
            prop_assert!(looks.windows(2).all(|w| w[0] < w[1]));
            prop_assert_eq!(looks.last(), Some(&max));
            prop_assert!(looks[0] >= min.min(max));
        }
    }
}
