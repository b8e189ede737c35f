//! Histograms: how they are made, and how they are told.

use hdrhistogram::Histogram;

use hopyard_model::Latency;

/// Longest delay of a datagram that a histogram tells apart, ns.
pub(crate) const LONGEST_NS: u64 = 10_000_000_000;
/// Longest time of [`Timings`], ns: some 18 minutes, more than the longest window with its warm-up.
const LONGEST_TIME_NS: u64 = 1 << 40;

/// The quantiles kept of every distribution.
const QUANTILES: [f64; 10] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999];

/// Significant digits of the times that are stored.
pub(super) const DIGITS: u8 = 2;
/// Significant digits of times that are still to be put together with others.
pub(super) const FINE_DIGITS: u8 = 3;

/// Times of a window, ns. The histogram takes 1 ns to 18 minutes at three digits and never grows; it rounds the longest up, so that is
/// kept beside it.
#[derive(Debug, Clone)]
pub(crate) struct Timings {
    histogram: Histogram<u64>,
    longest_ns: u64,
}

impl Timings {
    /// None yet.
    ///
    /// # Errors
    /// There is no room for a histogram.
    pub(crate) fn new() -> Result<Self, String> {
        let histogram = Histogram::new_with_bounds(1, LONGEST_TIME_NS, 3)
            .map_err(|e| format!("cannot make a histogram: {e}"))?;
        Ok(Self {
            histogram,
            longest_ns: 0,
        })
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    #[inline]
    pub(crate) fn record_n(&mut self, ns: u64, count: u64) {
        self.histogram.saturating_record_n(ns, count);
        self.longest_ns = self.longest_ns.max(ns);
    }

    /// Takes in those of another flow, process or turn.
    ///
    /// # Errors
    /// Their histogram has other bounds.
    pub(crate) fn add(&mut self, other: &Self) -> Result<(), String> {
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        let added = self.histogram.add(&other.histogram);
        added.map_err(|e| format!("cannot add histograms: {e}"))
    }

    pub(crate) fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }
}

/// (quantile, value) in rising order.
pub(super) fn quantiles(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
    QUANTILES
        .map(|q| (q, histogram.value_at_quantile(q)))
        .to_vec()
}

/// A distribution of times, where there are any; its histogram to so many significant digits.
///
/// # Errors
/// As [`summarise`].
pub(super) fn summarise_any(
    timings: Option<&Timings>,
    digits: u8,
) -> Result<Option<Latency>, String> {
    let some = timings.filter(|all| !all.histogram.is_empty());
    some.map(|all| summarise(&all.histogram, all.longest_ns, digits))
        .transpose()
}

/// A distribution of times of which this is the longest, its histogram to so many significant digits.
///
/// # Errors
/// No coarser histogram can be made.
pub(super) fn summarise(
    histogram: &Histogram<u64>,
    max_ns: u64,
    digits: u8,
) -> Result<Latency, String> {
    let mut coarse =
        Histogram::<u64>::new(digits).map_err(|e| format!("cannot make a histogram: {e}"))?;
    coarse
        .add(histogram)
        .map_err(|e| format!("cannot add histograms: {e}"))?;
    // The end of a bucket may lie beyond the longest time in it.
    let quantiles = quantiles(histogram).into_iter();
    Ok(Latency {
        count: histogram.len(),
        min_ns: histogram.min(),
        mean_ns: histogram.mean(),
        max_ns,
        quantiles: quantiles.map(|(q, ns)| (q, ns.min(max_ns))).collect(),
        histogram: coarse
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_is_neither_rounded_nor_cut_off() {
        let of = |times: &[u64]| {
            let mut timings = Timings::new().unwrap();
            times.iter().for_each(|ns| timings.record(*ns));
            timings
        };
        let told = |timings: &Timings| summarise_any(Some(timings), DIGITS).unwrap().unwrap();
        let (short, long) = (of(&[1_000, 1_234_567]), of(&[12_345_678_901]));
        let short_told = told(&short);
        assert_eq!(short_told.max_ns, 1_234_567);
        assert_eq!(short_told.quantiles.last(), Some(&(0.9999, 1_234_567)));
        assert_eq!(told(&long).max_ns, 12_345_678_901);
        let mut both = short.clone();
        both.add(&long).unwrap();
        let both = told(&both);
        assert_eq!((both.count, both.max_ns), (3, 12_345_678_901));
        assert!(summarise_any(Some(&of(&[])), DIGITS).unwrap().is_none());
    }
}
