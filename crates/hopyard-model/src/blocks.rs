//! How many blocks a run may have, and how long a window may be.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Fewest and most blocks, both at least 1 and at most [`Blocks::MOST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocks {
    /// Blocks before the run first checks whether they are enough.
    pub min: u32,
    /// Blocks after which the run ends in any case.
    pub max: u32,
}

/// With fewer blocks there are figures but no verdicts (docs/method.md, "Statistics").
pub const FOR_A_VERDICT: u32 = 8;
/// A cell whose first samples all failed is given up after this many.
pub const GIVEN_UP_AFTER: u32 = 3;

/// Bounds of a window: in a shorter one the edges dominate; instead of a longer one, use more blocks.
pub const WINDOW: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(600);

impl Blocks {
    /// The most blocks of any run.
    pub const MOST: u32 = 1000;

    /// Whether there is at least one, the minimum is at most the maximum, and the maximum is one that a run may have.
    #[must_use]
    pub fn are_possible(self) -> bool {
        self.min >= 1 && self.min <= self.max && self.max <= Self::MOST
    }
}

/// The text is not a range of blocks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a number of blocks: write MIN..MAX as in 8..20, or one number, from 1 to 1000"
)]
pub struct NotBlocks(String);

impl FromStr for Blocks {
    type Err = NotBlocks;

    fn from_str(text: &str) -> Result<Self, NotBlocks> {
        let bad = || NotBlocks(text.to_owned());
        let (min, max) = text.split_once("..").unwrap_or((text, text));
        let min: u32 = min.trim().parse().map_err(|_| bad())?;
        let max: u32 = max.trim().parse().map_err(|_| bad())?;
        let blocks = Self { min, max };
        blocks.are_possible().then_some(blocks).ok_or_else(bad)
    }
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(f, "{}", self.min)
        } else {
            write!(f, "{} to {}", self.min, self.max)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        assert_eq!("8..20".parse(), Ok(Blocks { min: 8, max: 20 }));
        assert_eq!("3".parse(), Ok(Blocks { min: 3, max: 3 }));
        for bad in ["", "0", "9..8", "8..", "8..1001", "-3", "eight"] {
            assert!(bad.parse::<Blocks>().is_err(), "{bad}");
        }
    }
}
