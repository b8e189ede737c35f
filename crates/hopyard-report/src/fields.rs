//! Fields of tables for programs.

use serde_json::Value;

use crate::model::{AXES, Axes};
use crate::plain;

/// The axes by their names in the JSON document.
pub(super) fn axis_columns() -> impl Iterator<Item = &'static str> {
    AXES.iter().map(|axis| axis.key)
}

/// The value of an axis in base units.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Field {
    /// The cell has no such axis, or it is left to the kernel.
    Absent,
    /// A wire or a sender without a limit, `null` in the document.
    NoLimit,
    Whole(i64),
    Text(String),
}

impl Field {
    /// As text; `None` if there is no value.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Absent => None,
            Self::NoLimit => Some("none".to_owned()),
            Self::Whole(number) => Some(number.to_string()),
            Self::Text(text) => Some(text.clone()),
        }
    }
}

/// The value of every axis, in the order of [`axis_columns`].
pub(super) fn axes(axes: &Axes) -> Vec<Field> {
    let values = serde_json::to_value(axes).unwrap_or_default();
    let field = |name: &str| match values.get(name) {
        None => Field::Absent,
        Some(Value::Null) => Field::NoLimit,
        Some(Value::String(text)) => Field::Text(text.clone()),
        Some(other) => match other.as_i64() {
            Some(number) => Field::Whole(number),
            None => Field::Text(other.to_string()),
        },
    };
    axis_columns().map(field).collect()
}

/// All digits, no exponent.
pub(super) fn number(value: f64) -> String {
    if value.is_finite() {
        value.to_string()
    } else {
        String::new()
    }
}

/// A line of CSV, quoted as in RFC 4180.
pub(super) fn line(fields: impl Iterator<Item = String>) -> String {
    let quoted: Vec<String> = fields.map(|field| quote(&cell(&field))).collect();
    format!("{}\n", quoted.join(","))
}

/// A field in one line, marked as text if a spreadsheet would compute it.
fn cell(field: &str) -> String {
    let text = plain::line(field);
    if text.starts_with(['=', '+', '-', '@']) && text.parse::<f64>().is_err() {
        format!("'{text}")
    } else {
        text
    }
}

fn quote(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_one_line_and_no_formula() {
        assert_eq!(cell("two\nlines\u{1b}[31m"), "two lines [31m");
        for formula in ["=1+1", "+x", "-x", "@x", "\t=1"] {
            assert!(cell(formula).starts_with('\''), "{formula}");
        }
        for number in ["-42.1", "-1e9", "17"] {
            assert_eq!(cell(number), number);
        }
    }

    #[test]
    fn quoting() {
        assert_eq!(quote("plain text"), "plain text");
        assert_eq!(quote("a,b"), "\"a,b\"");
        assert_eq!(quote("say \"no\""), "\"say \"\"no\"\"\"");
        assert_eq!(quote("two\nlines\r"), "\"two\nlines\r\"");
    }

    #[test]
    fn every_axis_has_its_column() {
        let mut full = Axes::default();
        for axis in AXES {
            (axis.set)(&mut full, axis.other).unwrap();
        }
        let json = serde_json::to_value(&full).unwrap();
        let mut keys: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
        let mut columns: Vec<_> = axis_columns().map(str::to_owned).collect();
        keys.sort();
        columns.sort();
        assert_eq!(keys, columns);
    }
}
