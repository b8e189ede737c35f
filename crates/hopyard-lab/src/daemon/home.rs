//! The directory of a lab's daemons: sockets, logs and what else they need, named by the lab's id.
//!
//! Both the directory and the daemons' arguments carry the id, so what an interrupted lab leaves can be
//! found by anybody, with no file of process ids to go stale. A process is a daemon only where its executable
//! is one of the switch's programs.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use hopyard_net::{Process, owned};

use super::Error;
use crate::LabId;
use crate::model::DeviceCount;

/// Where the directories of one kind of switch are, and what is said of them.
#[derive(Debug)]
pub(crate) struct Home {
    /// The switch, for people and in the state of a kept lab.
    pub(crate) of: &'static str,
    pub(crate) root: &'static str,
    /// Names of the files that its daemons run.
    pub(crate) programs: &'static [&'static str],
    /// Its key in the state of a kept lab: one of its own, or [`SERVICE`].
    pub(crate) key: &'static str,
    /// Where the database of a directory answers, if it has one.
    pub(crate) database: Option<fn(&str) -> String>,
    /// The command that shows the switch of a directory.
    pub(crate) shown_by: Option<fn(&str) -> String>,
    /// What the switch of a directory counts in place of a device, if it counts.
    pub(crate) counted: Option<Counted>,
}

/// Reads what the switch of a directory counts.
type Counted = fn(&str) -> crate::Result<Vec<DeviceCount>>;

/// The key of all switches that have none of their own.
pub(super) const SERVICE: &str = "service";

impl Home {
    pub(crate) const fn new(
        of: &'static str,
        root: &'static str,
        programs: &'static [&'static str],
    ) -> Self {
        Self {
            of,
            root,
            programs,
            key: SERVICE,
            database: None,
            shown_by: None,
            counted: None,
        }
    }

    /// The directory of a name that [`Home::names`] gives or an id makes.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        Path::new(self.root).join(name)
    }

    /// Makes the directory of a lab.
    pub(crate) fn make(&self, name: &str) -> Result<PathBuf, Error> {
        let home = self.directory(name);
        let error = |source| Error::Home {
            what: format!("make directory {}", home.display()),
            source,
        };
        // The root goes with somebody's last lab at any time.
        const TRIES: u32 = 10;
        let mut made = self.make_once(&home);
        for _ in 1..TRIES {
            match &made {
                Err(error) if error.kind() == ErrorKind::NotFound => made = self.make_once(&home),
                _ => break,
            }
        }
        made.map_err(error)?;
        Ok(home)
    }

    fn make_once(&self, home: &Path) -> io::Result<()> {
        // Anybody may see which labs have one: `clean` and `doctor` need no privilege to find nothing to do.
        owned::make_directory(Path::new(self.root), 0o755)?;
        // Whoever may write to the sockets in it commands the daemons.
        DirBuilder::new().mode(0o700).create(home)
    }

    /// Names of all directories, by the ids of their labs.
    ///
    /// # Errors
    /// The root cannot be read.
    pub(crate) fn names(&self) -> Result<Vec<String>, Error> {
        let entries = match fs::read_dir(self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => {
                return Err(Error::Home {
                    what: format!("read {}", self.root),
                    source,
                });
            }
        };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.parse::<LabId>().is_ok())
            .collect();
        names.sort();
        Ok(names)
    }

    /// Its daemons: processes that run one of the switch's programs and were told to use the directory.
    pub(super) fn daemons(&self, name: &str) -> Result<Vec<Process>, Error> {
        let mut found = Vec::new();
        // A descriptor for each process of the machine would cost more.
        for pid in self.pids(name) {
            let Some(process) = Process::open(pid).map_err(Error::Process)? else {
                continue;
            };
            // The number may be that of a later process.
            let runs = process.executable();
            if self.is_told(name, &process.arguments()) && runs.is_some_and(|f| self.has(&f)) {
                found.push(process);
            }
        }
        Ok(found)
    }

    /// Their numbers.
    pub(super) fn pids(&self, name: &str) -> Vec<u32> {
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| self.is_told(name, &arguments_of(*pid)))
            .filter(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|f| self.has(&f)))
            .collect()
    }

    /// Do these arguments name the directory, a file in it, or the switch that is to run?
    fn is_told(&self, name: &str, arguments: &[String]) -> bool {
        let inside = format!("{}/", self.directory(name).display());
        let is_file = |argument: &String| argument.split('=').any(|file| file.starts_with(&inside));
        arguments.iter().any(is_file) || arguments.windows(2).any(|words| words == ["run", name])
    }

    /// Is the file a program of this switch? Distributions add to the name of Open vSwitch's.
    fn has(&self, file: &Path) -> bool {
        let name = file.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| self.programs.iter().any(|own| name.starts_with(own)))
    }

    /// Removes the directory. One that is gone is no error.
    pub(crate) fn remove_files(&self, name: &str) -> Result<(), Error> {
        let home = self.directory(name);
        match owned::remove_tree(&home) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                return Err(Error::Home {
                    what: format!("remove {}", home.display()),
                    source,
                });
            }
            _ => {}
        }
        // Goes with the last lab; not empty otherwise.
        let _ = owned::remove_directory(Path::new(self.root));
        Ok(())
    }
}

fn arguments_of(pid: u32) -> Vec<String> {
    let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    text.split(|byte| *byte == 0)
        .map(|argument| String::from_utf8_lossy(argument).into_owned())
        .collect()
}
