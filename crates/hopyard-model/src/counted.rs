//! What is counted and timed in a window, and which values are impossible.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one end sent or received in a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counted {
    /// Payload, bytes.
    pub bytes: u64,
    /// Datagrams, or calls that moved data on a stream.
    pub messages: u64,
    /// Completed request/response pairs.
    pub transactions: u64,
}

impl Counted {
    /// The largest of its counts, to be compared with what is possible.
    #[must_use]
    pub fn largest(self) -> u64 {
        largest(&[self.bytes, self.messages, self.transactions])
    }

    /// The units between two readings.
    #[must_use]
    pub fn since(self, start: Self) -> Self {
        Self {
            bytes: self.bytes.wrapping_sub(start.bytes),
            messages: self.messages.wrapping_sub(start.messages),
            transactions: self.transactions.wrapping_sub(start.transactions),
        }
    }

    /// The units in a span that is `factor` times as long.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            bytes: scaled(self.bytes, factor),
            messages: scaled(self.messages, factor),
            transactions: scaled(self.transactions, factor),
        }
    }

    /// The units of two flows combined.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            messages: self.messages + other.messages,
            transactions: self.transactions + other.transactions,
        }
    }
}

/// A distribution of times, ns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Number of observations.
    pub count: u64,
    /// Smallest observation, ns.
    pub min_ns: u64,
    /// Arithmetic mean, ns.
    pub mean_ns: f64,
    /// Largest observation, ns, exact.
    pub max_ns: u64,
    /// (quantile, ns) in rising order.
    pub quantiles: Vec<(f64, u64)>,
    /// (upper bound of a bucket in ns, observations), two significant digits, empty ones left out.
    pub histogram: Vec<(u64, u64)>,
}

impl Latency {
    /// The largest of its counts only; times may have any length, because the sender may have another clock.
    #[must_use]
    pub fn largest(&self) -> u64 {
        let buckets = self.histogram.iter().map(|(_, count)| *count);
        buckets.chain([self.count]).max().unwrap_or(0)
    }
}

/// The most that one window can hold of anything. In ten minutes, the longest window, this takes 3.7 Tbit/s. Every
/// smaller count is exact as a float, and the sum over a run's samples does not overflow.
const MOST: u64 = 1 << 48;

/// A value that no window can hold.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidSample {
    /// A count that is too large.
    #[error("{what}: {count} is more than any window holds ({MOST})")]
    TooMuch {
        /// The name of the count.
        what: &'static str,
        /// The count that was reported.
        count: u64,
    },
    /// A list that is too long.
    #[error("{what}: {count} of them, and a load makes {most} at most")]
    TooMany {
        what: &'static str,
        /// Number of its entries.
        count: usize,
        /// The most entries it may have.
        most: usize,
    },
    /// A window of length zero.
    #[error("{0}: 0, and nothing is measured in no time")]
    NoTime(&'static str),
    /// A number of CPUs that this machine cannot have.
    #[error("cpu: {0} CPUs")]
    Cpus(u32),
    /// A window that ended before it began.
    #[error("cpu: a window of {0} ns")]
    Elapsed(f64),
}

/// Checks counts, each with its name, against what a machine can count in a window.
///
/// # Errors
/// A count is too large.
pub fn plausible(counts: &[(&'static str, u64)]) -> Result<(), InvalidSample> {
    match counts.iter().find(|(_, count)| *count > MOST) {
        Some(&(what, count)) => Err(InvalidSample::TooMuch { what, count }),
        None => Ok(()),
    }
}

/// The largest of several counts; 0 if there are none.
#[must_use]
pub fn largest(counts: &[u64]) -> u64 {
    counts.iter().copied().max().unwrap_or(0)
}

/// The size of the largest of several figures, as a count.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a figure beyond u64 is as absurd as its end"
)]
pub(crate) fn size(figures: impl IntoIterator<Item = f64>) -> u64 {
    figures
        .into_iter()
        .fold(0.0, |most: f64, figure| most.max(figure.abs()))
        .ceil() as u64
}

/// A count for a span that is `factor` times as long.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of a window are far below 2^53, and factors are not negative"
)]
#[must_use]
pub fn scaled(count: u64, factor: f64) -> u64 {
    (count as f64 * factor).round() as u64
}
