//! ND11: a guest's definition that names its physical device is all there is, and a small script for each interface does the rest.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hopyard_switch::{Mac, Switch};

use super::site::{FAR, Site, guest, mac, reaches, v4};
use super::untouched::configuration;
use super::{Error, FunctionalCheck, Result};
use hopyard_host::programs;

/// The script, as it comes along for libvirt and Xen.
const SCRIPT: &str = include_str!("../../../../contrib/libvirt/hopyard-guest");

/// What libvirt has of a guest: its device, and the physical one that it maps to.
fn definition(device: &str, mac: [u8; 6], pdev: &str) -> String {
    let mac = Mac(mac);
    format!(
        "<domain type='qemu'><name>guest</name>\
         <metadata><h:guest xmlns:h='urn:hopyard:guest:1'><h:port pdev='{pdev}'/></h:guest></metadata>\
         <devices><interface type='ethernet'><mac address='{mac}'/><target dev='{device}' managed='no'/></interface>\
         </devices></domain>"
    )
}

/// A directory with this program in it by its name, which the script looks for.
struct Programs(PathBuf);

impl Programs {
    fn new() -> Result<Self> {
        let failed = |source| Error::Socket {
            what: "make a directory for the script of a guest",
            source,
        };
        let own = std::env::current_exe().map_err(failed)?;
        let at = std::env::temp_dir().join(format!("hopyard-script-{}", std::process::id()));
        std::fs::create_dir(&at).map_err(failed)?;
        let made = Self(at);
        symlink(own, made.0.join("hopyard")).map_err(failed)?;
        Ok(made)
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        // One that is gone already is no trouble.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The switch that the script makes; it goes with this, if the script did not remove it.
struct Made(String);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = Switch::discard(&self.0);
    }
}

/// Calls the script as libvirt does when something happens to a guest, in the host's namespace.
fn call(
    site: &Site,
    python: &Path,
    programs: &Programs,
    operation: &str,
    text: &str,
) -> Result<()> {
    let failed = |source| Error::Socket {
        what: "run the script of a guest",
        source,
    };
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", programs.0.display());
    let said = site.hub.ns().run(|| {
        let mut child = Command::new(python)
            .args(["-c", SCRIPT, "guest", operation, "begin", "-"])
            .env("PATH", path)
            .env_remove("XENBUS_PATH")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        // One that ends before it has read this says why.
        let written = child
            .stdin
            .take()
            .map(|mut input| input.write_all(text.as_bytes()));
        let said = child.wait_with_output()?;
        match written {
            Some(Err(error)) if error.kind() != ErrorKind::BrokenPipe => Err(error),
            _ => Ok(said),
        }
    })?;
    let said = said.map_err(failed)?;
    if said.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&said.stderr).trim().to_owned();
    Err(Error::Lacking(format!(
        "the script of a guest ended with {}: {why}",
        said.status
    )))
}

/// Nothing is configured until the first guest, whose definition is all that is said; nothing is left after it.
pub(super) fn nothing_before_the_first_guest() -> Result<FunctionalCheck> {
    let python = programs::in_path("python3").ok_or_else(|| {
        Error::Lacking(
            "python3, which runs the script that binds a guest by its definition (contrib/libvirt/hopyard-guest)"
                .to_owned(),
        )
    })?;
    // The script finds switches by their uplink, whose name is nobody else's therefore.
    let prefix = format!("u{:x}n", std::process::id());
    let mut site = Site::with_uplinks(&prefix, 1, 0)?;
    let uplink = site.sides[0].uplink.clone();
    let made = Made(format!("cni-dev-{uplink}"));
    let programs = Programs::new()?;
    // What an administrator sets of a device; that the switch listens to all frames is its own affair.
    let set = |site: &Site| -> Result<_> {
        let link = site.hub.link(&uplink)?;
        let own = (link.up, link.mac, link.mtu, link.master);
        Ok((configuration(site)?, own))
    };
    let stands = || -> Result<bool> { Ok(Switch::names()?.contains(&made.0)) };
    site.add_guest(0)?;
    let (before, was_there) = (set(&site)?, stands()?);
    let text = definition(&site.sides[0].port(0), mac(0, guest(0)), &uplink);
    call(&site, &python, &programs, "start", &text)?;
    let own = &site.sides[0];
    let works = reaches(&own.guests[0], &own.far, v4(0, FAR))?;
    let same = set(&site)? == before;
    call(&site, &python, &programs, "stopped", &text)?;
    let left = stands()? || set(&site)? != before;
    let kept = if same { "as it was" } else { "changed" };
    let does = if works { "reaches" } else { "does not reach" };
    let leaves = if left { "something" } else { "nothing" };
    Ok(FunctionalCheck {
        passed: works && same && !was_there && !left,
        seen: format!(
            "on a bare host the first guest {does} the wire by its definition alone, which names its `pdev` (one script for each interface, as libvirt and Xen call it); the host's own configuration is {kept}, and {leaves} is left when the guest is gone"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_names_device_and_pdev() {
        let text = definition("p0-0", [2, 0, 0, 0, 0, 10], "eth3");
        for words in [
            "pdev='eth3'",
            "address='02:00:00:00:00:0a'",
            "dev='p0-0' managed='no'",
        ] {
            assert!(text.contains(words), "{text}");
        }
        assert!(SCRIPT.contains("urn:hopyard:guest:1"));
    }
}
