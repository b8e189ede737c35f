//! Where switches live: directories in the BPF file system, and the lock on them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount, umount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use crate::error::{Error, Result};
use crate::state::{CONFIG, Stage, stage};

/// Where the BPF file system is mounted by convention.
const BPFFS: &str = "/sys/fs/bpf";
/// Where switches are.
pub(crate) const HOME: &str = "/sys/fs/bpf/hopyard/switch";
/// Mounts of ours name this as their source, so that the last switch takes them away.
const SOURCE: &str = "hopyard";
/// What the kernel itself puts into every BPF file system.
const BUILT_IN: [&str; 2] = ["maps.debug", "progs.debug"];

pub(crate) fn file_error(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { what, path, source }
}

/// Is a name fit for a switch? The BPF file system reserves dots.
pub(crate) fn check_name(what: &str, name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 32 || !name.chars().all(plain) {
        let why = format!("`{name}` is no name for a switch: 1 to 32 letters, digits, `-` and `_`");
        return Err(Error::refused(what, why));
    }
    Ok(())
}

/// The directory of one switch.
pub(crate) fn directory(name: &str) -> PathBuf {
    Path::new(HOME).join(name)
}

/// Is the BPF file system there to be read?
pub(crate) fn is_mounted() -> bool {
    statfs(BPFFS).is_ok_and(|fs| fs.filesystem_type() == BPF_FS_MAGIC)
}

/// Makes [`HOME`], mounting the BPF file system where nobody has.
fn prepare() -> Result<()> {
    if !is_mounted() {
        mount(
            Some(SOURCE),
            BPFFS,
            Some("bpf"),
            MsFlags::empty(),
            None::<&str>,
        )
        .map_err(|errno| match errno {
            Errno::EPERM => Error::refused(
                format!("mount the BPF file system on {BPFFS}"),
                "permission denied; run as root (CAP_SYS_ADMIN)",
            ),
            other => file_error("mount the BPF file system on", Path::new(BPFFS))(other.into()),
        })?;
    }
    fs::create_dir_all(HOME).map_err(file_error("make directory", Path::new(HOME)))
}

/// The right to make, change and remove switches, [`HOME`] and the mount: one holder at a time; ends with
/// this value or with the process.
///
/// When it ends after the last switch, the directories go too, and the mount if it was ours and nobody uses
/// it.
#[derive(Debug)]
pub(crate) struct Lock {
    _held: Flock<File>,
}

/// The lock's file, there while somebody holds or awaits it. It is not in the BPF file system, which comes
/// and goes under the lock.
const LOCK: &str = "/run/hopyard-switch.lock";

impl Lock {
    /// Waits for the lock, then makes [`HOME`] where it is missing.
    pub(crate) fn making_home() -> Result<Self> {
        let lock = Self::wait()?;
        prepare()?;
        sweep()?;
        Ok(lock)
    }

    /// Waits for the lock; `None` where there is no switch at all.
    pub(crate) fn at_home() -> Result<Option<Self>> {
        let home = Path::new(HOME);
        // The lock's file goes last: where it is and `HOME` is not, somebody may have died in between, and
        // what is left goes with the lock.
        if !is_there(home)? && !is_there(Path::new(LOCK))? {
            return Ok(None);
        }
        let lock = Self::wait()?;
        // Whoever held it may have removed the last switch.
        if !is_there(home)? {
            return Ok(None);
        }
        sweep()?;
        Ok(Some(lock))
    }

    fn wait() -> Result<Self> {
        let path = Path::new(LOCK);
        loop {
            let file = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(path)
                .map_err(|error| match error.kind() {
                    ErrorKind::PermissionDenied => Error::refused(
                        "look after switches",
                        "permission denied; run as root (CAP_SYS_ADMIN)",
                    ),
                    _ => file_error("open", path)(error),
                })?;
            let lock = Flock::lock(file, FlockArg::LockExclusive)
                .map_err(|(_, errno)| file_error("lock", path)(errno.into()))?;
            // Whoever held it before has removed its file, and another one may stand there now.
            if stands_at(&lock, path) {
                return Ok(Self { _held: lock });
            }
        }
    }
}

impl Drop for Lock {
    /// Best effort: what is still in use stays, and does no harm.
    fn drop(&mut self) {
        let home = Path::new(HOME);
        let gone = is_gone(home) && home.parent().is_some_and(is_gone);
        if gone && is_ours() && is_empty() {
            let _ = umount(BPFFS);
        }
        // Still under the lock, so that whoever waits for it finds out.
        let _ = fs::remove_file(LOCK);
    }
}

/// Takes away the switches whose making or removal was interrupted: whoever held the lock meanwhile is dead.
fn sweep() -> Result<()> {
    for name in names()? {
        let directory = directory(&name);
        if let Ok(Stage::Unfinished) = stage(&directory) {
            remove_directory(&directory)?;
        }
    }
    Ok(())
}

/// Removes an empty directory; one that somebody removed before is gone as well.
fn is_gone(directory: &Path) -> bool {
    fs::remove_dir(directory).map_or_else(|error| error.kind() == ErrorKind::NotFound, |()| true)
}

fn is_there(path: &Path) -> Result<bool> {
    path.try_exists().map_err(file_error("look for", path))
}

fn stands_at(file: &File, path: &Path) -> bool {
    let identity = |data: fs::Metadata| (data.dev(), data.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(there)) => identity(held) == identity(there),
        _ => false,
    }
}

/// The names of all switches, whole or not.
pub(crate) fn names() -> Result<Vec<String>> {
    let home = Path::new(HOME);
    let entries = match fs::read_dir(home) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(file_error("read directory", home)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(file_error("read directory", home))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Removes a file if it is there. A link's program is detached soon after, not at once: the kernel puts that
/// off, since it waits for the packets under way.
pub(crate) fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(file_error("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Removes the directory of a switch: its settings first, without which it is unfinished to everybody; then
/// the links, so that no program runs without the maps it could be found by.
pub(crate) fn remove_directory(path: &Path) -> Result<()> {
    let mut files: Vec<PathBuf> = match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(file_error("read directory", path)(error)),
    };
    let rank = |file: &PathBuf| match file.file_name().map(OsStr::to_string_lossy) {
        Some(name) if name == CONFIG => 0,
        Some(name) if name.starts_with("link-") => 1,
        _ => 2,
    };
    files.sort_by_key(rank);
    for file in &files {
        remove_file(file)?;
    }
    fs::remove_dir(path).map_err(file_error("remove directory", path))
}

fn is_ours() -> bool {
    let mounts = fs::read_to_string("/proc/thread-self/mounts").unwrap_or_default();
    let here = format!(" {BPFFS} ");
    // The last of them is on top, and the one that would go.
    let top = mounts.lines().rfind(|line| line.contains(&here));
    top.is_some_and(|line| line.starts_with(&format!("{SOURCE}{here}bpf ")))
}

fn is_empty() -> bool {
    fs::read_dir(BPFFS).is_ok_and(|entries| {
        entries
            .flatten()
            .all(|entry| BUILT_IN.iter().any(|name| entry.file_name() == *name))
    })
}
