//! `vrf`: `veth-route` within a routing domain of the hub, as hosts with several tenants have it.

use hopyard_net::LinkKind;

use super::{Need, Path};
use crate::model::{Axes, Hop, Peer};
use crate::topology::role;
use crate::{Builder, Result, Topology};

/// The domain's device and its table.
const DOMAIN: &str = "vrf0";
const TABLE: u32 = 100;

pub(super) struct Vrf;

impl Path for Vrf {
    fn name(&self) -> &'static str {
        "vrf"
    }

    fn summary(&self) -> &'static str {
        "veth-route within a routing domain of the hub (VRF), which has a table of its own"
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local, Peer::Far]
    }

    /// The host is the router, and needs an address within the domain alone.
    fn reaches_host(&self, _: &Axes) -> bool {
        true
    }

    fn mtu_owner(&self) -> &'static str {
        "each pair; the host asks for smaller packets or cuts them"
    }

    fn needs(&self) -> &'static [Need] {
        &[Need::VETH, Need::VRF]
    }

    fn filter_sees(&self, _: Peer) -> bool {
        true
    }

    fn learns(&self, _: &Axes) -> bool {
        true
    }

    fn axes(&self) -> &'static [&'static str] {
        &["containers", "rules"]
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        lab.link(role::HUB, DOMAIN, LinkKind::Vrf { table: TABLE })?;
        let mut topology = lab.routed_within(peer, Some(DOMAIN))?;
        // What comes in by any port counts as received by the domain's device, both ways.
        let domain = Hop::rx_of_both(role::HUB, DOMAIN);
        let last = topology.way.len().saturating_sub(2);
        topology.way.insert(last, domain);
        Ok(topology)
    }
}
