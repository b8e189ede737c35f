//! Daemons that are not children of this process: of a kept lab, or of one whose builder is dead.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::home::{Home, SERVICE};
use crate::Result;
use crate::model::Datapath;
use crate::part::{Kind, Names, Part, Undone};

/// How long a killed daemon may take to be gone.
const PATIENCE: Duration = Duration::from_secs(2);

impl Kind for Home {
    fn names(&self) -> Result<Names> {
        Ok(Names::Of(Self::names(self)?))
    }

    fn left(&'static self, name: String) -> Box<dyn Part> {
        Box::new(Left {
            home: self,
            name,
            datapath: None,
        })
    }

    fn kept(&'static self, key: &str, value: &Value) -> serde_json::Result<Option<Box<dyn Part>>> {
        if key != self.key {
            return Ok(None);
        }
        let record = Record::deserialize(value)?;
        if record.of.as_deref() != self.named() {
            return Ok(None);
        }
        Ok(Some(Box::new(Left {
            home: self,
            name: record.id,
            datapath: record.datapath,
        })))
    }
}

/// What the state of a kept lab has of a switch.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Name of its directory: the id of the lab it was built as.
    id: String,
    /// Which switch, where its key does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    /// Where its database answers, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    database: Option<String>,
    /// What forwards, if there is something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    datapath: Option<Datapath>,
}

impl Home {
    pub(crate) fn record(&self, name: &str, datapath: Option<&Datapath>) -> Record {
        Record {
            id: name.to_owned(),
            of: self.named().map(str::to_owned),
            database: self.database.map(|database| database(name)),
            datapath: datapath.cloned(),
        }
    }

    fn named(&self) -> Option<&'static str> {
        (self.key == SERVICE).then_some(self.of)
    }
}

/// A directory and the daemons that use it, which are found by it.
#[derive(Debug)]
struct Left {
    home: &'static Home,
    name: String,
    /// Where a kept lab's state has it.
    datapath: Option<Datapath>,
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

    fn pids(&self) -> Vec<u32> {
        self.home.pids(&self.name)
    }

    fn datapath(&self) -> Option<Datapath> {
        self.datapath.clone()
    }

    fn shown_by(&self) -> Option<String> {
        self.home.shown_by.map(|shown_by| shown_by(&self.name))
    }
}
