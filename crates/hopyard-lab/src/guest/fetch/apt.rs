//! apt with directories of its own, which leaves the host's lists and packages alone.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::OFlag;
use nix::unistd::{User, geteuid};
use sha2::{Digest, Sha256};

use super::super::scratch::{Scratch, writing};
use super::super::{Error, Result};
use super::{BACKPORTS, by_version, failed, run};
use crate::units::hex;

const MIRROR: &str = "http://deb.debian.org/debian";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Packages that an image may need beside itself: modules (Ubuntu), and from 7.0 on the kernel and its settings too (Debian).
const PARTS: [&str; 3] = ["base", "binary", "modules"];

/// Where packages arrive, below apt's directories.
const DOWNLOADS: &str = "downloads";
/// A package is never larger, bytes.
const LARGEST: u64 = 1 << 30;

/// Whom apt lets fetch, where it runs as root: nothing else is this user's.
const FETCHER: &str = "_apt";

pub(super) struct Apt {
    home: Scratch,
    options: Vec<String>,
}

impl Apt {
    pub(super) fn new(backports: bool) -> Result<Self> {
        let home = Scratch::new(&temporary())?;
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
    pub(super) fn download(&self, package: &str, to: &Path) -> Result<PathBuf> {
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
        if hex(&Sha256::digest(&bytes)) != wanted.trim() {
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

    pub(super) fn get(&self, words: &[&str]) -> Result<String> {
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
    pub(super) fn newest(&self, version: &str) -> Result<String> {
        // Debian packs kernels for virtual machines apart. Ubuntu's `generic` boots in one.
        let architecture = debian_architecture();
        let pattern = format!("^linux-image-{version}.*-(cloud-{architecture}|generic)$");
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
    pub(super) fn image_of(&self, package: &str) -> Result<String> {
        let needed = self.needed_by(package)?;
        let target = needed.into_iter().find(|n| n.starts_with("linux-image-"));
        Ok(target.unwrap_or_else(|| package.to_owned()))
    }

    /// The packages that are the image of a release together: its own, and those of its [`PARTS`] that this needs.
    pub(super) fn parts_of(&self, image: &str, release: &str) -> Result<Vec<String>> {
        let needed = self.needed_by(image)?;
        let is_part = |name: &&String| {
            PARTS.iter().any(|part| {
                let rest = name.strip_prefix(&format!("linux-{part}-"));
                rest.is_some_and(|rest| rest.trim_start_matches("unsigned-") == release)
            })
        };
        let own = needed.iter().filter(is_part).cloned();
        Ok([image.to_owned()].into_iter().chain(own).collect())
    }

    fn needed_by(&self, package: &str) -> Result<Vec<String>> {
        let said = self.run("apt-cache", &["depends", "--important", package])?;
        let needed = said
            .lines()
            // Alternatives begin with a bar.
            .filter_map(|line| {
                line.trim()
                    .trim_start_matches('|')
                    .strip_prefix("Depends: ")
            });
        Ok(needed.map(str::to_owned).collect())
    }
}

/// Where apt's directories go: not to the cache of root, which the fetching user may not enter.
pub(super) fn temporary() -> PathBuf {
    let named = std::env::var_os("TMPDIR");
    named.unwrap_or_else(|| "/var/tmp".into()).into()
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
    let value = |key: &str| {
        let given = text.lines().find_map(|line| line.strip_prefix(key));
        given.map(|value| value.trim_matches('"').to_owned())
    };
    if value("ID=").as_deref() != Some("debian") {
        let why = "only Debian has `backports`; name a series or a package";
        return Err(failed(RELEASE, why));
    }
    value("VERSION_CODENAME=").ok_or_else(|| {
        failed(
            RELEASE,
            "it has no VERSION_CODENAME, so the name of the backports suite is unknown",
        )
    })
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
