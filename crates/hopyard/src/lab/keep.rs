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
use serde::{Deserialize, Serialize};

use super::daemon::home::{HOMES, Home, OVS};
use super::id::{LabId, Owner};
use super::ovs;
use super::{Error, Lab, Result};
use crate::model::{Axes, Datapath, Peer};
use crate::store::bounded;

pub use down::down;
pub(super) use down::remove;
pub(super) use survey::States;
pub use survey::{Foreign, Survey, list, survey};

/// Where kept labs are.
pub const HOME: &str = "/run/hopyard";
const STATE: &str = "lab.json";

/// What is known of a kept lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Name of the lab: 1 to 32 letters, digits, `-` and `_`.
    pub name: String,
    /// Name of the path that was built.
    pub path: String,
    /// Name of the peer: `local`, `far` or `host`.
    pub peer: Peer,
    /// Axis values that the lab was built with.
    pub axes: Axes,
    /// Who built it.
    owner: String,
    /// Is it whole? Until then it belongs to its builder, and to `clean` after the builder's death.
    pub complete: bool,
    /// Namespaces of the lab, with their devices and addresses.
    pub spaces: Vec<KeptSpace>,
    /// Its direct switch, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// Its Open vSwitch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ovs: Option<KeptOvs>,
    /// Its switch that is one daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<KeptService>,
}

/// A switch of a kept lab that is one daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptService {
    /// Name of its directory: the id of the lab it was built as.
    pub id: String,
    /// Which switch: "tap switch".
    pub of: String,
    /// What forwards.
    pub datapath: Datapath,
}

impl Kept {
    /// The directories of its daemons.
    pub(super) fn homes(&self) -> Vec<(&'static Home, String)> {
        let ovs = self.ovs.iter().map(|ovs| (&OVS, ovs.id.clone()));
        let service = self.service.iter().filter_map(|service| {
            let home = HOMES.into_iter().find(|home| home.of == service.of)?;
            Some((home, service.id.clone()))
        });
        ovs.chain(service).collect()
    }
}

/// Open vSwitch of a kept lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptOvs {
    /// Name of its directory: the id of the lab it was built as.
    pub id: String,
    /// What `ovs-vsctl --db=` takes.
    pub database: String,
    /// What forwards.
    pub datapath: Datapath,
}

/// A namespace of a kept lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptSpace {
    /// Its role.
    pub role: String,
    /// Devices and addresses, for people.
    pub devices: Vec<String>,
    /// The address to talk to, where it is an endpoint.
    pub address: Option<String>,
}

fn file_error(what: String) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::File { what, source }
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
/// The name is taken or unfit, or the path cannot be built; nothing stands then.
pub fn up(name: &str, path: &'static dyn super::Path, peer: Peer, axes: &Axes) -> Result<Kept> {
    check_name(name)?;
    let kept = Kept {
        name: name.to_owned(),
        path: path.name().to_owned(),
        peer,
        axes: axes.clone(),
        owner: Owner::me().to_string(),
        complete: false,
        spaces: Vec::new(),
        switch: None,
        ovs: None,
        service: None,
    };
    claim(&kept)?;
    let built = stand(kept, path);
    if built.is_err() {
        for problem in remove(name) {
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

fn stand(mut kept: Kept, path: &'static dyn super::Path) -> Result<Kept> {
    let home = directory(&kept.name);
    let lab = Lab::build_to_keep(path, kept.peer, &kept.axes)?;
    for space in lab.spaces() {
        space.handle.ns().bind(&home.join(space.role))?;
        let mut ends = lab.topology.clients().chain([&lab.topology.server]);
        let address = ends
            .find(|end| end.role == space.role)
            .map(|end| end.addresses.of(kept.axes.family).to_string());
        let mut devices = Vec::new();
        for link in space.handle.links()? {
            devices.push(link.name);
        }
        kept.spaces.push(KeptSpace {
            role: space.role.to_owned(),
            devices,
            address,
        });
    }
    kept.switch = lab.switch().map(str::to_owned);
    let ovs = lab.service().filter(|service| *service.home == OVS);
    kept.ovs = ovs.map(|service| KeptOvs {
        id: service.name.clone(),
        database: ovs::database(&service.name),
        datapath: service.datapath.clone(),
    });
    let service = lab.service().filter(|service| *service.home != OVS);
    kept.service = service.map(|service| KeptService {
        id: service.name.clone(),
        of: service.home.of.to_owned(),
        datapath: service.datapath.clone(),
    });
    kept.complete = true;
    write(&home, &kept)?;
    if let Some(cgroup) = lab.cgroup() {
        // No process of ours is in it: a kept lab is for other people's commands.
        cgroup.remove()?;
    }
    lab.leave_standing();
    Ok(kept)
}

/// Writes the state in one step: a reader sees the old or the new.
fn write(home: &Path, kept: &Kept) -> Result<()> {
    let file = home.join(STATE);
    let new = home.join("lab.json.new");
    serde_json::to_string_pretty(kept)
        .map_err(io::Error::from)
        .and_then(|text| fs::write(&new, text))
        .and_then(|()| fs::rename(&new, &file))
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
    serde_json::from_slice(text).map_err(|source| Error::ForeignLab {
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
        return Err(Error::UnknownName(crate::model::UnknownName {
            kind: "endpoint",
            name: role.to_owned(),
            choices: kept
                .spaces
                .iter()
                .map(|s| s.role.clone())
                .collect::<Vec<_>>()
                .join(", "),
        }));
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
