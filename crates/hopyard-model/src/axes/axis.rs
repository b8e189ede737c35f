//! What an axis is.

use std::fmt;

pub(super) use crate::names::AxisError;
use crate::names::{Peer, UnknownName};
use crate::{LoadKind, units};

/// What depends on the value of an axis, beside the figures.
///
/// Every axis says so in its entry: what is tried out before a run is tried at every value that it depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decides {
    /// The lab: its devices, what they are set to, and the CPUs of its two ends.
    Lab,
    /// The lab, where the client is several processes or containers (axis `containers`); otherwise the traffic alone.
    LabOfProcesses,
    /// The size of what is sent by one call, on which the generator's own ceiling depends.
    Message,
    /// The traffic alone.
    Traffic,
}

/// All that one axis is, in one place. Each axis implements it in a file of `axes`, and is named by one entry of
/// `registry.rs`.
pub(super) trait Descriptor {
    /// What [`Axes`] holds of it.
    type Value;
    /// Name on the command line and in plans.
    const NAME: &'static str;
    /// What it is, in a line.
    const SUMMARY: &'static str;
    /// The values it takes, for people.
    const VALUES: &'static str;
    /// A value that is not its default, as text: what tests set it to.
    const OTHER: &'static str;
    /// Where it is left out of a cell: no value, or the default where every cell has a value.
    const ABSENT: Self::Value;
    /// What depends on it.
    const DECIDES: Decides;
    /// Only paths that name it have it.
    const OF_PATH: bool = false;
    /// It is about devices, or about IP and what goes over it: paths without devices have no such axis.
    const OF_DEVICES: bool = false;
    /// Does it count something? Cells that differ in nothing else make a curve.
    const COUNTS: bool = false;

    /// Its value where nobody sets it.
    fn default() -> Self::Value {
        Self::ABSENT
    }

    /// Reads a value.
    fn parse(text: &str) -> Result<Self::Value, AxisError>;

    /// Its value as [`parse`](Self::parse) reads it; `None` where it is left to the kernel or does not apply.
    fn print(value: &Self::Value) -> Option<String>;

    /// Does it mean anything for this load and peer?
    fn fits(_: LoadKind, _: Peer) -> bool {
        true
    }
}

/// The value of that name.
pub(super) fn choice<T: Copy>(
    kind: &'static str,
    text: &str,
    values: &[(&'static str, T)],
) -> Result<T, AxisError> {
    let found = values.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = values.iter().map(|(name, _)| *name).collect();
        AxisError::UnknownName(UnknownName {
            kind,
            name: text.to_owned(),
            choices: names.join(", "),
        })
    })
}

/// A number or size within bounds.
pub(super) fn bounded(
    axis: &'static str,
    text: &str,
    low: u32,
    high: u32,
) -> Result<u32, AxisError> {
    let value = units::parse_bytes(text)?;
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

/// How an axis is read and printed whose value has a text of its own and may be absent.
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

/// Bytes that may be absent.
pub(super) fn shown_bytes(value: &Option<u32>) -> Option<String> {
    value.map(units::show_bytes)
}

/// Shows values by the words that they are read by.
macro_rules! shown_as {
    ($($kind:ty: $words:ident),+ $(,)?) => {$(
        impl ::std::fmt::Display for $kind {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let word = $words.iter().find(|(_, value)| value == self);
                f.pad(word.map_or("", |(word, _)| word))
            }
        }
    )+};
}

pub(super) use shown_as;
