//! The direct switch of the hub.

use hopyard_switch::{Hooks, Mac, NewPort, NewSwitch, Switch, has_tcx};

use super::builder::ETH;
use super::topology::{Endpoint, Subnet, host, role};
use super::wire::UPLINK;
use super::{Builder, Result};
use crate::meter::path_proof::Hop;
use crate::model::{DIRECT_SWITCH, Datapath, DatapathKind, Hook, Peer};

/// The port of endpoint `b`.
const PORT_B: &str = "veth-b";

impl Builder {
    /// The direct switch in the hub, with these of its devices as ports.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub fn switch(&mut self, uplink: Option<&str>, ports: &[String]) -> Result<()> {
        let name = self.id.switch_name();
        let hub = self.space(role::HUB)?.ns().try_clone()?;
        self.switch = Some(name.clone());
        let hooks = hooks(self.axes().hook, ports.len());
        self.hooks = hooks;
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

    /// The server of a path whose clients are ports of the direct switch, which is made with it.
    ///
    /// # Errors
    /// The kernel cannot or will not.
    pub fn switched_server(
        &mut self,
        peer: Peer,
        mut ports: Vec<String>,
        way: &mut Vec<Hop>,
    ) -> Result<Endpoint> {
        let server = match peer {
            Peer::Local => {
                self.veth((role::B, ETH), (role::HUB, PORT_B))?;
                ports.push(PORT_B.to_owned());
                way.extend([
                    Hop::rx_from_server(role::HUB, PORT_B),
                    Hop::rx(role::B, ETH),
                ]);
                self.endpoint(role::B, ETH, Subnet::LAN.host(host::B))?
            }
            Peer::Host => {
                // The switch hands the host its frames at the uplink, past what that counts.
                self.wire()?;
                self.endpoint(role::HUB, UPLINK, Subnet::LAN.host(host::HUB))?
            }
            Peer::Far => {
                self.wire()?;
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

/// What a report says of it.
pub(super) fn datapath(hooks: Hooks) -> Datapath {
    Datapath {
        switch: DIRECT_SWITCH.to_owned(),
        version: String::new(),
        kind: DatapathKind::Kernel,
        hook: Some(match hooks {
            Hooks::Tcx => Hook::Tcx,
            Hooks::Clsact => Hook::Clsact,
        }),
    }
}
