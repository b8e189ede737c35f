//! Kept labs: built by `lab up`, standing until `lab down`.
//!
//! A kept lab is a directory below [`HOME`]: `lab.json`, and each of its namespaces mounted on a file
//! named by its role, so that `nsenter --net=/run/hopyard/NAME/a` works beside `lab exec`.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use hopyard_net::{Handle, NetNs, enter_for_exec, unbind};
use serde::{Deserialize, Serialize};

use super::id::Owner;
use super::{Error, Lab, Result};
use crate::model::{Axes, Peer};

/// Where kept labs are.
pub const HOME: &str = "/run/hopyard";
const STATE: &str = "lab.json";

/// What is known of a kept lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// Its name.
    pub name: String,
    /// Its path.
    pub path: String,
    /// Its peer.
    pub peer: Peer,
    /// Its axes.
    pub axes: Axes,
    /// Who built it.
    owner: String,
    /// Is it whole? Until then it belongs to its builder, and to `clean` after the builder's death.
    pub complete: bool,
    /// Its namespaces.
    pub spaces: Vec<KeptSpace>,
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

fn file_error(what: String) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::File { what, source }
}

fn directory(name: &str) -> PathBuf {
    Path::new(HOME).join(name)
}

fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || name.len() > 32 || !name.chars().all(plain) {
        return Err(Error::Kept(format!(
            "`{name}` is no name for a lab: 1 to 32 letters, digits, `-` and `_`"
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
    let home = directory(name);
    fs::create_dir_all(HOME).map_err(file_error(format!("make directory {HOME}")))?;
    fs::create_dir(&home).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Error::Kept(format!(
            "there is a lab `{name}` already: choose another --name, or end it with \
             `hopyard lab down {name}`"
        )),
        _ => Error::File {
            what: format!("make directory {}", home.display()),
            source: error,
        },
    })?;
    let built = stand(name, path, peer, axes);
    if built.is_err() {
        for problem in remove(name) {
            crate::note(format_args!("{problem}"));
        }
    }
    built
}

fn stand(name: &str, path: &'static dyn super::Path, peer: Peer, axes: &Axes) -> Result<Kept> {
    let mut kept = Kept {
        name: name.to_owned(),
        path: path.name().to_owned(),
        peer,
        axes: axes.clone(),
        owner: Owner::me().to_string(),
        complete: false,
        spaces: Vec::new(),
    };
    write(&kept)?;
    let lab = Lab::build(path, peer, axes)?;
    for space in lab.spaces() {
        space.handle.ns().bind(&directory(name).join(space.role))?;
        let ends = [&lab.topology.client, &lab.topology.server];
        let address = ends
            .into_iter()
            .find(|end| end.role == space.role)
            .map(|end| end.addresses.of(axes.family).to_string());
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
    kept.complete = true;
    write(&kept)?;
    if let Some(cgroup) = lab.cgroup() {
        // No process of ours is in it: a kept lab is for other people's commands.
        cgroup.remove()?;
    }
    lab.leave_standing();
    Ok(kept)
}

fn write(kept: &Kept) -> Result<()> {
    let file = directory(&kept.name).join(STATE);
    let what = format!("write {}", file.display());
    let text = serde_json::to_string_pretty(kept).map_err(|e| Error::File {
        what: what.clone(),
        source: e.into(),
    })?;
    fs::write(file, text).map_err(file_error(what))
}

/// Every kept lab, by name. One whose state cannot be read is left to [`leftovers`].
///
/// # Errors
/// The directory cannot be read.
pub fn list() -> Result<Vec<Kept>> {
    Ok(names()?
        .into_iter()
        .filter_map(|name| read(&name).ok())
        .filter(|k| k.complete)
        .collect())
}

/// Names of labs that were never finished and whose builder is dead.
///
/// # Errors
/// The directory cannot be read.
pub fn leftovers() -> Result<Vec<String>> {
    let abandoned = |name: &String| match read(name) {
        Ok(kept) => !kept.complete && !kept.owner.parse::<Owner>().is_ok_and(Owner::lives),
        Err(_) => true,
    };
    Ok(names()?.into_iter().filter(abandoned).collect())
}

fn names() -> Result<Vec<String>> {
    let entries = match fs::read_dir(HOME) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(file_error(format!("read {HOME}"))(e)),
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|e| e.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// The kept lab of a name.
///
/// # Errors
/// There is none; the error lists those that are.
pub fn read(name: &str) -> Result<Kept> {
    check_name(name)?;
    let file = directory(name).join(STATE);
    let text = fs::read_to_string(&file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let there = names().unwrap_or_default().join(", ");
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
    serde_json::from_str(&text).map_err(|e| Error::File {
        what: format!("read {}", file.display()),
        source: e.into(),
    })
}

/// Takes a kept lab down.
///
/// # Errors
/// There is none of that name, processes still run in it (unless `force`), or something could not be
/// removed; everything else is gone then.
pub fn down(name: &str, force: bool) -> Result<()> {
    let kept = read(name)?;
    let mut inside = Vec::new();
    for space in &kept.spaces {
        let ns = NetNs::open(&directory(name).join(&space.role))?;
        for pid in processes_in(ns.inode()?) {
            inside.push(format!("{} ({pid}) in `{}`", command_name(pid), space.role));
        }
    }
    if !force && !inside.is_empty() {
        return Err(Error::Kept(format!(
            "processes still run in lab `{name}`: {}; end them, or pass --force to take the lab \
             down under them",
            inside.join(", ")
        )));
    }
    let problems = remove(name);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Error::Kept(problems.join("; ")))
    }
}

/// Removes whatever there is of a kept lab, going on past failures.
pub(super) fn remove(name: &str) -> Vec<String> {
    let home = directory(name);
    let mut problems = Vec::new();
    let mut tried = |what: String, outcome: std::result::Result<(), String>| {
        if let Err(why) = outcome {
            problems.push(format!("cannot {what}: {why}"));
        }
    };
    for entry in fs::read_dir(&home).into_iter().flatten().flatten() {
        let file = entry.path();
        if entry.file_name() == STATE {
            continue;
        }
        // Pairs go at once; what else is in the namespace follows it in the background.
        if let Ok(handle) = NetNs::open(&file).and_then(|ns| Handle::new(&ns)) {
            for link in handle.links().unwrap_or_default() {
                if matches!(link.kind.as_deref(), Some("veth" | "netkit")) {
                    // The other end may have taken it along already.
                    let _ = handle.delete_link(&link.name);
                }
            }
        }
        let what = format!("remove {}", file.display());
        tried(what, unbind(&file).map_err(|e| crate::chain(&e)));
    }
    let what = format!("remove {}", home.display());
    tried(what, fs::remove_dir_all(&home).map_err(|e| e.to_string()));
    // Goes with the last lab; not empty otherwise.
    let _ = fs::remove_dir(HOME);
    problems
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

/// Processes whose network namespace has that inode.
fn processes_in(inode: u64) -> Vec<u32> {
    let wanted = format!("net:[{inode}]");
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            fs::read_link(format!("/proc/{pid}/ns/net"))
                .is_ok_and(|link| link.to_str() == Some(&wanted))
        })
        .collect()
}

fn command_name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm"))
        .map_or_else(|_| "a process".to_owned(), |name| name.trim().to_owned())
}
