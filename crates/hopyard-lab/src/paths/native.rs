//! `native`: no path at all between the sockets but the stack itself, or the wire alone.

use super::{Need, Path};
use crate::model::{Axes, Containers, Hop, Peer};
use crate::topology::{host, role};
use crate::wire::UPLINK;
use crate::{Builder, Error, Result, Subnet, Topology};

pub(super) static NATIVE: Path = Path {
    name: "native",
    summary: "local: both sockets in one namespace, over loopback; far: the hub itself, over the wire",
    peers: &[Peer::Local, Peer::Far],
    needs: &[Need::VETH],
    axes: &["containers"],
    // A container has a device and a network namespace of its own, which is another path.
    has,
    // The hub itself is the sender then.
    filter_sees: &[Peer::Far],
    rules_instead: |_| "the namespace itself (input, output)",
    mtu_owner: "loopback; to the wire, the uplink",
    // It is the host.
    host_access: Some(true),
    crosses_cable: true,
    ..Path::new(build)
};

fn has(axes: &Axes) -> bool {
    axes.containers != Some(Containers::Own)
}

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    if !has(lab.axes()) {
        return Err(Error::refused(
            "the host's own interface",
            "containers",
            Containers::Own.to_string(),
            "it is no container's; set `containers=native`, or choose another path",
        ));
    }
    if peer == Peer::Local {
        let both = lab.loopback(role::A)?;
        let lo = Hop::loopback(role::A, "lo");
        return Ok(Topology::pair(both.clone(), both, vec![lo]));
    }
    lab.wire()?;
    let mut way = Vec::new();
    let client = lab.endpoint(role::HUB, UPLINK, Subnet::WIRE.host(host::HUB))?;
    let server = lab.far_end(Subnet::WIRE, &mut way)?;
    Ok(Topology::pair(client, server, way))
}
