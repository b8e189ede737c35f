//! Two independent groups on the log scale.

use super::moments::{logs, mean, sd};
use super::verdict::Comparison;

/// Compares `a` with `b` if their values are not paired (figures of repeated runs): the ratio of geometric means, with
/// Welch's t interval on the log scale (Welch 1947, "The generalization of
/// `Student's' problem when several different population variances are involved"; degrees of freedom by Satterthwaite 1946). `None`
/// if a group has fewer than 2 values or any value is not above 0.
///
/// On the log scale the inverse ratio is the exact reciprocal, and throughput and cost scatter almost normally, unlike
/// in plain units. The test uses only the scatter within each group. So give it figures of repeated runs, not blocks of
/// two runs: then it would take what differs between whole runs (another boot, a neighbour on the host) for a
/// difference of the things compared.
#[must_use]
pub(super) fn compare_unpaired(a: &[f64], b: &[f64], confidence: f64) -> Option<Comparison> {
    let (a, b) = (logs(a)?, logs(b)?);
    let (na, nb) = (a.len() as f64, b.len() as f64);
    let (va, vb) = (sd(&a)?.powi(2) / na, sd(&b)?.powi(2) / nb);
    let both = va + vb;
    let df = if both > 0.0 {
        both.powi(2) / (va.powi(2) / (na - 1.0) + vb.powi(2) / (nb - 1.0))
    } else {
        na + nb - 2.0
    };
    let n = a.len().min(b.len());
    Comparison::student(mean(&a)? - mean(&b)?, both.sqrt(), df, confidence, n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;
    use crate::{Verdict, judge};
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// A table of two runs that differ in the last cell only, by this factor.
    fn table(
        cells: usize,
        blocks: [usize; 2],
        factor: f64,
        rng: &mut ChaCha8Rng,
    ) -> Vec<Comparison> {
        let cell = |median, n, rng: &mut _| {
            Synthetic::LogNormal {
                median,
                sigma: 0.015,
            }
            .draw(n, rng)
        };
        (1..=cells)
            .map(|at| {
                let a = cell(100.0, blocks[0], rng);
                let b = cell(
                    if at == cells { 100.0 * factor } else { 100.0 },
                    blocks[1],
                    rng,
                );
                compare_unpaired(&b, &a, 0.95).unwrap()
            })
            .collect()
    }

    /// Runs of one thing, of equal and of different length: how often any of 20 cells is called different. No margin,
    /// so that *equivalent* hides none.
    #[test]
    fn equal_runs_are_left_alone() {
        for (blocks, seed) in [([10, 10], 1), ([8, 20], 2)] {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let alarms = (0..600)
                .filter(|_| {
                    let p: Vec<f64> = table(20, blocks, 1.0, &mut rng)
                        .iter()
                        .map(|c| c.p)
                        .collect();
                    crate::benjamini_hochberg(&p, 0.05).contains(&true)
                })
                .count();
            assert!(
                (12..=42).contains(&alarms),
                "{alarms} of 600 with {blocks:?}"
            );
        }
    }

    #[test]
    fn one_slow_cell_of_two_hundred_is_found() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let (mut stated, mut found) = (0, 0);
        for _ in 0..80 {
            let judged = judge(&table(200, [16, 16], 1.03, &mut rng), 0.02, 0.95);
            if judged[199].smallest_detectable <= 0.03 {
                stated += 1;
                found += usize::from(judged[199].verdict == Verdict::Different);
            }
        }
        assert!((40..80).contains(&stated), "{stated}: neither all nor few");
        assert!(found * 100 >= 80 * stated, "{found} of {stated}");
    }

    /// R `t.test(extra ~ group, data = sleep)` (Student 1908 taken as two groups): t = −1.8608,
    /// df = 17.776, p = 0.07939, interval −3.3654832 to 0.2054832.
    #[test]
    fn welch_on_students_sleep() {
        let one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0_f64];
        let two = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4_f64];
        let c = compare_unpaired(&one.map(f64::exp), &two.map(f64::exp), 0.95).unwrap();
        assert!((c.ratio.value.ln() / c.se_log + 1.8608).abs() < 1e-4);
        assert!((c.df - 17.776).abs() < 1e-3, "{}", c.df);
        assert!((c.p - 0.07939).abs() < 1e-5, "{}", c.p);
        assert!((c.ratio.low.ln() + 3.365_483_2).abs() < 1e-5);
        assert!((c.ratio.high.ln() - 0.205_483_2).abs() < 1e-5);
    }

    #[test]
    fn groups_without_spread() {
        let c = compare_unpaired(&[2.0; 8], &[1.0; 9], 0.95).unwrap();
        assert_eq!((c.p, c.se_log, c.ratio.n), (0.0, 0.0, 8));
        let c = compare_unpaired(&[2.0; 8], &[2.0; 8], 0.95).unwrap();
        assert_eq!(c.p, 1.0);
        // All the spread is in one group: its degrees of freedom alone.
        let c = compare_unpaired(&[2.0; 8], &[1.0, 1.1, 1.2], 0.95).unwrap();
        assert!((c.df - 2.0).abs() < 1e-9);
    }

    #[test]
    fn garbage_has_no_answer() {
        for (a, b) in [
            (&[1.0][..], &[1.0, 2.0][..]),
            (&[], &[1.0, 2.0]),
            (&[1.0, 0.0], &[1.0, 2.0]),
            (&[1.0, 2.0], &[1.0, f64::NAN]),
        ] {
            assert_eq!(compare_unpaired(a, b, 0.95), None);
        }
        assert_eq!(compare_unpaired(&[1.0, 2.0], &[1.0, 2.0], 1.0), None);
    }

    proptest! {
        #[test]
        fn the_other_way_round_is_the_reciprocal(
            a in prop::collection::vec(0.1..10.0_f64, 2..12),
            b in prop::collection::vec(0.1..10.0_f64, 2..12),
        ) {
            let (one, other) =
                (compare_unpaired(&a, &b, 0.95).unwrap(), compare_unpaired(&b, &a, 0.95).unwrap());
            prop_assert!((one.ratio.value * other.ratio.value - 1.0).abs() < 1e-9);
            prop_assert!((one.ratio.low * other.ratio.high - 1.0).abs() < 1e-6);
            prop_assert!((one.p - other.p).abs() < 1e-9);
            let least = (a.len().min(b.len()) - 1) as f64;
            prop_assert!(one.df >= least - 1e-6 && one.df <= (a.len() + b.len()) as f64);
        }
    }
}
