//! The store of `host-local`: a directory for each network, in it a file for each address that is reserved, with the address as its
//! name and its owner as its text. `last_reserved_ip.N` has the address that range set N gave last. Whoever changes anything holds
//! the lock (`flock(2)`) of the file `lock`. Nothing is synced to the disk, as by the reference program.

use std::fmt;
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

use crate::call::{check_container, check_ifname};
use crate::error::{Error, Result, failed};

const LOCK: &str = "lock";
/// Before the number of a range set.
const LAST: &str = "last_reserved_ip.";
/// A reservation before it has its address for a name. One at a time: it is made under the lock.
const NEW: &str = ".hopyard-new";
/// Between container and device in a reservation.
const BREAK: &str = "\r\n";
const FILE_MODE: u32 = 0o600;

/// Whose a reservation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    container: String,
    /// `None`: versions before 0.8 wrote the container alone.
    ifname: Option<String>,
}

impl Owner {
    pub(super) fn new(container: &str, ifname: &str) -> Self {
        Self {
            container: container.to_owned(),
            ifname: Some(ifname.to_owned()),
        }
    }

    fn read(text: &str) -> Self {
        let text = text.trim();
        match text.split_once(BREAK) {
            Some((container, ifname)) => Self::new(container, ifname),
            None => Self {
                container: text.to_owned(),
                ifname: None,
            },
        }
    }

    fn text(&self) -> String {
        match &self.ifname {
            Some(ifname) => format!("{}{BREAK}{ifname}", self.container),
            None => self.container.clone(),
        }
    }

    /// As a version before 0.8 wrote it.
    fn without_device(&self) -> Self {
        Self {
            container: self.container.clone(),
            ifname: None,
        }
    }

    /// Container and device; `None`: it does not name both.
    pub(super) fn attachment(&self) -> Option<(&str, &str)> {
        let (container, ifname) = (self.container.as_str(), self.ifname.as_deref()?);
        (check_container(container).is_ok() && check_ifname(ifname).is_ok())
            .then_some((container, ifname))
    }

    /// Is it the same, or does it name the container alone?
    pub(super) fn is_of(&self, owner: &Self) -> bool {
        self == owner || *self == owner.without_device()
    }

    /// The text was empty.
    fn is_nobody(&self) -> bool {
        self.container.is_empty() && self.ifname.is_none()
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "container `{}`", self.container)?;
        match &self.ifname {
            Some(ifname) => write!(f, ", `{ifname}`"),
            None => Ok(()),
        }
    }
}

/// The reservations of a network, under their lock.
#[derive(Debug)]
pub(super) struct Store {
    directory: PathBuf,
    _lock: Flock<File>,
}

impl Store {
    /// Waits for the lock. Makes the directory where there is none; it may be reached by symbolic links, as it may for the reference
    /// program.
    pub(super) fn make(directory: PathBuf) -> Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(&directory)
            .map_err(failed("make directory", &directory))?;
        Self::lock(directory)
    }

    /// The same where there is a directory; `None`: nothing was ever reserved.
    pub(super) fn open(directory: PathBuf) -> Result<Option<Self>> {
        match fs::metadata(&directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found.map_err(failed("look at", &directory))?,
        };
        Self::lock(directory).map(Some)
    }

    fn lock(directory: PathBuf) -> Result<Self> {
        let path = directory.join(LOCK);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(&path)
            .map_err(failed("open", &path))?;
        let lock = Flock::lock(file, FlockArg::LockExclusive)
            .map_err(|(_, errno)| failed("lock", &path)(errno.into()))?;
        Ok(Self {
            directory,
            _lock: lock,
        })
    }

    /// The file of an address.
    pub(super) fn file(&self, ip: IpAddr) -> PathBuf {
        self.directory.join(ip.to_string())
    }

    /// Reserves the first address that is free; `None`: none is.
    pub(super) fn reserve(
        &self,
        owner: &Owner,
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> Result<Option<IpAddr>> {
        // Whole before it comes to its name: the reference program leaves an empty file where it is killed in between, which is
        // nobody's and is never removed.
        let new = self.directory.join(NEW);
        self.remove([new.clone()])?;
        write(File::options().create_new(true), &new, &owner.text())?;
        let mut reserved = Ok(None);
        for ip in addresses {
            let file = self.file(ip);
            match fs::hard_link(&new, &file) {
                Ok(()) => {
                    reserved = Ok(Some(ip));
                    break;
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => {
                    reserved = Err(failed("make", &file)(error));
                    break;
                }
            }
        }
        // Where it stays, the next ADD removes it, or the DEL of its owner.
        let _ = fs::remove_file(&new);
        reserved
    }

    /// The address that a range set gave last. `None` also where nobody can read it: the order begins anew then.
    pub(super) fn last(&self, set: usize) -> Option<IpAddr> {
        let text = fs::read_to_string(self.last_file(set)).ok()?;
        let ip: IpAddr = text.trim().parse().ok()?;
        Some(ip.to_canonical())
    }

    pub(super) fn note_last(&self, set: usize, ip: IpAddr) -> Result<()> {
        let mut options = File::options();
        options.create(true).truncate(true);
        write(&mut options, &self.last_file(set), &ip.to_string())
    }

    fn last_file(&self, set: usize) -> PathBuf {
        self.directory.join(format!("{LAST}{set}"))
    }

    /// Who has an address; `None`: nobody.
    pub(super) fn owner(&self, ip: IpAddr) -> Result<Option<Owner>> {
        read(&self.file(ip))
    }

    /// Is the file that of an address, or to become that?
    pub(super) fn is_of_address(file: &Path) -> bool {
        let name = file.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name == NEW || name.parse::<IpAddr>().is_ok())
    }

    pub(super) fn reservations(&self) -> Result<Vec<(PathBuf, Owner)>> {
        let unread = || failed("read directory", &self.directory);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(unread())? {
            let entry = entry.map_err(unread())?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // To read a pipe that somebody has put there would wait for ever.
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            if !is_file || name == LOCK || name.starts_with(LAST) {
                continue;
            }
            if let Some(owner) = read(&entry.path())? {
                found.push((entry.path(), owner));
            }
        }
        Ok(found)
    }

    /// The files that name the owner. As for the reference program, those that name the container alone count where there are no
    /// others.
    pub(super) fn files_of(&self, owner: &Owner) -> Result<Vec<PathBuf>> {
        let all = self.reservations()?;
        let of = |wanted: &Owner| -> Vec<PathBuf> {
            let found = all.iter().filter(|(_, owner)| owner == wanted);
            found.map(|(file, _)| file.clone()).collect()
        };
        let own = of(owner);
        if own.is_empty() {
            return Ok(of(&owner.without_device()));
        }
        Ok(own)
    }

    /// Frees the `known` addresses of the owner; all that it has if none is known. A known one whose file is empty is the owner's too: its
    /// text was not on the disk yet when the power failed.
    pub(super) fn release(&self, owner: &Owner, known: &[IpAddr]) -> Result<()> {
        if known.is_empty() {
            return self.remove(self.files_of(owner)?);
        }
        let mut own = Vec::new();
        for ip in known {
            let found = self.owner(*ip)?;
            if found.is_some_and(|found| found.is_of(owner) || found.is_nobody()) {
                own.push(self.file(*ip));
            }
        }
        self.remove(own)
    }

    /// Removes files that may be gone already. Goes on after errors.
    pub(super) fn remove(&self, files: impl IntoIterator<Item = PathBuf>) -> Result<()> {
        let mut problems = Vec::new();
        for file in files {
            match fs::remove_file(&file) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    problems.push(failed("remove", &file)(error));
                }
                _ => {}
            }
        }
        Error::all(problems).map_or(Ok(()), Err)
    }
}

/// `None`: a directory, or nothing by now.
fn read(file: &Path) -> Result<Option<Owner>> {
    match fs::read(file) {
        Ok(text) => Ok(Some(Owner::read(&String::from_utf8_lossy(&text)))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory) => {
            Ok(None)
        }
        Err(error) => Err(failed("read", file)(error)),
    }
}

fn write(options: &mut fs::OpenOptions, path: &Path, text: &str) -> Result<()> {
    options
        .write(true)
        .mode(FILE_MODE)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(failed("write", path))
}

#[cfg(test)]
mod tests;
