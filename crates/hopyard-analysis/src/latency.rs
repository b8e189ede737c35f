//! Distribution of the times of a cell, over all its samples.

use std::collections::BTreeMap;

use crate::model::{Latency, LatencyReport, Measurement};
use crate::stats;
use crate::units::float;

/// The sum of the samples' histograms; `None` if there are none.
pub(super) fn report(measured: &[&Measurement]) -> Option<LatencyReport> {
    let parts = measured.iter().filter_map(|m| m.latency.as_ref());
    let parts: Vec<&Latency> = parts.filter(|part| !part.histogram.is_empty()).collect();
    let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
    for (bound, count) in parts.iter().flat_map(|part| &part.histogram) {
        *buckets.entry(*bound).or_default() += count;
    }
    let max_ns = parts.iter().map(|part| part.max_ns).max()?;
    let count = buckets.values().sum();
    let told = parts.first()?.quantiles.iter();
    let told = told.filter(|(q, _)| stats::enough_for_quantile(count, *q));
    let quantile = |q: f64| Some((q, quantile(&buckets, q)?.min(max_ns)));
    Some(LatencyReport {
        count,
        min_ns: parts.iter().map(|part| part.min_ns).min()?,
        max_ns,
        quantiles: told.filter_map(|(q, _)| quantile(*q)).collect(),
        classes: classes(&buckets),
    })
}

/// The bucket in which a share of all observations is reached.
fn quantile(buckets: &BTreeMap<u64, u64>, share: f64) -> Option<u64> {
    let wanted = share * float(buckets.values().sum());
    let mut seen = 0;
    let mut reached = buckets.iter().filter(|(_, count)| {
        seen += **count;
        float(seen) >= wanted
    });
    reached.next().map(|(bound, _)| *bound)
}

/// The same in wider classes. A bucket belongs to the class of its upper bound: buckets are at most 1 % wide.
fn classes(buckets: &BTreeMap<u64, u64>) -> Vec<(f64, u64)> {
    let class = |bound: u64| (float(bound.max(1)).log10() * LatencyReport::CLASSES).floor();
    let upper = |class: f64| 10_f64.powf((class + 1.0) / LatencyReport::CLASSES);
    let mut classes: Vec<(f64, u64)> = Vec::new();
    for (bound, count) in buckets {
        let upper = upper(class(*bound));
        match classes.last_mut() {
            Some((last, sum)) if *last >= upper => *sum += count,
            _ => classes.push((upper, *count)),
        }
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::measured;
    use proptest::prelude::*;

    fn sample(histogram: &[(u64, u64)]) -> Measurement {
        let (min, max) = (histogram[0].0, histogram[histogram.len() - 1].0);
        Measurement {
            latency: Some(Latency {
                count: histogram.iter().map(|(_, count)| count).sum(),
                min_ns: min,
                mean_ns: 0.0,
                max_ns: max,
                quantiles: vec![(0.01, min), (0.5, min), (0.99, max)],
                histogram: histogram.to_vec(),
            }),
            ..measured(1)
        }
    }

    /// Two samples with one mode each make a distribution with two.
    #[test]
    fn samples_are_put_together() {
        let (slow, fast) = (
            sample(&[(90_000, 100), (91_000, 300)]),
            sample(&[(10_000, 600)]),
        );
        let all = report(&[&slow, &fast, &measured(1)]).unwrap();
        assert_eq!((all.count, all.min_ns, all.max_ns), (1000, 10_000, 91_000));
        assert_eq!(
            all.quantiles,
            [(0.01, 10_000), (0.5, 10_000), (0.99, 91_000)]
        );
        let counts: Vec<u64> = all.classes.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [600, 400]);
        assert_eq!(report(&[&measured(1)]), None);
    }

    /// Of fewer than ten beyond it, a quantile would be one of the greatest times.
    #[test]
    fn a_quantile_has_ten_observations_beyond_it() {
        let of = |count: u64| {
            let all = report(&[&sample(&[(10_000, count - 1), (90_000, 1)])]).unwrap();
            all.quantiles.iter().map(|(q, _)| *q).collect::<Vec<_>>()
        };
        assert_eq!(of(1000), [0.01, 0.5, 0.99]);
        assert_eq!(of(999), [0.01, 0.5]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_classes_hold_what_they_say(
            histogram in prop::collection::btree_map(0..u64::from(u32::MAX), 1..1000_u64, 1..60)
        ) {
            let histogram: Vec<(u64, u64)> = histogram.into_iter().collect();
            let all = report(&[&sample(&histogram)]).unwrap();
            prop_assert_eq!(all.classes.iter().map(|(_, count)| count).sum::<u64>(), all.count);
            prop_assert!(all.classes.windows(2).all(|pair| pair[0].0 < pair[1].0));
            prop_assert!(all.quantiles.windows(2).all(|pair| pair[0].1 <= pair[1].1));
            let last = all.classes.last().unwrap().0;
            prop_assert!(last >= float(all.max_ns) && last <= float(all.max_ns.max(1)) * 1.06);
        }
    }
}
