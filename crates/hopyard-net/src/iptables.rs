//! Rules of iptables, by the programs `iptables-restore` and `ip6tables-restore`, which work on nf_tables or on the old
//! tables as the host is set up.

use std::io;
use std::os::fd::AsRawFd;

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::error::{Error, Result};
use crate::fed::fed;
use crate::netns::NetNs;

/// IP version of a set of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IptablesFamily {
    /// `iptables-restore`.
    V4,
    /// `ip6tables-restore`.
    V6,
}

impl IptablesFamily {
    fn program(self) -> &'static str {
        match self {
            Self::V4 => "iptables-restore",
            Self::V6 => "ip6tables-restore",
        }
    }
}

/// Loads rules as `iptables-save` prints them, in a namespace: in place of what the tables they name have, or with `keeps`
/// in addition. Each table is loaded as a whole or, on an error, not at all.
///
/// # Errors
/// [`Error::Unsupported`] without the program, [`Error::Program`] with its diagnostics for rules it refuses.
pub fn restore_iptables(
    ns: &NetNs,
    family: IptablesFamily,
    rules: &str,
    keeps: bool,
) -> Result<()> {
    let what = "load iptables rules";
    let program = family.program();
    // All namespaces share one lock, and the tables of a lab are not the host's: its own iptables would wait for them. Other users
    // cannot open this file, so they cannot hold its lock.
    let file = memfd_create("xtables.lock", MFdFlags::MFD_CLOEXEC)
        .map_err(|errno| Error::from_io(what, errno.into()))?;
    let name = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    let lock = [("XTABLES_LOCKFILE", name.as_str())];
    let arguments: &[&str] = if keeps { &["-w", "--noflush"] } else { &["-w"] };
    let output = ns
        .run(|| fed(program, arguments, &lock, rules))?
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::Unsupported {
                what: what.into(),
                feature: program.into(),
                remedy: "install iptables".into(),
            },
            _ => Error::from_io(what, error),
        })?;
    if output.status.success() {
        return Ok(());
    }
    Err(Error::Program {
        what: what.into(),
        program: program.into(),
        output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}
