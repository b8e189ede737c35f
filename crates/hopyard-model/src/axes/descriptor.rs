//! The description of an axis.

use std::fmt;
use std::str::FromStr;

use super::axis::{Decides, Named, one_of};
use crate::names::{AxisError, Peer};
use crate::{LoadKind, units};

/// Everything about one axis, in one place. Each axis is a constant in a file of `axes`, and one entry of `registry.rs`
/// names it. What most axes have in common comes from [`word`], [`number`], [`bytes`] or [`text`], and from [`optional`] or
/// [`always`] for those that read their values themselves.
pub(super) struct Descriptor<T> {
    /// Name on the command line and in plans.
    pub(super) name: &'static str,
    /// A line about it.
    pub(super) summary: &'static str,
    /// The values it takes, as text for people.
    pub(super) values: &'static str,
    /// A value that is not its default, as text: tests set the axis to it.
    pub(super) other: &'static str,
    /// What depends on it.
    pub(super) decides: Decides,
    /// Whether only paths that name it have it.
    pub(super) of_path: bool,
    /// It is about devices, or about IP and what goes over it: paths without devices have no such axis.
    pub(super) of_devices: bool,
    /// Does it count something? Cells that differ in nothing else make a curve.
    pub(super) counts: bool,
    /// Are its values amounts (counts, bytes, rates, times)? Then there are values between two of them. IP versions are not.
    pub(super) is_quantity: bool,
    /// Whether it applies to this load and peer.
    pub(super) fits: fn(LoadKind, Peer) -> bool,
    /// The value of a cell without the axis: no value, or the default if every cell has a value.
    pub(super) absent: fn() -> T,
    /// Its value if nobody sets it.
    pub(super) default: fn() -> T,
    /// Reads a value; the first text is the name of the axis, for errors.
    pub(super) parse: Parse<T>,
    /// Its value as `parse` reads it; `None` if it is left to the kernel or does not apply.
    pub(super) print: fn(&T) -> Option<String>,
}

type Parse<T> = fn(&'static str, &str) -> Result<T, AxisError>;

impl<T> Descriptor<T> {
    /// An axis for all loads and paths. Its texts are to be given.
    const fn of(
        decides: Decides,
        absent: fn() -> T,
        parse: Parse<T>,
        print: fn(&T) -> Option<String>,
    ) -> Self {
        Self {
            name: "",
            summary: "",
            values: "",
            other: "",
            decides,
            of_path: false,
            of_devices: false,
            counts: false,
            is_quantity: false,
            fits: |_, _| true,
            absent,
            default: absent,
            parse,
            print,
        }
    }

    /// Are all texts given?
    pub(super) const fn is_complete(&self) -> bool {
        !(self.name.is_empty()
            || self.summary.is_empty()
            || self.values.is_empty()
            || self.other.is_empty())
    }

    /// Reads a value.
    pub(super) fn read(&self, text: &str) -> Result<T, AxisError> {
        (self.parse)(self.name, text)
    }
}

/// An axis that has a value in every cell.
pub(super) const fn always<T: fmt::Display>(
    decides: Decides,
    default: fn() -> T,
    parse: Parse<T>,
) -> Descriptor<T> {
    Descriptor::of(decides, default, parse, |value| Some(value.to_string()))
}

/// An axis whose value may be absent.
pub(super) const fn optional<T: fmt::Display>(
    decides: Decides,
    parse: Parse<Option<T>>,
) -> Descriptor<Option<T>> {
    Descriptor::of(
        decides,
        || None,
        parse,
        |value| value.as_ref().map(ToString::to_string),
    )
}

/// An axis whose values are names: those that its type has in JSON.
pub(super) const fn word<T: Named>(decides: Decides) -> Descriptor<Option<T>> {
    optional(decides, |axis, text| one_of(axis, text).map(Some))
}

/// An axis whose values are read and printed by their type.
pub(super) const fn text<T: FromStr + fmt::Display>(decides: Decides) -> Descriptor<Option<T>>
where
    AxisError: From<T::Err>,
{
    optional(decides, |_, text| Ok(Some(text.parse()?)))
}

/// An axis that is a count within bounds.
pub(super) const fn number<const LOW: u32, const HIGH: u32>(
    decides: Decides,
) -> Descriptor<Option<u32>> {
    Descriptor {
        is_quantity: true,
        ..optional(decides, |axis, text| {
            count::<LOW, HIGH>(axis, text).map(Some)
        })
    }
}

/// An axis that is a size within bounds, bytes.
pub(super) const fn bytes<const LOW: u32, const HIGH: u32>(
    decides: Decides,
) -> Descriptor<Option<u32>> {
    Descriptor {
        print: |value| value.map(units::show_bytes),
        is_quantity: true,
        ..optional(decides, |axis, text| {
            size::<LOW, HIGH>(axis, text).map(Some)
        })
    }
}

/// Reads a count within bounds.
pub(super) fn count<const LOW: u32, const HIGH: u32>(
    axis: &'static str,
    text: &str,
) -> Result<u32, AxisError> {
    bounded::<LOW, HIGH>(axis, text, units::parse_count(text)?)
}

/// Reads a size within bounds, bytes.
pub(super) fn size<const LOW: u32, const HIGH: u32>(
    axis: &'static str,
    text: &str,
) -> Result<u32, AxisError> {
    bounded::<LOW, HIGH>(axis, text, units::parse_bytes(text)?)
}

fn bounded<const LOW: u32, const HIGH: u32>(
    axis: &'static str,
    text: &str,
    value: u32,
) -> Result<u32, AxisError> {
    if (LOW..=HIGH).contains(&value) {
        Ok(value)
    } else {
        Err(AxisError::Bounds {
            axis,
            text: text.to_owned(),
            low: LOW,
            high: HIGH,
        })
    }
}
