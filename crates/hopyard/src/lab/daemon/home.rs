//! The directory of a lab's daemons: sockets, logs and what else they need, named by the lab's id.
//!
//! Both the directory and the daemons' arguments carry the id, so what an interrupted lab leaves can be
//! found by anybody, with no file of process ids to go stale.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::owned;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Error;
use crate::lab::LabId;

/// Where the directories of one kind of switch are.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::lab) struct Home {
    /// The switch, for people.
    pub(in crate::lab) of: &'static str,
    root: &'static str,
}

pub(in crate::lab) static OVS: Home = Home {
    of: "Open vSwitch",
    root: "/run/hopyard-ovs",
};
pub(in crate::lab) static TAP: Home = Home {
    of: crate::lab::tap::SWITCH_NAME,
    root: crate::tapswitch::HOME,
};
pub(in crate::lab) static VDE: Home = Home {
    of: "vde_switch",
    root: "/run/hopyard-vde",
};
/// All of them.
pub(in crate::lab) static HOMES: [&Home; 3] = [&OVS, &TAP, &VDE];

/// How long a killed daemon may take to be gone.
const PATIENCE: Duration = Duration::from_secs(2);

impl Home {
    /// The directory of a name that [`Home::names`] gives or an id makes.
    pub(in crate::lab) fn directory(&self, name: &str) -> PathBuf {
        Path::new(self.root).join(name)
    }

    /// Makes the directory of a lab.
    pub(in crate::lab) fn make(&self, name: &str) -> Result<PathBuf, Error> {
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
    pub(in crate::lab) fn names(&self) -> Result<Vec<String>, Error> {
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

    /// Processes that were started with the name as argument, or with a file of the directory.
    pub(in crate::lab) fn processes(&self, name: &str) -> Vec<u32> {
        let inside = format!("{}/", self.directory(name).display());
        let ours = |pid: &u32| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut arguments = command
                .split(|byte| *byte == 0)
                .map(String::from_utf8_lossy);
            arguments.any(|a| a == name || a.split('=').any(|file| file.starts_with(&inside)))
        };
        fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(ours)
            .collect()
    }

    /// Ends the daemons of a directory that are not children of ours, and removes it; goes on past
    /// failures. Answers with how many there were, and with what would not go.
    pub(in crate::lab) fn remove(&self, name: &str) -> (usize, Vec<String>) {
        let mut problems = Vec::new();
        let daemons = self.processes(name);
        for pid in &daemons {
            let Ok(raw) = i32::try_from(*pid) else {
                continue;
            };
            match kill(Pid::from_raw(raw), Signal::SIGKILL) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => {
                    problems.push(format!("cannot end process {pid} of lab {name}: {error}"));
                }
            }
        }
        let deadline = Instant::now() + PATIENCE;
        while !self.processes(name).is_empty() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        if let Err(error) = self.remove_files(name) {
            problems.push(crate::chain(&error));
        }
        (daemons.len(), problems)
    }

    /// Removes the directory. One that is gone is no error.
    pub(in crate::lab) fn remove_files(&self, name: &str) -> Result<(), Error> {
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
