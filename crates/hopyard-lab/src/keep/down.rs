//! The end of a kept lab.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hopyard_net::{Handle, NetNs, owned, unbind};

use super::survey::{Identity, identity};
use super::{HOME, STATE, directory, draft, read, state_in};
use crate::owner::{Life, Owner};
use crate::part::{Part, Undone, undo};
use crate::{Error, Result, processes, role};

/// What came of taking a lab down.
pub(crate) struct TakenDown {
    /// What could not be removed.
    pub(crate) problems: Vec<String>,
    /// Who was building the lab and has ended: its state does not say what it had, but each part has the builder's id.
    pub(crate) builder: Option<Owner>,
}

/// Takes a kept lab down, as far as its state says what it has.
///
/// # Errors
/// There is none of that name, or processes still run in it (unless `force`).
pub(crate) fn take_down(name: &str, force: bool) -> Result<TakenDown> {
    // Before it is read: what is removed is what was looked at.
    let looked_at = identity(&directory(name));
    let kept = read(name)?;
    let builder = kept.builder();
    if let Some(builder) = builder {
        check_has_ended(name, builder)?;
    }
    let parts = kept.parts();
    let daemons: Vec<u32> = parts.iter().flat_map(|part| part.pids()).collect();
    let mut spaces = HashMap::new();
    for space in &kept.spaces {
        let ns = match NetNs::open(&directory(name).join(&space.role)) {
            Ok(ns) => ns,
            // Somebody has unmounted it.
            Err(_) if force => continue,
            Err(error) => return Err(error.into()),
        };
        spaces.insert(format!("net:[{}]", ns.inode()?), &*space.role);
    }
    let mut inside = Vec::new();
    for (pid, role) in processes_in(&spaces) {
        if !daemons.contains(&pid) {
            inside.push(format!("{} ({pid}) in `{role}`", command_name(pid)));
        }
    }
    if !force && !inside.is_empty() {
        return Err(Error::Kept(format!(
            "processes still run in lab `{name}`: {}; end them, or pass --force to take the lab down although they \
             run",
            inside.join(", ")
        )));
    }
    Ok(TakenDown {
        problems: remove(name, looked_at),
        builder,
    })
}

/// An unfinished lab is taken down only if its builder has ended and what it left can be seen from here.
fn check_has_ended(name: &str, builder: Owner) -> Result<()> {
    match builder.life() {
        Life::Gone => Ok(()),
        Life::Lives => Err(Error::Kept(format!(
            "lab `{name}` is being built by another hopyard ({builder}): wait for it, or end that process"
        ))),
        Life::Hidden => Err(Error::Kept(format!(
            "lab `{name}` is unfinished, and its builder ({builder}) is in another PID namespace, whose processes cannot be \
             seen from here: run `hopyard clean` there, or as root outside of all containers"
        ))),
    }
}

/// Removes whatever there is of a kept lab that has this directory, going on past failures. Another one may have got the name
/// meanwhile.
pub(crate) fn remove(name: &str, looked_at: Option<Identity>) -> Vec<String> {
    let home = match set_aside(name, looked_at) {
        Ok(Some(home)) => home,
        // Somebody else was faster.
        Ok(None) => return Vec::new(),
        Err(problem) => return vec![problem],
    };
    let mut parts: Vec<Box<dyn Part>> = vec![Box::new(Directory(home.clone()))];
    for file in namespaces_in(&home) {
        parts.push(Box::new(Mounted(file)));
    }
    // One that was never whole has its parts removed by its builder, by `down` or by `clean`.
    if let Ok(kept) = state_in(&home) {
        parts.extend(kept.parts());
    }
    undo(parts.iter_mut().map(|part| &mut **part))
}

/// Takes the name from a lab's directory, and gives its new path; `None` where there is no such lab. Only then can nobody exchange
/// it, so then it is compared with the one looked at, and gets its name back if it is another.
fn set_aside(
    name: &str,
    looked_at: Option<Identity>,
) -> std::result::Result<Option<PathBuf>, String> {
    let home = draft();
    match fs::rename(directory(name), &home) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(format!(
                "cannot rename the directory of lab `{name}` to remove it: {error}"
            ));
        }
    }
    if looked_at.is_none() || identity(&home) == looked_at {
        return Ok(Some(home));
    }
    match fs::rename(&home, directory(name)) {
        Ok(()) => Err(format!(
            "lab `{name}` was taken down by somebody else and another of that name was built meanwhile, which stays"
        )),
        Err(error) => Err(format!(
            "cannot give lab `{name}`, which was built meanwhile, its name back: {error}; rename {} to {} by hand",
            home.display(),
            directory(name).display()
        )),
    }
}

/// The directory of a kept lab.
#[derive(Debug)]
struct Directory(PathBuf);

impl Part for Directory {
    fn undo(&mut self) -> Undone {
        let mut undone = Undone::default();
        if let Err(error) = owned::remove_tree(&self.0) {
            let problem = format!("cannot remove {}: {error}", self.0.display());
            undone.problems.push(problem);
        }
        // Goes with the last lab; not empty otherwise.
        let _ = owned::remove_directory(Path::new(HOME));
        undone
    }
}

/// The file of a kept namespace.
#[derive(Debug)]
struct Mounted(PathBuf);

impl Part for Mounted {
    /// Pairs go at once; what else is in the namespace follows it in the background.
    fn undo(&mut self) -> Undone {
        let mut undone = delete_pairs(&self.0);
        if let Err(error) = unbind(&self.0) {
            undone.problems.push(crate::chain(&error));
        }
        undone
    }
}

/// The files of a lab's namespaces, containers' first: their pairs have an end in another namespace, which is undone
/// before, and go there in one request.
fn namespaces_in(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| !file.ends_with(STATE));
    let of_container = |file: &PathBuf| {
        let role = file.file_name().and_then(|name| name.to_str());
        role.is_some_and(role::is_container)
    };
    files.sort_by_key(|file| (!of_container(file), file.ends_with(role::HUB)));
    files
}

/// Deletes the pairs that have an end in a namespace, in one request.
fn delete_pairs(file: &Path) -> Undone {
    // What cannot be opened is no namespace any more.
    let Ok(handle) = NetNs::open(file).and_then(|ns| Handle::new(&ns)) else {
        return Undone::default();
    };
    let mut links = handle.links().unwrap_or_default();
    links.retain(|link| matches!(link.kind.as_deref(), Some("veth" | "netkit")));
    let names: Vec<&str> = links.iter().map(|link| &*link.name).collect();
    let what = format!("devices in {}", file.display());
    Undone::of(what, handle.delete_links(&names))
}

/// Processes in these network namespaces (`net:[INODE]`), and the role of the namespace.
fn processes_in<'a>(spaces: &HashMap<String, &'a str>) -> Vec<(u32, &'a str)> {
    processes::with_namespace("net")
        .filter_map(|(pid, space)| Some((pid, *spaces.get(space.to_str()?)?)))
        .collect()
}

fn command_name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm"))
        .map_or_else(|_| "a process".to_owned(), |name| name.trim().to_owned())
}
