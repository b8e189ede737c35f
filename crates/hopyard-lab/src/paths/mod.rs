//! The paths: one file each, one line each in [`PATHS`].

mod af_xdp;
mod as_is;
mod bridge;
mod bridge_nat;
mod definition;
mod direct;
mod direct_shortcut;
mod flowtable;
mod forward;
mod forward_each;
mod geneve;
mod gre;
mod ipip;
mod ipsec;
mod ipvlan;
mod ipvlan_l3s;
mod macsec;
mod macvlan;
mod native;
mod netfilter;
mod netkit;
mod netkit_redirect;
mod open_vswitch;
pub(super) mod pasta;
mod service;
pub(super) mod slirp4netns;
mod sockmap;
mod tap_mq;
pub(super) mod tap_vde;
pub(super) mod tun_vpn;
mod tunnel;
mod unix;
mod user_mode;
mod veth;
mod veth_route;
mod veth_xdp;
mod vm;
mod vrf;
mod vxlan;
mod wireguard;

pub use self::definition::{Build, Echo, Path};
pub use super::need::Need;

use std::collections::BTreeSet;

use super::Error;
use crate::error::Cable;
pub use crate::guest::Carried;
use crate::model::{Axes, Peer, UnknownName};

/// Where rules see the traffic of devices that share an uplink.
fn at_uplink(peer: Peer) -> &'static str {
    match peer {
        Peer::Far => "family netdev of nftables, at the uplink",
        Peer::Local | Peer::Host => "the endpoints",
    }
}

/// Every path, in the order in which tables show them.
pub static PATHS: &[&Path] = &[
    &native::NATIVE,
    &unix::STREAM,
    &unix::SEQPACKET,
    &veth::VETH,
    &veth_route::VETH_ROUTE,
    &vrf::VRF,
    &veth_xdp::VETH_XDP,
    &sockmap::SOCKMAP,
    &bridge::BRIDGE,
    &bridge::BRIDGE_NF,
    &bridge_nat::BRIDGE_NAT,
    &service::SERVICE_NFT,
    &service::SERVICE_IPTABLES,
    &flowtable::FLOWTABLE,
    &open_vswitch::OVS_VETH,
    &open_vswitch::OVS_INTERNAL,
    &direct::DIRECT,
    &direct::DIRECT_NETKIT,
    &direct_shortcut::DIRECT_SHORTCUT,
    &tap_mq::TAP_MQ,
    &tap_vde::TAP_VDE,
    &af_xdp::AF_XDP,
    &tun_vpn::TUN_VPN,
    &pasta::PASTA,
    &slirp4netns::SLIRP4NETNS,
    &macvlan::MACVLAN,
    &ipvlan::IPVLAN,
    &ipvlan_l3s::IPVLAN_L3S,
    &vxlan::VXLAN,
    &geneve::GENEVE,
    &gre::GRE,
    &ipip::IPIP,
    &wireguard::WIREGUARD,
    &macsec::MACSEC,
    &ipsec::TRANSPORT,
    &ipsec::TUNNEL,
    &netkit::NETKIT,
    &netkit_redirect::L2,
    &netkit_redirect::L3,
    &vm::VM,
    &forward::FORWARD,
    &forward_each::FORWARD_EACH,
    &as_is::AS_IS,
];

/// Why this host cannot build the path of that name; `None` where it can.
#[must_use]
pub fn lacking(name: &str) -> Option<String> {
    let path = path(name).map_err(Error::from);
    let available = path.and_then(Path::available);
    available.err().map(|error| crate::chain(&error))
}

/// What a machine must carry to build every path, with the defaults of all axes.
#[must_use]
pub fn carried() -> BTreeSet<Carried> {
    let axes = Axes::default();
    let paths = PATHS.iter();
    paths.flat_map(|path| path.carried(&axes)).collect()
}

/// The error that a path does not cross a cable.
pub(crate) fn no_cable(path: &'static str) -> Error {
    let crossing = PATHS.iter().filter(|path| path.crosses_cable);
    let names: Vec<_> = crossing.map(|path| path.name).collect();
    Error::Cable(Cable::Path {
        path,
        choices: names.join(", "),
    })
}

/// The path of that name.
///
/// # Errors
/// There is none; the error lists them all.
pub fn path(name: &str) -> std::result::Result<&'static Path, UnknownName> {
    PATHS
        .iter()
        .copied()
        .find(|path| path.name == name)
        .ok_or_else(|| UnknownName::new("path", name, PATHS.iter().map(|path| path.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Sockets;

    #[test]
    fn names_are_unique_and_every_path_has_a_peer() {
        let mut names: Vec<_> = PATHS.iter().map(|p| p.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PATHS.len());
        for path in PATHS {
            assert!(!path.name.is_empty(), "{}", path.summary);
            assert!(!path.peers.is_empty(), "{}", path.name);
            assert!(!path.summary.is_empty(), "{}", path.name);
        }
    }

    #[test]
    fn every_path_says_what_it_needs() {
        let carried = carried();
        let wanted: Vec<_> = carried.iter().flat_map(|c| c.modules).collect();
        for module in ["veth", "bridge", "br_netfilter", "openvswitch", "ipvlan"] {
            assert!(wanted.contains(&&module), "{module}");
        }
        for path in PATHS {
            let has_devices = path.is_built && path.sockets == Sockets::Internet;
            assert_eq!(path.needs.is_empty(), !has_devices, "{}", path.name);
        }
    }

    #[test]
    fn an_unknown_path_lists_the_known() {
        let error = path("wormhole").unwrap_err().to_string();
        assert!(
            error.starts_with("there is no path `wormhole`: choose native, unix,"),
            "{error}"
        );
    }
}
