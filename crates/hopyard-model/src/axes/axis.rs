//! What depends on an axis, and values that are words.

use std::fmt;

pub(super) use crate::names::AxisError;
use crate::names::UnknownName;

/// What else depends on the value of an axis, beside the figures.
///
/// Every axis declares it in its entry. Before a run, things are tried once for each value that they depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decides {
    /// The lab: its devices and their settings, and the CPUs of its two ends.
    Lab,
    /// The lab if the client is several processes or containers (axis `containers`); otherwise the traffic alone.
    LabOfProcesses,
    /// The size of what one call sends, on which the generator's own ceiling depends.
    Message,
    /// The traffic alone.
    Traffic,
}

/// The value with that name.
pub(super) fn choice<T: Copy>(
    kind: &'static str,
    text: &str,
    values: &[(&'static str, T)],
) -> Result<T, AxisError> {
    let found = values.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = values.iter().map(|(name, _)| *name).collect();
        AxisError::UnknownName(UnknownName::new(kind, text, names))
    })
}

/// A value that is written as a word.
pub(super) trait Word: Copy + fmt::Display + 'static {
    /// Every value with its word.
    const WORDS: &[(&'static str, Self)];
}

/// Reads and prints values by these words.
macro_rules! shown_as {
    ($($kind:ty: $words:ident),+ $(,)?) => {$(
        impl $crate::axes::axis::Word for $kind {
            const WORDS: &[(&'static str, Self)] = &$words;
        }

        impl ::std::fmt::Display for $kind {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let word = $words.iter().find(|(_, value)| value == self);
                f.pad(word.map_or("", |(word, _)| word))
            }
        }
    )+};
}

pub(super) use shown_as;
