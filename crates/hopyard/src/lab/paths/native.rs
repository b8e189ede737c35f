//! `native`: no path at all between the sockets but the stack itself, or the wire alone.

use super::{Need, Path};
use crate::lab::topology::{host, role};
use crate::lab::wire::UPLINK;
use crate::lab::{Builder, Result, Subnet, Topology};
use crate::model::{Axes, Hop, Peer};

pub(super) struct Native;

impl Path for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn summary(&self) -> &'static str {
        "local: both sockets in one namespace, over loopback; far: the hub itself, over the wire"
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local, Peer::Far]
    }

    fn filter_sees(&self, peer: Peer) -> bool {
        // The hub itself is the sender then.
        peer == Peer::Far
    }

    /// It is the host.
    fn reaches_host(&self, _: &Axes) -> bool {
        true
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH]
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        if peer == Peer::Local {
            let both = lab.loopback(role::A)?;
            let lo = Hop::loopback(role::A, "lo");
            return Ok(Topology {
                client: both.clone(),
                server: both,
                way: vec![lo],
                containers: Vec::new(),
            });
        }
        lab.wire()?;
        let mut way = Vec::new();
        Ok(Topology {
            client: lab.endpoint(role::HUB, UPLINK, Subnet::WIRE.host(host::HUB))?,
            server: lab.far_end(Subnet::WIRE, &mut way)?,
            way,
            containers: Vec::new(),
        })
    }
}
