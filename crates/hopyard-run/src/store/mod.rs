//! The run directory: the header, raw samples appended one by one, and how the run ended.
//!
//! ```text
//! run.json        the plan and the machine
//! samples.jsonl   a line per sample, written and flushed at once
//! profiles.jsonl  a line per profile, if the run takes any
//! end.json        how it ended; missing if the program was killed
//! ```
//!
//! Every report uses only these files, so an interrupted run is still useful.

mod check;
mod place;
mod reader;
mod writer;

use std::io;
use std::path::PathBuf;

pub(crate) use check::{Known, header as check_header, id as check_id};
pub use place::{check_place, check_writable};
pub use reader::{load, runs_in};
pub use writer::Writer;

pub use crate::model::stored::{End, Header, PlannedCell, Run, SCHEMA};
use crate::model::{ProfileWindow, Sample};

const HEADER: &str = "run.json";
const SAMPLES: &str = "samples.jsonl";
const PROFILES: &str = "profiles.jsonl";
const END: &str = "end.json";

/// Destination of the lines of a run: its directory, or a host that has one.
pub trait Record {
    /// Stores a sample.
    ///
    /// # Errors
    /// It could not be stored; the run cannot continue.
    fn append(&mut self, sample: &Sample) -> Result<(), Error>;
    /// Stores a profile.
    ///
    /// # Errors
    /// As for a sample.
    fn append_profile(&mut self, profile: &ProfileWindow) -> Result<(), Error>;
    /// Whether another block may not fit beside the first `blocks`: a file that is too large is not read again.
    fn is_full(&self, _blocks: u32) -> bool {
        false
    }
    /// Stores how the run ended.
    ///
    /// # Errors
    /// As for a sample.
    fn finish(&mut self, end: End) -> Result<(), Error>;
}

/// What helps besides another directory, where the disk or a quota is full.
fn more_room(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space or ",
        _ => "",
    }
}

/// Why a run directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be written.
    #[error("cannot write {}; {}choose another directory with --out", .file.display(), more_room(.source))]
    Write {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The directory holds a run already.
    #[error("{} holds a run already, or what is left of one ({file}): choose another --out", .directory.display())]
    Taken {
        directory: PathBuf,
        /// The file in it.
        file: &'static str,
    },
    /// It cannot be read.
    #[error("cannot read {}", .file.display())]
    Read {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Another process writes to the run.
    #[error("{} is being written: its run is under way", .0.display())]
    Busy(PathBuf),
    /// It is not a run directory.
    #[error("{} is no run directory: it has no {HEADER}", .0.display())]
    NoRun(PathBuf),
    /// A file is damaged.
    #[error("{} line {line} is damaged", .file.display())]
    Damaged {
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with the line.
        #[source]
        source: serde_json::Error,
    },
    /// A file can be parsed, but its contents are impossible.
    #[error("{} is damaged: {why}", .file.display())]
    Wrong {
        file: PathBuf,
        /// What is impossible, and what is allowed.
        why: String,
    },
    /// Another version wrote it.
    #[error("{} is of schema `{found}`, this hopyard reads `{SCHEMA}`: use the version that wrote it", .file.display())]
    Schema {
        file: PathBuf,
        /// The schema that the file states.
        found: String,
    },
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::meter::{CpuMeter, environment};
    use crate::model::{Axes, Cell, Feature, LoadKind, Outcome, Peer, Replay};

    fn header() -> Header {
        Header {
            schema: SCHEMA.to_owned(),
            id: "id".to_owned(),
            plan: "paths".to_owned(),
            seed: u64::MAX,
            started: "2026-01-01T00:00:00Z".to_owned(),
            window_ns: 200_000_000,
            warm_up_ns: 1,
            profile_window_ns: None,
            blocks_min: 1,
            blocks_max: 1,
            half_width: 0.025,
            confidence: 0.95,
            margin: 0.02,
            base: None,
            base_asked: true,
            limit_asked: true,
            needs: vec![Feature::Filter, Feature::HostAccess],
            time_limit_ns: None,
            profile: false,
            turn_ns: None,
            shortest_turn_ns: None,
            decide: None,
            published: Vec::new(),
            offloads: None,
            settings: None,
            endpoints: None,
            fail_on: Some(0.03),
            left_out: Vec::new(),
            traces: vec![Replay::sample().summary("sample".to_owned())],
            cells: vec![planned()],
            environment: environment::capture(&CpuMeter::new().unwrap()),
        }
    }

    fn planned() -> PlannedCell {
        let (load, peer) = (LoadKind::TcpRr, Peer::Local);
        PlannedCell {
            cell: Cell {
                path: "veth".to_owned(),
                peer,
                load,
                axes: Axes::default().for_cell(load, peer, &[]),
            },
            unsupported: None,
            filter_sees: None,
            chains: None,
            rules_instead: None,
            offers: None,
            ceiling_per_s: None,
        }
    }

    fn sample(order: u32) -> Sample {
        let outcome = Outcome::Failed {
            cause: "cause with \"quotes\"\nand a line".to_owned(),
        };
        Sample {
            block: 0,
            attempt: order,
            cell: 0,
            order,
            started_ns: 1,
            took_ns: 2,
            outcome,
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("deep/run");
        let header = header();
        let mut writer = Writer::create(&directory, &header).unwrap();
        writer.append(&sample(0)).unwrap();
        assert_eq!(load(&directory).unwrap().samples.len(), 1, "there at once");
        writer.append(&sample(1)).unwrap();
        writer.finish(End::TimeLimit).unwrap();
        let run = load(&directory).unwrap();
        assert_eq!(run.header, header);
        assert_eq!(run.samples, [sample(0), sample(1)]);
        assert_eq!(run.end, Some(End::TimeLimit));
        assert!(matches!(
            Writer::create(&directory, &header),
            Err(Error::Taken { .. })
        ));
    }

    /// As on a full disk: half an end would be a damaged file.
    #[test]
    fn an_end_that_cannot_be_written_leaves_the_run() {
        let home = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(home.path(), &header()).unwrap();
        writer.append(&sample(0)).unwrap();
        let in_the_way = home.path().join("end.json.new");
        fs::create_dir(&in_the_way).unwrap();
        assert!(writer.finish(End::Complete).is_err());
        let run = load(home.path()).unwrap();
        assert_eq!((run.samples.len(), run.end), (1, None));
        fs::remove_dir(&in_the_way).unwrap();
        writer.finish(End::Complete).unwrap();
        assert_eq!(load(home.path()).unwrap().end, Some(End::Complete));
    }

    #[test]
    fn half_a_line_at_the_end_is_passed_over_and_damage_is_named() {
        let home = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(home.path(), &header()).unwrap();
        writer.append(&sample(0)).unwrap();
        let file = home.path().join(SAMPLES);
        let mut text = fs::read(&file).unwrap();
        let whole = text.clone();
        text.extend_from_slice(&whole[..whole.len() / 2]);
        fs::write(&file, &text).unwrap();
        assert_eq!(load(home.path()).unwrap().samples.len(), 1);
        fs::write(&file, [&whole[..], b"{\"block\":\n"].concat()).unwrap();
        let error = load(home.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("samples.jsonl line 2 is damaged"),
            "{error}"
        );
    }

    #[test]
    fn a_directory_stands_for_the_runs_in_it() {
        let home = tempfile::tempdir().unwrap();
        let refused = runs_in(home.path()).unwrap_err();
        assert!(matches!(refused, Error::NoRun(_)), "{refused}");
        let refused = runs_in(&home.path().join("none")).unwrap_err();
        assert!(matches!(refused, Error::NoRun(_)), "{refused}");
        for name in ["2", "1"] {
            Writer::create(&home.path().join(name), &header()).unwrap();
        }
        fs::create_dir(home.path().join("0-no-run")).unwrap();
        fs::write(home.path().join("notes.txt"), "mine").unwrap();
        let both = ["1", "2"].map(|name| home.path().join(name));
        assert_eq!(runs_in(home.path()).unwrap(), both);
        assert_eq!(runs_in(&both[0]).unwrap(), both[..1]);
    }

    #[test]
    fn other_directories_and_versions_are_refused() {
        let home = tempfile::tempdir().unwrap();
        assert!(matches!(load(home.path()), Err(Error::NoRun(_))));
        fs::write(
            home.path().join(HEADER),
            "{\"schema\": \"hopyard/store/9\"}",
        )
        .unwrap();
        let error = load(home.path()).unwrap_err().to_string();
        assert!(
            error.contains("hopyard/store/9") && error.contains("use the version"),
            "{error}"
        );
        fs::write(home.path().join(HEADER), "no json").unwrap();
        assert!(matches!(load(home.path()), Err(Error::Damaged { .. })));
    }
}
