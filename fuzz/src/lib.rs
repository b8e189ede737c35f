//! What the targets share: directories made of texts, a run that is edited, and every way to show one.

mod edit;

use std::fs;
use std::path::Path;

use hopyard::assess::{assess, observations};
use hopyard::model::RunReport;
use hopyard::report::EXPORTS;
use hopyard::store::{self, Run};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

pub use edit::{Edit, SEED, edited};

/// The files of a run's directory.
pub const FILES: [&str; 4] = ["run.json", "samples.jsonl", "profiles.jsonl", "end.json"];

/// A directory with these files.
pub fn directory<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> TempDir {
    let home = tempfile::tempdir().expect("room for a directory");
    for (name, bytes) in files {
        let file = home.path().join(name);
        fs::create_dir_all(file.parent().expect("it is below")).expect("room for a directory");
        fs::write(file, bytes).expect("room for a file");
    }
    home
}

/// A run, or an error that names what is wrong.
pub fn load(directory: &Path) -> Option<Run> {
    match store::load(directory) {
        Ok(run) => Some(run),
        Err(error) => {
            let said = hopyard::chain(&error);
            assert!(
                said.contains(&*directory.to_string_lossy()),
                "no file is named: {said}"
            );
            None
        }
    }
}

/// Shows a run in one of its formats.
pub fn show(run: &Run, which: u8) {
    let format = EXPORTS[usize::from(which) % EXPORTS.len()];
    let report = assess(run);
    let shown = format
        .render(&report, &observations(run))
        .expect("a report");
    match format.name {
        // A figure that is no number would be null, and not read back.
        "json" => drop(serde_json::from_slice::<RunReport>(&shown).expect("a document")),
        "csv" => {
            let mut table = csv::Reader::from_reader(&*shown);
            let paths = table
                .records()
                .map(|row| row.expect("as many fields")[1].to_owned());
            let mut paths: Vec<String> = paths.collect();
            paths.dedup();
            let mut wanted: Vec<_> = report.cells.iter().map(|cell| cell.path.clone()).collect();
            wanted.dedup();
            assert_eq!(paths, wanted);
        }
        _ if format.is_binary() => {}
        _ => plain(&shown),
    }
}

/// No character that a terminal would obey.
pub fn plain(shown: &[u8]) {
    let text = str::from_utf8(shown).expect("text");
    assert!(
        !text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'),
        "{text:?}"
    );
}

/// What is read and printed is read as the same.
pub fn same_again<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let text = serde_json::to_string(value).expect("JSON");
    assert_eq!(
        serde_json::from_str::<T>(&text).ok().as_ref(),
        Some(value),
        "{text}"
    );
}
