//! How fast frames may pass a port.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::layout::{Bucket, RATE_SHIFT, RATE_UNITS_PER_NS};

const NS_PER_S: u64 = 1_000_000_000;

/// How fast frames may pass a port one way. What is beyond is dropped, not held back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rate {
    /// As fast as they come.
    #[default]
    Unlimited,
    /// Not faster than this.
    Limited(RateLimit),
}

/// So many bits a second in the long run, counted from a frame's addresses to the end of its contents; a GSO packet counts as the
/// frames that it will be cut into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RateLimit {
    bits_per_s: u64,
    burst_bytes: u64,
}

impl RateLimit {
    /// Where the price of the longest packet still fits its number.
    const LEAST: u64 = 8_000;
    /// Where the price of the shortest frame is still right within a hundredth.
    const MOST: u64 = 100_000_000_000;
    /// A burst is at most what the rate gives in so many seconds.
    pub const MOST_BURST_S: u64 = 900;

    /// A limit with the burst that TCP needs (see [`RateLimit::burst_bytes`]).
    ///
    /// # Errors
    /// The rate is less than 8 kbit/s or more than 100 Gbit/s.
    pub fn new(bits_per_s: u64) -> Result<Self, NotARate> {
        if !(Self::LEAST..=Self::MOST).contains(&bits_per_s) {
            return Err(NotARate::Outside(bits_per_s));
        }
        Ok(Self {
            bits_per_s,
            burst_bytes: default_burst(bits_per_s),
        })
    }

    /// The same rate with another burst.
    ///
    /// # Errors
    /// The burst is nothing, or more than what the rate gives in 900 s.
    pub fn with_burst(self, burst_bytes: u64) -> Result<Self, NotARate> {
        let most = self.bits_per_s / 8 * Self::MOST_BURST_S;
        if !(1..=most).contains(&burst_bytes) {
            return Err(NotARate::Burst { burst_bytes, most });
        }
        Ok(Self {
            burst_bytes,
            ..self
        })
    }

    /// Bits a second.
    #[must_use]
    pub fn bits_per_s(self) -> u64 {
        self.bits_per_s
    }

    /// What may pass at once, after a pause that is long enough. The packet that uses up the last of it may be longer.
    #[must_use]
    pub fn burst_bytes(self) -> u64 {
        self.burst_bytes
    }
}

/// What the rate gives in 400 ms. Between hosts that are near each other a round trip takes less than a frame may take at the rate, so
/// TCP goes on only when its timer expires, which is after 200 ms at least (`TCP_RTO_MIN`), twice that if it expires again: what the rate gives meanwhile has to be
/// kept for it.
fn default_burst(bits_per_s: u64) -> u64 {
    /// Some GSO packets.
    const LEAST: u64 = 256 << 10;
    (bits_per_s / 8 * 4 / 10).max(LEAST)
}

impl Rate {
    /// Its limit, if it has one.
    #[must_use]
    pub fn limit(self) -> Option<RateLimit> {
        match self {
            Self::Unlimited => None,
            Self::Limited(limit) => Some(limit),
        }
    }

    /// What the programs take it from; full.
    pub(crate) fn to_bucket(self) -> Bucket {
        let Self::Limited(limit) = self else {
            return Bucket::default();
        };
        let units_per_s = u128::from(NS_PER_S * RATE_UNITS_PER_NS);
        let bits = u128::from(limit.bits_per_s);
        let narrow = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        Bucket {
            paid_to: 0,
            per_byte: narrow(((8 * units_per_s) << RATE_SHIFT) / bits),
            depth: narrow(8 * units_per_s * u128::from(limit.burst_bytes) / bits).max(1),
            bits_per_s: limit.bits_per_s,
            burst_bytes: limit.burst_bytes,
            unused: [0; 3],
        }
    }

    pub(crate) fn from_bucket(bucket: &Bucket) -> Self {
        match bucket.bits_per_s {
            0 => Self::Unlimited,
            bits_per_s => Self::Limited(RateLimit {
                bits_per_s,
                burst_bytes: bucket.burst_bytes,
            }),
        }
    }
}

/// Not what a rate can be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotARate {
    /// Neither a number with a unit, and perhaps a burst, nor `unlimited`.
    #[error(
        "`{0}` is no rate: write a whole number with its unit, as 100mbit (bit, kbit, mbit, gbit; per second), with \
         `,burst=1000000` behind it for the bytes that may pass at once, or `unlimited`"
    )]
    Text(String),
    /// A rate that cannot be kept.
    #[error("a limit of {0} bit/s cannot be kept: it goes from 8kbit to 100gbit")]
    Outside(u64),
    /// A burst that cannot be kept.
    #[error(
        "a burst of {burst_bytes} bytes is outside 1 to {most} bytes, which this rate gives in 900 s"
    )]
    Burst {
        /// What was asked for.
        burst_bytes: u64,
        /// The most that this rate can have.
        most: u64,
    },
}

const UNITS: [(&str, u64); 4] = [
    ("gbit", 1_000_000_000),
    ("mbit", 1_000_000),
    ("kbit", 1_000),
    ("bit", 1),
];

/// Between a rate and its burst.
const BURST: &str = ",burst=";

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, size): &&(&str, u64)| self.bits_per_s.is_multiple_of(*size);
        let (unit, size) = UNITS.iter().find(fits).unwrap_or(&("bit", 1));
        write!(f, "{}{unit}", self.bits_per_s / size)?;
        if self.burst_bytes == default_burst(self.bits_per_s) {
            return Ok(());
        }
        write!(f, "{BURST}{}", self.burst_bytes)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Limited(limit) => limit.fmt(f),
        }
    }
}

impl FromStr for Rate {
    type Err = NotARate;

    fn from_str(text: &str) -> Result<Self, NotARate> {
        if text == "unlimited" {
            return Ok(Self::Unlimited);
        }
        let not = || NotARate::Text(text.to_owned());
        let (rate, burst) = match text.split_once(BURST) {
            Some((rate, burst)) => (rate, Some(burst)),
            None => (text, None),
        };
        let digits = rate.find(|c: char| !c.is_ascii_digit()).ok_or_else(not)?;
        let (number, unit) = rate.split_at(digits);
        let unit = unit.to_ascii_lowercase();
        let (_, size) = UNITS
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(not)?;
        let number: u64 = number.parse().map_err(|_| not())?;
        let bits = number.checked_mul(*size).ok_or_else(not)?;
        let limit = RateLimit::new(bits)?;
        let Some(burst) = burst else {
            return Ok(Self::Limited(limit));
        };
        // `parse` would take a sign.
        let burst = Some(burst).filter(|burst| burst.bytes().all(|byte| byte.is_ascii_digit()));
        let burst = burst.and_then(|burst| burst.parse().ok()).ok_or_else(not)?;
        limit.with_burst(burst).map(Self::Limited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(text: &str) -> RateLimit {
        text.parse::<Rate>().unwrap().limit().unwrap()
    }

    #[test]
    fn reads_and_writes_rates() {
        for text in [
            "unlimited",
            "8kbit",
            "100mbit",
            "1500kbit",
            "1gbit",
            "8001bit",
            "100gbit",
            "100mbit,burst=1",
            "8mbit,burst=900000000",
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.to_string(), text);
            assert_eq!(Rate::from_bucket(&rate.to_bucket()), rate);
        }
        assert_eq!(limit("8mbit,burst=400000"), limit("8mbit"));
        assert_eq!(limit("100Mbit").bits_per_s(), 100_000_000);
        for wrong in [
            "",
            "100",
            "mbit",
            "-1mbit",
            "+1mbit",
            "1.5mbit",
            "100 mbit",
            "100mbps",
            "7999bit",
            "101gbit",
            "99999999999999999999bit",
            "99999999999gbit",
            "8mbit,burst=",
            "8mbit,burst=0",
            "8mbit,burst=+1",
            "8mbit,burst=900000001",
            "8mbit,burst=1mb",
            "unlimited,burst=1",
        ] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_price_of_a_frame_is_what_the_rate_gives_meanwhile() {
        for (text, bytes) in [
            ("8kbit", 1 << 19),
            ("100mbit", 1514),
            ("10gbit", 64),
            ("100gbit", 64),
        ] {
            let limit = limit(text);
            let bucket = Rate::Limited(limit).to_bucket();
            // As the program computes it: it must fit, and be right.
            let half = 1 << (RATE_SHIFT - 1);
            let units = (bucket.per_byte.checked_mul(bytes).unwrap() + half) >> RATE_SHIFT;
            let ns = units as f64 / RATE_UNITS_PER_NS as f64;
            let exact = bytes as f64 * 8e9 / limit.bits_per_s() as f64;
            assert!((ns / exact - 1.0).abs() < 2e-3, "{text}: {ns} {exact}");
        }
    }

    #[test]
    fn a_burst_is_what_may_pass_at_once() {
        let small = limit("5mbit");
        assert_eq!(small.burst_bytes(), 256 << 10);
        let limit = limit("8mbit");
        assert_eq!(limit.burst_bytes(), 400_000);
        let limit = limit.with_burst(1_000_000).unwrap();
        assert_eq!(limit.burst_bytes(), 1_000_000);
        // One second's worth.
        assert_eq!(
            Rate::Limited(limit).to_bucket().depth,
            NS_PER_S * RATE_UNITS_PER_NS
        );
        for wrong in [0, 900_000_001] {
            assert!(limit.with_burst(wrong).is_err(), "{wrong}");
        }
    }
}
