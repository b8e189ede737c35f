//! The programs of Open vSwitch on this host, and what they can do here.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hopyard_net::has_genl_family;

use super::{Error, control};
use crate::daemon::shown;
use crate::model::DatapathKind;
use crate::programs::in_path;

/// The oldest release that anybody still maintains (Ubuntu 20.04). Older ones are not tried.
const LEAST: (u32, u32) = (2, 13);
/// Where taps come from.
const TUN: &str = "/dev/net/tun";

/// Where the programs are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Programs {
    pub(super) ovsdb_tool: PathBuf,
    pub(super) ovsdb_server: PathBuf,
    pub(super) vswitchd: PathBuf,
    pub(super) vsctl: PathBuf,
    pub(super) version: String,
}

impl Programs {
    /// Finds them in PATH, all of them new enough.
    pub(super) fn find() -> hopyard_net::Result<Self> {
        let vswitchd = find("ovs-vswitchd")?;
        let version = version(&vswitchd)?;
        Ok(Self {
            ovsdb_tool: find("ovsdb-tool")?,
            ovsdb_server: find("ovsdb-server")?,
            vsctl: find("ovs-vsctl")?,
            vswitchd,
            version,
        })
    }
}

/// Can this host run Open vSwitch with some datapath?
pub(super) fn probe() -> hopyard_net::Result<()> {
    Programs::find()?;
    datapath().map(drop)
}

/// The datapath that this host has: the kernel's where it is to be had. What was found stays so for
/// the process, so that a run does not change from one to the other.
pub(super) fn datapath() -> hopyard_net::Result<DatapathKind> {
    static FOUND: OnceLock<DatapathKind> = OnceLock::new();
    if let Some(kind) = FOUND.get() {
        return Ok(*kind);
    }
    // The kernel loads module `openvswitch` when it is asked for this.
    let kind = if has_genl_family("ovs_datapath")? {
        DatapathKind::Kernel
    } else {
        need_tun()?;
        DatapathKind::Userspace
    };
    Ok(*FOUND.get_or_init(|| kind))
}

fn need_tun() -> hopyard_net::Result<()> {
    let opened = OpenOptions::new().read(true).write(true).open(TUN);
    opened.map(drop).map_err(|error| {
        unsupported(
            "openvswitch",
            format!(
                "load module `openvswitch` for its kernel datapath, or `tun` for the userspace one, \
                 which needs {TUN} ({error})"
            ),
        )
    })
}

fn unsupported(feature: &str, remedy: String) -> hopyard_net::Error {
    hopyard_net::Error::Unsupported {
        what: "run Open vSwitch".to_owned(),
        feature: feature.to_owned(),
        remedy,
    }
}

fn find(name: &str) -> hopyard_net::Result<PathBuf> {
    in_path(name).ok_or_else(|| {
        unsupported(
            name,
            "there is no such program in PATH: install package `openvswitch-switch` (Debian, Ubuntu), \
             or add its directory (/usr/sbin) to PATH"
                .to_owned(),
        )
    })
}

fn version(vswitchd: &Path) -> hopyard_net::Result<String> {
    let unknown = |why: String| {
        unsupported(
            "ovs-vswitchd",
            format!(
                "{} does not print its version ({why}): repair package `openvswitch-switch`",
                vswitchd.display()
            ),
        )
    };
    let mut command = Command::new(vswitchd);
    command.arg("--version");
    let said = control::run("ask for the version", command, &|| None)
        .map_err(|error: Error| unknown(crate::chain(&error)))?;
    let Some((version, number)) = parse_version(&said) else {
        return Err(unknown(format!("it says: {}", shown(&said))));
    };
    if number < LEAST {
        return Err(unsupported(
            &format!("Open vSwitch {}.{}", LEAST.0, LEAST.1),
            format!(
                "{} is version {version}: install a newer package `openvswitch-switch`",
                vswitchd.display()
            ),
        ));
    }
    Ok(version)
}

/// `ovs-vswitchd (Open vSwitch) 3.1.0`: the version, and its first two numbers.
fn parse_version(said: &str) -> Option<(String, (u32, u32))> {
    let (_, rest) = said.lines().next()?.split_once("(Open vSwitch) ")?;
    let version = rest.split_ascii_whitespace().next()?;
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    let number = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some((version.to_owned(), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let of = parse_version;
        let known = ("3.1.0".to_owned(), (3, 1));
        assert_eq!(of("ovs-vswitchd (Open vSwitch) 3.1.0\n"), Some(known));
        let odd = of("ovs-vswitchd (Open vSwitch) 2.17.9-1ubuntu1\nDPDK 21.11\n").unwrap();
        assert_eq!(odd.1, (2, 17));
        for none in ["", "3.1.0", "ovs-vswitchd (Open vSwitch) new"] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
