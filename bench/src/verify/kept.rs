//! Tables of experiments that take hours: with `--keep` each is a file, written when the table is whole, so that an experiment can be
//! stopped and continued, and its tables be judged again after a change of the statistics.

use std::fs;
use std::path::Path;

use hopyard::model::stored::Header;
use hopyard::model::{Environment, Sample};
use hopyard::store::{End, Run};
use serde::{Deserialize, Serialize};

use crate::bench::Bench;
use crate::experiment::Failure;

/// A table, and what is known of it beside what was measured.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) run: Run,
    /// The true ratio of the second cell's service demand to the first's, where the experiment made it.
    pub(crate) true_ratio: Option<f64>,
}

impl From<Run> for Table {
    fn from(run: Run) -> Self {
        Self {
            run,
            true_ratio: None,
        }
    }
}

/// A table as a file has it.
#[derive(Deserialize)]
struct Stored {
    true_ratio: Option<f64>,
    header: Header,
    samples: Vec<Sample>,
}

/// The same, to be written.
#[derive(Serialize)]
struct ToStore<'a> {
    true_ratio: Option<f64>,
    header: &'a Header,
    samples: &'a [Sample],
}

impl Bench {
    /// The table of this name: the one that was kept, else a new one, which is kept. `None` where none was kept and the time is
    /// over in which tables may begin.
    pub(crate) fn table(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Table, Failure>,
    ) -> Result<Option<Table>, Failure> {
        let file = match &self.keep {
            Some(directory) => {
                fs::create_dir_all(directory).map_err(kept(directory))?;
                let size = self.pick("", "-quick");
                Some(directory.join(format!("{name}{size}.json")))
            }
            None => None,
        };
        if let Some(file) = file.as_ref().filter(|file| file.exists()) {
            return read(file, self.machine()?).map(Some);
        }
        if self.is_over() {
            return Ok(None);
        }
        let table = make()?;
        if let Some(file) = file {
            write(&file, &table)?;
        }
        Ok(Some(table))
    }
}

fn kept(file: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let file = file.display().to_string();
    move |source| Failure::Kept { file, source }
}

/// Tables of other machines or kernels are not one experiment.
fn read(file: &Path, here: &Environment) -> Result<Table, Failure> {
    let text = fs::read(file).map_err(kept(file))?;
    let Stored {
        true_ratio,
        header,
        samples,
    } = serde_json::from_slice(&text).map_err(|error| kept(file)(error.into()))?;
    let there = &header.environment;
    let same = |of: fn(&Environment) -> &str| of(there) == of(here);
    if !(same(|e| &e.kernel_release) && same(|e| &e.cpu_model) && there.cpus == here.cpus) {
        return Err(Failure::OtherMachine {
            file: file.display().to_string(),
            kernel: there.kernel_release.clone(),
            cpu: there.cpu_model.clone(),
        });
    }
    let run = Run {
        header,
        samples,
        profiles: Vec::new(),
        end: Some(End::Complete),
    };
    Ok(Table { run, true_ratio })
}

/// Under another name first, so that a file is whole or not there.
fn write(file: &Path, table: &Table) -> Result<(), Failure> {
    let part = file.with_extension("part");
    let stored = ToStore {
        true_ratio: table.true_ratio,
        header: &table.run.header,
        samples: &table.run.samples,
    };
    fs::write(&part, serde_json::to_vec(&stored)?).map_err(kept(&part))?;
    fs::rename(&part, file).map_err(kept(file))
}
