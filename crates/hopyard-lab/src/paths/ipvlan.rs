//! `ipvlan`: further IP addresses on the hub's uplink, behind one Ethernet address.

use hopyard_net::{IpvlanMode, LinkKind};

use super::macvlan::on_uplink;
use super::{Need, Path, at_uplink};
use crate::model::{Axes, Peer};
use crate::wire::UPLINK;
use crate::{Builder, Result, Topology};

pub(super) struct Ipvlan;

impl Path for Ipvlan {
    fn name(&self) -> &'static str {
        "ipvlan"
    }

    fn summary(&self) -> &'static str {
        "ipvlan on the hub's uplink, layer 2; host: the hub has one too"
    }

    fn peers(&self) -> &'static [Peer] {
        &Peer::ALL
    }

    /// A host does not talk to the ipvlans on its own device; as a peer it has one too.
    fn reaches_host(&self, _: &Axes) -> bool {
        false
    }

    fn mtu_owner(&self) -> &'static str {
        "the uplink, which bounds the others"
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH, Need::IPVLAN]
    }

    fn axes(&self) -> &'static [&'static str] {
        &["containers"]
    }

    fn rules_instead(&self, peer: Peer) -> &'static str {
        at_uplink(peer)
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        on_uplink(lab, peer, "ipv-hub", || LinkKind::Ipvlan {
            lower: UPLINK.to_owned(),
            mode: IpvlanMode::L2,
        })
    }
}
