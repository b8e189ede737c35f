//! Records of attachments: a file each, written before anything is made and removed after everything is gone.
//!
//! Whoever works on an attachment holds the lock on its file. An IPAM plugin inherits the lock: where its caller is killed,
//! the next one waits until it has ended, and knows then all that it reserved.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hopyard_net::owned;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};
use nix::unistd::dup;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Result, failed};
use crate::names::NETAVARK;
use crate::values::parse;

mod files;

use files::{create_in, is_unfinished, remove_abandoned, remove_empty, unfinished, write};

/// Where records are, in a directory for each network. As the reservations of `host-local`, they outlive a boot.
const HOME: &str = "/var/lib/cni/hopyard";
/// The same for podman's networks, whose reservations podman keeps until the next boot.
const NETAVARK_HOME: &str = "/run/hopyard-netavark";
/// Between container and device in the name of a file; neither may have it.
const SEPARATOR: char = ':';

/// What there is to take away of an attachment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The host's end of the container's device.
    pub(crate) device: String,
    /// The switch that has it as a port.
    pub(crate) switch: String,
    /// Does the plugin remove the switch after its last port?
    pub(crate) own_switch: bool,
    /// The inode of the network namespace that ADD ran in. `None`: an earlier version wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) home: Option<u64>,
    /// Did a DEL write it that found none? Then nothing was made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) of_del: bool,
    /// `CNI_ARGS` of ADD.
    pub(crate) args: String,
    /// The configuration of ADD, for the IPAM plugin.
    pub(crate) conf: String,
    /// Has the plugin reserved the addresses, or was it about to, in place of the program `host-local`?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) in_process: bool,
    /// The addresses that the plugin has reserved. None: somebody else has, or nobody knows how far ADD came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reserved: Vec<IpAddr>,
}

impl Entry {
    /// Has the plugin reserved the addresses, or was it about to? Earlier versions wrote the addresses alone.
    pub(crate) fn is_reserved_here(&self) -> bool {
        self.in_process || !self.reserved.is_empty()
    }

    /// The configuration of ADD, with the result that a later call gives, in that one's version; `None`: it cannot be read. It has the keys
    /// by which addresses were given, which the later call may lack: `runtimeConfig`, or those that somebody changed since.
    pub(crate) fn conf_with_result_of(&self, call: &Value) -> Option<Value> {
        let mut conf = parse(self.conf.as_bytes()).ok()?;
        if !call["prevResult"].is_null() {
            for key in ["prevResult", "cniVersion"] {
                conf[key] = call[key].clone();
            }
        }
        Some(conf)
    }
}

/// Whose a record is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) network: String,
    pub(crate) container: String,
    pub(crate) ifname: String,
}

impl Attachment {
    fn directory(&self) -> PathBuf {
        directory(&self.network)
    }

    /// Is there a record? By its name: one that another one takes the place of may be missing in a list of the directory.
    pub(crate) fn is_recorded(&self) -> bool {
        fs::symlink_metadata(self.file()).is_ok()
    }

    fn file(&self) -> PathBuf {
        let name = format!("{}{SEPARATOR}{}", self.container, self.ifname);
        self.directory().join(name)
    }
}

/// The directory of a network.
fn directory(network: &str) -> PathBuf {
    match network.strip_prefix(NETAVARK) {
        Some(name) => Path::new(NETAVARK_HOME).join(name),
        None => resolved(Path::new(HOME)).join(network),
    }
}

/// The same path without symbolic links, as far as it is there: an administrator may have moved `/var/lib` or `/var/lib/cni` to another
/// disk. Who owns what it leads to is checked before anything is made in it.
fn resolved(path: &Path) -> PathBuf {
    path.ancestors()
        .find_map(|above| {
            let below = path.strip_prefix(above).ok()?;
            Some(fs::canonicalize(above).ok()?.join(below))
        })
        .unwrap_or_else(|| path.to_owned())
}

/// A record under its lock, which ends with this value or, where the process is killed, with the plugin that it runs.
pub(crate) struct Record {
    path: PathBuf,
    file: Flock<File>,
    /// `None`: what is there cannot be read.
    pub(crate) entry: Option<Entry>,
}

/// What came of an attempt to write a record.
enum Created {
    Done(Record),
    IsThere,
    Lost,
}

impl Record {
    /// Writes a record, unless there is one. It comes to its name whole and locked.
    pub(crate) fn create(of: &Attachment, entry: &Entry) -> Result<Option<Self>> {
        loop {
            match Self::try_create(of, entry)? {
                Created::Done(record) => return Ok(Some(record)),
                Created::IsThere => return Ok(None),
                // A GC, or the last DEL, took the file, which had no lock yet, for one that was never finished.
                Created::Lost => {}
            }
        }
    }

    fn try_create(of: &Attachment, entry: &Entry) -> Result<Created> {
        let path = of.file();
        let unfinished = unfinished(&of.directory(), &path);
        let file = create_in(&of.directory(), &unfinished)?;
        let written = (|| {
            let file = write(file, &unfinished, entry)?;
            match fs::hard_link(&unfinished, &path).map_err(|error| (error.kind(), error)) {
                Ok(()) => Ok(Created::Done(Self {
                    path: path.clone(),
                    file,
                    entry: Some(entry.clone()),
                })),
                Err((ErrorKind::AlreadyExists, _)) => Ok(Created::IsThere),
                Err((ErrorKind::NotFound, _)) => Ok(Created::Lost),
                Err((_, error)) => Err(failed("make", &path)(error)),
            }
        })();
        match owned::remove_file(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound && written.is_ok() => {
                Err(failed("remove", &unfinished)(error))
            }
            _ => written,
        }
    }

    /// Waits for the record of an attachment; `None`: there is none.
    pub(crate) fn of(attachment: &Attachment) -> Result<Option<Self>> {
        Self::lock(attachment.file(), FlockArg::LockExclusive)
    }

    /// The record of an attachment that nobody works on; `None`: there is none, or somebody does.
    pub(crate) fn idle(attachment: &Attachment) -> Result<Option<Self>> {
        Self::lock(attachment.file(), FlockArg::LockExclusiveNonblock)
    }

    fn lock(path: PathBuf, how: FlockArg) -> Result<Option<Self>> {
        loop {
            let opened = File::options()
                .read(true)
                .write(true)
                .custom_flags(OFlag::O_NOFOLLOW.bits())
                .open(&path);
            let file = match opened {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                opened => opened.map_err(failed("open", &path))?,
            };
            let file = match Flock::lock(file, how) {
                Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
                locked => locked.map_err(|(_, errno)| failed("lock", &path)(errno.into()))?,
            };
            // Whoever held it may have removed it, and another one may stand there now.
            if !stands_at(&file, &path) {
                continue;
            }
            let mut text = Vec::new();
            (&*file)
                .read_to_end(&mut text)
                .map_err(failed("read", &path))?;
            let entry = serde_json::from_slice(&text).ok();
            return Ok(Some(Self { path, file, entry }));
        }
    }

    /// What a record says, without its lock; `None`: there is none that can be read.
    pub(crate) fn peek(attachment: &Attachment) -> Option<Entry> {
        let text = fs::read(attachment.file()).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// The lock, for a program that is to hold it as well, which inherits it.
    pub(crate) fn share(&self) -> Result<OwnedFd> {
        // Unlike what the standard library gives, it is not closed in the program.
        dup(&*self.file).map_err(|errno| failed("share", &self.path)(errno.into()))
    }

    /// The addresses that this process has reserved, as far as is known.
    pub(crate) fn reserved(&self) -> &[IpAddr] {
        let entry = self.entry.as_ref();
        entry
            .map(|entry| entry.reserved.as_slice())
            .unwrap_or_default()
    }

    /// Notes that ADD is done, and the addresses that this process has reserved for it. What is done after a GC has begun is none of
    /// its business.
    pub(crate) fn finish(&mut self, reserved: Vec<IpAddr>) -> Result<()> {
        if !reserved.is_empty() {
            // DEL looks through all reservations where the record does not say, so ADD need not fail for it.
            let _ = self.note(reserved);
        }
        self.file
            .set_modified(SystemTime::now())
            .map_err(failed("write", &self.path))
    }

    /// Puts a record that names the addresses in the place of this one. One that was changed in place could be cut off by a kill.
    fn note(&mut self, reserved: Vec<IpAddr>) -> Result<()> {
        let Some(entry) = &self.entry else {
            return Ok(());
        };
        let entry = Entry {
            reserved,
            ..entry.clone()
        };
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        let unfinished = unfinished(directory, &self.path);
        let file = create_in(directory, &unfinished)?;
        let written = write(file, &unfinished, &entry).and_then(|file| {
            fs::rename(&unfinished, &self.path).map_err(failed("rename", &unfinished))?;
            Ok(file)
        });
        match written {
            // Whoever waits for the lock of the old file sees then that another one stands there.
            Ok(file) => self.file = file,
            Err(error) => {
                let _ = owned::remove_file(&unfinished);
                return Err(error);
            }
        }
        self.entry = Some(entry);
        Ok(())
    }

    /// Was it made or finished since then? A time that is still to come is from before somebody set the clock back.
    pub(crate) fn is_since(&self, then: SystemTime) -> bool {
        let modified = self.file.metadata().and_then(|data| data.modified());
        modified.is_ok_and(|modified| {
            modified + unknown_part(modified) >= then && modified <= SystemTime::now()
        })
    }

    /// Removes the record, and the directories that are empty then.
    pub(crate) fn remove(self) -> Result<()> {
        match owned::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(failed("remove", &self.path)(error));
            }
            _ => {}
        }
        if let Some(network) = self.path.parent() {
            remove_empty(network);
        }
        Ok(())
    }
}

/// By how much a time of a file may be later than it says: some file systems have whole seconds (ext4 with inodes of 128 octets).
pub(crate) fn unknown_part(time: SystemTime) -> Duration {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) if since.subsec_nanos() == 0 => Duration::from_nanos(999_999_999),
        _ => Duration::ZERO,
    }
}

fn stands_at(file: &File, path: &Path) -> bool {
    let identity = |data: fs::Metadata| (data.dev(), data.ino());
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(held), Ok(there)) => identity(held) == identity(there),
        _ => false,
    }
}

/// The attachments of a network that have records. Removes files that were never finished.
pub(crate) fn attachments(network: &str) -> Result<Vec<Attachment>> {
    let directory = directory(network);
    let entries = match fs::read_dir(&directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed("read directory", &directory))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed("read directory", &directory))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_unfinished(&name) {
            remove_abandoned(&entry.path());
        } else if let Some((container, ifname)) = name.split_once(SEPARATOR) {
            found.push(Attachment {
                network: network.to_owned(),
                container: container.to_owned(),
                ifname: ifname.to_owned(),
            });
        }
    }
    // Goes where nothing was in it but what was never finished.
    remove_empty(&directory);
    found.sort_by(|a, b| (&a.container, &a.ifname).cmp(&(&b.container, &b.ifname)));
    Ok(found)
}

/// Those of podman's networks that have records.
pub(crate) fn networks_of_podman() -> Result<Vec<String>> {
    let home = Path::new(NETAVARK_HOME);
    let entries = match fs::read_dir(home) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed("read directory", home))?,
    };
    entries
        .map(|entry| {
            let name = entry.map_err(failed("read directory", home))?.file_name();
            Ok(format!("{NETAVARK}{}", name.to_string_lossy()))
        })
        .collect()
}
