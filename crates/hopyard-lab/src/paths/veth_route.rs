//! `veth-route`: a veth pair into the hub, IP forwarding there (the "etun" case of the 2007 report).

use super::{Need, Path};
use crate::model::Peer;
use crate::{Builder, Result, Topology};

pub(super) static VETH_ROUTE: Path = Path {
    name: "veth-route",
    summary: "a veth pair into the hub for each endpoint, IP forwarding in the hub",
    needs: &[Need::VETH],
    learns: true,
    crosses_cable: true,
    ..Path::routed(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    lab.routed(peer)
}
