//! Guests at the endpoints of a lab. Each boots when its worker is started, and ends with it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::OnceLock;

use hopyard_net::{LinkKind, MacvlanMode, NewLink, end_with_starter};
use hopyard_tap::{NewDevice, Queues};

use super::error::or_another_path;
use super::part::{Part, Undone};
use super::topology::{Addresses, Endpoint, role};
use super::wire::UPLINK;
use super::{Builder, Error, Result};
use crate::guest::{Backend, Bootable, Interface, Kit, WorkerGuest, has_vhost};
use crate::load::remote::Remote;
use crate::model::{GuestUsed, OffloadFlag, Switch};
use crate::signals;

/// The network card of a guest, in it.
const CARD: &str = "eth0";
/// Its address there; a lab has one guest.
const MAC: [u8; 6] = [0x02, 0x68, 0x6f, 0x70, 0, 1];
const MEMORY_BYTES: u32 = 512 << 20;

/// The hub's end of a guest's card, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubEnd {
    /// A tap, up, which is nobody's port yet.
    Tap(&'static str),
    /// A macvtap on the uplink, bridge mode.
    Macvtap(&'static str),
}

/// A guest of a lab.
#[derive(Debug)]
pub(super) struct Guest {
    role: &'static str,
    hub_end: HubEnd,
    cpus: u32,
    /// Of its card.
    queues: u32,
    memory_bytes: u32,
    offload: bool,
    vhost: bool,
    interface: Interface,
    /// Once it has booted.
    used: OnceLock<GuestUsed>,
}

impl Part for Guest {
    /// Its device goes with the hub, and what was booted with its worker.
    fn undo(&mut self) -> Undone {
        Undone::default()
    }
}

impl Builder {
    /// Is an endpoint a guest, whose devices are not the lab's?
    #[must_use]
    pub(crate) fn has_guests(&self) -> bool {
        self.parts::<Guest>().next().is_some()
    }

    /// An endpoint that is a guest, at a device of the hub with as many queues as axis `queues` says, else one for
    /// each of its CPUs.
    ///
    /// # Errors
    /// The kernel cannot or will not, the lab is to outlive its process, or the axes ask for what a guest
    /// does not have.
    pub fn guest(
        &mut self,
        path: &'static str,
        role: &'static str,
        hub_end: HubEnd,
        addresses: Addresses,
    ) -> Result<Endpoint> {
        if self.is_to_keep() {
            return Err(Error::Kept(format!(
                "path `{path}` cannot be kept: its guest ends with the process that started it"
            )));
        }
        let axes = self.axes().clone();
        let named = |flag: &OffloadFlag| axes.offload_named(*flag).is_some();
        if let Some(flag) = OffloadFlag::ALL.iter().find(|flag| named(flag)) {
            let flag = flag.name();
            return Err(Error::GuestOffload { path, flag });
        }
        if axes.vhost == Some(Switch::On) && !has_vhost() {
            let why = "there is no /dev/vhost-net that can be opened: load module `vhost_net` (kernel option CONFIG_VHOST_NET), \
                       or leave `vhost` out";
            return Err(Error::refused("the guest's card", "vhost", "on", why));
        }
        let cpus = axes.guest_cpus.unwrap_or(1);
        let queues = axes.queues.unwrap_or(cpus);
        match hub_end {
            HubEnd::Tap(name) => self.tap(name, queues)?,
            HubEnd::Macvtap(name) => self.macvtap(name)?,
        }
        self.push(Guest {
            role,
            hub_end,
            cpus,
            queues,
            memory_bytes: axes.guest_memory_bytes.unwrap_or(MEMORY_BYTES),
            offload: axes.offload != Some(Switch::Off),
            vhost: axes.vhost != Some(Switch::Off) && has_vhost(),
            interface: Interface {
                address: addresses.with_prefixes().into(),
                mtu: Some(axes.mtu_bytes),
            },
            used: OnceLock::new(),
        });
        Ok(Endpoint {
            role,
            device: CARD.to_owned(),
            addresses,
            guest_cpus: Some(cpus),
        })
    }

    /// It outlives each QEMU, and goes with the hub.
    fn tap(&mut self, name: &'static str, queues: u32) -> Result<()> {
        let mtu = self.mtu();
        let hub = self.space(role::HUB)?;
        let queues = match queues {
            1 => Queues::Single,
            more => Queues::Multi(more as usize),
        };
        let new = NewDevice {
            queues,
            persistent: true,
            ..NewDevice::tap(name)
        };
        hub.ns().run(|| new.create().map(drop))??;
        hub.set_mtu(name, mtu)?;
        hub.set_up(name)?;
        Ok(())
    }

    /// Its queues come and go with QEMU's files.
    fn macvtap(&mut self, name: &'static str) -> Result<()> {
        let mtu = self.mtu();
        let hub = self.space(role::HUB)?;
        let kind = LinkKind::Macvtap {
            lower: UPLINK.to_owned(),
            mode: MacvlanMode::Bridge,
        };
        hub.add_link(&NewLink {
            mtu: Some(mtu),
            // Frames to other addresses are not for it.
            mac: Some(MAC),
            up: true,
            ..NewLink::new(name, kind)
        })
        .map_err(or_another_path)?;
        // The guest's own, which neighbour discovery asks in, are known to the guest alone.
        hub.take_all_groups(name)?;
        Ok(())
    }

    /// The address of the guest behind a device of the hub.
    pub(super) fn guest_mac(&self, device: &str) -> Option<[u8; 6]> {
        let mut ends = self.parts::<Guest>().map(|guest| guest.hub_end);
        ends.any(|end| matches!(end, HubEnd::Tap(name) | HubEnd::Macvtap(name) if name == device))
            .then_some(MAC)
    }
}

impl Builder {
    /// The guest that an endpoint is.
    pub(super) fn guest_at(&self, role: &str) -> Option<&Guest> {
        let mut guests = self.parts::<Guest>();
        guests.find(|guest| guest.role == role)
    }

    /// What its guest was booted with.
    pub(super) fn guest_used(&self) -> Option<GuestUsed> {
        let mut guests = self.parts::<Guest>();
        guests.find_map(|guest| guest.used.get().cloned())
    }

    /// Boots a guest in the hub, with hopyard as its worker.
    pub(super) fn boot(&self, guest: &Guest, program: &Path) -> Result<Remote> {
        let kit = Kit::for_worker(program)?;
        let hub = self
            .handle(role::HUB)
            .ok_or_else(|| Error::Kept("the namespace of the guest's hub is gone".to_owned()))?;
        let worker = WorkerGuest {
            backend: match guest.hub_end {
                HubEnd::Tap(name) => Backend::Tap(name),
                HubEnd::Macvtap(name) => Backend::Queues(hub.open_macvtap(name, guest.queues)?),
            },
            mac: MAC,
            cpus: guest.cpus,
            queues: guest.queues,
            memory_mib: guest.memory_bytes >> 20,
            offload: guest.offload,
            vhost: guest.vhost,
            interface: guest.interface.clone(),
        };
        let Bootable {
            mut command,
            console,
            patience,
            used,
        } = worker.command(&kit)?;
        // Ctrl-C at the terminal is for the controller, which ends its guests.
        command.process_group(0);
        if let Some(cgroup) = self.cgroup() {
            cgroup.adopt(&mut command)?;
        }
        hub.ns().adopt(&mut command)?;
        end_with_starter(&mut command);
        let mut remote = Remote::start_within(guest.role, command, patience, &signals::interrupted)
            .map_err(|error| console.explain(error))?;
        remote.compare_clocks()?;
        // The same each time it boots.
        let _ = guest.used.set(used);
        Ok(remote)
    }
}
