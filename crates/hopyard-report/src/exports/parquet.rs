//! Parquet for DuckDB, Polars, pandas and the like: the table of [`super::tidy`], a row per sample.

use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use super::{Export, Writer};
use crate::tidy::{self, Column, Values};

pub(super) static EXPORT: Export = Export {
    name: "parquet",
    title: "Parquet",
    summary: "All samples, a row each, in typed columns, for DuckDB, Polars, pandas",
    extension: "parquet",
    ..Export::of_runs(Writer::Binary(|report, seen| {
        let run = &report.run.id;
        Ok(write(&[("hopyard.run", run)], &tidy::columns(run, seen))?)
    }))
};

/// A whole Parquet file. What it came from stands beside the columns, as keys and values: `hopyard.run` has the run's id.
///
/// # Errors
/// A column cannot be written.
pub(super) fn write(about: &[(&str, &str)], columns: &[Column]) -> Result<Vec<u8>> {
    let fields = columns
        .iter()
        .map(field)
        .collect::<Result<Vec<TypePtr>>>()?;
    let schema = Type::group_type_builder("sample")
        .with_fields(fields)
        .build()?;
    let about = about.iter();
    let about = about.map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("hopyard {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(about.collect()));
    let mut bytes = Vec::new();
    let mut file =
        SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::new(properties.build()))?;
    let mut group = file.next_row_group()?;
    for column in columns {
        let Some(mut writer) = group.next_column()? else {
            break;
        };
        fill(&mut writer, &column.values)?;
        writer.close()?;
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}

fn field(column: &Column) -> Result<TypePtr> {
    let (physical, logical) = match column.values {
        Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Whole(_) => (Physical::INT64, None),
        Values::Number(_) => (Physical::DOUBLE, None),
        Values::Truth(_) => (Physical::BOOLEAN, None),
    };
    let field = Type::primitive_type_builder(column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical);
    Ok(Arc::new(field.build()?))
}

fn fill(writer: &mut SerializedColumnWriter<'_>, values: &Values) -> Result<()> {
    match values {
        Values::Text(values) => {
            let text = |text: &Option<String>| text.as_deref().map(ByteArray::from);
            put::<ByteArrayType>(writer, &values.iter().map(text).collect::<Vec<_>>())
        }
        Values::Whole(values) => put::<Int64Type>(writer, values),
        Values::Number(values) => put::<DoubleType>(writer, values),
        Values::Truth(values) => put::<BoolType>(writer, values),
    }
}

/// The present values, and for each row whether it has one.
fn put<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    values: &[Option<T::T>],
) -> Result<()> {
    let there: Vec<i16> = values
        .iter()
        .map(|value| i16::from(value.is_some()))
        .collect();
    let values: Vec<T::T> = values.iter().flatten().cloned().collect();
    writer
        .typed::<T>()
        .write_batch(&values, Some(&there), None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    fn read(columns: &[Column]) -> SerializedFileReader<File> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&write(&[("hopyard.run", "a run")], columns).unwrap())
            .unwrap();
        SerializedFileReader::new(file).unwrap()
    }

    #[test]
    fn what_is_absent_is_null() {
        let columns = [
            Column {
                name: "path",
                values: Values::Text(vec![Some("vé\"th".into()), None]),
            },
            Column {
                name: "block",
                values: Values::Whole(vec![Some(-1), Some(7)]),
            },
            Column {
                name: "goodput_bps",
                values: Values::Number(vec![None, Some(1.5e10)]),
            },
            Column {
                name: "counted",
                values: Values::Truth(vec![Some(true), Some(false)]),
            },
        ];
        let reader = read(&columns);
        let rows: Vec<String> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().to_string())
            .collect();
        assert_eq!(
            rows,
            [
                "{path: \"vé\"th\", block: -1, goodput_bps: null, counted: true}",
                "{path: null, block: 7, goodput_bps: 15000000000.0, counted: false}",
            ]
        );
        let about = reader
            .metadata()
            .file_metadata()
            .key_value_metadata()
            .unwrap();
        assert_eq!(about[0].value.as_deref(), Some("a run"));
    }

    #[test]
    fn a_table_without_rows_is_a_file_too() {
        let columns = [Column {
            name: "path",
            values: Values::Text(Vec::new()),
        }];
        assert_eq!(read(&columns).metadata().file_metadata().num_rows(), 0);
    }
}
