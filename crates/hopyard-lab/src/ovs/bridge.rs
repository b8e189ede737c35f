//! The one bridge of a lab's Open vSwitch, and its ports.

use super::programs::{self, Programs};
use super::{HOME, command_switch, datapath, start};
use crate::builder::Builder;
use crate::model::{DatapathKind, OffloadFlag};
use crate::topology::role;
use crate::wire::UPLINK;
use crate::{Error, Result};

/// The bridge, and its internal port.
pub(crate) const BRIDGE: &str = "br0";
/// Largest MTU of a tap that moved to another namespace: Open vSwitch then takes in frames of Ethernet's
/// own size (`netdev_linux_rxq_recv`, which cannot ask the device any more), and cuts longer ones.
const MOST_MOVED: u32 = 1500;

/// A port of the bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// A device of the hub, one end of a pair.
    Device {
        name: &'static str,
        /// The other end of the pair: namespace and device.
        other: (&'static str, &'static str),
    },
    /// A device that Open vSwitch makes, to live in an endpoint's namespace.
    Internal {
        name: &'static str,
        /// The namespace.
        into: &'static str,
    },
}

impl Port {
    fn name(self) -> &'static str {
        match self {
            Self::Device { name, .. } | Self::Internal { name, .. } => name,
        }
    }
}

impl Builder {
    /// Open vSwitch in the hub, and a bridge [`BRIDGE`] with these ports; the bridge's internal port is
    /// the hub's own.
    ///
    /// # Errors
    /// Open vSwitch cannot or will not, or its datapath here does not carry the lab's MTU.
    pub(crate) fn ovs_bridge(&mut self, path: &'static str, ports: &[Port]) -> Result<()> {
        let kind = programs::datapath()?;
        self.check_mtu(path, kind, ports)?;
        self.check_wire(kind)?;
        let programs = Programs::find()?;
        let words = self.commands(kind, ports);
        let service = self.service(&HOME, datapath(&programs, kind))?;
        start(service, &programs)?;
        let what = format!("make bridge `{BRIDGE}` of Open vSwitch");
        command_switch(service, &programs, &what, &words)?;
        self.furnish(kind)?;
        for port in ports {
            match *port {
                Port::Internal { name, into } => self.move_in(name, into, kind)?,
                Port::Device { name, other } if kind == DatapathKind::Userspace => {
                    self.whole_frames(name, other);
                }
                Port::Device { .. } => {}
            }
        }
        Ok(())
    }

    fn check_mtu(&self, path: &'static str, kind: DatapathKind, ports: &[Port]) -> Result<()> {
        let moved = ports.iter().any(|p| matches!(p, Port::Internal { .. }));
        if kind == DatapathKind::Userspace && moved && self.mtu() > MOST_MOVED {
            return Err(Error::MtuTooLarge {
                path,
                most: MOST_MOVED,
            });
        }
        Ok(())
    }

    /// The userspace datapath takes `clsact` away from devices that it gets, and before tcx the program of a wire that pauses lives there.
    fn check_wire(&self, kind: DatapathKind) -> Result<()> {
        match (kind, self.axes().wire_pause_ns) {
            (DatapathKind::Userspace, Some(pause)) if !hopyard_switch::has_tcx() => {
                let why = "before Linux 6.6, Open vSwitch's userspace datapath takes the wire's program away: leave `wire_pause` out, \
                           load module `openvswitch` for the kernel datapath, or choose another path";
                Err(Error::refused(BRIDGE, "wire_pause", pause.to_string(), why))
            }
            _ => Ok(()),
        }
    }

    /// One transaction: the switch sees everything at once.
    fn commands(&self, kind: DatapathKind, ports: &[Port]) -> Vec<String> {
        let datapath = match kind {
            DatapathKind::Kernel => "system",
            DatapathKind::Userspace => "netdev",
        };
        let mtu = self.mtu();
        // A thread per CPU is the default, for each of the two: labs are to be the same on every machine,
        // and have a handful of flows.
        let mut commands = vec![
            "set Open_vSwitch . other_config:n-handler-threads=1 other_config:n-revalidator-threads=1"
                .to_owned(),
            format!("add-br {BRIDGE}"),
            format!("set bridge {BRIDGE} datapath_type={datapath}"),
            format!("set interface {BRIDGE} mtu_request={mtu}"),
        ];
        for port in ports {
            let name = port.name();
            commands.push(format!("add-port {BRIDGE} {name}"));
            if matches!(port, Port::Internal { .. }) {
                commands.push(format!(
                    "set interface {name} type=internal mtu_request={mtu}"
                ));
            }
            if name == UPLINK && self.axes().rate_bps.is_some_and(|rate| rate.0.is_some()) {
                // Without this, the shaper of the wire is removed.
                commands.push("--id=@noop create qos type=linux-noop".to_owned());
                commands.push(format!("set port {name} qos=@noop"));
            }
        }
        let mut words = Vec::new();
        for command in commands {
            words.push("--".to_owned());
            words.extend(command.split(' ').map(str::to_owned));
        }
        words
    }

    /// What Open vSwitch made in the hub by itself.
    fn furnish(&mut self, kind: DatapathKind) -> Result<()> {
        let mtu = self.mtu();
        let datapath = match kind {
            DatapathKind::Kernel => "ovs-system",
            DatapathKind::Userspace => "ovs-netdev",
        };
        let hub = self.space(role::HUB)?;
        for device in [BRIDGE, datapath] {
            hub.set_mtu(device, mtu)?;
        }
        hub.set_up(BRIDGE)?;
        if kind == DatapathKind::Userspace {
            // The hub's own stack sees the frames of the ports as well, and would answer for the bridge's
            // address with the MAC address of a port, past the switch.
            hub.set_sysctl("net/ipv4/conf/all/arp_ignore", "1")?;
        }
        for device in [BRIDGE, datapath] {
            self.made(role::HUB, device, kind);
        }
        Ok(())
    }

    /// Moves an internal port to where it shall live. It keeps its name, by which the switch knows it.
    fn move_in(
        &mut self,
        name: &'static str,
        into: &'static str,
        kind: DatapathKind,
    ) -> Result<()> {
        let mtu = self.mtu();
        let target = self.space(into)?.ns().try_clone()?;
        self.space(role::HUB)?.move_to(name, &target)?;
        let inside = self.space(into)?;
        inside.set_mtu(name, mtu)?;
        inside.set_up(name)?;
        self.made(into, name, kind);
        Ok(())
    }

    /// Takes note of a device that Open vSwitch made.
    fn made(&mut self, role: &'static str, name: &str, kind: DatapathKind) {
        self.note_device(role, name);
        if kind == DatapathKind::Userspace {
            // Open vSwitch opens its taps without offloads (TUNSETOFFLOAD), so they never come into effect.
            self.fix_off(role, name, &[OffloadFlag::TxChecksum, OffloadFlag::Tso]);
        }
    }

    /// The userspace datapath takes frames from a device as they would be on a wire: a frame whose
    /// checksum somebody else was to fill in, or longer than the MTU, is lost.
    fn whole_frames(&mut self, port: &'static str, (role, device): (&'static str, &'static str)) {
        self.fix_off(role, device, &[OffloadFlag::TxChecksum, OffloadFlag::Tso]);
        self.fix_off(role::HUB, port, &[OffloadFlag::Gro]);
    }
}
