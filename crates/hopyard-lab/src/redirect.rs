//! Devices of the hub whose frames an eBPF program hands to another device, and what it counts.

use std::fmt;

use aya::maps::{DevMap, MapData, PerCpuArray};
use aya::programs::{Program, ProgramFd};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use hopyard_net::{DeviceHook, Handle, LinkKind, NetNs, NetkitLayer, NewLink};

use super::error::{Bpf, or_another_path};
use super::part::{Part, Undone};
use super::topology::{Addresses, role};
use super::{Builder, Error, Result};
use crate::model::{DeviceCount, Hop};

static OBJECT: &[u8] = include_bytes_aligned!(concat!(env!("OUT_DIR"), "/redirect.bpf.o"));

/// What stands for the programs of both ways among the devices of the hub.
const REDIRECTED: &str = "redirected";

/// `struct passed` of `redirect.bpf.c`: packets, bytes.
type Passed = [u64; 2];
type Counts = PerCpuArray<MapData, Passed>;

/// What the programs of a device are told: constants of `redirect.bpf.c`, 0 where they mean nothing.
#[derive(Default)]
struct Told {
    /// Index of the device that frames go to.
    to: u32,
    /// The host behind that device, where it is not to have all frames.
    host: Option<Addresses>,
}

/// The programs of one device, with maps of their own. The kernel keeps them as long as a device runs one.
struct Programs(Ebpf);

impl Programs {
    fn load(told: &Told) -> Result<Self> {
        let v4 = told
            .host
            .map_or(0, |host| u32::from_ne_bytes(host.v4.octets()));
        let v6 = told.host.map_or([0; 16], |host| host.v6.octets());
        let object = EbpfLoader::new()
            .override_global("to", &told.to, true)
            .override_global("host_v4", &v4, true)
            .override_global("host_v6", &v6, true)
            .load(OBJECT);
        Ok(Self(
            object.map_err(Bpf::of("load maps that count frames"))?,
        ))
    }

    /// A program, loaded into the kernel.
    fn program(&mut self, name: &str) -> Result<&ProgramFd> {
        let what = || format!("load the program {name}");
        let program = self.0.program_mut(name);
        let program = program.ok_or_else(|| Bpf::built_wrongly(what()))?;
        let fd = match program {
            Program::Xdp(xdp) => xdp.load().and_then(|()| xdp.fd()),
            Program::SchedClassifier(classifier) => {
                classifier.load().and_then(|()| classifier.fd())
            }
            _ => return Err(Bpf::built_wrongly(what()).into()),
        };
        Ok(fd.map_err(Bpf::of(what()))?)
    }

    /// Where XDP hands frames out.
    fn set_out(&mut self, index: u32) -> Result<()> {
        const WHAT: &str = "name a device to an XDP program";
        let map = self.0.map_mut("out");
        let map = map.ok_or_else(|| Bpf::built_wrongly(WHAT.to_owned()))?;
        let mut map = DevMap::try_from(map).map_err(Bpf::of(WHAT))?;
        Ok(map.set(0, index, None, 0).map_err(Bpf::of(WHAT))?)
    }

    /// What counts its frames.
    fn counts(mut self) -> Result<Counts> {
        const WHAT: &str = "open a map that counts frames";
        let map = self.0.take_map("passed");
        let map = map.ok_or_else(|| Bpf::built_wrongly(WHAT.to_owned()))?;
        Ok(PerCpuArray::try_from(map).map_err(Bpf::of(WHAT))?)
    }
}

/// The programs of both ways: of the frames of the client's side, of the server's. They go with their devices.
struct Redirected([Counts; 2]);

impl fmt::Debug for Redirected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redirected")
    }
}

impl Part for Redirected {
    fn undo(&mut self) -> Undone {
        Undone::default()
    }

    fn counted(&self) -> Result<Vec<DeviceCount>> {
        let sum = |counts: &Counts| -> Result<Passed> {
            let of_cpus = counts.get(&0, 0);
            let of_cpus = of_cpus.map_err(Bpf::of("read what an eBPF program counted"))?;
            Ok(of_cpus.iter().fold([0; 2], |[packets, bytes], one| {
                [packets + one[0], bytes + one[1]]
            }))
        };
        let [[rx_packets, rx_bytes], [tx_packets, tx_bytes]] = [sum(&self.0[0])?, sum(&self.0[1])?];
        Ok(vec![DeviceCount::new(
            role::HUB,
            REDIRECTED,
            [rx_packets, rx_bytes, tx_packets, tx_bytes],
        )])
    }
}

impl Builder {
    /// Has the drivers of two devices of the hub hand each frame to the other one, by XDP; their other ends are ready for that.
    /// Gives what counts it.
    pub(super) fn redirect_by_xdp(
        &mut self,
        devices: [&str; 2],
        other_ends: [(&'static str, &str); 2],
    ) -> Result<Hop> {
        for (role, device) in other_ends {
            let handle = self.space(role)?;
            let mut programs = Programs::load(&Told::default())?;
            handle.set_xdp(device, programs.program("hopyard_xdp_pass")?)?;
        }
        let hub = self.space(role::HUB)?;
        let both = [
            by_xdp(hub, devices[0], devices[1])?,
            by_xdp(hub, devices[1], devices[0])?,
        ];
        Ok(self.redirected(both))
    }

    /// Has netkit pairs of the hub hand each packet that their other ends send to each other's other end. Gives what counts it.
    pub(super) fn redirect_by_netkit(&mut self, pairs: [&str; 2]) -> Result<Hop> {
        let hub = self.space(role::HUB)?;
        let both = [
            by_netkit(hub, pairs[0], pairs[1], DEVICE)?,
            by_netkit(hub, pairs[1], pairs[0], DEVICE)?,
        ];
        Ok(self.redirected(both))
    }

    /// Has a netkit pair of the hub send by an uplink, and the uplink hand what comes in into the namespace at the pair's other end:
    /// frames with all that they are, or the packets of a host. Gives what counts it.
    pub(super) fn redirect_behind(
        &mut self,
        pair: &str,
        uplink: &str,
        host: Option<Addresses>,
    ) -> Result<Hop> {
        let hub = self.space(role::HUB)?;
        let program = match host {
            Some(_) => "hopyard_neighbour",
            None => DEVICE,
        };
        let out = by_netkit(hub, pair, uplink, program)?;
        let mut programs = Programs::load(&Told {
            to: hub.link(pair)?.index,
            host,
        })?;
        let behind = programs.program("hopyard_behind")?;
        hub.attach_program(uplink, behind, DeviceHook::TcxIngress)?;
        let both = [out, programs.counts()?];
        Ok(self.redirected(both))
    }

    fn redirected(&mut self, both: [Counts; 2]) -> Hop {
        self.push(Redirected(both));
        Hop::rx(role::HUB, REDIRECTED)
    }
}

/// The program that has a netkit pair send by a device.
const DEVICE: &str = "hopyard_device";

/// Has what the other end of a netkit pair sends go out of a device.
fn by_netkit(hub: &Handle, pair: &str, to: &str, program: &str) -> Result<Counts> {
    let mut programs = Programs::load(&Told {
        to: hub.link(to)?.index,
        host: None,
    })?;
    let program = programs.program(program)?;
    hub.attach_program(pair, program, DeviceHook::NetkitPeer)?;
    programs.counts()
}

/// Has the driver of a device hand each frame to another one.
fn by_xdp(hub: &Handle, from: &str, to: &str) -> Result<Counts> {
    let mut programs = Programs::load(&Told::default())?;
    let index = hub.link(to)?.index;
    // The kernel looks for the device in the namespace of the thread that names it (kernel/bpf/devmap.c).
    hub.ns().run(|| programs.set_out(index))??;
    hub.set_xdp(from, programs.program("hopyard_xdp")?)?;
    programs.counts()
}

/// Can this kernel forward by XDP between veths?
pub(super) fn probe_xdp() -> hopyard_net::Result<()> {
    let kind = LinkKind::veth("other", None);
    let tried = probe(kind, |hub| by_xdp(hub, "probe", "other"));
    tried.map_err(|why| {
        lacking(
            why,
            "frames by XDP",
            "XDP with frames of several buffers",
            "5.18",
        )
    })
}

/// Can this kernel forward by programs of netkit pairs?
pub(super) fn probe_netkit() -> hopyard_net::Result<()> {
    let kind = LinkKind::Netkit {
        mode: NetkitLayer::L2,
        peer: "other".to_owned(),
        peer_ns: None,
        peer_mac: None,
    };
    let tried = probe(kind, |hub| by_netkit(hub, "probe", "probe", DEVICE));
    tried.map_err(|why| lacking(why, "packets by netkit", "programs of netkit pairs", "6.7"))
}

fn probe(kind: LinkKind<'_>, attach: impl FnOnce(&Handle) -> Result<Counts>) -> Result<()> {
    let hub = Handle::new(&NetNs::create()?)?;
    hub.add_link(&NewLink::new("probe", kind))
        .map_err(or_another_path)?;
    attach(&hub).map(drop)
}

fn lacking(why: Error, what: &str, feature: &str, since: &str) -> hopyard_net::Error {
    match why {
        Error::Net(error @ hopyard_net::Error::Unsupported { .. }) => error,
        other => hopyard_net::Error::Unsupported {
            what: format!("forward {what}"),
            feature: feature.to_owned(),
            remedy: format!(
                "this needs Linux {since} or newer with CONFIG_BPF_SYSCALL, and CAP_BPF ({}), or choose another path",
                crate::chain(&other)
            ),
        },
    }
}
