//! Daemons that are not children of this process: of a kept lab, or of one whose builder is dead.

use std::time::{Duration, Instant};

use super::Home;
use crate::lab::Result;
use crate::lab::part::{Kind, Names, Part, Undone};

/// How long a killed daemon may take to be gone.
const PATIENCE: Duration = Duration::from_secs(2);

impl Kind for Home {
    fn names(&self) -> Result<Names> {
        Ok(Names::Of(Self::names(self)?))
    }

    fn left(&'static self, name: String) -> Box<dyn Part> {
        Box::new(Left { home: self, name })
    }
}

/// A directory and the daemons that use it, which are found by it.
#[derive(Debug)]
struct Left {
    home: &'static Home,
    name: String,
}

impl Part for Left {
    /// Ends the daemons and removes their directory.
    fn undo(&mut self) -> Undone {
        let mut undone = Undone::default();
        let daemons = self.home.daemons(&self.name).unwrap_or_else(|error| {
            undone.problems.push(crate::chain(&error));
            Vec::new()
        });
        for daemon in &daemons {
            if let Err(error) = daemon.kill() {
                let problem = format!("lab {}: {}", self.name, crate::chain(&error));
                undone.problems.push(problem);
            }
        }
        let deadline = Instant::now() + PATIENCE;
        for daemon in &daemons {
            // The directory is removed even if one does not end.
            let _ = daemon.has_ended(deadline.saturating_duration_since(Instant::now()));
        }
        if let Err(error) = self.home.remove_files(&self.name) {
            undone.problems.push(crate::chain(&error));
        }
        if undone.problems.is_empty() {
            let with = match daemons.len() {
                0 => String::new(),
                n => format!(" and its {n} daemon(s)"),
            };
            undone.removed = Some(format!("{} of lab {}{with}", self.home.of, self.name));
        }
        undone
    }
}
