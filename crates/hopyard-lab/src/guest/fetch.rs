//! Getting a kernel to boot from the packages of Debian or Ubuntu, without installing it.
//!
//! The host's configuration of apt is read and never changed: lists and packages go to a directory of
//! our own. apt fetches as a user of its own, as it always does; what came is copied, held against the index
//! and unpacked where nobody else may write.

mod apt;

use std::cmp::Ordering;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use apt::Apt;
use hopyard_host::abandoned::{self, YOUNG};
use hopyard_net::{end_with_starter, kill_group};

use super::scratch::{self, Destination, Scratch, writing};
use super::{Error, Kernel, Result};
use crate::signals;

/// Suites of newer kernels for an older release of Debian.
const BACKPORTS: &str = "backports";

/// Fetches a kernel below `into`: the newest for virtual machines, the newest of a series (`6.1`), the newest
/// of `backports`, or a package by its name.
///
/// # Errors
/// apt or dpkg is missing or fails, or there is no such package.
pub fn fetch(wanted: Option<&str>, into: &Path) -> Result<Kernel> {
    let destination = Destination::new(into)?;
    let into = destination.path();
    let _count = remove_abandoned_below(into);
    // First of all: another fetch into this directory that fails meanwhile removes it where it is empty.
    let scratch = Scratch::new(into)?;
    let apt = Apt::new(wanted == Some(BACKPORTS))?;
    apt.get(&["update"])?;
    let package = match wanted {
        Some(name) if name.starts_with("linux-image-") => apt.image_of(name)?,
        None | Some(BACKPORTS) => apt.newest("[0-9]")?,
        // 6.1 is not 6.12.
        Some(series) => apt.newest(&format!("{}[.+-]", series.replace('.', "\\.")))?,
    };
    let release = release_of(&package);
    let unpacked = scratch.path().join("unpacked");
    for part in apt.parts_of(&package, release)? {
        let archive = apt.download(&part, scratch.path())?;
        let mut unpack = Command::new("dpkg");
        unpack.arg("-x").arg(archive).arg(&unpacked);
        run(unpack)?;
    }
    place_image(&unpacked, release).map_err(writing(&unpacked))?;
    if first_with(&unpacked.join("boot"), "vmlinuz").is_none() {
        return Err(failed(
            "dpkg",
            &format!("package {package} contains no kernel"),
        ));
    }
    let directory = into.join(release);
    let before = scratch.path().join("before");
    take_place(&unpacked, &directory, &before).map_err(writing(&directory))?;
    let image = first_with(&directory.join("boot"), "vmlinuz")
        .ok_or_else(|| failed("dpkg", &format!("package {package} contains no kernel")))?;
    Kernel::open(&image, Some(&directory))
}

/// Removes what fetches into the user's cache left that were killed: how many directories.
#[must_use]
pub fn remove_abandoned() -> usize {
    remove_abandoned_below(&home())
}

/// The scratches of a fetch into a directory: there, and of apt.
fn remove_abandoned_below(into: &Path) -> usize {
    let remove = |below: &Path| abandoned::remove(below, scratch::PREFIX, YOUNG);
    remove(into) + remove(&apt::temporary())
}

/// Puts a kernel that its package has among the modules where installing would put it.
fn place_image(unpacked: &Path, release: &str) -> std::io::Result<()> {
    let among = unpacked.join("usr/lib/modules").join(release);
    if !among.join("vmlinuz").is_file() {
        return Ok(());
    }
    let boot = unpacked.join("boot");
    fs::create_dir_all(&boot)?;
    fs::rename(
        among.join("vmlinuz"),
        boot.join(format!("vmlinuz-{release}")),
    )
}

/// Gives a directory its name, in the place of what was fetched before, which is moved aside to `before`: guests may boot from there
/// at any time, and removing a kernel takes a while.
fn take_place(directory: &Path, name: &Path, before: &Path) -> std::io::Result<()> {
    match fs::rename(name, before) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::rename(directory, name).inspect_err(|_| {
        // The error is the one to report.
        let _ = fs::rename(before, name);
    })
}

/// The kernels that were fetched below a directory, the newest first.
#[must_use]
pub fn fetched(into: &Path) -> Vec<PathBuf> {
    let mut images: Vec<PathBuf> = fs::read_dir(into)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| first_with(&entry.path().join("boot"), "vmlinuz"))
        .collect();
    let name = |image: &PathBuf| {
        image
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    images.sort_by(|a, b| by_version(&name(b).unwrap_or_default(), &name(a).unwrap_or_default()));
    images
}

/// Where kernels go by themselves.
#[must_use]
pub fn home() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let own = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    cache
        .or_else(own)
        .unwrap_or_else(|| "/var/cache".into())
        .join("hopyard/kernels")
}

/// The release of the kernel in a package of this name. Packages may say that their kernel is not signed.
fn release_of(package: &str) -> &str {
    let name = package.trim_start_matches("linux-image-");
    name.trim_start_matches("unsigned-")
        .trim_end_matches("-unsigned")
}

/// Numbers in names count as numbers: 6.1.0-9 is older than 6.1.0-56. Those of the last word, the architecture or the flavour, do not.
fn by_version(one: &str, other: &str) -> Ordering {
    let numbers = |name: &str| -> Vec<u64> {
        let (version, _) = name.rsplit_once('-').unwrap_or((name, ""));
        let digits = version.split(|c: char| !c.is_ascii_digit());
        digits.filter_map(|d| d.parse().ok()).collect()
    };
    numbers(one).cmp(&numbers(other))
}

/// Runs a program to its end, or until somebody asks to stop; then it ends at once, with what it started.
fn run(mut command: Command) -> Result<String> {
    const LOOK: Duration = Duration::from_millis(20);
    let program = command.get_program().to_string_lossy().into_owned();
    let cannot = |error: std::io::Error| {
        failed(
            &program,
            &format!("{error}; kernels are fetched as Debian packages, with apt and dpkg"),
        )
    };
    if signals::interrupted() {
        return Err(Error::Interrupted);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::piped()).process_group(0);
    end_with_starter(&mut command);
    let mut child = command.spawn().map_err(cannot)?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let [said, complained] = thread::scope(|scope| {
        let readers = [scope.spawn(|| text(out)), scope.spawn(|| text(err))];
        while readers.iter().any(|reader| !reader.is_finished()) {
            if signals::interrupted() {
                // Nobody has waited for it, so the id is no other process's.
                kill_group(child.id());
            }
            thread::sleep(LOOK);
        }
        readers.map(|reader| reader.join().unwrap_or_default())
    });
    let status = child.wait().map_err(cannot)?;
    if signals::interrupted() {
        return Err(Error::Interrupted);
    }
    if status.success() {
        return Ok(said);
    }
    Err(failed(&program, complained.trim()))
}

/// All that a pipe brings.
fn text(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    // What came before an error is all there is.
    let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn failed(program: &str, why: &str) -> Error {
    Error::Fetch {
        program: program.to_owned(),
        why: why.to_owned(),
    }
}

/// The first file in a directory whose name has a part.
fn first_with(directory: &Path, part: &str) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(directory)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().contains(part))
        })
        .collect();
    found.sort();
    found.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fetched_takes_the_place_of_what_was_there() {
        let home = tempfile::tempdir().unwrap();
        let name = home.path().join("6.1");
        for text in ["first", "second"] {
            let unpacked = home.path().join("unpacked");
            fs::create_dir(&unpacked).unwrap();
            fs::write(unpacked.join("vmlinuz"), text).unwrap();
            let scratch = Scratch::new(home.path()).unwrap();
            take_place(&unpacked, &name, &scratch.path().join("before")).unwrap();
            assert_eq!(fs::read_to_string(name.join("vmlinuz")).unwrap(), text);
        }
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_package_without_a_signature_has_the_same_release() {
        for package in [
            "linux-image-6.8.0-31-generic",
            "linux-image-unsigned-6.8.0-31-generic",
            "linux-image-6.8.0-31-generic-unsigned",
        ] {
            assert_eq!(release_of(package), "6.8.0-31-generic");
        }
    }

    #[test]
    fn versions_are_numbers() {
        let mut names = [
            "linux-image-6.1.0-9-x",
            "linux-image-6.12.74+deb13+1-cloud-amd64",
            "linux-image-6.12.74+deb13-cloud-amd64",
            "linux-image-6.1.0-56-x",
        ];
        names.sort_by(|a, b| by_version(a, b));
        let sorted = [
            "linux-image-6.1.0-9-x",
            "linux-image-6.1.0-56-x",
            "linux-image-6.12.74+deb13-cloud-amd64",
            "linux-image-6.12.74+deb13+1-cloud-amd64",
        ];
        assert_eq!(names, sorted);
    }

    #[test]
    fn the_newest_fetched_comes_first() {
        let home = tempfile::tempdir().unwrap();
        for release in ["6.1.0-9-x", "6.1.0-56-x"] {
            let boot = home.path().join(release).join("boot");
            fs::create_dir_all(&boot).unwrap();
            fs::write(boot.join(format!("vmlinuz-{release}")), "").unwrap();
        }
        let images = fetched(home.path());
        assert_eq!(images.len(), 2);
        assert!(images[0].ends_with("vmlinuz-6.1.0-56-x"), "{images:?}");
    }
}
