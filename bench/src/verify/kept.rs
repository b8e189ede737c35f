//! Tables of experiments that take hours: with `--keep` each is a file, written when the table is whole, so that an experiment can be
//! stopped and continued, and its tables be judged again after a change of the statistics.

use std::fs;
use std::path::Path;

use hopyard::model::stored::Header;
use hopyard::model::{Cell, Environment, Sample};
use hopyard::store::{End, Run};
use serde::{Deserialize, Serialize};

use crate::bench::Bench;
use crate::experiment::Failure;
use crate::pair::{Settings, WINDOW_MS};

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

/// What identifies a table: tables of another machine, kernel, hopyard, seed or other settings are not of the same experiment. Those
/// of another revision are: their judgement is what changes of the statistics are tried on.
#[derive(Clone, Copy)]
struct Identity<'a> {
    name: &'a str,
    seed: u64,
    settings: &'a Settings,
    machine: &'a Environment,
}

/// A table as a file has it. Older files say neither name nor seed.
#[derive(Deserialize)]
struct Stored {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    length: Option<String>,
    true_ratio: Option<f64>,
    header: Header,
    samples: Vec<Sample>,
}

/// The same, to be written.
#[derive(Serialize)]
struct ToStore<'a> {
    name: &'a str,
    seed: u64,
    length: &'a str,
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
        settings: &Settings,
        make: impl FnOnce() -> Result<Table, Failure>,
    ) -> Result<Option<Table>, Failure> {
        let name = format!("{name}{}", self.pick("", "-quick"));
        let identity = || -> Result<Identity<'_>, Failure> {
            Ok(Identity {
                name: &name,
                seed: self.seed,
                settings,
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
            let table = read(file, identity()?)?;
            self.tell_revision(&table)?;
            return Ok(Some(table));
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

    /// Says once that tables are judged which another revision measured.
    fn tell_revision(&self, table: &Table) -> Result<(), Failure> {
        let there = &table.run.header.environment.hopyard_revision;
        let here = &self.machine()?.hopyard_revision;
        if there == here || self.told_revision.replace(true) {
            return Ok(());
        }
        let [there, here] = [there, here].map(|one| one.as_deref().unwrap_or("unknown"));
        hopyard::note(format_args!(
            "tables that were kept were measured by revision {there}; revision {here} judges them"
        ));
        Ok(())
    }
}

fn kept(file: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let file = file.display().to_string();
    move |source| Failure::Kept { file, source }
}

impl Identity<'_> {
    /// What is not the same of a table that was kept: what it is, its value there, its value here.
    fn unlike(self, stored: &Stored) -> Result<Option<(&'static str, String, String)>, Failure> {
        let there = &stored.header.environment;
        let seed = stored.seed.map(|seed| seed.to_string());
        let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
        let version = |env: &Environment| env.hopyard_version.clone();
        let facts = [
            ("table", known(stored.name.clone()), self.name.to_owned()),
            ("seed", known(seed), self.seed.to_string()),
            ("hopyard", version(there), version(self.machine)),
        ];
        let mut unlike = facts.into_iter().chain(self.set_unlike(stored)?);
        let unlike = unlike.find(|(_, there, here)| there != here);
        Ok(unlike.or_else(|| there.differs_from(self.machine)))
    }

    /// The settings of both.
    fn set_unlike(self, stored: &Stored) -> Result<[(&'static str, String, String); 4], Failure> {
        let (header, settings) = (&stored.header, self.settings);
        let there: Vec<&Cell> = header.cells.iter().map(|one| &one.cell).collect();
        let here: Vec<&Cell> = settings.cells.iter().collect();
        let window = |ns: u64| format!("{} ms", ns / 1_000_000);
        // Files that say no length are of the present ones.
        let length = stored.length.as_ref().unwrap_or(&settings.length);
        Ok([
            (
                "cells",
                serde_json::to_string(&there)?,
                serde_json::to_string(&here)?,
            ),
            (
                "window",
                window(header.window_ns),
                window(WINDOW_MS * 1_000_000),
            ),
            (
                "margin",
                header.margin.to_string(),
                settings.margin.to_string(),
            ),
            ("length", length.clone(), settings.length.clone()),
        ])
    }
}

/// Reads a table that was kept; an error if it is another than this.
fn read(file: &Path, identity: Identity<'_>) -> Result<Table, Failure> {
    let text = fs::read(file).map_err(kept(file))?;
    let stored: Stored = serde_json::from_slice(&text).map_err(|error| kept(file)(error.into()))?;
    if let Some((what, there, here)) = identity.unlike(&stored)? {
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
        length: &identity.settings.length,
        true_ratio: table.true_ratio,
        header: &table.run.header,
        samples: &table.run.samples,
    };
    fs::write(&part, serde_json::to_vec(&stored)?).map_err(kept(&part))?;
    fs::rename(&part, file).map_err(kept(file))
}

#[cfg(test)]
mod tests {
    use hopyard::model::{LoadKind, Peer};
    use hopyard_analysis::testing;

    use super::*;
    use crate::cells;

    /// What the tests change of it.
    struct Here {
        name: &'static str,
        seed: u64,
        settings: Settings,
        machine: Environment,
    }

    impl Here {
        fn new() -> Self {
            let cell = |path| cells::cell(path, Peer::Local, LoadKind::UdpRr, |_| {});
            Self {
                name: "V19-udp_rr-00",
                seed: 1,
                settings: Settings::of(["veth", "bridge"].map(cell), 8),
                machine: testing::compared(1.0).header.environment,
            }
        }

        fn identity(&self) -> Identity<'_> {
            Identity {
                name: self.name,
                seed: self.seed,
                settings: &self.settings,
                machine: &self.machine,
            }
        }
    }

    /// What a table says that is read where these hold.
    fn refused(change: impl FnOnce(&mut Here)) -> Option<String> {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("table.json");
        let mut table = Table {
            true_ratio: Some(1.03),
            ..testing::compared(1.0).into()
        };
        let mut here = Here::new();
        let header = &mut table.run.header;
        header.window_ns = WINDOW_MS * 1_000_000;
        header.margin = here.settings.margin;
        for (planned, cell) in header.cells.iter_mut().zip(&here.settings.cells) {
            planned.cell = cell.clone();
        }
        write(&file, here.identity(), &table).unwrap();
        change(&mut here);
        match read(&file, here.identity()) {
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
        assert_eq!(refused(|_| {}), None);
        let other_revision = |here: &mut Here| {
            here.machine.hopyard_revision = Some("0123456789ab".to_owned());
        };
        assert_eq!(refused(other_revision), None);
    }

    #[test]
    fn a_table_of_another_experiment_is_refused() {
        let other_path = |here: &mut Here| {
            here.settings.cells[1].path = "macvlan".to_owned();
        };
        let cases = [
            (
                "table `V19-udp_rr-00`",
                refused(|here| here.name = "V19-tcp_rr-00"),
            ),
            ("seed `1`", refused(|here| here.seed = 2)),
            (
                "hopyard `0`",
                refused(|here| here.machine.hopyard_version = "9".to_owned()),
            ),
            ("cells `[{\"path\":\"veth\",", refused(other_path)),
            ("margin `0`", refused(|here| here.settings.margin = 0.02)),
            (
                "length `8 generations`",
                refused(|here| here.settings.length = "3 generations".to_owned()),
            ),
            (
                "host `h`",
                refused(|here| here.machine.hostname = "other".to_owned()),
            ),
            (
                "kernel build `v`",
                refused(|here| here.machine.kernel_version = "#2".to_owned()),
            ),
            ("machine `2 CPUs`", refused(|here| here.machine.cpus = 3)),
        ];
        for (what, said) in cases {
            let said = said.unwrap_or_else(|| panic!("{what} is another"));
            assert!(said.contains(&format!("is of {what}")), "{said}");
            assert!(said.contains("`, and this is `"), "{said}");
            assert!(
                said.ends_with("choose another directory with --keep"),
                "{said}"
            );
        }
    }

    #[test]
    fn a_file_without_a_seed_is_refused() {
        let here = Here::new();
        let stored = Stored {
            name: Some(here.name.to_owned()),
            seed: None,
            length: None,
            true_ratio: None,
            header: testing::compared(1.0).header,
            samples: Vec::new(),
        };
        let (what, there, _) = here.identity().unlike(&stored).unwrap().unwrap();
        assert_eq!((what, &*there), ("seed", "unknown"));
    }
}
