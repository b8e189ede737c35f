//! Getting a kernel to boot from Debian's packages, without installing it.
//!
//! The host's configuration of apt is read and never changed: lists and packages go to a directory of
//! our own. apt fetches as a user of its own, as it always does; what came is copied, held against the index
//! and unpacked where nobody else may write.

use std::cmp::Ordering;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::OFlag;
use nix::unistd::{User, geteuid};
use sha2::{Digest, Sha256};

use super::scratch::{Destination, Scratch, writing};
use super::{Error, Kernel, Result};
use crate::signals;

/// Suites of newer kernels for an older release.
const BACKPORTS: &str = "backports";
const MIRROR: &str = "http://deb.debian.org/debian";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Where packages arrive, below apt's directories.
const DOWNLOADS: &str = "downloads";
/// A package is never larger, bytes.
const LARGEST: u64 = 1 << 30;

/// Fetches a kernel below `into`: the newest for virtual machines, the newest of a series (`6.1`), the newest
/// of `backports`, or a package by its name.
///
/// # Errors
/// apt or dpkg is missing or fails, or there is no such package.
pub fn fetch(wanted: Option<&str>, into: &Path) -> Result<Kernel> {
    let destination = Destination::new(into)?;
    let into = destination.path();
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
    let archive = apt.download(&package, scratch.path())?;
    let unpacked = scratch.path().join("unpacked");
    let mut unpack = Command::new("dpkg");
    unpack.arg("-x").arg(archive).arg(&unpacked);
    run(unpack)?;
    if first_with(&unpacked.join("boot"), "vmlinuz").is_none() {
        return Err(failed(
            "dpkg",
            &format!("package {package} contains no kernel"),
        ));
    }
    let directory = into.join(package.trim_start_matches("linux-image-"));
    let before = scratch.path().join("before");
    take_place(&unpacked, &directory, &before).map_err(writing(&directory))?;
    let image = first_with(&directory.join("boot"), "vmlinuz")
        .ok_or_else(|| failed("dpkg", &format!("package {package} contains no kernel")))?;
    Kernel::open(&image, Some(&directory))
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
    images.sort_by(|a, b| by_version(&b.to_string_lossy(), &a.to_string_lossy()));
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

/// Whom apt lets fetch, where it runs as root: nothing else is this user's.
const FETCHER: &str = "_apt";

/// apt with directories of its own.
struct Apt {
    home: Scratch,
    options: Vec<String>,
}

impl Apt {
    fn new(backports: bool) -> Result<Self> {
        // Not in the cache of root, which the fetching user may not enter.
        let below = std::env::var_os("TMPDIR").unwrap_or_else(|| "/var/tmp".into());
        let home = Scratch::new(Path::new(&below))?;
        home.let_through()?;
        let mut options = Vec::new();
        let mut set = |key: &str, value: &Path| {
            options.push("-o".to_owned());
            options.push(format!("{key}={}", value.display()));
        };
        set("Dir::State::Lists", &home.path().join("lists"));
        set("Dir::Cache", &home.path().join("cache"));
        if backports {
            let list = home.path().join("sources.list");
            let line = format!(
                "deb [signed-by={KEYRING}] {MIRROR} {}-backports main\n",
                codename()?
            );
            fs::write(&list, line).map_err(writing(&list))?;
            set("Dir::Etc::SourceList", &list);
            set("Dir::Etc::SourceParts", Path::new("/dev/null"));
        }
        for directory in ["lists/partial", "cache/archives/partial", DOWNLOADS] {
            let directory = home.path().join(directory);
            fs::create_dir_all(&directory).map_err(writing(&directory))?;
        }
        let apt = Self { home, options };
        apt.let_fetch()?;
        Ok(apt)
    }

    /// Where apt writes packages is the fetching user's.
    fn let_fetch(&self) -> Result<()> {
        let downloads = self.home.path().join(DOWNLOADS);
        let user = User::from_name(FETCHER).ok().flatten();
        match user.filter(|_| geteuid().is_root()) {
            Some(user) => {
                chown(&downloads, Some(user.uid.as_raw()), None).map_err(writing(&downloads))
            }
            None => Ok(()),
        }
    }

    /// Downloads a package and gives a copy of it in `to`, which is what the index says it is.
    fn download(&self, package: &str, to: &Path) -> Result<PathBuf> {
        let shown = self.run("apt-cache", &["show", "--no-all-versions", package])?;
        let wanted = shown.lines().find_map(|line| line.strip_prefix("SHA256: "));
        let wanted = wanted
            .ok_or_else(|| failed("apt-cache", "apt's index has no SHA256 of the package"))?;
        self.get(&["download", package])?;
        let archive = self.only_archive(package)?;
        // The fetching user may have it open still.
        let copy = to.join("archive.deb");
        let bytes = read_file(&archive).map_err(|source| Error::Read {
            file: archive,
            source,
        })?;
        if in_hex(&Sha256::digest(&bytes)) != wanted.trim() {
            let why = format!(
                "the downloaded {package} does not have the SHA-256 that apt's index states"
            );
            return Err(failed("apt-get", &why));
        }
        fs::write(&copy, bytes).map_err(writing(&copy))?;
        Ok(copy)
    }

    /// The one file that came.
    fn only_archive(&self, package: &str) -> Result<PathBuf> {
        let downloads = self.home.path().join(DOWNLOADS);
        let entries = fs::read_dir(&downloads).map_err(|source| Error::Read {
            file: downloads.clone(),
            source,
        })?;
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        let own = format!("{package}_");
        files.retain(|file| {
            let name = file.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(&own) && name.ends_with(".deb"))
        });
        match &mut files[..] {
            [file] => Ok(std::mem::take(file)),
            files => {
                let why = format!(
                    "expected one downloaded file of package {package}, found {}",
                    files.len()
                );
                Err(failed("apt-get", &why))
            }
        }
    }

    fn get(&self, words: &[&str]) -> Result<String> {
        self.run("apt-get", &[&["-qq"], words].concat())
    }

    fn run(&self, program: &str, words: &[&str]) -> Result<String> {
        let mut command = Command::new(program);
        command.args(&self.options).args(words);
        command.current_dir(self.home.path().join(DOWNLOADS));
        command.env("LC_ALL", "C");
        run(command)
    }

    /// The newest image for virtual machines whose version begins so.
    fn newest(&self, version: &str) -> Result<String> {
        let pattern = format!("^linux-image-{version}.*-cloud-{}$", debian_architecture());
        let found = self.run("apt-cache", &["search", "--names-only", &pattern])?;
        let names = found.lines().filter_map(|line| line.split(' ').next());
        // A series alone (linux-image-6.12-cloud-amd64) only points at an image.
        let images = names.filter(|name| {
            name.split('-')
                .nth(2)
                .is_some_and(|v| v.matches('.').count() > 1)
        });
        images
            .max_by(|a, b| by_version(a, b))
            .map(str::to_owned)
            .ok_or_else(|| {
                failed(
                    "apt-cache",
                    &format!("no package matches {pattern}; name a series or a package that `apt-cache search \
                    linux-image` lists, or `{BACKPORTS}`"),
                )
            })
    }

    /// What a package that holds no image itself points at.
    fn image_of(&self, package: &str) -> Result<String> {
        let said = self.run("apt-cache", &["depends", "--important", package])?;
        let target = said
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Depends: "))
            .find(|name| name.starts_with("linux-image-"));
        Ok(target.unwrap_or(package).to_owned())
    }
}

/// Numbers in names count as numbers: 6.1.0-9 is older than 6.1.0-56.
fn by_version(one: &str, other: &str) -> Ordering {
    let numbers = |name: &str| -> Vec<u64> {
        let digits = name.split(|c: char| !c.is_ascii_digit());
        digits.filter_map(|d| d.parse().ok()).collect()
    };
    numbers(one).cmp(&numbers(other))
}

fn debian_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn codename() -> Result<String> {
    const RELEASE: &str = "/etc/os-release";
    let text = fs::read_to_string(RELEASE).map_err(|source| Error::Read {
        file: RELEASE.into(),
        source,
    })?;
    text.lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .map(|name| name.trim_matches('"').to_owned())
        .ok_or_else(|| {
            failed(
                RELEASE,
                "it has no VERSION_CODENAME, so the name of the backports suite is unknown",
            )
        })
}

fn run(mut command: Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    if signals::interrupted() {
        return Err(Error::Interrupted);
    }
    let output = command.output().map_err(|error| {
        failed(
            &program,
            &format!("{error}; kernels are fetched as Debian packages, with apt and dpkg"),
        )
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    // Ctrl-C ends what runs in the terminal too.
    if signals::interrupted() {
        return Err(Error::Interrupted);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(&program, said.trim()))
}

fn failed(program: &str, why: &str) -> Error {
    Error::Fetch {
        program: program.to_owned(),
        why: why.to_owned(),
    }
}

/// Reads a file, never what a link leads to.
fn read_file(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut options = fs::File::options();
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let opened = options.read(true).custom_flags(flags.bits()).open(file)?;
    opened.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn in_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
    fn versions_are_numbers() {
        let mut names = [
            "linux-image-6.1.0-9-x",
            "linux-image-6.12.1-x",
            "linux-image-6.1.0-56-x",
        ];
        names.sort_by(|a, b| by_version(a, b));
        let sorted = [
            "linux-image-6.1.0-9-x",
            "linux-image-6.1.0-56-x",
            "linux-image-6.12.1-x",
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
