//! The directory of one Open vSwitch: database, sockets and logs, named by the lab's id.
//!
//! Both the directory and the daemons' arguments carry the id, so what an interrupted lab leaves can be
//! found by anybody, with no file of process ids to go stale.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Error;
use crate::lab::LabId;

/// Where the directories are.
pub(crate) const HOME: &str = "/run/hopyard-ovs";
/// How long a killed daemon may take to be gone.
const PATIENCE: Duration = Duration::from_secs(2);

/// The directory of a name that [`names`] gives or an id makes.
pub(super) fn directory(name: &str) -> PathBuf {
    Path::new(HOME).join(name)
}

/// Makes the directory of a lab.
pub(super) fn make(name: &str) -> Result<PathBuf, Error> {
    let home = directory(name);
    let error = |source| Error::Home {
        what: format!("make directory {}", home.display()),
        source,
    };
    // HOME goes with somebody's last lab at any time.
    const TRIES: u32 = 10;
    let mut made = make_once(&home);
    for _ in 1..TRIES {
        match &made {
            Err(error) if error.kind() == ErrorKind::NotFound => made = make_once(&home),
            _ => break,
        }
    }
    made.map_err(error)?;
    Ok(home)
}

fn make_once(home: &Path) -> io::Result<()> {
    // Anybody may see which labs have one: `clean` and `doctor` need no privilege to find nothing to do.
    DirBuilder::new().mode(0o755).recursive(true).create(HOME)?;
    // Whoever may write to the sockets in it commands the daemons.
    DirBuilder::new().mode(0o700).create(home)
}

/// Names of all directories, by the ids of their labs.
///
/// # Errors
/// [`HOME`] cannot be read.
pub(in crate::lab) fn names() -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(HOME) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => {
            return Err(Error::Home {
                what: format!("read {HOME}"),
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

/// Processes that were started with a file of this directory as argument.
pub(in crate::lab) fn processes(name: &str) -> Vec<u32> {
    let inside = format!("{}/", directory(name).display());
    let ours = |pid: &u32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut arguments = command.split(|byte| *byte == 0);
        arguments.any(|a| {
            a.strip_prefix(b"--unixctl=")
                .is_some_and(|file| file.starts_with(inside.as_bytes()))
        })
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
pub(in crate::lab) fn remove(name: &str) -> (usize, Vec<String>) {
    let mut problems = Vec::new();
    let daemons = processes(name);
    for pid in &daemons {
        let Ok(raw) = i32::try_from(*pid) else {
            continue;
        };
        match kill(Pid::from_raw(raw), Signal::SIGKILL) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => problems.push(format!("cannot end process {pid} of lab {name}: {error}")),
        }
    }
    let deadline = Instant::now() + PATIENCE;
    while !processes(name).is_empty() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    if let Err(error) = remove_files(name) {
        problems.push(crate::chain(&error));
    }
    (daemons.len(), problems)
}

/// Removes the directory. One that is gone is no error.
pub(super) fn remove_files(name: &str) -> Result<(), Error> {
    let home = directory(name);
    match fs::remove_dir_all(&home) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            return Err(Error::Home {
                what: format!("remove {}", home.display()),
                source,
            });
        }
        _ => {}
    }
    // Goes with the last lab; not empty otherwise.
    let _ = fs::remove_dir(HOME);
    Ok(())
}
