//! `veth-route`: a veth pair into the hub, IP forwarding there (the "etun" case of the 2007 report).

use super::{Need, Path};
use crate::model::Peer;
use crate::{Builder, Result, Topology};

pub(super) static VETH_ROUTE: Path = Path {
    name: "veth-route",
    summary: "a veth pair into the hub for each endpoint, IP forwarding in the hub",
    peers: &[Peer::Local, Peer::Far],
    needs: &[Need::VETH],
    axes: &["containers", "rules"],
    filter_sees: &Peer::ALL,
    mtu_owner: "each pair; the host asks for smaller packets or cuts them",
    learns: true,
    // The host is the router.
    host_access: Some(true),
    crosses_cable: true,
    ..Path::new(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    lab.routed(peer)
}
