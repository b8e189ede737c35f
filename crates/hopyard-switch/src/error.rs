//! The one error type of the crate.

use std::io;
use std::path::{Path, PathBuf};

/// What went wrong. The text never contains the text of its [`source`](std::error::Error::source).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request cannot be met; found before anything was changed.
    #[error("cannot {what}: {why}")]
    Invalid {
        /// Operation and object.
        what: String,
        /// What is in the way, and the way out.
        why: String,
    },
    /// The calling thread is not in the network namespace of the switch.
    #[error(
        "cannot {what}: the switch is in another network namespace (net:[{home}]; this is net:[{here}])"
    )]
    OtherNamespace {
        /// Operation and object.
        what: String,
        /// The inode of the switch's namespace.
        home: u64,
        /// The inode of the calling thread's.
        here: u64,
    },
    /// There is a switch of that name.
    #[error("cannot create switch `{name}`: there is one of that name")]
    Exists {
        /// The name asked for.
        name: String,
    },
    /// A switch of another version, whose maps this one does not understand.
    #[error("cannot use the switch `{name}`: its maps have {}, this program writes layout {own}", .found.map_or_else(|| "an unknown layout".to_owned(), |n| format!("layout {n}")))]
    OtherLayout {
        /// Name of the switch.
        name: String,
        /// Number of its layout, if it is known.
        found: Option<u32>,
        /// Number of the layout of this version.
        own: u32,
    },
    /// Something of others would come before the switch's program, which was not asked for ([`NewSwitch::behind_others`](crate::NewSwitch::behind_others)).
    #[error(
        "cannot {what}: {other} comes before it, and what that passes, drops or redirects itself never reaches the switch"
    )]
    NotFirst {
        /// Operation and object.
        what: String,
        /// What comes before it.
        other: String,
    },
    /// The address of the guest behind a port is to be given: it cannot be read.
    #[error("cannot {what}: the guest's Ethernet address cannot be read from `{device}`")]
    NoGuestMac {
        /// Operation and object.
        what: String,
        /// The device of the port.
        device: String,
    },
    /// Other addresses of the host were given ([`NewSwitch::host_macs`](crate::NewSwitch::host_macs)), and no uplink to have them.
    #[error("cannot {what}: other addresses of the host take an uplink")]
    HostMacsWithoutUplink {
        /// Operation and object.
        what: String,
    },
    /// Sockets that the shortcut joins would lack something that was not accepted
    /// ([`NewShortcut::accept`](crate::NewShortcut::accept)).
    #[error("cannot {what}: on this kernel joined sockets lack something: {why}")]
    ShortcutLacks {
        /// Operation and object.
        what: String,
        /// What they lack, in words.
        why: String,
        /// The names of it, with commas between.
        lost: String,
    },
    /// The device is no port of the switch.
    #[error("cannot {what}: it is none of its ports; the switch has {}", ports_text(.ports))]
    NotAPort {
        /// Operation and object.
        what: String,
        /// Name of the switch.
        name: String,
        /// The ports it has.
        ports: Vec<String>,
    },
    /// There is no switch of that name.
    #[error("there is no switch `{name}`; {}", if .there.is_empty() { "there are none".to_owned() } else { format!("there are: {}", .there.join(", ")) })]
    NoSwitch {
        /// The name asked for.
        name: String,
        /// The switches there are.
        there: Vec<String>,
    },
    /// Since the value that stands for the switch was made, somebody deleted it and made one of that name.
    #[error(
        "cannot use switch `{name}`: somebody deleted it and made it anew meanwhile: do it again"
    )]
    MadeAnew {
        /// Name of the switch.
        name: String,
    },
    /// Reading or changing devices.
    #[error(transparent)]
    Net(#[from] hopyard_net::Error),
    /// The kernel refused a program, a map or a link.
    #[error("cannot {what}")]
    Bpf {
        /// Operation and object.
        what: String,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file of the state, below the BPF file system.
    #[error("cannot {what} {}", path.display())]
    File {
        /// The operation.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

/// [`Error::NotAPort`] counts more ports than this, and names as many.
pub const PORTS_NAMED: usize = 20;

fn ports_text(ports: &[String]) -> String {
    match ports.len() {
        0 => "no ports".to_owned(),
        1..=PORTS_NAMED => ports.join(", "),
        n => format!("{n} ports"),
    }
}

impl Error {
    pub(crate) fn invalid(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Invalid {
            what: what.into(),
            why: why.into(),
        }
    }

    /// Makes an error of the kernel's answer to a BPF call about `what`.
    pub(crate) fn bpf<E>(what: impl Into<String>) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let what = what.into();
        move |source| Self::Bpf {
            what,
            source: source.into(),
        }
    }

    /// Is it the caller's request that has to change (rather than the host or this program)?
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Invalid { .. }
            | Self::OtherNamespace { .. }
            | Self::Exists { .. }
            | Self::OtherLayout { .. }
            | Self::NotFirst { .. }
            | Self::NoGuestMac { .. }
            | Self::HostMacsWithoutUplink { .. }
            | Self::ShortcutLacks { .. }
            | Self::NotAPort { .. }
            | Self::NoSwitch { .. }
            | Self::MadeAnew { .. } => true,
            Self::Net(error) => error.is_usage(),
            Self::Bpf { .. } | Self::File { .. } => false,
        }
    }
}

/// Result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this operation on this file.
pub(crate) fn file_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { what, path, source }
}

/// The outcome of removing an entry of a map, which may be gone already: the kernel removes those of a device that goes, and somebody may
/// have been interrupted before. aya tells so by the error of the system call.
pub(crate) fn unless_gone(
    removed: std::result::Result<(), aya::maps::MapError>,
) -> std::result::Result<(), aya::maps::MapError> {
    match removed {
        Err(aya::maps::MapError::KeyNotFound) => Ok(()),
        Err(aya::maps::MapError::SyscallError(call))
            if call.io_error.raw_os_error() == Some(nix::libc::ENOENT) =>
        {
            Ok(())
        }
        removed => removed,
    }
}
