//! The directory in which the Unix sockets of a lab are.

use std::path::{Path, PathBuf};

use super::daemon::Home;
use super::kept::Kept;
use super::part::{Part, Undone};
use super::{Builder, Result};

/// Where the directories are.
pub(super) static HOME: Home = Home {
    shown_by: Some(|name| format!("sockets in /run/hopyard-unix/{name}")),
    ..Home::new("directory of sockets", "/run/hopyard-unix", &[])
};

/// The one of the lab of this name.
#[derive(Debug)]
struct Directory(String);

impl Builder {
    /// Makes the directory.
    ///
    /// # Errors
    /// `/run` cannot be written.
    pub(crate) fn socket_directory(&mut self) -> Result<()> {
        let name = self.id.to_string();
        HOME.make(&name)?;
        self.push(Directory(name));
        Ok(())
    }

    /// The directory, where the lab has one.
    pub(super) fn sockets_in(&self) -> Option<PathBuf> {
        let directory: Option<&Directory> = self.parts().next();
        directory.map(|Directory(name)| HOME.directory(name))
    }
}

impl Part for Directory {
    fn undo(&mut self) -> Undone {
        Undone::of(HOME.of, HOME.remove_files(&self.0))
    }

    fn keep(&mut self, _: &Path, kept: &mut Kept) -> Result<()> {
        kept.note(HOME.key, &HOME.record(&self.0, None))
    }
}
