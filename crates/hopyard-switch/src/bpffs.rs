//! Where switches live: directories in the BPF file system.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use hopyard_net::owned;
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

use crate::error::{Error, Result, file_error};
use crate::state::CONFIG;

/// Where the BPF file system is mounted by convention.
pub(crate) const BPFFS: &str = "/sys/fs/bpf";
/// Where switches are.
pub(crate) const HOME: &str = "/sys/fs/bpf/hopyard/switch";
/// Mounts of ours name this as their source, so that the last switch takes them away.
const SOURCE: &str = "hopyard";
/// Of mounts of ours: without it the kernel lets everybody make files there (01777, `bpf_init_fs_context`).
const MOUNT_OPTIONS: &str = "mode=0700";
/// Of the directories below it.
const MODE: u32 = 0o700;
/// What the kernel itself puts into every BPF file system.
const BUILT_IN: [&str; 2] = ["maps.debug", "progs.debug"];

/// What to say where a file or directory of the switches cannot be reached, or is not root's alone.
pub(crate) fn no_access(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let what = "look after switches";
    let path = path.to_owned();
    move |error| match (error.kind(), error.raw_os_error()) {
        (ErrorKind::PermissionDenied, Some(_)) => {
            Error::invalid(what, "permission denied; run as root (CAP_SYS_ADMIN)")
        }
        // A reason in words: `owned` gives no number with it.
        (_, None) => Error::invalid(what, error.to_string()),
        _ => file_error("use", &path)(error),
    }
}

/// Is a name fit for a switch? The BPF file system reserves dots.
pub(crate) fn check_name(what: &str, name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 32 || !name.chars().all(plain) {
        let why = format!("`{name}` is no name for a switch: 1 to 32 letters, digits, `-` and `_`");
        return Err(Error::invalid(what, why));
    }
    Ok(())
}

/// The directory of one switch.
pub(crate) fn directory(name: &str) -> PathBuf {
    Path::new(HOME).join(name)
}

/// Is the BPF file system there to be read?
pub(crate) fn has_bpf_file_system() -> bool {
    statfs(BPFFS).is_ok_and(|fs| fs.filesystem_type() == BPF_FS_MAGIC)
}

/// Makes [`HOME`], mounting the BPF file system where nobody has.
pub(crate) fn prepare() -> Result<()> {
    if !has_bpf_file_system() {
        mount(
            Some(SOURCE),
            BPFFS,
            Some("bpf"),
            MsFlags::empty(),
            Some(MOUNT_OPTIONS),
        )
        .map_err(|errno| match errno {
            Errno::EPERM => Error::invalid(
                format!("mount the BPF file system on {BPFFS}"),
                "permission denied; run as root (CAP_SYS_ADMIN)",
            ),
            other => file_error("mount the BPF file system on", Path::new(BPFFS))(other.into()),
        })?;
    }
    let home = Path::new(HOME);
    owned::make_directory(home, MODE).map_err(no_access(home))
}

/// Is [`HOME`] there? It must be root's alone then: what is below it is loaded, and removed, as root.
pub(crate) fn is_home_there() -> Result<bool> {
    let home = Path::new(HOME);
    match owned::check_directory(home) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        checked => checked.map(|()| true).map_err(no_access(home)),
    }
}

/// Makes the directory of a switch.
pub(crate) fn make_directory(path: &Path) -> Result<()> {
    DirBuilder::new()
        .mode(MODE)
        .create(path)
        .map_err(file_error("make directory", path))
}

/// Is there a directory? A link to one is none.
pub(crate) fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|data| data.is_dir())
}

/// Removes an empty directory; one that somebody removed before is gone as well.
pub(crate) fn is_gone(directory: &Path) -> bool {
    owned::remove_directory(directory)
        .map_or_else(|error| error.kind() == ErrorKind::NotFound, |()| true)
}

pub(crate) fn is_there(path: &Path) -> Result<bool> {
    path.try_exists().map_err(file_error("look for", path))
}

pub(crate) fn stands_at(file: &File, path: &Path) -> bool {
    let identity = |data: fs::Metadata| (data.dev(), data.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(there)) => identity(held) == identity(there),
        _ => false,
    }
}

/// The names of all switches, whole or not. Only directories are switches.
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
        // Of the entry itself: a link is no directory.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Puts a file, if it is there, in the place of another.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(file_error("put in place", from)(error))
        }
        _ => Ok(()),
    }
}

/// Removes a file if it is there. A link's program is detached soon after, not at once: the kernel puts that
/// off, since it waits for the packets under way.
pub(crate) fn remove_file(path: &Path) -> Result<()> {
    match owned::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(file_error("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Removes the directory of a switch: its settings first, without which it is unfinished to everybody; then
/// the links, so that no program runs without the maps it could be found by.
pub(crate) fn remove_directory(path: &Path) -> Result<()> {
    if !is_directory(path) {
        return Ok(());
    }
    let mut files = files(path)?;
    let rank = |file: &PathBuf| match file.file_name().map(OsStr::to_string_lossy) {
        Some(name) if name == CONFIG => 0,
        Some(name) if name.starts_with("link-") => 1,
        _ => 2,
    };
    files.sort_by_key(rank);
    for file in &files {
        remove_file(file)?;
    }
    owned::remove_directory(path).map_err(file_error("remove directory", path))
}

/// What is in a directory.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = || file_error("read directory", path);
    let entries = fs::read_dir(path).map_err(failed())?;
    entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(failed()))
        .collect()
}

pub(crate) fn is_ours() -> bool {
    let mounts = fs::read_to_string("/proc/thread-self/mounts").unwrap_or_default();
    let here = format!(" {BPFFS} ");
    // The last of them is on top, and the one that would go.
    let top = mounts.lines().rfind(|line| line.contains(&here));
    top.is_some_and(|line| line.starts_with(&format!("{SOURCE}{here}bpf ")))
}

pub(crate) fn is_empty() -> bool {
    fs::read_dir(BPFFS).is_ok_and(|entries| {
        entries
            .flatten()
            .all(|entry| BUILT_IN.iter().any(|name| entry.file_name() == *name))
    })
}
