//! All samples as one table: a row for each, a typed column for each axis and quantity. A quantity without any value
//! has no column; a missing value is empty.

use serde_json::Value;

use super::fields::{axis_columns, line, number};
use crate::assess::QUANTITIES;
use crate::model::Observation;

/// A column of a table.
pub struct Column {
    /// Its name, with the unit where there is one.
    pub name: &'static str,
    /// A value for each row.
    pub values: Values,
}

/// The values of a column, a row each; what is not known is absent.
pub enum Values {
    /// UTF-8.
    Text(Vec<Option<String>>),
    /// 64 bits.
    Whole(Vec<Option<i64>>),
    /// Double precision.
    Number(Vec<Option<f64>>),
    /// Yes or no.
    Truth(Vec<Option<bool>>),
}

/// Every column with a value in some sample.
pub(super) fn columns(run: &str, observations: &[Observation]) -> Vec<Column> {
    let text = |name, of: fn(&Observation) -> Option<String>| Column {
        name,
        values: Values::Text(observations.iter().map(of).collect()),
    };
    let whole = |name, of: fn(&Observation) -> Option<u64>| Column {
        name,
        values: Values::Whole(
            observations
                .iter()
                .map(|o| i64::try_from(of(o)?).ok())
                .collect(),
        ),
    };
    let truth = |name, of: fn(&Observation) -> Option<bool>| Column {
        name,
        values: Values::Truth(observations.iter().map(of).collect()),
    };
    let mut columns = vec![
        Column {
            name: "run",
            values: Values::Text(vec![Some(run.to_owned()); observations.len()]),
        },
        text("path", |o| Some(o.cell.path.clone())),
        text("peer", |o| Some(o.cell.peer.to_string())),
        text("load", |o| Some(o.cell.load.to_string())),
    ];
    columns.extend(axes(observations));
    columns.extend([
        whole("block", |o| Some(o.block.into())),
        whole("attempt", |o| Some(o.attempt.into())),
        whole("order", |o| Some(o.order.into())),
        whole("started_ns", |o| Some(o.started_ns)),
        whole("took_ns", |o| Some(o.took_ns)),
        truth("counted", |o| Some(o.counted)),
        text("cause", |o| o.cause.clone()),
        whole("window_ns", |o| o.window_ns),
        truth("way_proved", |o| o.way_proved),
    ]);
    columns.extend(QUANTITIES.iter().map(|quantity| {
        Column {
            name: quantity.name,
            values: Values::Number(
                observations
                    .iter()
                    .map(|o| o.values.get(quantity.name).copied())
                    .collect(),
            ),
        }
    }));
    columns.retain(Column::is_kept);
    columns
}

/// Axis values in base units. A wire or a sender without a limit is `null` in the document and empty here.
fn axes(observations: &[Observation]) -> Vec<Column> {
    let all: Vec<Value> = observations
        .iter()
        .map(|o| serde_json::to_value(&o.cell.axes).unwrap_or_default())
        .collect();
    let column = |name: &'static str| {
        let values: Vec<&Value> = all
            .iter()
            .map(|axes| axes.get(name).unwrap_or(&Value::Null))
            .collect();
        let whole = values.iter().all(|value| value.is_null() || value.is_i64());
        Column {
            name,
            values: if whole {
                Values::Whole(values.iter().map(|value| value.as_i64()).collect())
            } else {
                Values::Text(values.iter().map(|value| in_words(value)).collect())
            },
        }
    };
    axis_columns().map(column).collect()
}

fn in_words(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

impl Column {
    /// Whether the column is kept although it is empty: that nothing failed is worth knowing.
    fn is_kept(&self) -> bool {
        self.name == "cause"
            || match &self.values {
                Values::Text(values) => values.iter().any(Option::is_some),
                Values::Whole(values) => values.iter().any(Option::is_some),
                Values::Number(values) => values.iter().any(Option::is_some),
                Values::Truth(values) => values.iter().any(Option::is_some),
            }
    }

    fn field(&self, row: usize) -> String {
        let text = match &self.values {
            Values::Text(values) => values.get(row).cloned().flatten(),
            Values::Whole(values) => values.get(row).copied().flatten().map(|v| v.to_string()),
            Values::Number(values) => values.get(row).copied().flatten().map(number),
            Values::Truth(values) => values.get(row).copied().flatten().map(|v| v.to_string()),
        };
        text.unwrap_or_default()
    }

    fn rows(&self) -> usize {
        match &self.values {
            Values::Text(values) => values.len(),
            Values::Whole(values) => values.len(),
            Values::Number(values) => values.len(),
            Values::Truth(values) => values.len(),
        }
    }
}

/// The table as CSV (RFC 4180, lines ending in LF).
pub(super) fn csv(columns: &[Column]) -> String {
    let rows = columns.first().map_or(0, Column::rows);
    let header = line(columns.iter().map(|column| column.name.to_owned()));
    (0..rows).fold(header, |text, row| {
        text + &line(columns.iter().map(|column| column.field(row)))
    })
}
