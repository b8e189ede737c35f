//! All samples as one table: a row for each, a typed column for each axis and quantity. A quantity without any value
//! has no column; a missing value is empty.

use super::fields::{Field, axis_columns, line, number};
use crate::assess::QUANTITIES;
use crate::fields;
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

/// Every column with a value in some sample. A column of numbers has no value for a wire or a sender without a limit; see
/// [`csv`].
pub(super) fn columns(run: &str, observations: &[Observation]) -> Vec<Column> {
    table(run, observations, typed)
}

/// Every column, with those of the axes from their fields.
fn table(run: &str, observations: &[Observation], axis: fn(&[&Field]) -> Values) -> Vec<Column> {
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
    columns.extend(axes(observations, axis));
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

/// The columns of the axes.
fn axes(observations: &[Observation], values: fn(&[&Field]) -> Values) -> Vec<Column> {
    let rows: Vec<Vec<Field>> = observations
        .iter()
        .map(|o| fields::axes(&o.cell.axes))
        .collect();
    let column = |(index, name)| {
        let own: Vec<&Field> = rows.iter().filter_map(|row| row.get(index)).collect();
        Column {
            name,
            values: values(&own),
        }
    };
    axis_columns().enumerate().map(column).collect()
}

/// Numbers, if all values are.
fn typed(fields: &[&Field]) -> Values {
    let number = |field: &&Field| match field {
        Field::Whole(number) => Some(*number),
        Field::Absent | Field::NoLimit | Field::Text(_) => None,
    };
    if fields.iter().any(|field| matches!(field, Field::Text(_))) {
        words(fields)
    } else {
        Values::Whole(fields.iter().map(number).collect())
    }
}

fn words(fields: &[&Field]) -> Values {
    Values::Text(fields.iter().map(|field| field.text()).collect())
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

/// The table as CSV (RFC 4180, lines ending in LF). Without a limit is `none`, as in the format `csv`.
pub(super) fn csv(run: &str, observations: &[Observation]) -> String {
    let columns = table(run, observations, words);
    let rows = columns.first().map_or(0, Column::rows);
    let header = line(columns.iter().map(|column| column.name.to_owned()));
    (0..rows).fold(header, |text, row| {
        text + &line(columns.iter().map(|column| column.field(row)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axes, Cell, LoadKind, Peer, Rate};

    fn sample(peer: Peer, rate_bps: Option<Rate>) -> Observation {
        Observation {
            cell: Cell {
                path: "veth".to_owned(),
                peer,
                load: LoadKind::TcpRr,
                axes: Axes {
                    rate_bps,
                    ..Axes::default()
                },
            },
            block: 0,
            attempt: 0,
            order: 0,
            started_ns: 0,
            took_ns: 0,
            counted: true,
            cause: None,
            window_ns: None,
            way_proved: None,
            values: std::collections::BTreeMap::default(),
        }
    }

    /// Which an empty field would not say: it is that of a path without a wire.
    #[test]
    fn a_wire_without_a_limit_is_none() {
        let samples = [
            sample(Peer::Local, None),
            sample(Peer::Far, Some(Rate(None))),
            sample(Peer::Far, Some(Rate(Some(1_000_000)))),
        ];
        let text = csv("run", &samples);
        let at = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        let lines: Vec<Vec<String>> = text.lines().map(at).collect();
        let rate = lines[0].iter().position(|name| name == "rate_bps").unwrap();
        let rates: Vec<&str> = lines[1..].iter().map(|line| line[rate].as_str()).collect();
        assert_eq!(rates, ["", "none", "1000000"]);
        // For programs that compute, the column stays one of numbers.
        let columns = columns("run", &samples);
        let rate = columns.iter().find(|column| column.name == "rate_bps");
        let values = &rate.unwrap().values;
        assert!(matches!(values, Values::Whole(v) if v[..] == [None, None, Some(1_000_000)]));
    }
}
