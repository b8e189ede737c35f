//! `service-nft` and `service-iptables`: as `veth-route`, and the client connects to the address of a service, which the hub
//! translates as kube-proxy does.

use super::netfilter::{
    CONNTRACK, CT, IPTABLES_NAT, NAT, NUMGEN, REJECT, XT_ADDRTYPE, XT_COMMENT, XT_CONNTRACK,
    XT_MARK, XT_MASQUERADE,
};
use super::{Need, Path};
use crate::model::{Axes, Peer};
use crate::services::{Layout, Services};
use crate::{Builder, Result, Topology, role};

pub(super) static SERVICE_NFT: Service = Service(Layout::Nftables);
pub(super) static SERVICE_IPTABLES: Service = Service(Layout::Iptables);

pub(super) struct Service(Layout);

impl Path for Service {
    fn name(&self) -> &'static str {
        match self.0 {
            Layout::Nftables => "service-nft",
            Layout::Iptables => "service-iptables",
        }
    }

    fn summary(&self) -> &'static str {
        match self.0 {
            Layout::Nftables => {
                "veth-route to a service's address: DNAT by a verdict map (kube-proxy, mode nftables)"
            }
            Layout::Iptables => {
                "veth-route to a service's address: DNAT by a rule for each service (kube-proxy, mode iptables)"
            }
        }
    }

    fn peers(&self) -> &'static [Peer] {
        &[Peer::Local, Peer::Far]
    }

    /// The host is the router.
    fn reaches_host(&self, _: &Axes) -> bool {
        true
    }

    fn mtu_owner(&self) -> &'static str {
        "each pair; the host asks for smaller packets or cuts them"
    }

    fn needs(&self) -> &'static [Need] {
        match self.0 {
            Layout::Nftables => &[Need::VETH, Need::FILTER, NAT, CT, NUMGEN, REJECT, CONNTRACK],
            Layout::Iptables => &[
                Need::VETH,
                IPTABLES_NAT,
                XT_COMMENT,
                XT_MARK,
                XT_CONNTRACK,
                XT_ADDRTYPE,
                XT_MASQUERADE,
                CONNTRACK,
            ],
        }
    }

    fn filter_sees(&self, _: Peer) -> bool {
        true
    }

    fn axes(&self) -> &'static [&'static str] {
        &["containers", "rules", "conntrack", "services"]
    }

    fn by_name_only(&self) -> bool {
        true
    }

    fn build(&self, lab: &mut Builder, peer: Peer) -> Result<Topology> {
        let topology = lab.routed(peer)?;
        let axes = lab.axes();
        let services = Services::new(self.0, axes.family, axes.services.unwrap_or(1));
        services.load(lab.space(role::HUB)?.ns())?;
        lab.expect_services(services);
        Ok(topology)
    }
}
