//! The AF_XDP forwarder of a lab: a process of its own in the hub, so that its CPU time is told apart and counted as the path's.
//!
//! Its other half, [`run`], is what that process does.

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use aya::maps::XskMap;
use aya::programs::Xdp;
use aya::{Ebpf, include_bytes_aligned};
use hopyard_net::{Handle, LinkKind, NetNs, NewLink, PassedOn, XdpPair};

use super::daemon::{Home, Program, Ready};
use super::error::Bpf;
use super::need::Need;
use super::topology::role;
use super::{Builder, Error, Result, tap};
use crate::guest::Carried;
use crate::model::{Datapath, DatapathKind, DeviceCount, Hop};

static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/sockets.bpf.o"));

/// The command of hopyard that is the forwarder.
pub const COMMAND: &str = "xdp-forward";

static FORWARDER: Program = Program {
    name: "hopyard",
    called: "the AF_XDP forwarder",
    remedy: "check that the program file still exists and was not replaced",
};
/// Where its directories are.
pub(super) static HOME: Home = Home {
    counted: Some(counted),
    ..Home::new("AF_XDP forwarder", "/run/hopyard-afxdp", &[FORWARDER.name])
};
/// AF_XDP sockets on veths.
pub(super) const NEED: Need = Need {
    since: "5.10",
    carried: Carried::modules(&["veth"]),
    ..Need::new("af_xdp", |_| probe()).with_programs()
};
/// Where it says what it has passed on.
const SOCKET: &str = "ctl";
/// What stands for it among the devices of the hub.
const FORWARDED: &str = "forwarded";
/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Can this host open AF_XDP sockets on two veths?
fn probe() -> hopyard_net::Result<()> {
    let hub = Handle::new(&NetNs::create()?)?;
    let kind = LinkKind::veth("other", None);
    hub.add_link(&NewLink::new("probe", kind))?;
    for device in ["probe", "other"] {
        hub.set_up(device)?;
    }
    XdpPair::open(&hub, ["probe", "other"]).map(drop)
}

impl Builder {
    /// Starts a forwarder between two devices of the hub. Gives what counts it.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn forward_by_af_xdp(&mut self, devices: [&str; 2]) -> Result<Hop> {
        let mut forwarder = Command::new(tap::program()?);
        forwarder.stdin(Stdio::null()).arg(COMMAND);
        let datapath = Datapath {
            switch: "hopyard xdp-forward".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kind: DatapathKind::Userspace,
            hook: None,
        };
        let service = self.service(&HOME, datapath)?;
        let socket = service.directory().join(SOCKET);
        forwarder.arg(&socket).args(devices);
        service.start(&FORWARDER, forwarder, Some(Ready::Socket(socket)))?;
        Ok(Hop::rx(role::HUB, FORWARDED))
    }
}

/// What the forwarder of a directory has passed on.
fn counted(name: &str) -> Result<Vec<DeviceCount>> {
    let socket = HOME.directory(name).join(SOCKET);
    let answer = || {
        let mut stream = UnixStream::connect(&socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let numbers = text.split_whitespace().map(str::parse);
        let numbers: std::result::Result<Vec<u64>, _> = numbers.collect();
        let numbers = numbers.ok().and_then(|all| <[u64; 4]>::try_from(all).ok());
        numbers.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    };
    let counts = answer().map_err(|source| Error::File {
        what: format!("ask the AF_XDP forwarder at {}", socket.display()),
        source,
    })?;
    let [rx_packets, rx_bytes, tx_packets, tx_bytes] = counts;
    Ok(vec![DeviceCount::new(
        role::HUB,
        FORWARDED,
        [rx_packets, rx_bytes, tx_packets, tx_bytes],
    )])
}

/// What was passed on so far, by both ways: packets and bytes of each.
type Totals = Arc<[AtomicU64; 4]>;

/// Passes the frames of two devices of this namespace on to each other, until the process is ended. Whoever connects to the socket
/// is told what was passed on.
///
/// # Errors
/// A device has no AF_XDP sockets or no XDP, or is gone.
pub fn run(socket: &Path, devices: [&str; 2]) -> Result<Infallible> {
    let here = Handle::here()?;
    let mut pair = XdpPair::open(&here, devices)?;
    for (device, fd) in devices.into_iter().zip(pair.sockets()) {
        let mut object = Ebpf::load(OBJECT).map_err(Bpf::of("load a map of sockets"))?;
        let what = "hand frames to an AF_XDP socket";
        let map = object.map_mut("sockets");
        let map = map.ok_or_else(|| Bpf::built_wrongly(what.to_owned()))?;
        let mut map = XskMap::try_from(map).map_err(Bpf::of(what))?;
        map.set(0, fd, 0).map_err(Bpf::of(what))?;
        let program = object.program_mut("hopyard_sockets");
        let program = program.ok_or_else(|| Bpf::built_wrongly(what.to_owned()))?;
        let program: &mut Xdp = program.try_into().map_err(Bpf::of(what))?;
        program.load().map_err(Bpf::of(what))?;
        here.set_xdp(device, program.fd().map_err(Bpf::of(what))?)?;
    }
    let totals = Totals::default();
    answer(socket, totals.clone())?;
    loop {
        let passed = pair.pass_on()?;
        if passed == [PassedOn::default(); 2] {
            pair.wait()?;
            continue;
        }
        let [there, back] = passed;
        let counts = [there.packets, there.bytes, back.packets, back.bytes];
        for (total, count) in totals.iter().zip(counts) {
            // This thread alone writes.
            total.store(total.load(Relaxed) + count, Relaxed);
        }
    }
}

/// Has a thread answer who connects.
fn answer(socket: &Path, totals: Totals) -> Result<()> {
    let failed = |source| Error::File {
        what: format!("listen on {}", socket.display()),
        source,
    };
    let listener = UnixListener::bind(socket).map_err(failed)?;
    let serve = move || {
        for mut stream in listener.incoming().flatten() {
            let counts = totals
                .each_ref()
                .map(|total| total.load(Relaxed).to_string());
            // Who does not listen any more misses it.
            let _ = stream.write_all(counts.join(" ").as_bytes());
        }
    };
    let thread = thread::Builder::new()
        .name("counts".to_owned())
        .spawn(serve);
    thread.map(drop).map_err(failed)
}
