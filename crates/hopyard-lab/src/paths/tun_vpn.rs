//! `tun-vpn`: a tunnel program on tuns with many queues: boringtun, which is WireGuard in user space. A thread for each queue reads
//! packets from its tun, encrypts them and sends them by UDP, and the other way round.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::{NetNs, inherit};

use super::tunnel::{End, ends, underlay, way};
use super::{Need, Path};
use crate::daemon::{Error as DaemonError, Home, PATIENCE, Program, Service};
use crate::model::{Datapath, DatapathKind, OffloadFlag, Peer};
use crate::part::Part;
use crate::programs::in_path;
use crate::random::key;
use crate::tap::{QUEUES, probe_taps};
use crate::topology::host;
use crate::units::hex;
use crate::usermode::{carried, version};
use crate::wireguard_api::{self, Said};
use crate::{Builder, Error, Result, Subnet, Topology};

const PROGRAM: Program = Program {
    name: "boringtun-cli",
    called: "boringtun",
    remedy: "repair it by `cargo install --force boringtun-cli`",
};
/// Where its directories are.
pub(crate) static HOME: Home = Home::new(PROGRAM.called, "/run/hopyard-boringtun", &[PROGRAM.name]);
/// boringtun, and tuns for it.
const NEED: Need = Need {
    since: "3.8",
    carried: carried(&[PROGRAM.name]),
    ..Need::new(PROGRAM.name, |_| probe())
};

/// The tun at either end.
const TUN: &str = "vpn0";
/// The port of either end.
const PORT: u16 = 51820;
/// Outer IPv4 and UDP headers, and those of a data message with its tag (WireGuard, section 5.4.6).
const OVERHEAD: u32 = 20 + 8 + 16 + 16;
/// It reads as much of a packet as a tun's first MTU, which it learns before the tun gets another one.
const MOST_INSIDE: u32 = 1500;

fn probe() -> hopyard_net::Result<()> {
    probe_taps()?;
    in_path(PROGRAM.name)
        .map(drop)
        .ok_or_else(|| hopyard_net::Error::Unsupported {
            what: "run boringtun".to_owned(),
            feature: PROGRAM.name.to_owned(),
            remedy: "there is no such program in PATH: `cargo install boringtun-cli`, and have ~/.cargo/bin in PATH, \
                     or choose path `wireguard`"
                .to_owned(),
        })
}

pub(super) static TUN_VPN: Path = Path {
    name: "tun-vpn",
    summary: "multi-queue tuns joined by a tunnel program (boringtun, WireGuard in user space), encrypted; local: over a veth pair, far: \
     from the hub over the wire",
    peers: &[Peer::Local, Peer::Far],
    needs: &[Need::VETH, NEED],
    axes: &["queues"],
    rules_instead: |_| "the endpoints; the host: the tunnel's UDP, encrypted",
    mtu_owner: "the tunnel's device: 60 bytes less than below",
    ..Path::new(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    if lab.mtu() - OVERHEAD > MOST_INSIDE {
        let why = format!(
            "boringtun takes packets of {MOST_INSIDE} bytes at most; set `mtu` to {} or less, or choose path \
             `wireguard`",
            MOST_INSIDE + OVERHEAD
        );
        return Err(Error::refused(TUN, "mtu", lab.mtu().to_string(), why));
    }
    underlay(lab, peer, TUN_VPN.name, OVERHEAD)?;
    let both = ends(peer);
    let control = lab.tunnel_programs(both)?;
    for end in both {
        lab.take_tun(end)?;
    }
    introduce(both, &control).map_err(|source| DaemonError::Home {
        what: "tell boringtun its keys".to_owned(),
        source,
    })?;
    let inside = |number| Subnet::LAN.host(number);
    let client = lab.endpoint(both[0].role, TUN, inside(host::A))?;
    let server = lab.endpoint(both[1].role, TUN, inside(both[1].number))?;
    Ok(Topology::pair(client, server, way(both, TUN)))
}

impl Builder {
    fn tunnel_queues(&self) -> u32 {
        self.axes().queues.unwrap_or(QUEUES)
    }

    /// Starts a program for each end, in the namespace of its underlay; and what each is told by.
    fn tunnel_programs(&mut self, ends: [End; 2]) -> Result<[UnixStream; 2]> {
        let queues = self.tunnel_queues();
        let mut inside = Vec::new();
        for end in ends {
            inside.push(self.space(end.below)?.ns().try_clone()?);
        }
        let datapath = Datapath {
            switch: PROGRAM.called.to_owned(),
            version: version(PROGRAM.name),
            kind: DatapathKind::Userspace,
            hook: None,
        };
        let service = self.service(&HOME, datapath)?;
        let near = start(service, &inside[0], queues)?;
        let far = start(service, &inside[1], queues)?;
        Ok([near, far])
    }

    /// Waits for an end's tun with all of its queues, which the program's threads open one after another and by name, and takes
    /// it to where its endpoint is.
    fn take_tun(&mut self, end: End) -> Result<()> {
        let queues = self.tunnel_queues();
        let deadline = Instant::now() + PATIENCE;
        let attached = loop {
            let seen = self.space(end.below)?.tun_link(TUN);
            let attached = seen.ok().flatten().and_then(|tun| tun.attached);
            if attached == Some(queues) || Instant::now() > deadline {
                break attached.unwrap_or(0);
            }
            if let Some(death) = self.parts::<Service>().find_map(Part::death) {
                return Err(death.into());
            }
            thread::sleep(Duration::from_micros(500));
        };
        if attached != queues {
            let why =
                format!("boringtun attached {attached} of them; set fewer, or choose another path");
            return Err(Error::refused(TUN, "queues", queues.to_string(), why));
        }
        if end.role != end.below {
            let target = self.space(end.role)?.ns().try_clone()?;
            self.space(end.below)?.move_to(TUN, &target)?;
        }
        let mtu = self.mtu() - OVERHEAD;
        let handle = self.space(end.role)?;
        handle.set_mtu(TUN, mtu)?;
        handle.set_up(TUN)?;
        self.note_device(end.role, TUN);
        // It opens tuns without offloads, so they never come into effect.
        self.fix_off(end.role, TUN, &[OffloadFlag::TxChecksum, OffloadFlag::Tso]);
        Ok(())
    }
}

/// Starts the program of an end. It ends when nobody can tell it anything any more, so it is given the other end of its own
/// connection too: a kept lab outlives the process that made it.
fn start(service: &mut Service, inside: &NetNs, queues: u32) -> Result<UnixStream> {
    let pair = UnixStream::pair().and_then(|(ours, its)| Ok((ours.try_clone()?, ours, its)));
    let (held, ours, its) = pair.map_err(|source| DaemonError::Home {
        what: "make a connection to boringtun".to_owned(),
        source,
    })?;
    let mut program = Command::new(PROGRAM.name);
    program
        .args([
            "--foreground",
            "--disable-drop-privileges",
            "--uapi-fd",
            "0",
        ])
        .arg(format!("--threads={queues}"))
        // It writes none in the foreground; by this it is found.
        .arg("--log")
        .arg(service.directory().join("log"))
        .arg(TUN)
        .stdin(OwnedFd::from(its));
    inherit(&mut program, held.into());
    service.start_in(inside, &PROGRAM, program, None)?;
    Ok(ours)
}

/// Gives each end a key, and the other end as its peer.
fn introduce(ends: [End; 2], control: &[UnixStream; 2]) -> std::io::Result<()> {
    let mut public = Vec::new();
    for stream in control {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let private: [u8; 32] = key().map_err(std::io::Error::other)?;
        let key = hex(&private);
        let port = PORT.to_string();
        wireguard_api::set(
            stream,
            &[
                ("private_key", key.as_str()),
                ("listen_port", port.as_str()),
            ],
        )?;
        let Said { public_key } = wireguard_api::get(stream)?;
        public.push(public_key);
    }
    for (stream, (other, key)) in control
        .iter()
        .zip([(ends[1], &public[1]), (ends[0], &public[0])])
    {
        let network = Subnet::LAN.host(0);
        let endpoint = format!("{}:{PORT}", other.outer().v4);
        let v4 = format!("{}/{}", network.v4, Subnet::V4_PREFIX);
        let v6 = format!("{}/{}", network.v6, Subnet::V6_PREFIX);
        let peer = [
            ("public_key", key.as_str()),
            ("endpoint", endpoint.as_str()),
            ("allowed_ip", v4.as_str()),
            ("allowed_ip", v6.as_str()),
        ];
        wireguard_api::set(stream, &peer)?;
    }
    Ok(())
}
