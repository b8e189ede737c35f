//! How many broadcasts a port may send.

use std::fmt;
use std::str::FromStr;

use crate::layout::BROADCASTS_UNLIMITED;

/// How many frames to all, or to a group, a port may send in the long run. What it did not use of the last
/// [`BROADCAST_BURST_S`](crate::BROADCAST_BURST_S) seconds it may send at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broadcasts {
    /// So many a second; 0: none at all.
    PerSecond(u32),
    /// Any number.
    Unlimited,
}

impl Broadcasts {
    /// Enough for the ARP, neighbour discovery and DHCP of a busy guest; with a thousand ports, some 100,000 copies a
    /// second, a tenth of a CPU.
    pub const DEFAULT: Self = Self::PerSecond(100);
    /// The most that can be counted: one every nanosecond.
    const MOST: u32 = 1_000_000_000;

    pub(crate) fn to_number(self) -> u32 {
        match self {
            Self::PerSecond(frames) => frames.min(Self::MOST),
            Self::Unlimited => BROADCASTS_UNLIMITED,
        }
    }

    pub(crate) fn from_number(number: u32) -> Self {
        match number {
            BROADCASTS_UNLIMITED => Self::Unlimited,
            frames => Self::PerSecond(frames),
        }
    }

    /// Frames a second; `None`: any number.
    #[must_use]
    pub fn per_second(self) -> Option<u32> {
        match self {
            Self::PerSecond(frames) => Some(frames),
            Self::Unlimited => None,
        }
    }
}

impl Default for Broadcasts {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Broadcasts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerSecond(frames) => write!(f, "{frames}"),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

/// Neither a number nor `unlimited`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no limit of broadcasts: write frames per second, 0 to 1000000000, or `unlimited`"
)]
pub struct NotALimit(String);

impl FromStr for Broadcasts {
    type Err = NotALimit;

    fn from_str(text: &str) -> Result<Self, NotALimit> {
        if text == "unlimited" {
            return Ok(Self::Unlimited);
        }
        let frames = text.parse().ok().filter(|frames| *frames <= Self::MOST);
        // `parse` would take a sign.
        frames
            .filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
            .map(Self::PerSecond)
            .ok_or_else(|| NotALimit(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_limits() {
        for text in ["0", "100", "1000000000", "unlimited"] {
            let limit: Broadcasts = text.parse().unwrap();
            assert_eq!(limit.to_string(), text);
            assert_eq!(Broadcasts::from_number(limit.to_number()), limit);
        }
        for wrong in ["", "-1", "+1", "1000000001", "4294967295", "ten", "1.5"] {
            assert!(wrong.parse::<Broadcasts>().is_err(), "{wrong}");
        }
    }
}
