//! Kept labs: built by `lab up`, standing until `lab down`.
//!
//! A kept lab is a directory below [`HOME`]: `lab.json`, and each of its namespaces mounted on a file
//! named by its role, so that `nsenter --net=/run/hopyard/NAME/a` works beside `lab exec`.
//!
//! Others look at any time (`lab list`, `clean`), so a directory comes to its name and leaves it in one
//! step, with its state inside; before and after that it is a draft, `.ID` with an id of whoever works
//! on it.

mod down;
mod survey;

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hopyard_net::{NetNs, enter_for_exec, owned};
use serde_json::{Map, Value};

use super::kept::{STATE, file_error};
use super::kinds::KINDS;
use super::part::Part;
use super::{Error, Lab, Result};
use crate::bounded;
use crate::load::remote;
use crate::model::{Axes, Peer};
use crate::owner::{LabId, Owner};

pub use super::kept::{Kept, KeptSpace};
pub(super) use down::remove;
pub(crate) use down::take_down;
pub(super) use survey::States;
pub use survey::{Foreign, Survey, list, survey};

/// Where kept labs are.
pub const HOME: &str = "/run/hopyard";

impl Kept {
    /// What it has beside its namespaces.
    fn parts(&self) -> Vec<Box<dyn Part>> {
        // `parse` has refused what is not understood.
        self.understood().unwrap_or_default()
    }

    /// Who builds it, or was building it and has ended; `None` for one that is whole.
    fn builder(&self) -> Option<Owner> {
        let owner = self.owner.parse().ok()?;
        (!self.complete).then_some(owner)
    }

    fn understood(&self) -> serde_json::Result<Vec<Box<dyn Part>>> {
        let parts = self.parts.iter();
        parts.map(|(key, value)| part_of(key, value)).collect()
    }

    /// What forwards in it, with the command that shows it, for people.
    #[must_use]
    pub fn switches(&self) -> Vec<String> {
        let parts = self.parts();
        let shown = parts.iter().filter_map(|part| {
            let datapath = part.datapath().map(|datapath| datapath.to_string());
            let said = [datapath, part.shown_by()].into_iter().flatten();
            let said: Vec<String> = said.collect();
            (!said.is_empty()).then(|| said.join(": "))
        });
        shown.collect()
    }
}

fn part_of(key: &str, value: &Value) -> serde_json::Result<Box<dyn Part>> {
    for kind in KINDS {
        if let Some(part) = kind.kept(key, value)? {
            return Ok(part);
        }
    }
    let unknown = format!("it has a `{key}` that this version does not know");
    Err(serde::de::Error::custom(unknown))
}

fn directory(name: &str) -> PathBuf {
    Path::new(HOME).join(name)
}

fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 32 || !name.chars().all(plain) {
        return Err(Error::Kept(format!(
            "`{name}` is not a valid name of a lab: use 1 to 32 letters, digits, `-` and `_`"
        )));
    }
    Ok(())
}

/// Builds a path and lets it stand under a name.
///
/// # Errors
/// The name is taken or unfit, the path cannot be built, or the user asked to stop; nothing stands then.
pub fn up(name: &str, path: &'static super::Path, peer: Peer, axes: &Axes) -> Result<Kept> {
    check_name(name)?;
    let kept = Kept {
        name: name.to_owned(),
        path: path.name.to_owned(),
        peer,
        axes: axes.clone(),
        owner: Owner::me().to_string(),
        complete: false,
        spaces: Vec::new(),
        parts: Map::new(),
    };
    claim(&kept)?;
    let built = stand(kept, path);
    if built.is_err() {
        for problem in remove(name, None) {
            crate::note(format_args!("{problem}"));
        }
    }
    built
}

/// Takes the lab's name, with its state and owner written down.
fn claim(kept: &Kept) -> Result<()> {
    let draft = draft();
    // HOME may go with somebody's last lab at any time.
    owned::make_directory(&draft, 0o755)
        .map_err(file_error(format!("make directory {}", draft.display())))?;
    let home = directory(&kept.name);
    let claimed = write(&draft, kept).and_then(|()| {
        fs::rename(&draft, &home).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty => Error::Kept(format!(
                "there is a lab `{0}` already: choose another --name, or end it with \
                 `hopyard lab down {0}`",
                kept.name
            )),
            _ => file_error(format!("make directory {}", home.display()))(error),
        })
    });
    if claimed.is_err() {
        // What is left of it is known by its id, and `clean` tries again.
        let _ = owned::remove_tree(&draft);
        let _ = owned::remove_directory(Path::new(HOME));
    }
    claimed
}

fn draft() -> PathBuf {
    Path::new(HOME).join(format!(".{}", LabId::next()))
}

fn stand(mut kept: Kept, path: &'static super::Path) -> Result<Kept> {
    let home = directory(&kept.name);
    let mut lab = Lab::build_to_keep(path, kept.peer, &kept.axes)?;
    go_on()?;
    lab.builder.keep(&home, &mut kept)?;
    for space in &mut kept.spaces {
        let mut ends = lab.topology.clients().chain([&lab.topology.server]);
        let own = ends.find(|end| end.role == space.role && !end.device.is_empty());
        space.address = own.map(|end| end.addresses.of(kept.axes.family).to_string());
    }
    kept.complete = true;
    go_on()?;
    write(&home, &kept)?;
    lab.builder.stays = true;
    Ok(kept)
}

/// Fails if the user asked to stop. The error has its caller undo what was built.
fn go_on() -> Result<()> {
    if crate::signals::interrupted() {
        return Err(Error::Worker(remote::Error::Interrupted));
    }
    Ok(())
}

/// Writes the state in one step: a reader sees the old or the new.
fn write(home: &Path, kept: &Kept) -> Result<()> {
    let file = home.join(STATE);
    serde_json::to_string_pretty(kept)
        .map_err(io::Error::from)
        .and_then(|text| bounded::replace(&file, text.as_bytes()))
        .map_err(file_error(format!("write {}", file.display())))
}

/// The kept lab of a name.
///
/// # Errors
/// There is none; the error lists those that are.
pub fn read(name: &str) -> Result<Kept> {
    check_name(name)?;
    let file = directory(name).join(STATE);
    let text = bounded::read(&file).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let there = survey::names().unwrap_or_default().join(", ");
            let there = if there.is_empty() {
                "none is up".to_owned()
            } else {
                format!("up: {there}")
            };
            Error::Kept(format!("there is no lab `{name}` ({there})"))
        }
        _ => Error::File {
            what: format!("read {}", file.display()),
            source: error,
        },
    })?;
    parse(&file, &text)
}

/// The state in a directory, whatever its name is just now.
fn state_in(home: &Path) -> Result<Kept> {
    let file = home.join(STATE);
    let text = bounded::read(&file).map_err(file_error(format!("read {}", file.display())))?;
    parse(&file, &text)
}

fn parse(file: &Path, text: &[u8]) -> Result<Kept> {
    let understood = serde_json::from_slice(text).and_then(|kept: Kept| {
        kept.understood()?;
        Ok(kept)
    });
    understood.map_err(|source| Error::ForeignLab {
        file: file.to_owned(),
        source,
    })
}

/// Becomes a command in a namespace of a kept lab. Returns only if that fails.
///
/// # Errors
/// No such lab, endpoint or command.
pub fn exec(name: &str, role: &str, command: &[String]) -> Result<std::convert::Infallible> {
    let kept = read(name)?;
    if !kept.spaces.iter().any(|space| space.role == role) {
        return Err(Error::UnknownName(crate::model::UnknownName::new(
            "endpoint",
            role,
            kept.spaces.iter().map(|s| s.role.clone()),
        )));
    }
    let Some((program, arguments)) = command.split_first() else {
        return Err(Error::Kept(
            "lab exec needs a command after `--`".to_owned(),
        ));
    };
    enter_for_exec(&NetNs::open(&directory(name).join(role))?)?;
    let source = Command::new(program).args(arguments).exec();
    Err(Error::File {
        what: format!("run `{program}`"),
        source,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The state of a lab with one part, as versions before this one wrote it.
    fn state(key: &str, part: Value) -> String {
        let mut state = json!({
            "name": "old",
            "path": "veth",
            "peer": "local",
            "axes": {
                "flows": 1, "message_size_bytes": 16384, "congestion": "cubic", "placement": "split", "family": "4",
                "mtu_bytes": 1500, "rate_bps": 10_000_000_000_u64, "pace_bps": null, "queues": 3, "containers": "own"
            },
            "owner": "26791.1481813.4026531836",
            "complete": true,
            "spaces": [{"role": "a", "devices": ["lo", "eth0"], "address": "198.18.0.1"}]
        });
        state[key] = part;
        state.to_string()
    }

    fn daemon(named: &[(&str, &str)]) -> Value {
        let datapath = json!({"switch": "other", "version": "3.1", "kind": "userspace"});
        let mut part = json!({"id": "26791.1481813.4026531836.2", "datapath": datapath});
        for (key, value) in named {
            part[*key] = (*value).into();
        }
        part
    }

    #[test]
    fn states_of_the_version_before_are_understood_and_written_alike() {
        let ovs = daemon(&[(
            "database",
            "unix:/run/hopyard-ovs/26791.1481813.4026531836.2/db.sock",
        )]);
        let show = "other 3.1, userspace datapath: ovs-vsctl --db=unix:/run/hopyard-ovs/26791.1481813.4026531836.2/db.sock show";
        let tap =
            "other 3.1, userspace datapath: hopyard tapswitch show 26791.1481813.4026531836.2";
        for (key, part, shown) in [
            ("switch", json!("lab-ko7-vrdh-1ulajuk-3"), &[][..]),
            ("ovs", ovs, &[show]),
            ("service", daemon(&[("of", "tap switch")]), &[tap]),
            (
                "service",
                daemon(&[("of", "vde_switch")]),
                &["other 3.1, userspace datapath"],
            ),
        ] {
            let text = state(key, part);
            let kept = parse(Path::new("lab.json"), text.as_bytes()).unwrap();
            assert_eq!(kept.parts().len(), 1, "{text}");
            assert_eq!(kept.switches(), shown);
            let again: Value = serde_json::to_value(&kept).unwrap();
            assert_eq!(again, serde_json::from_str::<Value>(&text).unwrap());
        }
    }

    #[test]
    fn a_part_that_is_not_known_makes_a_lab_of_another_version() {
        for (key, part) in [
            ("tunnel", json!("x")),
            ("service", daemon(&[("of", "another switch")])),
            ("service", daemon(&[])),
            ("switch", json!(7)),
        ] {
            let error = parse(Path::new("lab.json"), state(key, part).as_bytes()).unwrap_err();
            assert!(matches!(error, Error::ForeignLab { .. }), "{error}");
        }
    }
}
