//! The few distribution functions that this crate needs, with checked arguments: `statrs` panics outside the domain,
//! these functions return `None`.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::beta::ln_beta;
use statrs::function::erf::erfc;
use statrs::function::gamma::{checked_gamma_lr, ln_gamma};

/// Quantile of Student's t: the x with P(T <= x) = p, for 0 < p < 1 and df > 0.
pub(super) fn t_quantile(p: f64, df: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    let x = StudentsT::new(0.0, 1.0, df).ok()?.inverse_cdf(p);
    x.is_finite().then_some(x)
}

/// Two-sided p-value of a t statistic: P(|T| >= |t|).
pub(super) fn t_two_sided(t: f64, df: f64) -> Option<f64> {
    if t.is_nan() {
        return None;
    }
    let p = 2.0 * StudentsT::new(0.0, 1.0, df).ok()?.sf(t.abs());
    Some(p.clamp(0.0, 1.0))
}

/// Quantile of the beta distribution, by bisection on its distribution function: slower than Newton's method, but it
/// cannot diverge on counts of many millions.
pub(super) fn beta_quantile(p: f64, a: f64, b: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0 && a > 0.0 && b > 0.0 && (a + b).is_finite()) {
        return None;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while high - low > 1e-13 * high && high > f64::MIN_POSITIVE {
        let middle = 0.5 * (low + high);
        if beta_cdf(middle, a, b)? < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(0.5 * (low + high))
}

/// Regularised incomplete beta function for 0 < x < 1, by the continued fraction DLMF 8.17.22
/// and Lentz's method. `statrs` stops after 140 terms; with k of n packets some √n are needed.
fn beta_cdf(x: f64, a: f64, b: f64) -> Option<f64> {
    if x > (a + 1.0) / (a + b + 2.0) {
        return Some(1.0 - beta_cdf_below_mode(1.0 - x, b, a)?);
    }
    beta_cdf_below_mode(x, a, b)
}

/// [`beta_cdf`] where the fraction converges fast. `None` if it has not converged after a million terms.
fn beta_cdf_below_mode(x: f64, a: f64, b: f64) -> Option<f64> {
    const TERMS: u32 = 1_000_000;
    let front = (a * x.ln() + b * (-x).ln_1p() - ln_beta(a, b)).exp() / a;
    let off_zero = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / off_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in (1..TERMS).map(f64::from) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for term in [even, odd] {
            d = 1.0 / off_zero(1.0 + term * d);
            c = off_zero(1.0 + term / c);
            factor = d * c;
            fraction *= factor;
        }
        if (factor - 1.0).abs() < 1e-15 {
            return Some((front * fraction).clamp(0.0, 1.0));
        }
    }
    None
}

/// P(Z <= z) of the standard normal.
pub(super) fn normal_cdf(z: f64) -> f64 {
    0.5 * erfc(-z / std::f64::consts::SQRT_2)
}

/// Power of a two-sided t test: P(|T'| > critical) where T' is noncentral t with `df` degrees of freedom and
/// noncentrality `ncp`.
///
/// T' = (Z + ncp)/S with Z normal and S² = χ²/df (Johnson, Kotz and Balakrishnan 1995, chapter 31). One of the two is
/// integrated numerically, and the other enters by its distribution function. With few degrees of freedom the critical
/// value may be in the hundreds, so the integrand over S has a steep step; with many, S is nearly constant, and the
/// integrand over Z has one.
pub(super) fn t_power(critical: f64, df: f64, ncp: f64) -> f64 {
    let power = if df <= 20.0 {
        simpson(-8.0, 8.0, |z| {
            let density = (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
            let chi2 = df * ((z + ncp) / critical).powi(2);
            density * checked_gamma_lr(0.5 * df, 0.5 * chi2).unwrap_or(0.0)
        })
    } else {
        let ln_norm = std::f64::consts::LN_2 + 0.5 * df * (0.5 * df).ln() - ln_gamma(0.5 * df);
        let reach = 9.0 / (2.0 * df).sqrt();
        simpson((1.0 - reach).max(1e-9), 1.0 + reach, |s| {
            let density = (ln_norm + (df - 1.0) * s.ln() - 0.5 * df * s * s).exp();
            density * (normal_cdf(ncp - critical * s) + normal_cdf(-ncp - critical * s))
        })
    };
    power.clamp(0.0, 1.0)
}

/// Simpson's rule.
fn simpson(from: f64, to: f64, integrand: impl Fn(f64) -> f64) -> f64 {
    const STEPS: u32 = 320;
    let step = (to - from) / f64::from(STEPS);
    let sum: f64 = (0..=STEPS)
        .map(|i| {
            let weight = match i {
                0 | STEPS => 1.0,
                i if i % 2 == 1 => 4.0,
                _ => 2.0,
            };
            weight * integrand(from + f64::from(i) * step)
        })
        .sum();
    sum * step / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Student's t table, any textbook; digits from R `qt`.
    #[test]
    fn t_table() {
        for (p, df, x) in [
            (0.975, 1.0, 12.706_204_736_174_7),
            (0.975, 7.0, 2.364_624_251_592_78),
            (0.975, 9.0, 2.262_157_162_798_2),
            (0.95, 9.0, 1.833_112_932_656_24),
            (0.995, 3.0, 5.840_909_309_733_36),
        ] {
            let got = t_quantile(p, df).unwrap();
            assert!((got / x - 1.0).abs() < 1e-9, "{got} {x}");
            assert!((t_two_sided(x, df).unwrap() - 2.0 * (1.0 - p)).abs() < 1e-12);
        }
        assert_eq!(t_quantile(1.0, 3.0), None);
        assert_eq!(t_quantile(0.5, f64::NAN), None);
    }

    /// R `power.t.test(n = 20, delta = 1, sd = 1)`: two samples, 38 degrees of freedom,
    /// noncentrality sqrt(20/2): power 0.8689528 (0.868953 with both tails).
    #[test]
    fn power_of_a_t_test() {
        let critical = t_quantile(0.975, 38.0).unwrap();
        assert!((t_power(critical, 38.0, 10.0_f64.sqrt()) - 0.868_953).abs() < 1e-6);
    }

    /// Without an effect, the power is the level, whatever the degrees of freedom.
    #[test]
    fn power_without_effect_is_the_level() {
        for df in [1.0, 2.0, 3.0, 7.0, 20.0, 21.0, 39.0, 400.0] {
            let critical = t_quantile(0.975, df).unwrap();
            let level = t_power(critical, df, 0.0);
            assert!((level - 0.05).abs() < 1e-5, "{df}: {level}");
        }
    }

    /// The two integrals agree at the point where the function changes from one to the other.
    #[test]
    fn power_is_continuous_in_df() {
        for (critical, ncp) in [(2.1, 2.9), (4.0, 4.9), (2.1, 0.5)] {
            let (z, s) = (
                t_power(critical, 20.0, ncp),
                t_power(critical, 20.0 + 1e-9, ncp),
            );
            assert!((z - s).abs() < 1e-7, "{z} {s}");
        }
    }

    /// Beta(1, b) and Beta(a, 1) have closed quantiles.
    #[test]
    fn beta_closed_forms() {
        let got = beta_quantile(0.025, 1.0, 10.0).unwrap();
        assert!((got - (1.0 - 0.975_f64.powf(0.1))).abs() < 1e-12);
        let got = beta_quantile(0.975, 10.0, 1.0).unwrap();
        assert!((got - 0.975_f64.powf(0.1)).abs() < 1e-12);
    }
}
