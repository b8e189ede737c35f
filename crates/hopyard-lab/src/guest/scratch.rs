//! Directories that only their owner may write: where what is fetched lies until it is checked.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hopyard_host::abandoned;
use hopyard_net::owned;
use nix::unistd::mkdtemp;

use super::{Error, Result};

/// How the names of scratches begin.
pub(super) const PREFIX: &str = ".hopyard-fetch-";

/// A directory with a name that nobody can guess. It goes with this value; one of a program that was killed with the next fetch.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    /// Without it, on a file system that locks nothing, a scratch is never taken for abandoned.
    _locked: Option<File>,
}

impl Scratch {
    /// Makes one that its owner alone may enter.
    pub(super) fn new(below: &Path) -> Result<Self> {
        let template = below.join(format!("{PREFIX}XXXXXX"));
        let made = mkdtemp(&template).map_err(|errno| Error::Write {
            file: template,
            source: errno.into(),
        })?;
        Ok(Self {
            _locked: abandoned::lock(&made).ok(),
            path: made,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Lets others pass through to directories below it whose names they know.
    pub(super) fn let_through(&self) -> Result<()> {
        fs::set_permissions(&self.path, Permissions::from_mode(0o711)).map_err(writing(&self.path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            crate::note(format_args!(
                "cannot remove {}: {error}",
                self.path.display()
            ));
        }
    }
}

pub(super) fn writing(file: &Path) -> impl Fn(io::Error) -> Error {
    let file = file.to_owned();
    move |source| Error::Write {
        file: file.clone(),
        source,
    }
}

/// The directory that kernels are fetched into. When this value goes, so do the directories that it made, unless
/// something is in them.
#[derive(Debug)]
pub(super) struct Destination {
    path: PathBuf,
    /// The innermost first.
    made: Vec<PathBuf>,
}

impl Destination {
    /// Makes a directory where there is none, and checks that nobody but root and the caller can replace what is put
    /// into it.
    ///
    /// # Errors
    /// It cannot be made, or others may write to it or a directory above it.
    pub(super) fn new(directory: &Path) -> Result<Self> {
        let failed = |source| Error::Into {
            directory: directory.to_owned(),
            source,
        };
        let (path, missing) = resolve(directory).map_err(failed)?;
        let made = path.ancestors().take(missing);
        // `..` is no directory to remove.
        let made = made.filter(|above| above.file_name().is_some());
        let destination = Self {
            made: made.map(Path::to_owned).collect(),
            path,
        };
        owned::make_directory(&destination.path, 0o755).map_err(failed)?;
        Ok(destination)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        for directory in &self.made {
            match owned::remove_directory(directory) {
                Ok(()) => {}
                // A kernel was fetched, or the directory was not made after all.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound
                    ) => {}
                Err(error) => {
                    crate::note(format_args!(
                        "cannot remove {}: {error}",
                        directory.display()
                    ));
                }
            }
        }
    }
}

/// The absolute path without symbolic links of a directory, and how many of its last parts are missing.
fn resolve(path: &Path) -> io::Result<(PathBuf, usize)> {
    let path = std::path::absolute(path)?;
    let mut missing = Vec::new();
    for above in path.ancestors() {
        match above.canonicalize() {
            Ok(mut resolved) => {
                resolved.extend(missing.iter().rev());
                return Ok((resolved, missing.len()));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) => missing.extend(above.components().next_back()),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_is_its_owners_and_goes() {
        let home = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(home.path()).unwrap();
        let path = scratch.path().to_owned();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700);
        fs::write(path.join("file"), "").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }
}
