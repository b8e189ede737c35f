//! Histograms: how they are made, and how they are told.

use hdrhistogram::Histogram;

use hopyard_model::Latency;

/// Longest time a histogram tells apart, ns.
pub(crate) const LONGEST_NS: u64 = 10_000_000_000;

/// The quantiles kept of every distribution.
const QUANTILES: [f64; 10] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999];

/// Significant digits of the times that are stored.
pub(super) const DIGITS: u8 = 2;
/// Significant digits of times that are still to be put together with others.
pub(super) const FINE_DIGITS: u8 = 3;

/// A histogram that takes 1 ns to 10 s at three digits and never grows.
pub(crate) fn histogram() -> Result<Histogram<u64>, String> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3)
        .map_err(|e| format!("cannot make a histogram: {e}"))
}

/// (quantile, value) in rising order.
pub(super) fn quantiles(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
    QUANTILES
        .map(|q| (q, histogram.value_at_quantile(q)))
        .to_vec()
}

/// A distribution of times, where there are any.
///
/// # Errors
/// As [`summarise`].
pub(super) fn summarise_any(
    histogram: Option<&Histogram<u64>>,
    digits: u8,
) -> Result<Option<Latency>, String> {
    let some = histogram.filter(|all| !all.is_empty());
    some.map(|all| summarise(all, digits)).transpose()
}

/// A distribution of times, its histogram to so many significant digits.
///
/// # Errors
/// No coarser histogram can be made.
pub(super) fn summarise(histogram: &Histogram<u64>, digits: u8) -> Result<Latency, String> {
    let mut coarse =
        Histogram::<u64>::new(digits).map_err(|e| format!("cannot make a histogram: {e}"))?;
    coarse
        .add(histogram)
        .map_err(|e| format!("cannot add histograms: {e}"))?;
    Ok(Latency {
        count: histogram.len(),
        min_ns: histogram.min(),
        mean_ns: histogram.mean(),
        max_ns: histogram.max(),
        quantiles: quantiles(histogram),
        histogram: coarse
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect(),
    })
}
