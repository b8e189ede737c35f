//! The directory of a fleet: `plan.json`, and `pairs.jsonl`, a line for whatever happened, written at once.
//!
//! Everything else is computed from these two, so what was measured is there after SIGKILL too. A line without its end is
//! passed over. `pairs/CLIENT--SERVER/N/` has what attempt N left: the run, its report and what it said. `samples/` has the samples
//! of all pairs as a table (`samples`).

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use hopyard_host::bounded;

use crate::endpoints::Endpoint;
use crate::error::{Error, Result};
use crate::fleet::{Fleet, Header, JOURNAL, Line, PLAN, STORE, column_names, shown};
use crate::outcome::{End, Outcome};
use crate::plan::Plan;
use crate::samples::{self, Sample};
use crate::schedule::Pair;

/// Of the journal, bytes: after pairs no longer fit, what was measured is still written to `samples/` and noted.
const FOR_THE_END: u64 = 1 << 20;

/// A directory that is written. Nobody else writes it meanwhile.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    journal: File,
    /// What the directory holds, kept up to date with each line that is written.
    pub fleet: Fleet,
    /// Pairs that were measured and whose samples could not be read for the table, and why.
    pub missing: Vec<(usize, String)>,
}

impl Store {
    /// May a new fleet be stored there?
    ///
    /// # Errors
    /// There is something in it already, or it cannot be read.
    pub fn check_unused(directory: &Path) -> Result<()> {
        if is_used(directory)? {
            return Err(Error::Wrong(format!(
                "{} is not empty: --resume goes on with a fleet that is in it, or choose another directory",
                shown(directory)
            )));
        }
        Ok(())
    }

    /// A directory for a new fleet: one that is not there, or empty.
    ///
    /// # Errors
    /// There is something in it already, or it cannot be made.
    pub fn create(directory: &Path, plan: Plan) -> Result<Self> {
        Self::check_unused(directory)?;
        let started = jiff::Timestamp::now().to_string();
        let fleet = Fleet::new(plan, started);
        let pairs = directory.join("pairs");
        std::fs::create_dir_all(&pairs).map_err(|e| Error::file("make", &pairs, e))?;
        // The plan comes last: a directory that has one has all that `--resume` asks for, and one that was begun without is empty.
        let journal = directory.join(JOURNAL);
        let journal = open(&journal, !journal.exists())?;
        write_plan(&fleet, directory)?;
        Self::begin(directory, journal, fleet)
    }

    /// A fleet that goes on, with these endpoints: the same machines by name, reached as they say now. `at_once` is the most pairs side
    /// by side from now on, if that is to change: others may measure them now.
    ///
    /// # Errors
    /// There is none, it is damaged, somebody else writes it, its machines are others, or they are reached by another family.
    pub fn resume(
        directory: &Path,
        endpoints: &[Endpoint],
        at_once: Option<usize>,
    ) -> Result<Self> {
        let file = directory.join(JOURNAL);
        let journal = open(&file, false)?;
        cut_half_line(&journal, &file)?;
        let mut fleet = Fleet::read(directory)?;
        let names =
            |of: &[Endpoint]| -> Vec<String> { of.iter().map(|e| e.name.clone()).collect() };
        let (was, is) = (names(&fleet.plan.endpoints), names(endpoints));
        if was != is {
            let differs = was.iter().zip(&is).position(|(a, b)| a != b);
            let differs = differs.unwrap_or(was.len().min(is.len()));
            let of = |names: &[String]| {
                names
                    .get(differs)
                    .map_or("none".to_owned(), |n| format!("`{n}`"))
            };
            return Err(Error::Wrong(format!(
                "{} was begun with other endpoints: number {} was {} and is {} now; --resume takes the same names in the \
                 same order, only how they are reached may change",
                shown(directory),
                differs + 1,
                of(&was),
                of(&is)
            )));
        }
        fleet.plan.endpoints = endpoints.to_vec();
        fleet.plan.at_once = at_once.unwrap_or(fleet.plan.at_once);
        fleet.plan.check().map_err(Error::Wrong)?;
        write_plan(&fleet, directory)?;
        Self::begin(directory, journal, fleet)
    }

    /// Begins a session: what an earlier one found lost is tried again.
    fn begin(directory: &Path, journal: File, mut fleet: Fleet) -> Result<Self> {
        fleet.lost.fill(None);
        fleet.end = None;
        let mut store = Self {
            directory: directory.to_owned(),
            journal,
            fleet,
            missing: Vec::new(),
        };
        store.append(&Line::Began {
            at: jiff::Timestamp::now().to_string(),
        })?;
        Ok(store)
    }

    /// The directory that was given to `create` or `resume`.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The last attempt at a pair; 1 where there was none.
    pub(crate) fn attempt_of(&self, place: usize) -> u32 {
        self.fleet.outcomes[place].as_ref().map_or(1, |o| o.attempt)
    }

    /// Number of the next attempt at a pair: directories that a killed fleet left count too.
    #[must_use]
    pub(crate) fn next_attempt(&self, place: usize) -> u32 {
        let mut attempt = self.fleet.outcomes[place].as_ref().map_or(0, |o| o.attempt) + 1;
        while self.place_of(place, attempt).exists() {
            attempt += 1;
        }
        attempt
    }

    /// Directory of an attempt at a pair.
    #[must_use]
    pub fn place_of(&self, place: usize, attempt: u32) -> PathBuf {
        let [client, server] = self.fleet.pairs[place].ends().map(|m| self.fleet.name(m));
        let pair = format!("{client}--{server}");
        self.directory
            .join("pairs")
            .join(pair)
            .join(attempt.to_string())
    }

    pub(crate) fn ended(&mut self, place: usize, outcome: Outcome) -> Result<()> {
        let Pair { client, server } = self.fleet.pairs[place];
        let line = Line::Pair {
            client,
            server,
            outcome,
        };
        self.append(&line)?;
        if let Line::Pair { outcome, .. } = line {
            self.fleet.outcomes[place] = Some(outcome);
        }
        Ok(())
    }

    pub(crate) fn lost(&mut self, machine: u16, cause: String) -> Result<()> {
        let line = Line::Lost { machine, cause };
        self.append(&line)?;
        if let Line::Lost { cause, .. } = line {
            self.fleet.lost[usize::from(machine)] = Some(cause);
        }
        Ok(())
    }

    /// Writes samples of pairs of a round into a file of their own. Those that are missing are asked for again when the fleet goes on.
    pub(crate) fn keep(&mut self, round: usize, samples: &[(usize, Vec<Sample>)]) -> Result<()> {
        if samples.is_empty() {
            return Ok(());
        }
        let part = self.fleet.next_part(round);
        let file = samples::file(&self.fleet, &self.directory, round, part);
        samples::write(&self.fleet, &file, samples)?;
        let mut without = self.fleet.not_kept(round);
        without.retain(|place| samples.iter().all(|(kept, _)| kept != place));
        self.append(&Line::Kept {
            round: u32::try_from(round).unwrap_or(u32::MAX),
            without: without.clone(),
        })?;
        self.fleet.keep(round, &without);
        Ok(())
    }

    pub(crate) fn over(&mut self, why: End) -> Result<()> {
        self.fleet.end = Some(why);
        self.append(&Line::Ended { why })
    }

    fn append(&mut self, line: &Line) -> Result<()> {
        let file = self.directory.join(JOURNAL);
        let cannot = |e: std::io::Error| Error::file("write to", &file, e);
        let mut text = serde_json::to_vec(line).map_err(|e| cannot(e.into()))?;
        text.push(b'\n');
        let most = match line {
            Line::Kept { .. } | Line::Ended { .. } => bounded::MOST_OF_LINES,
            _ => bounded::MOST_OF_LINES - FOR_THE_END,
        };
        let size = self.journal.metadata().map_err(cannot)?.len();
        if size + text.len() as u64 > most {
            return Err(Error::Wrong(format!(
                "{} is full: at most {} MiB are read again, and each attempt at a pair adds a line; what is in it stays: \
                 measure again in another directory",
                shown(&file),
                bounded::MOST_OF_LINES >> 20
            )));
        }
        // A line is there or is not, also on a full disk.
        self.journal.write_all(&text).map_err(|error| {
            // The first error is the one to report.
            let _ = self.journal.set_len(size);
            cannot(error)
        })
    }
}

/// Is there more than what a fleet leaves that was killed before it had a plan?
fn is_used(directory: &Path) -> Result<bool> {
    let failed = |e| Error::file("use", directory, e);
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(failed(e)),
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let is_ours = match entry.file_name().to_str() {
            Some("pairs") => entry.path().is_dir(),
            Some(JOURNAL) => entry.metadata().map_err(failed)?.len() == 0,
            _ => false,
        };
        if !is_ours {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The plan with the endpoints as they are reached now.
fn write_plan(fleet: &Fleet, directory: &Path) -> Result<()> {
    let header = Header {
        schema: STORE.to_owned(),
        started: fleet.started.clone(),
        plan: fleet.plan.clone(),
        columns: column_names(&fleet.columns),
    };
    let text = serde_json::to_vec_pretty(&header).map_err(|e| Error::Internal {
        what: "write the plan as JSON",
        source: e.into(),
    })?;
    let file = directory.join(PLAN);
    bounded::replace(&file, &text).map_err(|e| Error::file("write", &file, e))
}

/// Opens the journal for appending, for us alone.
fn open(file: &Path, is_new: bool) -> Result<File> {
    let mut options = File::options();
    options.read(true).append(true).create_new(is_new);
    let opened = bounded::open_to_write(file, &mut options).map_err(|e| {
        if !is_new && e.kind() == std::io::ErrorKind::NotFound {
            return Error::Wrong(format!(
                "{} is not there, so no fleet was begun in that directory: leave out --resume to begin one",
                shown(file)
            ));
        }
        Error::file("write to", file, e)
    })?;
    opened.try_lock().map_err(|error| match error {
        std::fs::TryLockError::WouldBlock => Error::Wrong(format!(
            "{} is written by another hopyard fleet: wait for it, or choose another directory",
            shown(file)
        )),
        std::fs::TryLockError::Error(e) => Error::file("lock", file, e),
    })?;
    Ok(opened)
}

/// A killed fleet may have left half a line, which the next one would be appended to.
fn cut_half_line(journal: &File, file: &Path) -> Result<()> {
    use std::os::unix::fs::FileExt;
    let cannot = |e| Error::file("read", file, e);
    let size = journal.metadata().map_err(cannot)?.len();
    let mut end = size;
    let mut byte = [0];
    while end > 0 {
        journal.read_exact_at(&mut byte, end - 1).map_err(cannot)?;
        if byte[0] == b'\n' {
            break;
        }
        end -= 1;
    }
    if end < size {
        journal.set_len(end).map_err(cannot)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::outcome::State;
    use crate::plan::tests::machines;

    fn failed(attempt: u32) -> Outcome {
        Outcome {
            state: State::Failed,
            attempt,
            began_ms: 0,
            took_ms: 1,
            cause: Some("it broke".into()),
            figures: Vec::new(),
        }
    }

    #[test]
    fn a_journal_that_could_not_be_read_again_takes_no_more_pairs_and_says_so() {
        let home = tempfile::tempdir().unwrap();
        let plan = Plan::new(machines(2), &Settings::default()).unwrap();
        let mut store = Store::create(home.path(), plan).unwrap();
        store.ended(0, failed(1)).unwrap();
        let most = bounded::MOST_OF_LINES - FOR_THE_END;
        // A hole takes no space.
        store.journal.set_len(most - 1).unwrap();
        let error = store.ended(0, failed(2)).unwrap_err().to_string();
        assert!(
            error.contains("pairs.jsonl is full: at most 512 MiB are read again"),
            "{error}"
        );
        assert_eq!(store.fleet.outcomes[0].as_ref().unwrap().attempt, 1);
        let size = |store: &Store| store.journal.metadata().unwrap().len();
        assert_eq!(size(&store), most - 1);
        store.over(End::Broken).unwrap();
        assert!(size(&store) > most);
    }
}
