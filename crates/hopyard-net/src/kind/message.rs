//! The netlink messages that make devices.

use std::net::IpAddr;
use std::os::fd::AsRawFd;

use netlink_packet_route::link::{
    InfoData, InfoGeneve, InfoGre, InfoIpTunnel, InfoIpVlan, InfoKind, InfoMacSec, InfoMacVlan,
    InfoMacVtap, InfoNetkit, InfoVeth, InfoVrf, InfoVxlan, IpVlanMode, LinkAttribute, LinkFlags,
    LinkInfo, LinkMessage, MacVlanMode, NetkitMode, NetkitPolicy,
};

use super::{IpvlanMode, LinkKind, MacvlanMode, NetkitLayer, NewLink};
use crate::netns::NetNs;

/// The request that makes a device; `lower` is the index of the device below.
pub(crate) fn message(link: &NewLink<'_>, lower: Option<u32>) -> LinkMessage {
    let mut message = end(link, &link.name, link.into, link.mac);
    if link.up {
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
    }
    let mut info = vec![LinkInfo::Kind(kind(&link.kind))];
    info.extend(data(link, lower).map(LinkInfo::Data));
    if let (Some(index), false) = (lower, matches!(link.kind, LinkKind::Vxlan { .. })) {
        message.attributes.push(LinkAttribute::Link(index));
    }
    message.attributes.push(LinkAttribute::LinkInfo(info));
    message
}

/// What both ends of a pair have in common.
fn end(link: &NewLink<'_>, name: &str, ns: Option<&NetNs>, mac: Option<[u8; 6]>) -> LinkMessage {
    let mut message = LinkMessage::default();
    let queues = link.queues;
    message.attributes = [
        Some(LinkAttribute::IfName(name.to_owned())),
        link.mtu.map(LinkAttribute::Mtu),
        mac.map(|mac| LinkAttribute::Address(mac.to_vec())),
        ns.map(|ns| LinkAttribute::NetNsFd(std::os::fd::AsFd::as_fd(ns).as_raw_fd())),
        queues.map(LinkAttribute::NumTxQueues),
        queues.map(LinkAttribute::NumRxQueues),
        link.gso_max_size.map(LinkAttribute::GsoMaxSize),
        link.gso_max_segs.map(LinkAttribute::GsoMaxSegs),
    ]
    .into_iter()
    .flatten()
    .collect();
    message
}

fn kind(kind: &LinkKind<'_>) -> InfoKind {
    match kind {
        LinkKind::Veth { .. } => InfoKind::Veth,
        LinkKind::Bridge(_) => InfoKind::Bridge,
        LinkKind::Macvlan { .. } => InfoKind::MacVlan,
        LinkKind::Macvtap { .. } => InfoKind::MacVtap,
        LinkKind::Ipvlan { .. } => InfoKind::IpVlan,
        LinkKind::Vxlan { .. } => InfoKind::Vxlan,
        LinkKind::Geneve { .. } => InfoKind::Geneve,
        LinkKind::Gre { .. } => InfoKind::GreTun,
        LinkKind::Ipip { .. } => InfoKind::IpIp,
        LinkKind::Wireguard => InfoKind::Wireguard,
        LinkKind::Macsec { .. } => InfoKind::MacSec,
        LinkKind::Vrf { .. } => InfoKind::Vrf,
        LinkKind::Netkit { .. } => InfoKind::Netkit,
    }
}

fn data(link: &NewLink<'_>, lower: Option<u32>) -> Option<InfoData> {
    Some(match &link.kind {
        LinkKind::Veth {
            peer,
            peer_ns,
            peer_mac,
        } => InfoData::Veth(InfoVeth::Peer(end(link, peer, *peer_ns, *peer_mac))),
        LinkKind::Bridge(settings) => InfoData::Bridge(settings.attributes()),
        LinkKind::Macvlan { mode, .. } => {
            InfoData::MacVlan(vec![InfoMacVlan::Mode((*mode).into())])
        }
        LinkKind::Macvtap { mode, .. } => {
            InfoData::MacVtap(vec![InfoMacVtap::Mode((*mode).into())])
        }
        LinkKind::Ipvlan { mode, .. } => InfoData::IpVlan(vec![InfoIpVlan::Mode(match mode {
            IpvlanMode::L2 => IpVlanMode::L2,
            IpvlanMode::L3 => IpVlanMode::L3,
            IpvlanMode::L3s => IpVlanMode::L3S,
        })]),
        LinkKind::Vxlan {
            vni,
            local,
            remote,
            port,
            ..
        } => {
            let mut data = vec![InfoVxlan::Id(*vni), InfoVxlan::Port(*port)];
            data.push(match local {
                IpAddr::V4(ip) => InfoVxlan::Local(*ip),
                IpAddr::V6(ip) => InfoVxlan::Local6(*ip),
            });
            data.push(match remote {
                IpAddr::V4(ip) => InfoVxlan::Group(*ip),
                IpAddr::V6(ip) => InfoVxlan::Group6(*ip),
            });
            data.extend(lower.map(InfoVxlan::Link));
            InfoData::Vxlan(data)
        }
        LinkKind::Geneve { vni, remote, port } => InfoData::Geneve(vec![
            InfoGeneve::Id(*vni),
            InfoGeneve::Port(*port),
            InfoGeneve::UdpCsum(true),
            match remote {
                IpAddr::V4(ip) => InfoGeneve::Remote(*ip),
                IpAddr::V6(ip) => InfoGeneve::Remote6(*ip),
            },
        ]),
        LinkKind::Gre { local, remote } => InfoData::GreTun(vec![
            InfoGre::Local(*local),
            InfoGre::Remote(*remote),
            InfoGre::PathMTUDiscovery(true),
        ]),
        LinkKind::Ipip { local, remote } => InfoData::IpTunnel(vec![
            InfoIpTunnel::Local((*local).into()),
            InfoIpTunnel::Remote((*remote).into()),
            InfoIpTunnel::PMtuDisc(true),
        ]),
        LinkKind::Wireguard => return None,
        LinkKind::Macsec { .. } => InfoData::MacSec(vec![InfoMacSec::Encrypt(1)]),
        LinkKind::Vrf { table } => InfoData::Vrf(vec![InfoVrf::TableId(*table)]),
        LinkKind::Netkit {
            mode,
            peer,
            peer_ns,
            peer_mac,
        } => InfoData::Netkit(vec![
            InfoNetkit::Mode(match mode {
                NetkitLayer::L2 => NetkitMode::L2,
                NetkitLayer::L3 => NetkitMode::L3,
            }),
            InfoNetkit::Policy(NetkitPolicy::Pass),
            InfoNetkit::PeerPolicy(NetkitPolicy::Pass),
            InfoNetkit::Peer(end(link, peer, *peer_ns, *peer_mac)),
        ]),
    })
}

impl From<MacvlanMode> for MacVlanMode {
    fn from(mode: MacvlanMode) -> Self {
        match mode {
            MacvlanMode::Private => Self::Private,
            MacvlanMode::Vepa => Self::Vepa,
            MacvlanMode::Bridge => Self::Bridge,
            MacvlanMode::Passthru => Self::Passthrough,
        }
    }
}
