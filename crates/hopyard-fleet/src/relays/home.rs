//! The directory in which a relay keeps the runs that are going on.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};

const PREFIX: &str = "hopyard-relay.";
/// A directory as young as this may be one whose relay has not locked it yet.
const YOUNG: Duration = Duration::from_secs(60);

/// A directory for runs, which goes with the value. Its lock tells others that the relay lives.
pub(super) struct Home {
    path: PathBuf,
    _locked: File,
}

impl Home {
    /// Makes it, and removes those of relays that were killed.
    ///
    /// # Errors
    /// It cannot be made or locked.
    pub(super) fn make() -> Result<Self> {
        let parent = std::env::temp_dir();
        remove_abandoned_in(&parent, YOUNG);
        let name = format!(
            "{PREFIX}{}.{}",
            std::process::id(),
            jiff::Timestamp::now().as_nanosecond()
        );
        Self::make_at(parent.join(name))
    }

    fn make_at(path: PathBuf) -> Result<Self> {
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| Error::file("make", &path, e))?;
        let locked = File::open(&path)
            .and_then(|directory| directory.lock().map(|()| directory))
            .map_err(|e| Error::file("lock", &path, e))?;
        Ok(Self {
            path,
            _locked: locked,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What cannot be removed was removed by somebody else.
        let _gone = std::fs::remove_dir_all(&self.path);
    }
}

/// Removes what relays that were killed left in the directory for temporary files: how many.
#[must_use]
pub fn remove_abandoned() -> usize {
    remove_abandoned_in(&std::env::temp_dir(), YOUNG)
}

fn remove_abandoned_in(parent: &Path, young: Duration) -> usize {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let of_relays = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    let abandoned = of_relays.filter(|entry| is_abandoned(&entry.path(), young));
    abandoned
        .filter(|entry| std::fs::remove_dir_all(entry.path()).is_ok())
        .count()
}

/// A directory of this user's that is old enough and that nobody locks.
fn is_abandoned(path: &Path, young: Duration) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return false;
    };
    let age = found.modified().ok().and_then(|at| at.elapsed().ok());
    found.is_dir()
        && found.uid() == nix::unistd::geteuid().as_raw()
        && age.is_some_and(|age| age >= young)
        && File::open(path).is_ok_and(|directory| directory.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_relay_left_goes_and_what_lives_or_is_not_ours_stays() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        let lives = Home::make_at(at("hopyard-relay.1.1")).unwrap();
        std::fs::create_dir_all(at("hopyard-relay.2.2/fleet/pairs")).unwrap();
        std::fs::create_dir(at("other.3.3")).unwrap();
        std::fs::write(at("hopyard-relay.4.4"), "a file").unwrap();
        std::os::unix::fs::symlink(at("other.3.3"), at("hopyard-relay.5.5")).unwrap();
        assert_eq!(remove_abandoned_in(parent.path(), YOUNG), 0, "it is young");
        assert_eq!(remove_abandoned_in(parent.path(), Duration::ZERO), 1);
        assert!(!at("hopyard-relay.2.2").exists());
        for stays in [
            "hopyard-relay.1.1",
            "other.3.3",
            "hopyard-relay.4.4",
            "hopyard-relay.5.5",
        ] {
            assert!(at(stays).symlink_metadata().is_ok(), "{stays}");
        }
        drop(lives);
        assert!(!at("hopyard-relay.1.1").exists());
    }
}
