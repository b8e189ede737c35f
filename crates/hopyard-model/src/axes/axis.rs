//! What depends on an axis, and values that are names.

use std::fmt;

use serde::Deserializer;
use serde::de::value::{self, StrDeserializer};
use serde::de::{DeserializeOwned, Visitor};

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

/// An enum whose values are read and printed by their names in JSON.
pub(super) trait Named: DeserializeOwned + fmt::Display {}

/// Prints values of an enum by their names in JSON.
macro_rules! shown_by_name {
    ($($kind:ty),+ $(,)?) => {$(
        impl $crate::axes::axis::Named for $kind {}

        impl ::std::fmt::Display for $kind {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::serde::Serialize::serialize(self, f)
            }
        }
    )+};
}

pub(super) use shown_by_name;

/// The value of an enum with that name in JSON.
pub(super) fn one_of<T: Named>(kind: &'static str, text: &str) -> Result<T, AxisError> {
    let mut names = Names { text, all: &[] };
    let found = T::deserialize(&mut names);
    found.map_err(|_| AxisError::UnknownName(UnknownName::new(kind, text, names.all)))
}

/// Reads a name. serde passes the names of the enum to `deserialize_enum`: kept here for the error, which lists them.
struct Names<'a> {
    text: &'a str,
    all: &'static [&'static str],
}

impl<'de> Deserializer<'de> for &mut Names<'_> {
    type Error = value::Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        all: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, value::Error> {
        self.all = all;
        visitor.visit_enum(StrDeserializer::new(self.text))
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
        visitor.visit_str(self.text)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
