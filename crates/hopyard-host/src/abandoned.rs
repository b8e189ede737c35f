//! Temporary directories of programs that were killed. A program locks its directory for as long as it lives, and the kernel
//! takes the lock away with it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use nix::unistd::geteuid;

/// A directory as young as this may be one whose maker has not locked it yet.
pub const YOUNG: Duration = Duration::from_secs(60);

/// Tells others that a directory is in use, as long as the value lives.
pub fn lock(directory: &Path) -> io::Result<File> {
    let opened = File::open(directory)?;
    opened.lock()?;
    Ok(opened)
}

/// Removes directories of this user's whose names begin so, that are old enough and that nobody locks: how many.
#[must_use]
pub fn remove(parent: &Path, prefix: &str, young: Duration) -> usize {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    let abandoned = named.filter(|entry| is_abandoned(&entry.path(), young));
    abandoned
        .filter(|entry| fs::remove_dir_all(entry.path()).is_ok())
        .count()
}

fn is_abandoned(path: &Path, young: Duration) -> bool {
    let Ok(found) = fs::symlink_metadata(path) else {
        return false;
    };
    let age = found.modified().ok().and_then(|at| at.elapsed().ok());
    found.is_dir()
        && found.uid() == geteuid().as_raw()
        && age.is_some_and(|age| age >= young)
        && File::open(path).is_ok_and(|directory| directory.try_lock().is_ok())
}
