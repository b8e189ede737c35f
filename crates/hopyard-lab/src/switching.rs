//! The direct switch of the hub.

use std::io::ErrorKind;
use std::path::Path;

use hopyard_net::NetkitLayer;
use hopyard_switch::{Hooks, Mac, NewPort, NewSwitch, Switch, has_tcx};
use serde::Deserialize;
use serde_json::Value;

use super::builder::ETH;
use super::kept::Kept;
use super::part::{Kind, Names, Part, Undone};
use super::topology::{Endpoint, Subnet, host, role};
use super::wire::UPLINK;
use super::{Builder, LabId, Result, card};
use crate::model::{DIRECT_SWITCH, Datapath, DatapathKind, Hook, Hop, Peer};

/// What connects a guest with the direct switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Port {
    /// Frames from the guest are received by the port; those to it are handed past the port.
    Veth,
    /// Frames from the guest do not come to the port; those of another guest are sent by the port.
    Netkit,
}

impl Port {
    pub(crate) fn connect(self, lab: &mut Builder, guest: &'static str, port: &str) -> Result<()> {
        match self {
            Self::Veth => lab.veth((guest, ETH), (role::HUB, port)),
            Self::Netkit => lab.netkit(NetkitLayer::L2, (role::HUB, port), (guest, ETH)),
        }
    }

    fn of_server(self, port: &str) -> Hop {
        match self {
            Self::Veth => Hop::rx_from_server(role::HUB, port),
            Self::Netkit => Hop::tx_to_server(role::HUB, port),
        }
    }
}

/// The port of endpoint `b`.
pub(super) const PORT_B: &str = "veth-b";

/// Its name in the state of a kept lab.
const KEY: &str = "switch";

pub(super) static SWITCHES: Switches = Switches;

pub(super) struct Switches;

/// A direct switch, which would outlive its lab.
#[derive(Debug)]
struct DirectSwitch {
    name: String,
    /// Where its programs run, if it was made here.
    hooks: Option<Hooks>,
}

impl Part for DirectSwitch {
    fn undo(&mut self) -> Undone {
        let what = format!("switch `{}` of a lab", self.name);
        Undone::of(what, Switch::discard(&self.name))
    }

    fn keep(&mut self, _: &Path, kept: &mut Kept) -> Result<()> {
        kept.note(KEY, &self.name)
    }

    fn datapath(&self) -> Option<Datapath> {
        Some(Datapath {
            switch: DIRECT_SWITCH.to_owned(),
            version: String::new(),
            kind: DatapathKind::Kernel,
            hook: Some(match self.hooks? {
                Hooks::Tcx => Hook::Tcx,
                Hooks::Clsact => Hook::Clsact,
            }),
        })
    }
}

impl Kind for Switches {
    fn names(&self) -> Result<Names> {
        match Switch::names() {
            // As with the BPF file system that systemd mounts.
            Err(hopyard_switch::Error::File { source, .. })
                if source.kind() == ErrorKind::PermissionDenied =>
            {
                Ok(Names::Closed("switches"))
            }
            names => Ok(Names::Of(names?)),
        }
    }

    fn lab(&self, name: &str) -> Option<LabId> {
        LabId::of_switch(name)
    }

    fn left(&'static self, name: String) -> Box<dyn Part> {
        Box::new(DirectSwitch { name, hooks: None })
    }

    fn kept(&'static self, key: &str, value: &Value) -> serde_json::Result<Option<Box<dyn Part>>> {
        if key != KEY {
            return Ok(None);
        }
        Ok(Some(self.left(String::deserialize(value)?)))
    }
}

impl Builder {
    /// The direct switch in the hub, with these of its devices as ports.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub fn switch(&mut self, uplink: Option<&str>, ports: &[String]) -> Result<()> {
        let name = self.id.switch_name();
        let hub = self.space(role::HUB)?.ns().try_clone()?;
        let hooks = hooks(self.axes().hook, ports.len());
        // What fails half-way leaves some of it.
        self.push(DirectSwitch {
            name: name.clone(),
            hooks: Some(hooks),
        });
        let macs = |device: &str| self.guest_mac(device).map(Mac).into_iter().collect();
        let ports: Vec<(&str, Vec<Mac>)> = ports.iter().map(|port| (&**port, macs(port))).collect();
        hub.run(|| {
            let mut switch = Switch::create(&NewSwitch {
                name: &name,
                uplink,
                hooks,
                ..NewSwitch::default()
            })?;
            let ports = ports.into_iter().map(|(device, macs)| NewPort {
                device,
                macs,
                ..NewPort::default()
            });
            Ok(switch.add_ports(&ports.collect::<Vec<_>>())?)
        })?
    }

    /// The name of the direct switch of the lab.
    pub(super) fn switch_name(&self) -> Option<&str> {
        let mut switches = self.parts::<DirectSwitch>();
        switches.next().map(|switch| &*switch.name)
    }

    /// The server of a path whose clients are ports of the direct switch, which is made with it.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub(crate) fn switched_server(
        &mut self,
        peer: Peer,
        port: Port,
        mut ports: Vec<String>,
        way: &mut Vec<Hop>,
    ) -> Result<Endpoint> {
        let server = match peer {
            Peer::Local => {
                port.connect(self, role::B, PORT_B)?;
                ports.push(PORT_B.to_owned());
                way.extend([port.of_server(PORT_B), Hop::rx(role::B, ETH)]);
                self.endpoint(role::B, ETH, Subnet::LAN.host(host::B))?
            }
            Peer::Host => {
                // The switch hands the host its frames at the uplink, past what that counts.
                self.wire()?;
                self.endpoint(role::HUB, UPLINK, Subnet::LAN.host(host::HUB))?
            }
            Peer::Far => {
                self.wire()?;
                if self.has_real_wire() {
                    card::serve_stations_behind(self.space(role::HUB)?, UPLINK)?;
                }
                self.far_end(Subnet::LAN, way)?
            }
        };
        ports.extend(self.idle_ports(ports.len())?);
        let uplink = (peer != Peer::Local).then_some(UPLINK);
        self.switch(uplink, &ports)?;
        Ok(server)
    }
}

/// More ports than these are attached as classifiers, which makes a thousand stand in two seconds instead of
/// seventeen (docs/containers.md).
const MANY: usize = 64;

/// Where the programs of a switch with so many ports run, unless the axes say so.
pub(super) fn hooks(asked: Option<Hook>, ports: usize) -> Hooks {
    match asked {
        Some(Hook::Clsact) => Hooks::Clsact,
        None if ports > MANY || !has_tcx() => Hooks::Clsact,
        Some(Hook::Tcx) | None => Hooks::Tcx,
    }
}
