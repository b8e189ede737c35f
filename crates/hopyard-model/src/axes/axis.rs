//! The description of an axis.

use std::fmt;

pub(super) use crate::names::AxisError;
use crate::names::{Peer, UnknownName};
use crate::{LoadKind, units};

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

/// Everything about one axis, in one place. Each axis implements it in a file of `axes`, and one entry of `registry.rs`
/// names it.
pub(super) trait Descriptor {
    /// The type of its field in [`Axes`].
    type Value;
    /// Name on the command line and in plans.
    const NAME: &'static str;
    /// A line about it.
    const SUMMARY: &'static str;
    /// The values it takes, as text for people.
    const VALUES: &'static str;
    /// A value that is not its default, as text: tests set the axis to it.
    const OTHER: &'static str;
    /// The value of a cell without the axis: no value, or the default if every cell has a value.
    const ABSENT: Self::Value;
    /// What depends on it.
    const DECIDES: Decides;
    /// Whether only paths that name it have it.
    const OF_PATH: bool = false;
    /// It is about devices, or about IP and what goes over it: paths without devices have no such axis.
    const OF_DEVICES: bool = false;
    /// Does it count something? Cells that differ in nothing else make a curve.
    const COUNTS: bool = false;

    /// Its value if nobody sets it.
    fn default() -> Self::Value {
        Self::ABSENT
    }

    /// Reads a value.
    fn parse(text: &str) -> Result<Self::Value, AxisError>;

    /// Its value as [`parse`](Self::parse) reads it; `None` if it is left to the kernel or does not apply.
    fn print(value: &Self::Value) -> Option<String>;

    /// Whether it applies to this load and peer.
    fn fits(_: LoadKind, _: Peer) -> bool {
        true
    }
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

/// A count within bounds.
pub(super) fn count(axis: &'static str, text: &str, low: u32, high: u32) -> Result<u32, AxisError> {
    bounded(axis, text, units::parse_count(text)?, low, high)
}

/// A size within bounds, bytes.
pub(super) fn size(axis: &'static str, text: &str, low: u32, high: u32) -> Result<u32, AxisError> {
    bounded(axis, text, units::parse_bytes(text)?, low, high)
}

pub(super) fn bounded(
    axis: &'static str,
    text: &str,
    value: u32,
    low: u32,
    high: u32,
) -> Result<u32, AxisError> {
    if (low..=high).contains(&value) {
        Ok(value)
    } else {
        Err(AxisError::Bounds {
            axis,
            text: text.to_owned(),
            low,
            high,
        })
    }
}

/// A value that may be absent, as its type prints it.
pub(super) fn shown<T: fmt::Display>(value: &Option<T>) -> Option<String> {
    value.as_ref().map(ToString::to_string)
}

/// Parsing and printing of an axis whose value has a text form and may be absent.
macro_rules! optional_text {
    () => {
        fn parse(text: &str) -> Result<Self::Value, $crate::axes::axis::AxisError> {
            Ok(Some(text.parse()?))
        }

        fn print(value: &Self::Value) -> Option<String> {
            $crate::axes::axis::shown(value)
        }
    };
}
pub(super) use optional_text;

/// `parse` and `print` of an axis whose values are words.
macro_rules! one_of {
    ($words:ident) => {
        fn parse(text: &str) -> Result<Self::Value, $crate::axes::axis::AxisError> {
            $crate::axes::axis::choice(Self::NAME, text, &$words).map(Some)
        }

        fn print(value: &Self::Value) -> Option<String> {
            $crate::axes::axis::shown(value)
        }
    };
}
pub(super) use one_of;

/// `parse` and `print` of an axis of numbers within bounds, by two functions.
macro_rules! within {
    ($low:expr, $high:expr, $read:ident, $shown:ident) => {
        fn parse(text: &str) -> Result<Self::Value, $crate::axes::axis::AxisError> {
            $crate::axes::axis::$read(Self::NAME, text, $low, $high).map(Some)
        }

        fn print(value: &Self::Value) -> Option<String> {
            $crate::axes::axis::$shown(value)
        }
    };
}
pub(super) use within;

/// `parse` and `print` of an axis that is a count.
macro_rules! number {
    ($low:expr, $high:expr) => {
        $crate::axes::axis::within!($low, $high, count, shown);
    };
}
pub(super) use number;

/// `parse` and `print` of an axis that is a size in bytes.
macro_rules! bytes {
    ($low:expr, $high:expr) => {
        $crate::axes::axis::within!($low, $high, size, shown_bytes);
    };
}
pub(super) use bytes;

/// Bytes that may be absent.
pub(super) fn shown_bytes(value: &Option<u32>) -> Option<String> {
    value.map(units::show_bytes)
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
