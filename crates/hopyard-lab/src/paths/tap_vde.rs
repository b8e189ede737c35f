//! `tap-vde`: taps joined by vde_switch, the userspace switch that others are held against, as `tap-mq` is by our own.

use std::fs::File;
use std::path::Path as FilePath;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::{Carried, Need, Path};
use crate::daemon::{Error as DaemonError, Home, PATIENCE, Program, Ready};

use crate::model::{Datapath, DatapathKind, Hop, OffloadFlag, Peer};
use crate::programs::in_path;
use crate::tap::probe_taps;
use crate::topology::{host, role};
use crate::{Builder, Error, Result, Subnet, Topology};

/// The endpoints' devices; both are made in one namespace, so their names differ.
const TAP_A: &str = "vde-a";
const TAP_B: &str = "vde-b";

const SWITCH: Program = Program {
    name: "vde_switch",
    called: "vde_switch",
    remedy: "repair package `vde2`",
};
/// Where its directories are.
pub(crate) static HOME: Home = Home::new(SWITCH.name, "/run/hopyard-vde", &[SWITCH.name]);
/// vde_switch, and taps for it.
const NEED: Need = Need {
    carried: Carried {
        programs: &[SWITCH.name],
        ..Carried::modules(&["tun"])
    },
    ..Need::new("vde_switch", |_| probe())
};
/// Its buffers hold frames of Ethernet's own size.
const MOST_MTU: u32 = 1500;

/// Can this host run vde_switch on taps?
fn probe() -> hopyard_net::Result<()> {
    probe_taps()?;
    in_path(SWITCH.name).map(drop).ok_or_else(|| {
        unsupported(
            "run vde_switch",
            SWITCH.name,
            "there is no such program in PATH: install package `vde2` (Debian, Ubuntu)",
        )
    })
}

fn unsupported(what: &str, feature: &str, remedy: &str) -> hopyard_net::Error {
    hopyard_net::Error::Unsupported {
        what: what.to_owned(),
        feature: feature.to_owned(),
        remedy: remedy.to_owned(),
    }
}

pub(super) static TAP_VDE: Path = Path {
    name: "tap-vde",
    summary: "taps joined by vde_switch in user space",
    peers: &[Peer::Local],
    needs: &[NEED],
    mtu_owner: "each tap, 1500 at most",
    learns: true,
    ..Path::new(build)
};

fn build(lab: &mut Builder, _: Peer) -> Result<Topology> {
    lab.vde_switch(&[(role::A, TAP_A), (role::B, TAP_B)])?;
    let client = lab.endpoint(role::A, TAP_A, Subnet::LAN.host(host::A))?;
    let server = lab.endpoint(role::B, TAP_B, Subnet::LAN.host(host::B))?;
    let way = vec![Hop::tx(role::A, TAP_A), Hop::rx(role::B, TAP_B)];
    Ok(Topology::pair(client, server, way))
}

impl Builder {
    /// vde_switch in the hub, with a tap of each name moved to each namespace, up and with the lab's MTU.
    fn vde_switch(&mut self, taps: &[(&'static str, &'static str)]) -> Result<()> {
        if self.mtu() > MOST_MTU {
            return Err(Error::Net(unsupported(
                &format!("carry an MTU of {}", self.mtu()),
                "frames above 1518 bytes in vde_switch",
                "set `mtu` to 1500 or less, or choose path `tap-mq`",
            )));
        }
        let datapath = Datapath {
            switch: SWITCH.name.to_owned(),
            version: String::new(),
            kind: DatapathKind::Userspace,
            hook: None,
        };
        let service = self.service(&HOME, datapath)?;
        let home = service.directory();
        let mut switch = Command::new(SWITCH.name);
        switch
            .stdin(silence(&home)?)
            .arg("--sock")
            .arg(home.join("vde"));
        for (_, name) in taps {
            switch.args(["--tap", name]);
        }
        let socket = home.join("vde").join("ctl");
        service.start(&SWITCH, switch, Some(Ready::Socket(socket)))?;
        taps.iter()
            .try_for_each(|(role, name)| self.move_tap(role, name))
    }

    fn move_tap(&mut self, role: &'static str, name: &'static str) -> Result<()> {
        let target = self.space(role)?.ns().try_clone()?;
        let hub = self.space(role::HUB)?;
        let deadline = Instant::now() + PATIENCE;
        while hub.link(name).is_err() && Instant::now() < deadline {
            thread::sleep(Duration::from_micros(500));
        }
        hub.move_to(name, &target)?;
        let mtu = self.mtu();
        let inside = self.space(role)?;
        inside.set_mtu(name, mtu)?;
        inside.set_up(name)?;
        self.note_device(role, name);
        // It opens taps without offloads, so they never come into effect.
        self.fix_off(role, name, &[OffloadFlag::TxChecksum, OffloadFlag::Tso]);
        Ok(())
    }
}

/// A standard input that says nothing and never ends: at its end vde_switch ends too. Opened both ways, it is its
/// own other end.
fn silence(home: &FilePath) -> std::result::Result<Stdio, DaemonError> {
    let file = home.join("stdin");
    mkfifo(&file, Mode::S_IRUSR | Mode::S_IWUSR)
        .map_err(std::io::Error::from)
        .and_then(|()| File::options().read(true).write(true).open(&file))
        .map(Stdio::from)
        .map_err(|source| DaemonError::Home {
            what: format!("make pipe {}", file.display()),
            source,
        })
}
