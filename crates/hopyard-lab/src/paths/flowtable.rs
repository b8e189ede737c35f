//! `flowtable`: as `veth-route`, and a software flow table of nftables takes established connections past the hub's stack.

use hopyard_net::apply_ruleset;

use super::netfilter::{CONNTRACK, CT, FLOW_OFFLOAD, FLOW_TABLE};
use super::{Need, Path};
use crate::model::Peer;
use crate::{Builder, Result, Topology, role};

pub(super) static FLOWTABLE: Path = Path {
    name: "flowtable",
    summary: "veth-route with a software flow table (nftables), which forwards established connections",
    needs: &[
        Need::VETH,
        Need::FILTER,
        CT,
        FLOW_TABLE,
        FLOW_OFFLOAD,
        CONNTRACK,
    ],
    axes: &["containers", "rules", "conntrack"],
    // Of a connection only the first packets.
    filter_sees: &[],
    rules_instead: |_| "the host, first packets of connections alone",
    mtu_owner: "each pair; longer packets leave the flow table",
    learns: true,
    by_name_only: true,
    ..Path::routed(build)
};

fn build(lab: &mut Builder, peer: Peer) -> Result<Topology> {
    let topology = lab.routed(peer)?;
    let hops = topology.hops().filter(|hop| hop.namespace == role::HUB);
    let devices: Vec<_> = hops.map(|hop| format!("\"{}\"", hop.device)).collect();
    let rules = ruleset(&devices.join(", "));
    apply_ruleset(lab.space(role::HUB)?.ns(), &rules)?;
    lab.expect_offloaded();
    Ok(topology)
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
