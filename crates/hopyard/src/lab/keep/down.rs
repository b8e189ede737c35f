//! The end of a kept lab.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hopyard_net::{Handle, NetNs, owned, unbind};
use hopyard_switch::Switch;

use super::{HOME, Kept, STATE, directory, draft, read, state_in};
use crate::lab::part::Kind;
use crate::lab::{Error, Result, role};

/// Takes a kept lab down.
///
/// # Errors
/// There is none of that name, processes still run in it (unless `force`), or something could not be
/// removed; everything else is gone then.
pub fn down(name: &str, force: bool) -> Result<()> {
    let kept = read(name)?;
    let homes = kept.homes().into_iter();
    let mut daemons = Vec::new();
    for (home, id) in homes {
        daemons.extend(home.daemons(&id)?);
    }
    let mut spaces = HashMap::new();
    for space in &kept.spaces {
        let ns = NetNs::open(&directory(name).join(&space.role))?;
        spaces.insert(format!("net:[{}]", ns.inode()?), &*space.role);
    }
    let mut inside = Vec::new();
    for (pid, role) in processes_in(&spaces) {
        if !daemons.iter().any(|daemon| daemon.pid() == pid) {
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
    let problems = remove(name);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Error::Kept(problems.join("; ")))
    }
}

/// Removes whatever there is of a kept lab, going on past failures.
pub(in crate::lab) fn remove(name: &str) -> Vec<String> {
    let home = draft();
    match fs::rename(directory(name), &home) {
        Ok(()) => {}
        // Somebody else was faster.
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            return vec![format!(
                "cannot rename the directory of lab `{name}` to remove it: {error}"
            )];
        }
    }
    let mut problems = Vec::new();
    let mut tried = |what: String, outcome: std::result::Result<(), String>| {
        if let Err(why) = outcome {
            problems.push(format!("cannot {what}: {why}"));
        }
    };
    // One that was never whole has its switch removed by its builder, or by `clean`.
    let state = state_in(&home).ok();
    if let Some(switch) = state.as_ref().and_then(|kept| kept.switch.as_ref()) {
        let outcome = Switch::discard(switch).map_err(|e| crate::chain(&e));
        tried(format!("remove switch `{switch}`"), outcome);
    }
    for (switch, id) in state.iter().flat_map(Kept::homes) {
        for problem in switch.left(id).undo().problems {
            tried(format!("remove {}", switch.of), Err(problem));
        }
    }
    for file in namespaces_in(&home) {
        // Pairs go at once; what else is in the namespace follows it in the background.
        if let Err(why) = delete_pairs(&file) {
            tried(
                format!("remove the devices in {}", file.display()),
                Err(why),
            );
        }
        let what = format!("remove {}", file.display());
        tried(what, unbind(&file).map_err(|e| crate::chain(&e)));
    }
    let what = format!("remove {}", home.display());
    tried(what, owned::remove_tree(&home).map_err(|e| e.to_string()));
    // Goes with the last lab; not empty otherwise.
    let _ = owned::remove_directory(Path::new(HOME));
    problems
}

/// The files of a lab's namespaces, containers' last: their pairs have an end in another, and go in one request.
fn namespaces_in(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| !file.ends_with(STATE));
    let of_container = |file: &PathBuf| {
        let role = file.file_name().and_then(|name| name.to_str());
        role.is_some_and(role::is_container)
    };
    files.sort_by_key(|file| (of_container(file), !file.ends_with(role::HUB)));
    files
}

/// Deletes the pairs that have an end in a namespace, in one request.
fn delete_pairs(file: &Path) -> std::result::Result<(), String> {
    // What cannot be opened is no namespace any more.
    let Ok(handle) = NetNs::open(file).and_then(|ns| Handle::new(&ns)) else {
        return Ok(());
    };
    let mut links = handle.links().unwrap_or_default();
    links.retain(|link| matches!(link.kind.as_deref(), Some("veth" | "netkit")));
    let names: Vec<&str> = links.iter().map(|link| &*link.name).collect();
    handle.delete_links(&names).map_err(|e| crate::chain(&e))
}

/// Processes in these network namespaces (`net:[INODE]`), and the role of the namespace.
fn processes_in<'a>(spaces: &HashMap<String, &'a str>) -> Vec<(u32, &'a str)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|pid| {
            let link = fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
            Some((pid, *spaces.get(link.to_str()?)?))
        })
        .collect()
}

fn command_name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm"))
        .map_or_else(|_| "a process".to_owned(), |name| name.trim().to_owned())
}
