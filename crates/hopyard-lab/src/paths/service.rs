//! `service-nft` and `service-iptables`: as `veth-route`, and the client connects to the address of a service, which the hub
//! translates as kube-proxy does.

use super::netfilter::{
    CONNTRACK, CT, IPTABLES_NAT, NAT, NUMGEN, REJECT, XT_ADDRTYPE, XT_COMMENT, XT_CONNTRACK,
    XT_MARK, XT_MASQUERADE,
};
use super::{Build, Need, Path};
use crate::model::Peer;
use crate::services::{Layout, Services};
use crate::{Builder, Result, Topology, role};

pub(super) static SERVICE_NFT: Path = Path {
    name: "service-nft",
    summary: "veth-route to a service's address: DNAT by a verdict map (kube-proxy, mode nftables)",
    needs: &[Need::VETH, Need::FILTER, NAT, CT, NUMGEN, REJECT, CONNTRACK],
    ..path(|lab, peer| build(lab, peer, Layout::Nftables))
};

pub(super) static SERVICE_IPTABLES: Path = Path {
    name: "service-iptables",
    summary: "veth-route to a service's address: DNAT by a rule for each service (kube-proxy, mode iptables)",
    needs: &[
        Need::VETH,
        IPTABLES_NAT,
        XT_COMMENT,
        XT_MARK,
        XT_CONNTRACK,
        XT_ADDRTYPE,
        XT_MASQUERADE,
        CONNTRACK,
    ],
    ..path(|lab, peer| build(lab, peer, Layout::Iptables))
};

/// What both have in common.
const fn path(build: Build) -> Path {
    Path {
        axes: &["containers", "rules", "conntrack", "services"],
        by_name_only: true,
        ..Path::routed(build)
    }
}

fn build(lab: &mut Builder, peer: Peer, layout: Layout) -> Result<Topology> {
    let topology = lab.routed(peer)?;
    let axes = lab.axes();
    let services = Services::new(layout, axes.family, axes.services.unwrap_or(1));
    services.load(lab.space(role::HUB)?.ns())?;
    lab.expect_services(services);
    Ok(topology)
}
