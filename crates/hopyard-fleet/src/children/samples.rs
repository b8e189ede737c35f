//! The samples of a run, as the table of a fleet has them.

use std::path::Path;

use hopyard_analysis::observations;
use hopyard_model::Observation;
use hopyard_model::plain::chain;
use hopyard_run::store;

use crate::plan::Column;
use crate::samples::Sample;

/// Of the run in a directory.
pub(super) fn read(directory: &Path, columns: &[Column]) -> Result<Vec<Sample>, String> {
    let run = store::load(directory).map_err(|e| chain(&e))?;
    let began = run.header.started.parse::<jiff::Timestamp>();
    let began_ms = began.map_err(|e| e.to_string())?.as_millisecond();
    let seen = observations(&run);
    Ok(seen.iter().map(|o| sample(o, began_ms, columns)).collect())
}

fn sample(of: &Observation, began_ms: i64, columns: &[Column]) -> Sample {
    let own = (0..).zip(columns);
    let own = own.filter(|(_, column)| column.load == of.cell.load);
    Sample {
        load: of.cell.load,
        block: of.block,
        attempt: of.attempt,
        started_ms: began_ms + i64::try_from(of.started_ns / 1_000_000).unwrap_or(0),
        window_ns: of.window_ns,
        counted: of.counted,
        cause: of.cause.clone(),
        values: own
            .filter_map(|(at, column)| Some((at, *of.values.get(column.quantity)?)))
            .collect(),
    }
}
