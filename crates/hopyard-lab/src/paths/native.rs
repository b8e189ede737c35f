//! `native`: no path at all between the sockets but the stack itself, or the wire alone.

use super::{Need, Path};
use crate::model::{Axes, Containers, Hop, Peer};
use crate::topology::{host, role};
use crate::wire::UPLINK;
use crate::{Builder, Error, Result, Subnet, Topology};

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

    fn mtu_owner(&self) -> &'static str {
        "loopback; to the wire, the uplink"
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH]
    }

    fn axes(&self) -> &'static [&'static str] {
        &["containers"]
    }

    /// A container has a device and a network namespace of its own, which is another path.
    fn has(&self, axes: &Axes) -> bool {
        axes.containers != Some(Containers::Own)
    }

    fn rules_instead(&self, _: Peer) -> &'static str {
        "the namespace itself (input, output)"
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        if !self.has(lab.axes()) {
            return Err(Error::AxisRefused {
                device: "the host's own interface".to_owned(),
                axis: "containers",
                value: Containers::Own.to_string(),
                why: "it is no container's; set `containers=native`, or choose another path"
                    .to_owned(),
            });
        }
        if peer == Peer::Local {
            let both = lab.loopback(role::A)?;
            let lo = Hop::loopback(role::A, "lo");
            return Ok(Topology {
                client: both.clone(),
                server: both,
                way: vec![lo],
                containers: Vec::new(),
                spliced_at: None,
            });
        }
        lab.wire()?;
        let mut way = Vec::new();
        Ok(Topology {
            client: lab.endpoint(role::HUB, UPLINK, Subnet::WIRE.host(host::HUB))?,
            server: lab.far_end(Subnet::WIRE, &mut way)?,
            way,
            containers: Vec::new(),
            spliced_at: None,
        })
    }
}
