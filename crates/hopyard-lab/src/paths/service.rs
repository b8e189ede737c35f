//! `service-nft` and `service-iptables`: as `veth-route`, and the client connects to the address of a service, which the hub
//! translates as kube-proxy does.

use super::netfilter::{
    CONNTRACK, CT, IP6TABLES_FILTER, IP6TABLES_NAT, IPTABLES_NAT, NAT, NUMGEN, REJECT, XT_ADDRTYPE,
    XT_COMMENT, XT_CONNTRACK, XT_MARK, XT_MASQUERADE,
};
use super::{Build, Need, Path};
use crate::model::{Family, Peer};
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
    needs_for: |axes| match axes.family {
        Family::V4 => &[],
        Family::V6 => &[IP6TABLES_NAT, IP6TABLES_FILTER],
    },
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Axes;

    #[test]
    fn rules_of_ip6tables_are_needed_for_ipv6_alone() {
        let needs = |family| {
            let axes = Axes {
                family,
                ..Axes::default()
            };
            (SERVICE_IPTABLES.needs_for)(&axes)
        };
        assert_eq!(needs(Family::V4), []);
        assert_eq!(needs(Family::V6), [IP6TABLES_NAT, IP6TABLES_FILTER]);
    }

    /// Either this host can load such rules, or the error says what it lacks.
    #[test]
    fn the_tables_of_ipv6_are_there_or_named() {
        let axes = Axes {
            family: Family::V6,
            ..Axes::default()
        };
        if let Err(error) = SERVICE_IPTABLES.available_with(&axes) {
            assert!(error.is_unsupported(), "{error}");
        }
    }
}
