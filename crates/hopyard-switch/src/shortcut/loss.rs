//! What joined sockets may lack, by name.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Something that a joined socket may lack. Programs that use it must not be joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Loss {
    /// A blocking `recv` fails with `EAGAIN` when it wakes without data: a sender on the same socket was waiting for room and got it, or
    /// a signal came.
    Blocking,
    /// `recv` with `MSG_WAITALL` returns early, or waits for what has come.
    WaitAll,
    /// `splice` from the socket does not find what has come.
    Splice,
    /// `FIONREAD` does not count what has come.
    FionRead,
    /// Urgent data (`MSG_OOB`) comes as any other.
    Urgent,
    /// What was not read before the other end reset the connection cannot be read any more.
    Reset,
    /// Nobody says when what was sent with `MSG_ZEROCOPY` may be written to again.
    ZeroCopy,
    /// A socket that was joined must not become one of kernel TLS: it would take what came by the shortcut for plain text.
    KernelTls,
}

/// All of them, with their names and what they mean.
pub const LOSSES: [(Loss, &str, &str); 8] = [
    (
        Loss::Blocking,
        "blocking",
        "a blocking recv may fail with EAGAIN after a send on the same socket had to wait, or at a signal",
    ),
    (
        Loss::WaitAll,
        "waitall",
        "recv with MSG_WAITALL returns early",
    ),
    (
        Loss::Splice,
        "splice",
        "splice and sendfile from a joined socket do not find what has come, and may wait for ever",
    ),
    (
        Loss::FionRead,
        "fionread",
        "FIONREAD (Java's available()) does not count what has come",
    ),
    (
        Loss::Urgent,
        "urgent",
        "urgent data (MSG_OOB) comes as any other",
    ),
    (
        Loss::Reset,
        "reset",
        "what was not read before the other end reset the connection is gone",
    ),
    (
        Loss::ZeroCopy,
        "zerocopy",
        "MSG_ZEROCOPY does not say when what was sent may be written to again",
    ),
    (
        Loss::KernelTls,
        "ktls",
        "a joined socket that becomes one of kernel TLS (TCP_ULP) may take ciphertext for plain text",
    ),
];

impl Loss {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// As a number with a bit for each.
    pub(crate) fn to_bits(losses: &[Self]) -> u32 {
        losses.iter().fold(0, |bits, loss| bits | 1 << *loss as u32)
    }

    /// Those whose bits are set, in order.
    pub(crate) fn from_bits(bits: u32) -> Vec<Self> {
        let all = LOSSES.into_iter().map(|(loss, ..)| loss);
        all.filter(|loss| bits & 1 << *loss as u32 != 0).collect()
    }

    pub(super) fn words(self) -> (&'static str, &'static str) {
        let found = LOSSES.iter().find(|(loss, ..)| *loss == self);
        found.map_or(("", ""), |(_, name, means)| (name, means))
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// No [`Loss`] has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is none of {}", LOSSES.map(|(_, name, _)| name).join(", "))]
pub struct NotALoss {
    name: String,
}

impl FromStr for Loss {
    type Err = NotALoss;

    fn from_str(name: &str) -> std::result::Result<Self, NotALoss> {
        let found = LOSSES.iter().find(|(_, known, _)| *known == name);
        found.map(|(loss, ..)| *loss).ok_or_else(|| NotALoss {
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_known_by_name() {
        for (loss, name, _) in LOSSES {
            assert_eq!(name.parse(), Ok(loss));
            assert_eq!(loss.to_string(), name);
            assert_eq!(Loss::from_bits(Loss::to_bits(&[loss])), [loss]);
        }
        let error = "speed".parse::<Loss>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`speed` is none of blocking, waitall, splice, fionread, urgent, reset, zerocopy, ktls"
        );
    }
}
