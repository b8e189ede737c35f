//! The kinds of devices.

mod message;

use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_route::link::{BridgeStpState, InfoBridge};

use crate::error::Error;
use crate::handle;
use crate::netlink::Refusal;
use crate::netns::NetNs;
pub(crate) use message::message;

/// Of the kernel's own (`include/linux/errno.h`), which some drivers let through.
const ENOTSUPP: i32 = 524;

/// A device to make.
#[derive(Debug, Clone)]
pub struct NewLink<'a> {
    /// Its name, at most 15 bytes.
    pub name: String,
    /// What it is.
    pub kind: LinkKind<'a>,
    /// Bytes of network-layer payload; the kernel's default for the kind where `None`. Both ends of a
    /// pair get it.
    pub mtu: Option<u32>,
    /// Its Ethernet address; random where `None`.
    pub mac: Option<[u8; 6]>,
    /// Make it in another namespace, while lower device, underlay and veth peer are here.
    pub into: Option<&'a NetNs>,
    /// Transmit and receive queues, each; both ends of a pair get them. One where `None` (veth: as
    /// many as CPUs, one in use).
    pub queues: Option<u32>,
    /// Largest GSO packet, bytes (`IFLA_GSO_MAX_SIZE`).
    pub gso_max_size: Option<u32>,
    /// Most segments of a GSO packet.
    pub gso_max_segs: Option<u32>,
    /// Bring it up at once, which saves a request. The other end of a pair stays down until
    /// [`Handle::set_up`](crate::Handle::set_up) in its namespace: the kernel makes it first and
    /// cannot open it alone (`veth_open`).
    pub up: bool,
}

impl<'a> NewLink<'a> {
    /// A device with the kernel's defaults, down.
    pub fn new(name: impl Into<String>, kind: LinkKind<'a>) -> Self {
        Self {
            name: name.into(),
            kind,
            mtu: None,
            mac: None,
            into: None,
            queues: None,
            gso_max_size: None,
            gso_max_segs: None,
            up: false,
        }
    }
}

/// What a device is, by the kernel's names.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum LinkKind<'a> {
    /// A virtual cable, `drivers/net/veth.c`.
    Veth {
        /// Name of the other end.
        peer: String,
        /// Namespace of the other end; the handle's where `None`.
        peer_ns: Option<&'a NetNs>,
        /// Ethernet address of the other end.
        peer_mac: Option<[u8; 6]>,
    },
    /// A bridge, `net/bridge`.
    Bridge(BridgeSettings),
    /// A further Ethernet address on a device.
    Macvlan {
        /// The device below, in the handle's namespace.
        lower: String,
        /// Who may talk to whom.
        mode: MacvlanMode,
    },
    /// A macvlan with a character device `/dev/tapINDEX` instead of a stack behind it.
    Macvtap {
        /// The device below, in the handle's namespace.
        lower: String,
        /// Who may talk to whom.
        mode: MacvlanMode,
    },
    /// A further IP address on a device that shares its Ethernet address.
    Ipvlan {
        /// The device below, in the handle's namespace.
        lower: String,
        /// Bridging or routing inside.
        mode: IpvlanMode,
    },
    /// A VXLAN tunnel to one other host. UDP checksums as the kernel and iproute2 set them: on for
    /// IPv4, on for IPv6.
    Vxlan {
        /// Network identifier, 24 bits.
        vni: u32,
        /// Source address of the outer IP header.
        local: IpAddr,
        /// Outer destination address, of the same family.
        remote: IpAddr,
        /// UDP port; 4789 by RFC 7348.
        port: u16,
        /// The device to send by; found by the route where `None`.
        lower: Option<String>,
    },
    /// A Geneve tunnel (RFC 8926) without options to one other host. UDP checksums are on, as for [`LinkKind::Vxlan`]; the
    /// kernel itself leaves them out over IPv4.
    Geneve {
        /// Network identifier, 24 bits.
        vni: u32,
        /// Outer destination address.
        remote: IpAddr,
        /// UDP port; 6081 by RFC 8926.
        port: u16,
    },
    /// A GRE tunnel (RFC 2784) for IP packets of both versions over IPv4, without key, checksum and sequence numbers.
    Gre {
        /// Source address of the outer header.
        local: Ipv4Addr,
        /// Outer destination address.
        remote: Ipv4Addr,
    },
    /// A tunnel for IPv4 packets in IPv4 packets (RFC 2003).
    Ipip {
        /// Source address of the outer header.
        local: Ipv4Addr,
        /// Outer destination address.
        remote: Ipv4Addr,
    },
    /// A WireGuard device, `drivers/net/wireguard`, without key and peers: see [`Handle::set_wireguard_key`](crate::Handle::set_wireguard_key).
    Wireguard,
    /// MACsec (IEEE 802.1AE) on a device, `drivers/net/macsec.c`: encrypts, and has no keys yet, see
    /// [`Handle::key_macsec`](crate::Handle::key_macsec).
    Macsec {
        /// The device below, in the handle's namespace.
        lower: String,
    },
    /// A routing domain, `drivers/net/vrf.c`: what comes in by its ports is routed by its table.
    Vrf {
        /// The table.
        table: u32,
    },
    /// A pair for containers whose traffic BPF may forward, `drivers/net/netkit.c` (Linux 6.7).
    /// Both ends pass what no program decides about. The first device is the one that programs are attached to.
    Netkit {
        /// What it carries.
        mode: NetkitLayer,
        /// Name of the other end.
        peer: String,
        /// Namespace of the other end; the handle's where `None`.
        peer_ns: Option<&'a NetNs>,
        /// Ethernet address of the other end (layer 2); `None`: a random one.
        peer_mac: Option<[u8; 6]>,
    },
}

/// How a bridge forwards. What is not set is as the kernel makes it: no spanning tree, 15 s of forward delay with one, multicast
/// snooping.
///
/// ```
/// use hopyard_net::BridgeSettings;
///
/// let at_once = BridgeSettings::default().stp(false).forward_delay(0);
/// assert_eq!(at_once.multicast_snooping, None);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BridgeSettings {
    /// Does it speak the spanning tree protocol?
    pub stp: Option<bool>,
    /// Hundredths of a second for which a new port listens, and then learns, before it forwards. With the spanning tree
    /// protocol the kernel takes 2 to 30 s.
    pub forward_delay: Option<u32>,
    /// Does multicast go only to ports where somebody asked for it?
    pub multicast_snooping: Option<bool>,
}

impl BridgeSettings {
    /// With the spanning tree protocol or without.
    #[must_use]
    pub fn stp(self, stp: bool) -> Self {
        Self {
            stp: Some(stp),
            ..self
        }
    }

    /// With this forward delay, in hundredths of a second.
    #[must_use]
    pub fn forward_delay(self, hundredths: u32) -> Self {
        Self {
            forward_delay: Some(hundredths),
            ..self
        }
    }

    /// With multicast snooping or without.
    #[must_use]
    pub fn multicast_snooping(self, snoops: bool) -> Self {
        Self {
            multicast_snooping: Some(snoops),
            ..self
        }
    }

    fn attributes(self) -> Vec<InfoBridge> {
        let state = |on| match on {
            true => BridgeStpState::KernelStp,
            false => BridgeStpState::Disabled,
        };
        [
            self.forward_delay.map(InfoBridge::ForwardDelay),
            self.stp.map(|on| InfoBridge::StpState(state(on))),
            self.multicast_snooping.map(InfoBridge::MulticastSnooping),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// What a netkit pair carries, `enum netkit_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetkitLayer {
    /// Ethernet frames, between devices with addresses of their own.
    L2,
    /// IP packets: there are no Ethernet addresses, and nobody asks for any.
    L3,
}

/// Macvlan modes, `enum macvlan_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MacvlanMode {
    /// Devices on the same lower one do not see each other.
    Private,
    /// Everything goes out; an outside switch sends it back.
    Vepa,
    /// Devices on the same lower one talk directly.
    Bridge,
    /// One device takes the lower one over.
    Passthru,
}

/// Ipvlan modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum IpvlanMode {
    /// Switched by address, ARP and multicast work.
    L2,
    /// Routed in the namespace of the lower device.
    L3,
    /// As L3, through netfilter and its connection tracking.
    L3s,
}

impl<'a> LinkKind<'a> {
    /// A virtual cable whose other end has this name and any Ethernet address; `None`: it is in the handle's namespace too.
    pub fn veth(peer: impl Into<String>, peer_ns: Option<&'a NetNs>) -> Self {
        Self::Veth {
            peer: peer.into(),
            peer_ns,
            peer_mac: None,
        }
    }

    /// The kernel's name of the kind.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Veth { .. } => "veth",
            Self::Bridge(_) => "bridge",
            Self::Macvlan { .. } => "macvlan",
            Self::Macvtap { .. } => "macvtap",
            Self::Ipvlan { .. } => "ipvlan",
            Self::Vxlan { .. } => "vxlan",
            Self::Geneve { .. } => "geneve",
            Self::Gre { .. } => "gre",
            Self::Ipip { .. } => "ipip",
            Self::Wireguard => "wireguard",
            Self::Macsec { .. } => "macsec",
            Self::Vrf { .. } => "vrf",
            Self::Netkit { .. } => "netkit",
        }
    }

    /// The device below, where the kind has one.
    pub(crate) fn lower(&self) -> Option<&str> {
        match self {
            Self::Macvlan { lower, .. }
            | Self::Macvtap { lower, .. }
            | Self::Ipvlan { lower, .. }
            | Self::Macsec { lower } => Some(lower),
            Self::Vxlan { lower, .. } => lower.as_deref(),
            Self::Veth { .. }
            | Self::Bridge(_)
            | Self::Geneve { .. }
            | Self::Gre { .. }
            | Self::Ipip { .. }
            | Self::Wireguard
            | Self::Vrf { .. }
            | Self::Netkit { .. } => None,
        }
    }

    /// Does it send its outer packets from the namespace that it is made in? VXLAN, Geneve and WireGuard send them from the
    /// namespace of who makes them, wherever they live; GRE and IPIP do not before Linux 6.15 (`ip_tunnel_newlink`), so
    /// they are made below and moved.
    pub(crate) fn sends_from_where_it_is_made(&self) -> bool {
        matches!(self, Self::Gre { .. } | Self::Ipip { .. })
    }

    /// The other end, where the kind has one.
    pub(crate) fn peer(&self) -> Option<&str> {
        match self {
            Self::Veth { peer, .. } | Self::Netkit { peer, .. } => Some(peer),
            _ => None,
        }
    }
}

/// What a refusal to make a device means. The kernel says `EOPNOTSUPP`, "Unknown device type", for a kind it does not
/// have, and `ENOTSUPP` for an ipvlan mode that it was built without (`drivers/net/ipvlan/ipvlan.h`).
pub(crate) fn refused(what: &str, kind: &LinkKind<'_>, refusal: Refusal) -> Error {
    let is_l3s = matches!(
        kind,
        LinkKind::Ipvlan {
            mode: IpvlanMode::L3s,
            ..
        }
    );
    if is_l3s && refusal.errno() == ENOTSUPP {
        return Error::Unsupported {
            what: what.into(),
            feature: "ipvlan mode l3s".into(),
            remedy: "this needs a kernel with CONFIG_IPVLAN_L3S".into(),
        };
    }
    let kind = kind.name();
    let detail = refusal.detail.as_deref();
    if refusal.errno() == libc::EOPNOTSUPP
        && detail.is_none_or(|text| text.contains("nknown device type"))
    {
        let mut remedy = format!(
            "load module `{}` (kernel option {})",
            module(kind),
            option(kind)
        );
        if detail.is_none() {
            // Without a text, the kernel may have the kind but not what was asked of it.
            remedy += "; if it is loaded, this kernel was built without one of the settings that were asked for";
        }
        return Error::Unsupported {
            what: what.into(),
            feature: kind.into(),
            remedy,
        };
    }
    handle::refused(what, refusal)
}

/// The kernel module behind a kind.
fn module(kind: &str) -> &str {
    match kind {
        "gre" => "ip_gre",
        other => other,
    }
}

/// The kernel configuration option behind a kind.
fn option(kind: &str) -> String {
    match kind {
        "gre" => "CONFIG_NET_IPGRE".into(),
        "ipip" => "CONFIG_NET_IPIP".into(),
        "vrf" => "CONFIG_NET_VRF".into(),
        other => format!("CONFIG_{}", other.to_ascii_uppercase()),
    }
}

#[cfg(test)]
mod tests;
