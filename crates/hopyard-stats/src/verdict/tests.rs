use super::*;
use proptest::prelude::*;

fn logs_to_pairs(d: &[f64]) -> (Vec<f64>, Vec<f64>) {
    (
        d.iter().map(|d| 1000.0 * d.exp()).collect(),
        vec![1000.0; d.len()],
    )
}

fn comparison(d: &[f64]) -> Comparison {
    let (a, b) = logs_to_pairs(d);
    compare(&a, &b, 0.95).unwrap()
}

fn verdict(d: &[f64]) -> Verdict {
    judge(&[comparison(d)], 0.02, 0.95)[0].verdict
}

const SPREAD: [f64; 10] = [-1.5, -1.0, -0.6, -0.3, -0.1, 0.1, 0.3, 0.6, 1.0, 1.5];

fn around(centre: f64, scale: f64) -> Vec<f64> {
    SPREAD.iter().map(|s| centre + scale * s).collect()
}

/// Student's sleep data (1908): t = 4.0621 with 9 degrees of freedom, p = 0.002833.
#[test]
fn moments_of_the_logarithms_say_what_the_samples_do() {
    let a = [90.0, 105.0, 97.0, 110.0, 101.0];
    let logs: Vec<f64> = a.iter().map(|a: &f64| a.ln()).collect();
    let (mean, sd) = (mean(&logs).unwrap(), sd(&logs).unwrap());
    let of_moments = Comparison::with_value(mean, sd, 5, 95.0, 0.95).unwrap();
    let of_samples = compare(&a, &[95.0; 5], 0.95).unwrap();
    assert!((of_moments.ratio.low - of_samples.ratio.low).abs() < 1e-12);
    assert!((of_moments.p - of_samples.p).abs() < 1e-12);
    assert_eq!(Comparison::with_value(mean, sd, 1, 95.0, 0.95), None);
    assert_eq!(Comparison::with_value(mean, sd, 5, 0.0, 0.95), None);
}

#[test]
fn student_sleep_p() {
    let c = comparison(&[1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]);
    assert!((c.p - 0.002_833).abs() < 1e-6, "{}", c.p);
    assert!((c.se_log * 10.0_f64.sqrt() - 1.229_995).abs() < 1e-6);
}

#[test]
fn three_verdicts() {
    assert_eq!(verdict(&around(0.05, 0.01)), Verdict::Different);
    assert_eq!(verdict(&around(0.002, 0.01)), Verdict::Equivalent);
    assert_eq!(verdict(&around(0.02, 0.05)), Verdict::Inconclusive);
    // Significant, but surely below the margin, which was declared first.
    let small = around(0.01, 0.002);
    assert!(comparison(&small).p < 1e-4);
    assert_eq!(verdict(&small), Verdict::Equivalent);
}

/// Schuirmann (1987): the rule on the 1 − 2α interval is the pair of one-sided t tests.
#[test]
fn interval_rule_is_two_one_sided_tests() {
    for step in 0..60 {
        let c = comparison(&around(f64::from(step) * 0.0005, 0.012));
        let below = (0.02_f64.ln_1p() - c.ratio.value.ln()) / c.se_log;
        let above = (c.ratio.value.ln() + 0.02_f64.ln_1p()) / c.se_log;
        let both = [below, above]
            .iter()
            .all(|t| *t > 0.0 && t_two_sided(*t, 9.0).unwrap() / 2.0 <= 0.05);
        assert_eq!(equivalent(&c, 0.02, 0.05), both, "step {step}");
    }
}

/// A p-value of 0.03 is a difference when alone, but not among twenty equals.
#[test]
fn the_whole_table_counts() {
    let mut c = comparison(&around(0.03, 0.04));
    c.p = 0.03;
    assert_eq!(
        judge(std::slice::from_ref(&c), 0.02, 0.95)[0].verdict,
        Verdict::Different
    );
    let mut table = vec![c];
    table.extend((0..19).map(|_| comparison(&around(0.0, 0.04))));
    let judged = judge(&table, 0.02, 0.95);
    assert_eq!(judged[0].verdict, Verdict::Inconclusive);
    let alone = judge(&table[..1], 0.02, 0.95)[0].smallest_detectable;
    assert!(judged[0].smallest_detectable > alone);
}

/// A two-sided p-value is twice the one-sided one, and at the ends of a 95 % interval that is 2.5 %.
#[test]
fn one_sided_tests() {
    let c = comparison(&around(0.05, 0.01));
    assert!((2.0 * c.p_above(1.0) - c.p).abs() < 1e-12);
    assert!((c.p_above(c.ratio.low) - 0.025).abs() < 1e-6);
    assert!((c.p_below(c.ratio.high) - 0.025).abs() < 1e-6);
    assert!((c.p_above(1.02) + c.p_below(1.02) - 1.0).abs() < 1e-12);
    let exact = compare(&[2.0; 8], &[1.0; 8], 0.95).unwrap();
    assert_eq!((exact.p_above(1.9), exact.p_above(2.1)), (0.0, 1.0));
    assert_eq!(exact.p_above(2.0), 1.0, "at the bound is not beyond it");
    assert_eq!((c.p_above(f64::NAN), c.p_below(0.0)), (1.0, 1.0));
}

#[test]
fn no_spread() {
    let same = comparison(&[0.0; 8]);
    assert_eq!((same.p, same.se_log), (1.0, 0.0));
    let judged = judge(&[same], 0.02, 0.95);
    assert_eq!(
        (judged[0].verdict, judged[0].smallest_detectable),
        (Verdict::Equivalent, 0.0)
    );
    let doubled = compare(&[2.0; 8], &[1.0; 8], 0.95).unwrap();
    assert_eq!(doubled.p, 0.0);
    assert_eq!(judge(&[doubled], 0.02, 0.95)[0].verdict, Verdict::Different);
}

#[test]
fn garbage_is_inconclusive() {
    assert_eq!(compare(&[1.0], &[1.0], 0.95), None);
    assert_eq!(compare(&[1.0, 0.0], &[1.0, 1.0], 0.95), None);
    assert_eq!(compare(&[], &[], 0.95), None);
    let estimate = |n| Estimate {
        value: 1.0,
        low: 1.0,
        high: 1.0,
        confidence: 0.95,
        n,
    };
    let one = Comparison {
        ratio: estimate(1),
        p: 1.0,
        se_log: 0.0,
        df: 0.0,
    };
    let nan = Comparison {
        ratio: estimate(8),
        p: f64::NAN,
        se_log: f64::NAN,
        df: 7.0,
    };
    for judged in judge(&[one, nan], 0.02, 0.95) {
        assert_eq!(judged.verdict, Verdict::Inconclusive);
        assert_eq!(judged.smallest_detectable, f64::INFINITY);
    }
    let fine = comparison(&around(0.05, 0.01));
    let judged = judge(&[fine], 0.02, f64::NAN);
    assert_eq!(judged[0].verdict, Verdict::Inconclusive);
    assert_eq!(judged[0].smallest_detectable, f64::INFINITY);
    assert!(judge(&[], 0.02, 0.95).is_empty());
}

#[test]
fn survives_json() {
    let mut judged = judge(&[comparison(&around(0.05, 0.01))], 0.02, 0.95).remove(0);
    judged.smallest_detectable = f64::INFINITY;
    let text = serde_json::to_string(&judged).unwrap();
    assert!(text.contains("\"verdict\":\"different\""), "{text}");
    let back: Judged = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (back.verdict, back.smallest_detectable),
        (Verdict::Different, f64::INFINITY)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn order_of_the_table_does_not_matter(
        rows in prop::collection::vec((-0.05..0.05_f64, 0.001..0.05_f64), 1..12),
        turn in 0..12_usize,
    ) {
        let table: Vec<Comparison> =
            rows.iter().map(|(c, s)| comparison(&around(*c, *s))).collect();
        let mut turned = table.clone();
        turned.rotate_left(turn % table.len());
        let mut expected = judge(&table, 0.02, 0.95);
        expected.rotate_left(turn % table.len());
        prop_assert_eq!(judge(&turned, 0.02, 0.95), expected);
    }

    #[test]
    fn swapping_the_paths_keeps_p_and_verdict(
        pairs in prop::collection::vec((0.1..10.0_f64, 0.1..10.0_f64), 2..12),
    ) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let (one, other) = (compare(&a, &b, 0.95).unwrap(), compare(&b, &a, 0.95).unwrap());
        prop_assert!((one.p - other.p).abs() < 1e-9);
        let judged = [judge(&[one], 0.02, 0.95).remove(0), judge(&[other], 0.02, 0.95).remove(0)];
        prop_assert_eq!(judged[0].verdict, judged[1].verdict);
    }
}
