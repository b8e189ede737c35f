//! What labs are made of, and how each part of one is undone.

use std::any::Any;
use std::fmt;
use std::path::Path;

use serde_json::Value;

use super::error::daemon;
use super::kept::Kept;
use super::{LabId, Result};
use crate::model::{Datapath, DeviceCount};

/// Something that a lab has made. Whoever makes it pushes it ([`Builder::push`](super::Builder::push)) as soon as
/// there is something to undo; parts are undone in the opposite order.
pub(super) trait Part: Any + fmt::Debug {
    /// Undoes it and goes on past failures. What was undone before, by whomever, is no failure.
    fn undo(&mut self) -> Undone;

    /// Has it stand in a directory of a kept lab when this process is gone, and writes into the state what it takes
    /// to undo it.
    ///
    /// # Errors
    /// It cannot stay.
    fn keep(&mut self, _home: &Path, _kept: &mut Kept) -> Result<()> {
        Ok(())
    }

    /// The processes that it runs.
    fn pids(&self) -> Vec<u32> {
        Vec::new()
    }

    /// A process of it has ended, and how.
    fn death(&self) -> Option<daemon::Error> {
        None
    }

    /// What forwards, where it is this part, for results.
    fn datapath(&self) -> Option<Datapath> {
        None
    }

    /// What it counts in place of a device, or beside them.
    ///
    /// # Errors
    /// The kernel does not answer.
    fn counted(&self) -> Result<Vec<DeviceCount>> {
        Ok(Vec::new())
    }

    /// The command that shows it, for people.
    fn shown_by(&self) -> Option<String> {
        None
    }
}

/// The effect of what is left of most kinds.
pub(super) const HOLDS: &str = "none, but they hold namespaces or processes";

/// A kind of thing that outlives the process that made it. Each has the id of its lab for a name, or in it.
pub(super) trait Kind: Sync {
    /// What there is of it on this machine.
    ///
    /// # Errors
    /// The place where it would be cannot be read.
    fn names(&self) -> Result<Names>;

    /// The lab that has the one of this name, if it is a lab's.
    fn lab(&self, name: &str) -> Option<LabId> {
        name.parse().ok()
    }

    /// Can a kept lab have one?
    fn is_kept(&self) -> bool {
        true
    }

    /// What a left one does to figures and to this machine.
    fn effect(&self) -> &'static str {
        HOLDS
    }

    /// The one of this name, whose maker has ended.
    fn left(&'static self, name: String) -> Box<dyn Part>;

    /// The one that the state of a kept lab has under this key; `None` where the key is another kind's.
    ///
    /// # Errors
    /// This version does not understand what is there.
    fn kept(
        &'static self,
        _key: &str,
        _value: &Value,
    ) -> serde_json::Result<Option<Box<dyn Part>>> {
        Ok(None)
    }
}

/// Names of things of one kind.
pub(super) enum Names {
    /// Those of labs among them, and of others where others have some.
    Of(Vec<String>),
    /// Only root may look for them.
    Closed(&'static str),
}

/// What came of an undo.
#[derive(Debug, Default)]
pub(super) struct Undone {
    /// What is gone, if there was anything.
    pub(super) removed: Option<String>,
    /// A sentence for each thing that would not go.
    pub(super) problems: Vec<String>,
}

impl Undone {
    pub(super) fn gone(what: impl Into<String>) -> Self {
        Self {
            removed: Some(what.into()),
            problems: Vec::new(),
        }
    }

    pub(super) fn failed(error: &(dyn std::error::Error + 'static)) -> Self {
        Self {
            removed: None,
            problems: vec![crate::chain(error)],
        }
    }

    /// The outcome of removing one thing.
    pub(super) fn of<E: std::error::Error + 'static>(
        what: impl Into<String>,
        outcome: std::result::Result<(), E>,
    ) -> Self {
        match outcome {
            Ok(()) => Self::gone(what),
            Err(error) => Self::failed(&error),
        }
    }
}

/// Undoes parts, the last made first, and goes on past failures; answers with what would not go.
pub(super) fn undo<'a>(
    parts: impl DoubleEndedIterator<Item = &'a mut (dyn Part + 'static)>,
) -> Vec<String> {
    let undone = parts.rev().map(Part::undo);
    undone.flat_map(|undone| undone.problems).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Debug)]
    struct Noted(Arc<Mutex<Vec<u32>>>, u32);

    impl Part for Noted {
        fn undo(&mut self) -> Undone {
            self.0.lock().unwrap().push(self.1);
            let refused = std::io::Error::other(format!("{} stays", self.1));
            let outcome = if self.1 == 2 { Err(refused) } else { Ok(()) };
            Undone::of("a thing", outcome)
        }
    }

    #[test]
    fn the_last_made_goes_first_and_a_failure_stops_nothing() {
        let gone = Arc::default();
        let part = |number| Box::new(Noted(Arc::clone(&gone), number)) as Box<dyn Part>;
        let mut parts: Vec<_> = [1, 2, 3].into_iter().map(part).collect();
        let problems = undo(parts.iter_mut().map(|part| &mut **part));
        assert_eq!(problems, ["2 stays"]);
        assert_eq!(*gone.lock().unwrap(), [3, 2, 1]);
    }
}
