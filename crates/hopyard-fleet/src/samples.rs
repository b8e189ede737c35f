//! Samples as Parquet: a row for each sample of each pair that was measured, for query engines.
//!
//! `samples/run=ID/round=0007/part-0.parquet`: partitioned by run and round as Hive does it, so that DuckDB, Polars and Spark read
//! `run` and `round` from the names. A file is written when all pairs of its round have ended; pairs of that round which a later
//! session measures go to the next part. The journal says which pairs are kept, so a kill loses none and doubles none.
//!
//! Columns are in docs/fleet-data.md; a change of their names or meaning is another [`SCHEMA`].

use std::path::{Path, PathBuf};

use hopyard_host::bounded;
use hopyard_model::{LoadKind, distinct};
use hopyard_report::{Column, Values, parquet_file};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::fleet::Fleet;

/// Name and version of the table; each file has it as the value of `hopyard.schema`.
pub const SCHEMA: &str = "hopyard/fleet-samples/1";
/// Directory of the table, within that of the fleet.
pub(crate) const DIRECTORY: &str = "samples";

/// One sample of a pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// What was driven.
    pub load: LoadKind,
    /// Block of the pair's run, from 0.
    pub block: u32,
    /// How often this block was repeated before.
    pub attempt: u32,
    /// When it began, ms since 1970.
    pub started_ms: i64,
    /// Length of the window, ns.
    pub window_ns: Option<u64>,
    /// Do the pair's figures rest on it?
    pub counted: bool,
    /// Why it failed, where it did.
    pub cause: Option<String>,
    /// Figures by their place in the plan's columns.
    pub values: Vec<(u16, f64)>,
}

/// File of a part of a round.
pub(crate) fn file(fleet: &Fleet, directory: &Path, round: usize, part: u32) -> PathBuf {
    let run = format!("run={}", fleet.id());
    directory
        .join(DIRECTORY)
        .join(run)
        .join(format!("round={round:04}"))
        .join(format!("part-{part}.parquet"))
}

/// Writes the samples of some pairs, by their places, into a file of their own.
pub(crate) fn write(fleet: &Fleet, to: &Path, samples: &[(usize, Vec<Sample>)]) -> Result<()> {
    let about = [
        ("hopyard.schema", SCHEMA),
        ("hopyard.fleet", &fleet.started),
    ];
    let bytes = parquet_file(&about, &columns(fleet, samples)).map_err(|e| Error::Internal {
        what: "write samples as Parquet",
        source: std::io::Error::other(e),
    })?;
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent).map_err(|e| Error::file("make", parent, e))?;
    }
    bounded::replace_with(to, |out| out.write_all(&bytes)).map_err(|e| Error::file("write", to, e))
}

/// The same columns in every file of a fleet: each row's pair, then the sample, then a column for each quantity of the plan.
fn columns(fleet: &Fleet, samples: &[(usize, Vec<Sample>)]) -> Vec<Column> {
    let rows: Vec<(usize, &Sample)> = samples
        .iter()
        .flat_map(|(place, of_pair)| of_pair.iter().map(move |sample| (*place, sample)))
        .collect();
    let text = |name, of: &dyn Fn(usize, &Sample) -> Option<String>| Column {
        name,
        values: Values::Text(rows.iter().map(|(place, s)| of(*place, s)).collect()),
    };
    let whole = |name, of: &dyn Fn(usize, &Sample) -> Option<i64>| Column {
        name,
        values: Values::Whole(rows.iter().map(|(place, s)| of(*place, s)).collect()),
    };
    let end = |place: usize, role: usize| {
        let machine = fleet.pairs[place].ends()[role];
        &fleet.plan.endpoints[usize::from(machine)]
    };
    let attempt = |place: usize| fleet.outcomes[place].as_ref().map(|o| i64::from(o.attempt));
    let mut columns = vec![
        text("client", &|place, _| Some(end(place, 0).name.clone())),
        text("server", &|place, _| Some(end(place, 1).name.clone())),
        text("client_rack", &|place, _| end(place, 0).rack.clone()),
        text("server_rack", &|place, _| end(place, 1).rack.clone()),
        whole("pair_attempt", &|place, _| attempt(place)),
        text("load", &|_, s| Some(s.load.name().to_owned())),
        whole("block", &|_, s| Some(s.block.into())),
        whole("attempt", &|_, s| Some(s.attempt.into())),
        whole("started_ms", &|_, s| Some(s.started_ms)),
        whole("window_ns", &|_, s| i64::try_from(s.window_ns?).ok()),
        Column {
            name: "counted",
            values: Values::Truth(rows.iter().map(|(_, s)| Some(s.counted)).collect()),
        },
        text("cause", &|_, s| s.cause.clone()),
    ];
    for quantity in quantities(fleet) {
        let of = |sample: &Sample| {
            let mut found = sample.values.iter();
            let is_it = |at: u16| fleet.columns[usize::from(at)].quantity == quantity;
            found.find(|(at, _)| is_it(*at)).map(|(_, value)| *value)
        };
        columns.push(Column {
            name: quantity,
            values: Values::Number(rows.iter().map(|(_, s)| of(s)).collect()),
        });
    }
    columns
}

/// The quantities of the plan, each once, though several loads have it.
pub(crate) fn quantities(fleet: &Fleet) -> Vec<&'static str> {
    distinct(fleet.columns.iter().map(|column| column.quantity))
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;
    use crate::outcome::{Outcome, State};
    use crate::plan::tests::machines;
    use crate::plan::{Plan, Settings};
    use crate::store::Store;

    fn outcome() -> Outcome {
        Outcome {
            state: State::Measured,
            attempt: 2,
            began_ms: 0,
            took_ms: 0,
            cause: None,
            figures: Vec::new(),
        }
    }

    fn fleet() -> Fleet {
        let plan = Plan::new(machines(2), &Settings::default()).unwrap();
        let mut fleet = Fleet::new(plan, "2026-03-01T10:15:00.25Z".to_owned());
        fleet.outcomes[0] = Some(outcome());
        fleet
    }

    /// Of a round of two pairs one could be read.
    #[test]
    fn samples_that_were_not_to_be_had_are_asked_for_again() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("fleet");
        let plan = Plan::new(machines(4), &Settings::default()).unwrap();
        let mut store = Store::create(&directory, plan.clone()).unwrap();
        let round: Vec<usize> = store.fleet.places(0).collect();
        assert_eq!(round.len(), 2);
        for place in &round {
            store.ended(*place, outcome()).unwrap();
        }
        store.keep(0, &[(round[0], vec![sample(0, None)])]).unwrap();
        assert_eq!(store.fleet.not_kept(0), round[1..]);
        drop(store);
        let mut store = Store::resume(&directory, &plan.endpoints, None).unwrap();
        assert_eq!(store.fleet.not_kept(0), round[1..]);
        store.keep(0, &[(round[1], vec![sample(0, None)])]).unwrap();
        assert!(store.fleet.not_kept(0).is_empty());
    }

    fn sample(block: u32, cause: Option<String>) -> Sample {
        Sample {
            load: LoadKind::TcpRr,
            block,
            attempt: 0,
            started_ms: 1000,
            window_ns: None,
            counted: true,
            cause,
            values: vec![(2, 7.5)],
        }
    }

    /// A round of many pairs has more than other files may have.
    #[test]
    fn samples_of_a_long_round_are_kept() {
        const COUNT: u32 = 20_000;
        let home = tempfile::tempdir().unwrap();
        let to = home.path().join("a/part-0.parquet");
        let mut state = 1_u64;
        // Words that cannot be made shorter.
        let mut cause = || -> String {
            let words = (0..40).map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                format!("{:016x}", state ^ (state >> 29))
            });
            words.collect()
        };
        let samples = (0..COUNT).map(|block| sample(block, Some(cause())));
        write(&fleet(), &to, &[(0, samples.collect())]).unwrap();
        let file = std::fs::File::open(&to).unwrap();
        assert!(file.metadata().unwrap().len() > 8 << 20);
        let read = SerializedFileReader::new(file).unwrap();
        let rows = read.metadata().file_metadata().num_rows();
        assert_eq!(rows, i64::from(COUNT));
    }

    #[test]
    fn every_file_of_a_fleet_has_the_same_columns() {
        let fleet = fleet();
        let sample = sample(3, None);
        let names =
            |columns: Vec<Column>| -> Vec<&str> { columns.iter().map(|c| c.name).collect() };
        let with = columns(&fleet, &[(0, vec![sample])]);
        let last = with
            .iter()
            .find(|c| c.name == "transactions_per_s")
            .unwrap();
        assert!(matches!(&last.values, Values::Number(v) if v[..] == [Some(7.5)]));
        assert_eq!(names(with), names(columns(&fleet, &[])));
        let to = file(&fleet, Path::new("out"), 7, 1);
        assert_eq!(
            to.to_str().unwrap(),
            "out/samples/run=20260301T101500250/round=0007/part-1.parquet"
        );
    }
}
