//! How the scheduler treated the threads of a load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counted::scaled;

/// Scheduling of the threads of one end in a window. What this kernel or machine does not count is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Scheduling {
    /// Switches to another thread because this one waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voluntary_switches: Option<u64>,
    /// Switches to another thread because this one's slice was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
    /// Moves to another CPU (`nr_migrations`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrations: Option<u64>,
    /// Misses of the last level of cache, by a hardware counter, kernel included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_misses: Option<u64>,
}

impl Scheduling {
    /// Both kinds of switches.
    #[must_use]
    pub fn switches(self) -> Option<u64> {
        Some(self.voluntary_switches? + self.involuntary_switches?)
    }

    /// The difference between two readings.
    #[must_use]
    pub fn since(self, start: Self) -> Self {
        self.with(start, u64::saturating_sub)
    }

    /// Two ends, or two parts of one, combined. What is unknown for one of them is unknown for both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// The counts for a span that is `factor` times as long.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let of = |count: Option<u64>| count.map(|count| scaled(count, factor));
        Self {
            voluntary_switches: of(self.voluntary_switches),
            involuntary_switches: of(self.involuntary_switches),
            migrations: of(self.migrations),
            cache_misses: of(self.cache_misses),
        }
    }

    fn with(self, other: Self, both: impl Fn(u64, u64) -> u64) -> Self {
        let of = |one: Option<u64>, two: Option<u64>| Some(both(one?, two?));
        Self {
            voluntary_switches: of(self.voluntary_switches, other.voluntary_switches),
            involuntary_switches: of(self.involuntary_switches, other.involuntary_switches),
            migrations: of(self.migrations, other.migrations),
            cache_misses: of(self.cache_misses, other.cache_misses),
        }
    }

    /// The largest of its counts, to be compared with what is possible.
    #[must_use]
    pub fn largest(self) -> u64 {
        let all = [
            self.voluntary_switches,
            self.involuntary_switches,
            self.migrations,
            self.cache_misses,
        ];
        all.into_iter().flatten().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_does_not_know_nobody_knows() {
        let one = Scheduling {
            voluntary_switches: Some(5),
            involuntary_switches: Some(2),
            migrations: Some(1),
            cache_misses: None,
        };
        let other = Scheduling {
            migrations: None,
            ..one
        };
        let sum = one.plus(other);
        assert_eq!(sum.switches(), Some(14));
        assert_eq!((sum.migrations, sum.cache_misses), (None, None));
        assert_eq!(sum.since(one).switches(), Some(7));
    }
}
