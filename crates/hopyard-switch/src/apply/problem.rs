//! What keeps a description from being carried out.

use super::devices::Sought;

/// Something that keeps a description from being carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The port, by its place in the description; `None`: it is about the switch.
    pub port: Option<usize>,
    /// The key that it is about.
    pub key: &'static str,
    /// What is wrong.
    pub why: String,
    /// Is it that a device is not there? It may come.
    pub missing: bool,
}

impl Problem {
    pub(super) fn new(port: Option<usize>, key: &'static str, why: impl Into<String>) -> Self {
        Self {
            port,
            key,
            why: why.into(),
            missing: false,
        }
    }

    pub(super) fn of_device(port: Option<usize>, key: &'static str, sought: Sought) -> Self {
        let (why, missing) = match sought {
            Sought::Missing(why) => (why, true),
            Sought::Unfit(why) => (why, false),
        };
        Self {
            missing,
            ..Self::new(port, key, why)
        }
    }
}
