//! Directories that only their owner may write: where what is fetched lies until it is checked.

use std::fs::{self, Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{geteuid, mkdtemp};

use super::{Error, Result};

/// Others may make files, but not remove or replace those of others (`/tmp`).
const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;

/// A directory with a name that nobody can guess. It goes with this value.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Makes one that its owner alone may enter.
    pub(super) fn new(below: &Path) -> Result<Self> {
        let template = below.join(".hopyard-XXXXXX");
        let made = mkdtemp(&template).map_err(|errno| Error::Write {
            file: template,
            source: errno.into(),
        })?;
        Ok(Self(made))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Lets others pass through to directories below it whose names they know.
    pub(super) fn let_through(&self) -> Result<()> {
        fs::set_permissions(&self.0, Permissions::from_mode(0o711)).map_err(writing(&self.0))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            crate::note(format_args!("cannot remove {}: {error}", self.0.display()));
        }
    }
}

pub(super) fn writing(file: &Path) -> impl Fn(std::io::Error) -> Error {
    let file = file.to_owned();
    move |source| Error::Write {
        file: file.clone(),
        source,
    }
}

/// Makes a directory where there is none, and sees to it that nobody else can replace what is put into it.
///
/// # Errors
/// It cannot be made, or others may write it or a directory above it.
pub(super) fn own_directory(directory: &Path) -> Result<PathBuf> {
    fs::create_dir_all(directory).map_err(writing(directory))?;
    let directory = directory.canonicalize().map_err(writing(directory))?;
    for above in directory.ancestors() {
        let metadata = fs::metadata(above).map_err(writing(above))?;
        if let Some(why) = shared(&metadata) {
            return Err(Error::Shared {
                directory: above.to_owned(),
                why,
            });
        }
    }
    Ok(directory)
}

/// Why others could replace files in a directory.
fn shared(directory: &Metadata) -> Option<String> {
    let (owner, group, mode) = (directory.uid(), directory.gid(), directory.mode());
    // Whoever ran `sudo` is root already.
    let behind_sudo = std::env::var("SUDO_UID")
        .ok()
        .and_then(|id| id.parse().ok());
    if owner != 0 && owner != geteuid().as_raw() && Some(owner) != behind_sudo {
        return Some(format!("it belongs to user {owner}"));
    }
    // A group of the owner's own has no other members.
    let group_writes = mode & GROUP_WRITES != 0 && group != 0 && group != owner;
    let others_write = mode & OTHERS_WRITE != 0 || group_writes;
    let mode = mode & 0o7777;
    (others_write && mode & STICKY == 0).then(|| format!("its mode is {mode:o}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_others_may_write_is_told() {
        let home = tempfile::tempdir().unwrap();
        let below = home.path().join("below");
        own_directory(&below).unwrap();
        for (mode, is_shared) in [(0o755, false), (0o1777, false), (0o777, true)] {
            fs::set_permissions(home.path(), Permissions::from_mode(mode)).unwrap();
            let refused = own_directory(&below).is_err();
            assert_eq!(refused, is_shared, "{mode:o}");
        }
    }

    #[test]
    fn a_scratch_is_its_owners_and_goes() {
        let home = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(home.path()).unwrap();
        let path = scratch.path().to_owned();
        let mode = fs::metadata(&path).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o700);
        fs::write(path.join("file"), "").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }
}
