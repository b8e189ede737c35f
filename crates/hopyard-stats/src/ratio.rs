//! Ratios: of sums (service demand), and paired within blocks.

use super::distribution::t_quantile;
use super::estimate::{Estimate, alpha};
use super::interval::exp_student;
use super::moments::{log_ratios, sd};

/// Σ num / Σ den over blocks, with an interval: the service demand if `num` is CPU time and `den` the units of work of
/// the same block. `None` unless there are at least 2 blocks, no `den` is below 0, and both sums stay above 0 whichever
/// block is left out (a single `num` may be below 0 after a baseline was subtracted, and a single `den` may be 0).
///
/// The ratio of sums weighs blocks by the work done; the mean of the blocks' ratios does not. Its interval is the
/// jackknife on the log scale with t at n − 1 degrees of freedom (Tukey 1958; Miller 1974, "The jackknife: a review").
/// The jackknife needs no formula for the covariance of the two sums. On the log scale, swapping `num` and `den` gives
/// exactly the reciprocal interval, unlike the delta method on the plain scale. The value is the plain ratio of sums,
/// without bias correction, so that it can be checked by hand; the interval is centred on it.
#[must_use]
pub fn ratio_of_sums(num: &[f64], den: &[f64], confidence: f64) -> Option<Estimate> {
    let alpha = alpha(confidence)?;
    let n = num.len();
    if n < 2 || n != den.len() || den.iter().any(|d| d.is_nan() || *d < 0.0) {
        return None;
    }
    let whole = ln_positive(num.iter().sum())? - ln_positive(den.iter().sum())?;
    let partial = (0..n)
        .map(|out| Some(ln_positive(sum_without(num, out))? - ln_positive(sum_without(den, out))?))
        .collect::<Option<Vec<f64>>>()?;
    let count = n as f64;
    // Pseudo-values n·θ − (n−1)·θ₋ᵢ have (n−1) times the spread of the θ₋ᵢ.
    let se = (count - 1.0) * sd(&partial)? / count.sqrt();
    let half = t_quantile(1.0 - alpha / 2.0, count - 1.0)? * se;
    let ends = ((whole - half).exp(), (whole + half).exp());
    Estimate::bounded(whole.exp(), ends, confidence, n)
}

/// Summed anew rather than subtracted from the total, so that one large block does not leave its rounding error behind.
fn sum_without(x: &[f64], out: usize) -> f64 {
    x[..out].iter().sum::<f64>() + x[out + 1..].iter().sum::<f64>()
}

fn ln_positive(x: f64) -> Option<f64> {
    (x > 0.0 && x.is_finite()).then(|| x.ln())
}

/// Ratio a/b paired within blocks: exp(mean(d) ± t·s(d)/√n) with d_i = ln(a_i/b_i). `None` if n < 2, the lengths differ
/// or any value is not above 0.
///
/// Pairing removes whatever both runs of a block share (above all, drift of the machine). On the log scale, the inverse
/// ratio is the exact reciprocal.
#[must_use]
pub fn paired_ratio(a: &[f64], b: &[f64], confidence: f64) -> Option<Estimate> {
    exp_student(&log_ratios(a, b)?, confidence)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hormone patches, eight patients (Efron and Tibshirani 1993, table 10.1): blood level with
    /// placebo, old and new patch. They study θ = (new − old)/(old − placebo) = −0.0713; one plus
    /// that is a ratio of sums.
    const PLACEBO: [f64; 8] = [9243., 9671., 11792., 13357., 9055., 6290., 12412., 18806.];
    const OLD: [f64; 8] = [
        17649., 12013., 19979., 21816., 13850., 9806., 17208., 29044.,
    ];
    const NEW: [f64; 8] = [
        16449., 14614., 17274., 23798., 12560., 10157., 16570., 26325.,
    ];

    fn minus(a: [f64; 8], b: [f64; 8]) -> Vec<f64> {
        a.iter().zip(b).map(|(a, b)| a - b).collect()
    }

    #[test]
    fn efron_tibshirani_patches() {
        let (num, den) = (minus(NEW, PLACEBO), minus(OLD, PLACEBO));
        let e = ratio_of_sums(&num, &den, 0.95).unwrap();
        assert!((e.value - (1.0 - 0.0713)).abs() < 5e-5);
        // Their bootstrap standard error is 0.105. This is the same from our interval.
        let se = e.value * (e.high.ln() - e.value.ln()) / t_quantile(0.975, 7.0).unwrap();
        assert!((se - 0.105).abs() < 0.015, "{se}");
    }

    /// With equal denominators the ratio of sums is a mean over a constant, for which the jackknife is exact. The delta
    /// method agrees to second order.
    #[test]
    fn equal_work_gives_the_mean() {
        let num = [100.0, 101.0, 99.0, 100.5, 99.5];
        let e = ratio_of_sums(&num, &[10.0; 5], 0.95).unwrap();
        assert!((e.value - 10.0).abs() < 1e-12);
        let delta = t_quantile(0.975, 4.0).unwrap() * sd(&num).unwrap() / 5.0_f64.sqrt() / 100.0;
        assert!((e.high.ln() - e.value.ln() - delta).abs() < 1e-5);
    }

    /// Student's sleep data as logarithms of a ratio: exp of the published interval.
    #[test]
    fn paired_is_student_on_the_log_scale() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0_f64].map(f64::exp);
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4_f64].map(f64::exp);
        let e = paired_ratio(&second, &first, 0.95).unwrap();
        assert!((e.value.ln() - 1.58).abs() < 1e-12);
        assert!((e.low.ln() - 0.700_114_2).abs() < 1e-7);
        assert!((e.high.ln() - 2.459_885_8).abs() < 1e-7);
    }

    #[test]
    fn garbage_gives_none() {
        type Ratio = fn(&[f64], &[f64], f64) -> Option<Estimate>;
        for ratio in [ratio_of_sums as Ratio, paired_ratio] {
            assert_eq!(ratio(&[], &[], 0.95), None);
            assert_eq!(ratio(&[1.0], &[1.0], 0.95), None);
            assert_eq!(ratio(&[1.0, 2.0], &[0.0, 0.0], 0.95), None);
            assert_eq!(ratio(&[1.0, 2.0], &[1.0, -2.0], 0.95), None);
            assert_eq!(ratio(&[1.0, f64::NAN], &[1.0, 2.0], 0.95), None);
            assert_eq!(ratio(&[1.0, f64::INFINITY], &[1.0, 2.0], 0.95), None);
            assert_eq!(ratio(&[1.0, 2.0], &[1.0, 2.0], 1.0), None);
        }
        assert_eq!(ratio_of_sums(&[1.0, 2.0], &[1.0, 2.0, 3.0], 0.95), None);
        assert_eq!(paired_ratio(&[1.0, 2.0], &[1.0, 2.0, 3.0], 0.95), None);
    }
}
