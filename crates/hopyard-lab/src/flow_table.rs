//! The kernel's table of which CPU reads which flow (`rps_sock_flow_entries`), which receive flow steering needs.
//!
//! It is one for the whole machine. A lab that needs it notes how large it was, and the last of such labs sets it back: when
//! it goes, or by `clean` after a SIGKILL.

use std::fs;
use std::io;
use std::path::Path;

use hopyard_net::owned::Lock;
use hopyard_net::{Handle, NetNs};
use serde::Deserialize;
use serde_json::Value;

use super::daemon::Home;
use super::kept::Kept;
use super::need::Need;
use super::part::{Kind, Names, Part, Undone};
use super::{Builder, Error, Result};
use crate::bounded;

/// Entries of the table: what the kernel's documentation takes for a busy server (`scaling.rst`).
pub(super) const ENTRIES: u32 = 32768;

const SYSCTL: &str = "net/core/rps_sock_flow_entries";

/// A directory for each lab that uses the table, with what the table was before.
const HOME: Home = Home::new("flow table", "/run/hopyard-rfs", &[]);
const BEFORE: &str = "before";
/// Not the directory, which comes and goes under the lock, and which others can open.
const LOCK: &str = "/run/hopyard-rfs.lock";

/// Its name in the state of a kept lab.
const KEY: &str = "flow_table";

/// The first network namespace of a kernel with receive packet steering: no other has the sysctl.
pub(super) const NEED: Need = Need::new("receive flow steering", |_| match entries() {
    Err(hopyard_net::Error::Missing { what, .. }) => Err(hopyard_net::Error::Unsupported {
        what,
        feature: "receive flow steering".to_owned(),
        remedy: "run hopyard in the machine's first network namespace, or leave `rfs` out"
            .to_owned(),
    }),
    entries => entries.map(drop),
});

pub(super) static TABLES: Tables = Tables;

pub(super) struct Tables;

/// The use of the table by the lab of this name.
#[derive(Debug)]
struct Table(String);

impl Builder {
    /// Has the kernel keep in mind which CPU reads which flow.
    pub(super) fn use_flow_table(&mut self) -> Result<()> {
        let name = self.id.to_string();
        let _turn = turn()?;
        let others = HOME.names()?;
        // A damaged note is reported when its lab is cleaned up.
        let noted = others.iter().find_map(|other| before(other).ok().flatten());
        let now = entries()?;
        let before = noted.filter(|_| now == ENTRIES).unwrap_or(now);
        let directory = HOME.make(&name)?;
        self.push(Table(name));
        note(&directory, before)?;
        // Somebody has set it since: that is what the last of them gives back.
        for other in others
            .iter()
            .filter(|_| noted.is_some_and(|noted| noted != before))
        {
            note(&HOME.directory(other), before)?;
        }
        if now < ENTRIES {
            set_entries(ENTRIES)?;
        }
        Ok(())
    }
}

/// Writes down the size that the table had.
fn note(directory: &Path, before: u32) -> Result<()> {
    let file = directory.join(BEFORE);
    bounded::replace(&file, before.to_string().as_bytes()).map_err(file_error("write", &file))
}

impl Part for Table {
    fn undo(&mut self) -> Undone {
        match self.give_back() {
            Ok(removed) => Undone {
                removed,
                problems: Vec::new(),
            },
            Err(error) => Undone::failed(&error),
        }
    }

    fn keep(&mut self, _: &Path, kept: &mut Kept) -> Result<()> {
        kept.note(KEY, &self.0)
    }
}

impl Table {
    /// The last lab sets the table back, unless somebody else has set it meanwhile. Answers with what was done.
    fn give_back(&self) -> Result<Option<String>> {
        let _turn = turn()?;
        let before = before(&self.0)?;
        let is_last = HOME.names()?.iter().all(|name| *name == self.0);
        let mut removed = None;
        if let Some(before) = before
            && is_last
            // Only a smaller table was changed.
            && before < ENTRIES
            && entries()? == ENTRIES
        {
            set_entries(before)?;
            removed = Some(format!("sysctl `{SYSCTL}`, set back to {before}"));
        }
        HOME.remove_files(&self.0)?;
        Ok(removed)
    }
}

impl Kind for Tables {
    fn names(&self) -> Result<Names> {
        Ok(Names::Of(HOME.names()?))
    }

    fn effect(&self) -> &'static str {
        "a sysctl of this machine is raised: receive steering differs"
    }

    fn left(&'static self, name: String) -> Box<dyn Part> {
        Box::new(Table(name))
    }

    fn kept(&'static self, key: &str, value: &Value) -> serde_json::Result<Option<Box<dyn Part>>> {
        if key != KEY {
            return Ok(None);
        }
        Ok(Some(self.left(String::deserialize(value)?)))
    }
}

/// Labs come and go in many processes: one at a time looks and changes.
fn turn() -> Result<Lock> {
    let file = Path::new(LOCK);
    Lock::wait(file).map_err(file_error("lock", file))
}

/// What the table was before the first of the labs, as this one noted it.
/// `None` where it was killed before it had noted the size: then it has not changed it.
fn before(name: &str) -> Result<Option<u32>> {
    let file = HOME.directory(name).join(BEFORE);
    let text = match fs::read_to_string(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(file_error("read", &file))?,
    };
    let before = text.trim().parse();
    before.map(Some).map_err(|_| {
        let why = format!(
            "`{}` is no number of entries; set {SYSCTL} as it was, and remove the file",
            text.trim().escape_debug()
        );
        file_error("read", &file)(io::Error::new(io::ErrorKind::InvalidData, why))
    })
}

fn entries() -> hopyard_net::Result<u32> {
    let text = Handle::new(&NetNs::current()?)?.sysctl(SYSCTL)?;
    text.parse().map_err(|_| hopyard_net::Error::Invalid {
        what: format!("read sysctl `{SYSCTL}`"),
        why: format!("the kernel says `{text}`"),
    })
}

fn set_entries(entries: u32) -> hopyard_net::Result<()> {
    Handle::new(&NetNs::current()?)?.set_sysctl(SYSCTL, &entries.to_string())
}

fn file_error(verb: &str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let what = format!("{verb} {}", path.display());
    move |source| Error::File { what, source }
}
