//! Round-trip times of several processes or turns.

use hdrhistogram::Histogram;

use super::summary::{DIGITS, FINE_DIGITS, summarise};
use hopyard_model::Latency;

/// Those of several processes or turns together; quantiles to the digits that each of them told.
///
/// # Errors
/// There is no room for a histogram.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a window are far below 2^53"
)]
pub fn together(parts: &[&Latency]) -> Result<Option<Latency>, String> {
    let (Some(min_ns), Some(max_ns)) = (
        parts.iter().map(|part| part.min_ns).min(),
        parts.iter().map(|part| part.max_ns).max(),
    ) else {
        return Ok(None);
    };
    let mut all =
        Histogram::<u64>::new(FINE_DIGITS).map_err(|e| format!("cannot make a histogram: {e}"))?;
    for (value, count) in parts.iter().flat_map(|part| &part.histogram) {
        all.record_n(*value, *count)
            .map_err(|e| format!("cannot add to a histogram: {e}"))?;
    }
    let sum: f64 = parts
        .iter()
        .map(|part| part.mean_ns * part.count as f64)
        .sum();
    Ok(Some(Latency {
        min_ns,
        mean_ns: sum / (all.len() as f64).max(1.0),
        ..summarise(&all, max_ns, DIGITS)?
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Timings, summarise_any};

    #[test]
    fn two_processes_are_told_of_as_one() {
        let of = |values: &[u64]| {
            let mut timings = Timings::new().unwrap();
            values.iter().for_each(|value| timings.record(*value));
            summarise_any(Some(&timings), DIGITS).unwrap().unwrap()
        };
        let (one, two) = (of(&[1000, 2000, 3000]), of(&[10_001]));
        let both = together(&[&one, &two]).unwrap().unwrap();
        assert_eq!((both.count, both.min_ns, both.max_ns), (4, 1000, 10_001));
        assert!((both.mean_ns - 4000.0).abs() < 40.0, "{}", both.mean_ns);
        let median = both.quantiles.iter().find(|(q, _)| *q == 0.5).unwrap().1;
        assert!((1980..=2020).contains(&median), "{median}");
        assert_eq!(together(&[]).unwrap(), None);
    }
}
