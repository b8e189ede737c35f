//! `flowtable`: as `veth-route`, and a software flow table of nftables takes established connections past the hub's stack.

use hopyard_net::apply_ruleset;

use super::netfilter::{CONNTRACK, CT, FLOW_OFFLOAD, FLOW_TABLE};
use super::{Need, Path};
use crate::model::{Axes, Peer};
use crate::{Builder, Result, Topology, role};

pub(super) struct Flowtable;

impl Path for Flowtable {
    fn name(&self) -> &'static str {
        "flowtable"
    }

    fn summary(&self) -> &'static str {
        "veth-route with a software flow table (nftables), which forwards established connections"
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
        "each pair; longer packets leave the flow table"
    }

    fn needs(&self) -> &'static [Need] {
        &[
            Need::VETH,
            Need::FILTER,
            CT,
            FLOW_TABLE,
            FLOW_OFFLOAD,
            CONNTRACK,
        ]
    }

    /// Of a connection only the first packets.
    fn filter_sees(&self, _: Peer) -> bool {
        false
    }

    fn axes(&self) -> &'static [&'static str] {
        &["containers", "rules", "conntrack"]
    }

    fn by_name_only(&self) -> bool {
        true
    }

    fn rules_instead(&self, _: Peer) -> &'static str {
        "the host, first packets of connections alone"
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        let topology = lab.routed(peer)?;
        let hops = topology.hops().filter(|hop| hop.namespace == role::HUB);
        let devices: Vec<_> = hops.map(|hop| format!("\"{}\"", hop.device)).collect();
        let rules = ruleset(&devices.join(", "));
        apply_ruleset(lab.space(role::HUB)?.ns(), &rules)?;
        lab.expect_offloaded();
        Ok(topology)
    }
}

/// Hands every established connection to the flow table, and counts those.
fn ruleset(devices: &str) -> String {
    let counter = Builder::OFFLOADED;
    format!(
        "table inet hopyard-flowtable {{\nflowtable f {{\nhook ingress priority filter\ndevices = {{ {devices} }}\n}}\n\
         counter {counter} {{}}\nchain forward {{\ntype filter hook forward priority filter; policy accept;\n\
         ct state established meta l4proto {{ tcp, udp }} flow add @f counter name {counter}\n}}\n}}\n"
    )
}
