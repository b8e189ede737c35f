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

/// What identifies a table: tables of another machine, kernel, hopyard or seed are not of the same experiment.
#[derive(Clone, Copy)]
struct Identity<'a> {
    name: &'a str,
    seed: u64,
    machine: &'a Environment,
}

/// A table as a file has it. Older files say neither name nor seed.
#[derive(Deserialize)]
struct Stored {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    seed: Option<u64>,
    true_ratio: Option<f64>,
    header: Header,
    samples: Vec<Sample>,
}

/// The same, to be written.
#[derive(Serialize)]
struct ToStore<'a> {
    name: &'a str,
    seed: u64,
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
        let name = format!("{name}{}", self.pick("", "-quick"));
        let identity = || -> Result<Identity<'_>, Failure> {
            Ok(Identity {
                name: &name,
                seed: self.seed,
                machine: self.machine()?,
            })
        };
        let file = match &self.keep {
            Some(directory) => {
                fs::create_dir_all(directory).map_err(kept(directory))?;
                Some(directory.join(format!("{name}.json")))
            }
            None => None,
        };
        if let Some(file) = file.as_ref().filter(|file| file.exists()) {
            return read(file, identity()?).map(Some);
        }
        if self.is_over() {
            return Ok(None);
        }
        let table = make()?;
        if let Some(file) = file {
            write(&file, identity()?, &table)?;
        }
        Ok(Some(table))
    }
}

fn kept(file: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let file = file.display().to_string();
    move |source| Failure::Kept { file, source }
}

impl Identity<'_> {
    /// What is not the same of a table that was kept: what it is, its value there, its value here.
    fn unlike(self, stored: &Stored) -> Option<(&'static str, String, String)> {
        let there = &stored.header.environment;
        let seed = stored.seed.map(|seed| seed.to_string());
        let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
        let version = |env: &Environment| env.hopyard_version.clone();
        let facts = [
            ("table", known(stored.name.clone()), self.name.to_owned()),
            ("seed", known(seed), self.seed.to_string()),
            ("hopyard", version(there), version(self.machine)),
        ];
        let mut unlike = facts.into_iter().filter(|(_, there, here)| there != here);
        unlike.next().or_else(|| there.differs_from(self.machine))
    }
}

/// Reads a table that was kept; an error if it is another than this.
fn read(file: &Path, identity: Identity<'_>) -> Result<Table, Failure> {
    let text = fs::read(file).map_err(kept(file))?;
    let stored: Stored = serde_json::from_slice(&text).map_err(|error| kept(file)(error.into()))?;
    if let Some((what, there, here)) = identity.unlike(&stored) {
        return Err(Failure::OtherTable {
            file: file.display().to_string(),
            what,
            there,
            here,
        });
    }
    let run = Run {
        header: stored.header,
        samples: stored.samples,
        profiles: Vec::new(),
        end: Some(End::Complete),
    };
    Ok(Table {
        run,
        true_ratio: stored.true_ratio,
    })
}

/// Under another name first, so that a file is whole or not there.
fn write(file: &Path, identity: Identity<'_>, table: &Table) -> Result<(), Failure> {
    let part = file.with_extension("part");
    let stored = ToStore {
        name: identity.name,
        seed: identity.seed,
        true_ratio: table.true_ratio,
        header: &table.run.header,
        samples: &table.run.samples,
    };
    fs::write(&part, serde_json::to_vec(&stored)?).map_err(kept(&part))?;
    fs::rename(&part, file).map_err(kept(file))
}

#[cfg(test)]
mod tests {
    use hopyard_analysis::testing;

    use super::*;

    /// What a table says that is read where these hold.
    fn refused(change: impl FnOnce(&mut Identity<'_>, &mut Environment)) -> Option<String> {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("table.json");
        let table = Table {
            true_ratio: Some(1.03),
            ..testing::compared(1.0).into()
        };
        let machine = &table.run.header.environment;
        let mut identity = Identity {
            name: "V19-udp_rr-00",
            seed: 1,
            machine,
        };
        write(&file, identity, &table).unwrap();
        let mut here = machine.clone();
        change(&mut identity, &mut here);
        let again = read(
            &file,
            Identity {
                machine: &here,
                ..identity
            },
        );
        match again {
            Ok(again) => {
                assert_eq!(again.run.samples, table.run.samples);
                assert_eq!(again.true_ratio, table.true_ratio);
                None
            }
            Err(failure) => Some(failure.to_string()),
        }
    }

    #[test]
    fn a_table_of_this_experiment_is_read() {
        assert_eq!(refused(|_, _| {}), None);
    }

    #[test]
    fn a_table_of_another_experiment_is_refused() {
        let cases = [
            (
                "table `V19-udp_rr-00`",
                refused(|identity, _| identity.name = "V19-tcp_rr-00"),
            ),
            ("seed `1`", refused(|identity, _| identity.seed = 2)),
            (
                "hopyard `0`",
                refused(|_, here| here.hopyard_version = "9".to_owned()),
            ),
            (
                "host `h`",
                refused(|_, here| here.hostname = "other".to_owned()),
            ),
            (
                "kernel build `v`",
                refused(|_, here| here.kernel_version = "#2".to_owned()),
            ),
            ("machine `2 CPUs`", refused(|_, here| here.cpus = 3)),
        ];
        for (what, said) in cases {
            let said = said.unwrap_or_else(|| panic!("{what} is another"));
            assert!(
                said.contains(&format!("is of {what}, and this is")),
                "{said}"
            );
            assert!(
                said.ends_with("choose another directory with --keep"),
                "{said}"
            );
        }
    }

    #[test]
    fn a_file_without_a_seed_is_refused() {
        let run = testing::compared(1.0);
        let stored = Stored {
            name: Some("V18".to_owned()),
            seed: None,
            true_ratio: None,
            header: run.header.clone(),
            samples: Vec::new(),
        };
        let identity = Identity {
            name: "V18",
            seed: 1,
            machine: &run.header.environment,
        };
        let (what, there, _) = identity.unlike(&stored).unwrap();
        assert_eq!((what, &*there), ("seed", "unknown"));
    }
}
