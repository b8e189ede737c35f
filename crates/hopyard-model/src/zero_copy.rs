//! What became of sends without a copy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sends that were to take the bytes from the sender's memory (axis `zerocopy`), as the kernel answered them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZeroCopied {
    /// Sends whose memory the kernel was done with.
    pub answered: u64,
    /// Those of them whose bytes it had copied all the same (`SO_EE_CODE_ZEROCOPY_COPIED`, `IORING_NOTIF_USAGE_ZC_COPIED`): what
    /// goes up to a socket of the same kernel is always copied.
    pub copied: u64,
}

impl ZeroCopied {
    /// What came since an earlier reading.
    #[must_use]
    pub fn since(self, start: Self) -> Self {
        Self {
            answered: self.answered - start.answered,
            copied: self.copied - start.copied,
        }
    }

    /// Of two senders.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            answered: self.answered + other.answered,
            copied: self.copied + other.copied,
        }
    }

    /// The larger of its counts, to be held against what can be.
    #[must_use]
    pub fn largest(self) -> u64 {
        self.answered.max(self.copied)
    }
}
