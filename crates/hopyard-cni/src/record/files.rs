//! The files of records: each comes to its name whole, and what was never finished is removed.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use hopyard_net::owned;
use nix::fcntl::{Flock, FlockArg, OFlag};

use super::{Entry, SEPARATOR};
use crate::error::{Result, failed};

/// Of its directories.
const MODE: u32 = 0o700;
/// Before the name of a file that is not finished.
const UNFINISHED: char = '.';

/// The file that is to become a record.
pub(super) fn unfinished(directory: &Path, record: &Path) -> PathBuf {
    let name = record.file_name().unwrap_or_default().to_string_lossy();
    directory.join(format!(
        "{UNFINISHED}{}{SEPARATOR}{name}",
        std::process::id()
    ))
}

/// Locks a new file and writes a record into it.
pub(super) fn write(file: File, path: &Path, entry: &Entry) -> Result<Flock<File>> {
    let file = Flock::lock(file, FlockArg::LockExclusive)
        .map_err(|(_, errno)| failed("lock", path)(errno.into()))?;
    let text = serde_json::to_vec(entry).map_err(std::io::Error::from);
    text.and_then(|text| (&*file).write_all(&text))
        .map_err(failed("write", path))?;
    Ok(file)
}

/// Makes the file, and the directories above it. Others may remove those as soon as they are empty.
pub(super) fn create_in(directory: &Path, file: &Path) -> Result<File> {
    loop {
        owned::make_directory(directory, MODE).map_err(failed("make directory", directory))?;
        let made = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(file);
        match made {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // Of a process that had the same number, and was killed.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                owned::remove_file(file).map_err(failed("remove", file))?;
            }
            made => return made.map_err(failed("make", file)),
        }
    }
}

/// Removes the directory of a network and the one above it, if nothing is in them but what was never finished.
pub(super) fn remove_empty(network: &Path) {
    let remove = || owned::remove_directory(network).is_ok();
    if remove() || remove_all_abandoned(network) && remove() {
        // It may have other networks.
        let _ = network.parent().map(owned::remove_directory);
    }
}

/// Removes what was never finished, where a directory has nothing else.
fn remove_all_abandoned(network: &Path) -> bool {
    let Ok(entries) = fs::read_dir(network) else {
        return false;
    };
    let mut unfinished = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) if is_unfinished(&entry.file_name().to_string_lossy()) => {
                unfinished.push(entry.path());
            }
            _ => return false,
        }
    }
    unfinished.iter().for_each(|file| remove_abandoned(file));
    true
}

pub(super) fn is_unfinished(name: &str) -> bool {
    name.starts_with(UNFINISHED)
}

/// Removes a file that its maker never finished, unless it is just being made.
pub(super) fn remove_abandoned(path: &Path) {
    let opened = File::options().write(true).open(path);
    let locked =
        opened.is_ok_and(|file| Flock::lock(file, FlockArg::LockExclusiveNonblock).is_ok());
    if locked {
        // Left for the next time where it cannot be removed.
        let _ = owned::remove_file(path);
    }
}
