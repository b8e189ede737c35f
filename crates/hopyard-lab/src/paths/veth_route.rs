//! `veth-route`: a veth pair into the hub, IP forwarding there (the "etun" case of the 2007 report).

use super::{Need, Path};
use crate::model::{Axes, Peer};
use crate::{Builder, Result, Topology};

pub(super) struct VethRoute;

impl Path for VethRoute {
    fn name(&self) -> &'static str {
        "veth-route"
    }

    fn summary(&self) -> &'static str {
        "a veth pair into the hub for each endpoint, IP forwarding in the hub"
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local, Peer::Far]
    }

    /// The host is the router.
    fn reaches_host(&self, _: &Axes) -> bool {
        true
    }

    fn learns(&self, _: &Axes) -> bool {
        true
    }

    fn mtu_owner(&self) -> &'static str {
        "each pair; the host asks for smaller packets or cuts them"
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH]
    }

    fn filter_sees(&self, _: Peer) -> bool {
        true
    }

    fn axes(&self) -> &'static [&'static str] {
        &["containers", "rules"]
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        lab.routed(peer)
    }
}
