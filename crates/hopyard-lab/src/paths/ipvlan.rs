//! `ipvlan`: further IP addresses on the hub's uplink, behind one Ethernet address.

use hopyard_net::{IpvlanMode, LinkKind};

use super::macvlan::on_uplink;
use super::{Need, Path, at_uplink};
use crate::model::Peer;
use crate::wire::UPLINK;
use crate::{Builder, Result, Topology};

pub(super) static IPVLAN: Path = Path {
    name: "ipvlan",
    summary: "ipvlan on the hub's uplink, layer 2; host: the hub has one too",
    peers: &Peer::ALL,
    needs: &[Need::VETH, Need::IPVLAN],
    axes: &["containers"],
    rules_instead: at_uplink,
    mtu_owner: "the uplink, which bounds the others",
    // A host does not talk to the ipvlans on its own device; as a peer it has one too.
    host_access: Some(false),
    crosses_cable: true,
    ..Path::new(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    on_uplink(lab, peer, "ipv-hub", || LinkKind::Ipvlan {
        lower: UPLINK.to_owned(),
        mode: IpvlanMode::L2,
    })
}
