//! The directory in which a relay keeps the runs that are going on.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use hopyard_host::abandoned::{self, YOUNG};

use crate::error::{Error, Result};

const PREFIX: &str = "hopyard-relay.";

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
        let _count = abandoned::remove(&parent, PREFIX, YOUNG);
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
        let locked = abandoned::lock(&path).map_err(|e| Error::file("lock", &path, e))?;
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
    abandoned::remove(&std::env::temp_dir(), PREFIX, YOUNG)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
        let removed = |young| abandoned::remove(parent.path(), PREFIX, young);
        assert_eq!(removed(YOUNG), 0, "it is young");
        assert_eq!(removed(Duration::ZERO), 1);
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
