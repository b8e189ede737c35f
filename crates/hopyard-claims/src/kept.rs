//! A directory of claims: what was asked for, and what was found so far.
//!
//! ```text
//! claims.json   what was asked for, and what came of deeds and benches
//! PLAN/         a run directory for each plan
//! further/N-ID/ one for each claim that was given further blocks, in their order
//! guest/PLAN/   one for each that was run in a guest beside
//! ```

mod error;
mod found;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bench::{self, Benched, Done};
use super::guest::{self, Beside, Guest};
use super::{Demand, Evidence};
use crate::bounded;
use crate::model::{CpuAccounting, Environment};
use crate::run::{self, Observer};
use crate::signals;
use crate::store;
pub use error::Error;
pub use found::evidence_from;
use found::{add_further, of_one_machine, of_run, runs};

/// Version of the file.
const SCHEMA: &str = "hopyard/claims-store/1";
const FILE: &str = "claims.json";
/// The directory of further blocks.
const FURTHER: &str = "further";

/// What was asked for, and what was found beside the plans.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Asked {
    schema: String,
    /// Ids and reports; none for all.
    pub names: Vec<String>,
    /// Are they open questions, and no claims?
    #[serde(default)]
    pub questions: bool,
    /// A first look?
    pub quick: bool,
    /// No plan is measured longer than this.
    #[serde(default)]
    pub time_limit: Option<Duration>,
    /// Are CPUs kept from halting while the plans are measured?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_awake: bool,
    /// Seed of every random order; another for each plan where none is named.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Is it measured in guests of another kernel?
    #[serde(default)]
    pub in_guest: bool,
    /// What a guest has of what this machine's kernel lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest: Option<Guest>,
    /// Is nothing left to measure further: every claim is decided, has had its further blocks, or the time was over?
    #[serde(default)]
    pub is_settled: bool,
    /// Why a plan could not be run.
    #[serde(default)]
    pub not_run: BTreeMap<String, String>,
    /// The machine that deeds and benches are of; `None`: none was asked for, or they are a guest's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Environment>,
    /// Deeds by name.
    #[serde(default)]
    pub done: BTreeMap<String, Done>,
    /// Benches by name.
    #[serde(default)]
    pub benched: BTreeMap<String, Benched>,
}

impl Asked {
    /// Nothing has been done yet.
    #[must_use]
    pub fn new(names: &[String], quick: bool) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            names: names.to_vec(),
            questions: false,
            quick,
            time_limit: None,
            keep_awake: false,
            seed: None,
            in_guest: false,
            is_settled: false,
            guest: None,
            not_run: BTreeMap::new(),
            machine: None,
            done: BTreeMap::new(),
            benched: BTreeMap::new(),
        }
    }
}

/// A directory of claims.
#[derive(Debug)]
pub struct Place {
    directory: PathBuf,
    /// What is known so far.
    pub asked: Asked,
}

impl Place {
    /// A new one.
    ///
    /// # Errors
    /// It holds claims or a run already, or cannot be written.
    pub fn create(directory: &Path, asked: Asked) -> Result<Self, Error> {
        if directory.join(FILE).exists() {
            return Err(Error::Taken(directory.to_owned()));
        }
        store::check_place(directory)?;
        fs::create_dir_all(directory).map_err(|source| Error::Write {
            file: directory.to_owned(),
            source,
        })?;
        let place = Self {
            directory: directory.to_owned(),
            asked,
        };
        place.keep()?;
        Ok(place)
    }

    /// One that there is.
    ///
    /// # Errors
    /// It is none, or damaged.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        let file = directory.join(FILE);
        let text = match bounded::read(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Nothing(directory.to_owned()));
            }
            Err(source) => return Err(Error::Read { file, source }),
        };
        let asked = read(&file, &text)?;
        Ok(Self {
            directory: directory.to_owned(),
            asked,
        })
    }

    /// Writes down what is known, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&self) -> Result<(), Error> {
        let file = self.directory.join(FILE);
        let text = serde_json::to_vec_pretty(&self.asked).map_err(|source| Error::Damaged {
            file: file.clone(),
            source,
        })?;
        bounded::replace(&file, &text).map_err(|source| Error::Write { file, source })
    }

    /// Goes away again, unless a run was begun in it.
    ///
    /// # Errors
    /// It cannot be read or removed.
    pub fn take_back(&self) -> Result<(), Error> {
        let failed = |source| Error::Write {
            file: self.directory.clone(),
            source,
        };
        if fs::read_dir(&self.directory).map_err(failed)?.count() > 1 {
            return Ok(());
        }
        fs::remove_file(self.directory.join(FILE)).map_err(failed)?;
        fs::remove_dir(&self.directory).map_err(failed)
    }

    /// Where the run of a plan is.
    #[must_use]
    pub fn of_plan(&self, plan: &str) -> PathBuf {
        self.directory.join(plan)
    }

    /// The claims that were given further blocks, in their order.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn further(&self) -> Result<Vec<String>, Error> {
        let file = self.directory.join(FURTHER);
        let entries = match fs::read_dir(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.and_then(Iterator::collect::<io::Result<Vec<_>>>),
        };
        let entries = entries.map_err(|source| Error::Read { file, source })?;
        let names = entries.iter().map(fs::DirEntry::file_name);
        let mut names: Vec<_> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        let claim = |name: String| {
            name.split_once('-')
                .map_or(String::new(), |(_, id)| id.to_owned())
        };
        Ok(names.into_iter().map(claim).collect())
    }

    /// Where further blocks of a claim go, after those of so many.
    #[must_use]
    pub fn of_further(&self, before: usize, claim: &str) -> PathBuf {
        // Read in the order of their names.
        self.directory
            .join(FURTHER)
            .join(format!("{before:04}-{claim}"))
    }

    /// Where the run of a plan in a guest is.
    #[must_use]
    pub fn of_plan_in_guest(&self, plan: &str) -> PathBuf {
        self.directory.join(guest::DIRECTORY).join(plan)
    }

    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What is there by now.
    ///
    /// # Errors
    /// A run cannot be read, or they are of several machines.
    pub fn evidence(&self) -> Result<Evidence, Error> {
        let mut runs = runs(&self.directory)?;
        of_one_machine(runs.iter().map(of_run))?;
        let first_further = add_further(&mut runs, &self.directory.join(FURTHER))?;
        let plans = runs.iter().map(|run| run.header.plan.clone());
        let asked = (!self.asked.questions).then(|| self.asked.names.clone());
        let asked = asked.into_iter();
        Ok(Evidence {
            asked: asked.collect(),
            first_looks: plans.filter(|_| self.asked.quick).collect(),
            runs,
            first_further,
            not_run: self.asked.not_run.clone(),
            machine: self.asked.machine.clone(),
            done: self.asked.done.clone(),
            benched: self.asked.benched.clone(),
            beside: self.beside()?,
        })
    }

    /// What a guest has, which is another machine.
    fn beside(&self) -> Result<Option<Beside>, Error> {
        let Some(guest) = self.asked.guest.clone() else {
            return Ok(None);
        };
        let directory = self.directory.join(guest::DIRECTORY);
        let runs = if directory.exists() {
            runs(&directory)?
        } else {
            Vec::new()
        };
        Ok(Some(Beside { guest, runs }))
    }

    /// Does the deeds and benches that are wanted and not done yet. False where somebody interrupted: what came of
    /// the one under way does not count.
    ///
    /// # Errors
    /// The directory cannot be written; it has deeds or benches of another machine or kernel.
    pub fn try_out(&mut self, demand: &Demand, observer: &mut dyn Observer) -> Result<bool, Error> {
        self.stay_on_this_machine()?;
        for name in &demand.deeds {
            if !self.find_out(name, "trying", observer, |a| &mut a.done, bench::carry_out)? {
                return Ok(false);
            }
        }
        for name in &demand.benches {
            if !self.find_out(
                name,
                "measuring",
                observer,
                |a| &mut a.benched,
                bench::measure,
            )? {
                return Ok(false);
            }
        }
        Ok(!signals::interrupted())
    }

    /// Checks that this is the machine of the deeds and benches that there are, or notes that it is.
    fn stay_on_this_machine(&mut self) -> Result<(), Error> {
        if let Some(machine) = &self.asked.machine {
            return Ok(run::check_machine(&self.directory, machine)?);
        }
        // An older version did not say where it did these.
        self.asked.done.clear();
        self.asked.benched.clear();
        let mut machine = run::this_machine()?;
        if self.asked.keep_awake {
            machine.cpu_accounting = CpuAccounting::KeptAwake;
        }
        self.asked.machine = Some(machine);
        Ok(())
    }

    /// Finds out one thing that is not known yet, and keeps it. False where somebody interrupted.
    fn find_out<T>(
        &mut self,
        name: &str,
        doing: &str,
        observer: &mut dyn Observer,
        known: impl Fn(&mut Asked) -> &mut BTreeMap<String, Result<T, String>>,
        find: impl Fn(&str) -> Result<T, String>,
    ) -> Result<bool, Error> {
        // What could not be done may be possible by now.
        if matches!(known(&mut self.asked).get(name), Some(Ok(_))) {
            return Ok(true);
        }
        observer.note(&format!("{doing}: {}", name.replace('-', " ")));
        let found = find(name);
        if signals::interrupted() {
            return Ok(false);
        }
        known(&mut self.asked).insert(name.to_owned(), found);
        self.keep()?;
        Ok(true)
    }

    /// Says of deeds and benches why they are not done.
    pub fn leave_out(&mut self, demand: &Demand, why: &str) {
        for name in &demand.deeds {
            self.asked.done.insert(name.clone(), Err(why.to_owned()));
        }
        for name in &demand.benches {
            self.asked.benched.insert(name.clone(), Err(why.to_owned()));
        }
    }
}

/// What `claims.json` says.
fn read(file: &Path, text: &[u8]) -> Result<Asked, Error> {
    #[derive(Deserialize)]
    struct Schema {
        schema: String,
    }
    let damaged = |source| Error::Damaged {
        file: file.to_owned(),
        source,
    };
    let Schema { schema } = serde_json::from_slice(text).map_err(damaged)?;
    if schema != SCHEMA {
        return Err(Error::Schema {
            file: file.to_owned(),
            found: schema,
        });
    }
    serde_json::from_slice(text).map_err(damaged)
}
