//! The interval of a share: k of n.

use super::distribution::beta_quantile;
use super::estimate::{Estimate, alpha};

/// Share k/n with the interval of Clopper and Pearson (1934), which never covers less than stated. `None` if n is 0, k
/// is above n, or the confidence is not between 0 and 1.
#[must_use]
pub fn binomial_interval(k: u64, n: u64, confidence: f64) -> Option<Estimate> {
    let alpha = alpha(confidence)?;
    if n == 0 || k > n {
        return None;
    }
    let (hits, misses) = (k as f64, (n - k) as f64);
    let low = if k == 0 {
        0.0
    } else {
        beta_quantile(alpha / 2.0, hits, misses + 1.0)?
    };
    let high = if k == n {
        1.0
    } else {
        beta_quantile(1.0 - alpha / 2.0, hits + 1.0, misses)?
    };
    Estimate::bounded(
        hits / n as f64,
        (low, high),
        confidence,
        usize::try_from(n).ok()?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 682 of 925 plants, Mendel's peas in the R manual of `binom.test` (after Conover 1971): 0.7076683 to 0.7654066.
    /// The others are from a table of exact limits.
    #[test]
    fn published_limits() {
        for (k, n, low, high) in [
            (682, 925, 0.707_668_3, 0.765_406_6),
            (5, 10, 0.187_086_0, 0.812_914_0),
            (1, 10, 0.002_528_579, 0.445_016_1),
        ] {
            let e = binomial_interval(k, n, 0.95).unwrap();
            assert!(
                (e.low - low).abs() < 1e-7 && (e.high - high).abs() < 1e-7,
                "{e:?}"
            );
        }
    }

    /// No success in n: the upper limit is 1 − (α/2)^(1/n).
    #[test]
    fn ends() {
        let none = binomial_interval(0, 200, 0.95).unwrap();
        assert_eq!((none.value, none.low), (0.0, 0.0));
        assert!((none.high - (1.0 - 0.025_f64.powf(1.0 / 200.0))).abs() < 1e-12);
        let all = binomial_interval(200, 200, 0.95).unwrap();
        assert_eq!((all.value, all.high), (1.0, 1.0));
        assert!((all.low - 0.025_f64.powf(1.0 / 200.0)).abs() < 1e-12);
    }

    /// Millions of packets: close to the normal approximation k ± 1.96·σ.
    #[test]
    fn many_packets() {
        for (k, n) in [
            (10_000_u64, 10_000_000_u64),
            (1_000_000, 1_000_000_000),
            (500_000, 1_000_000),
            (50_000_000, 100_000_000),
            (99_990_000, 100_000_000),
        ] {
            let e = binomial_interval(k, n, 0.95).unwrap();
            let sigma = (k as f64 * (1.0 - k as f64 / n as f64)).sqrt();
            let low = (e.low - e.value) * n as f64 / sigma;
            let high = (e.high - e.value) * n as f64 / sigma;
            assert!((low + 1.96).abs() < 0.03, "{k} of {n}: {low}");
            assert!((high - 1.96).abs() < 0.03, "{k} of {n}: {high}");
        }
    }

    #[test]
    fn garbage_gives_none() {
        assert_eq!(binomial_interval(0, 0, 0.95), None);
        assert_eq!(binomial_interval(2, 1, 0.95), None);
        assert_eq!(binomial_interval(1, 2, f64::NAN), None);
    }

    proptest! {
        #[test]
        fn mirrored_and_holds_its_value(n in 1..3000_u64, share in 0.0..=1.0_f64) {
            let k = (share * n as f64) as u64;
            let e = binomial_interval(k, n, 0.95).unwrap();
            prop_assert!(e.low <= e.value && e.value <= e.high && e.low >= 0.0 && e.high <= 1.0);
            let mirror = binomial_interval(n - k, n, 0.95).unwrap();
            prop_assert!((mirror.low - (1.0 - e.high)).abs() < 1e-9);
        }
    }
}
