//! What the kernel says of a device, `RTM_NEWLINK` (`linux/if_link.h`).

use netlink_packet_route::link::LinkFlags;

use super::{IFINFOMSG, IFLA_INFO_KIND, IFLA_LINKINFO, Link, XdpHook};
use crate::attrs::{attribute, attributes, text, u16_at, u32_at};

const IFF_LOWER_UP: u32 = 1 << 16;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_PROMISCUITY: u16 = 30;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_GSO_MAX_SIZE: u16 = 41;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
const XDP_ATTACHED_NONE: u8 = 0;
const XDP_ATTACHED_SKB: u8 = 2;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VLAN_ID: u16 = 1;
const IFLA_VXLAN_LINK: u16 = 3;
const IFLA_AMT_LINK: u16 = 4;

pub(crate) fn parse(reply: &[u8]) -> Link {
    let flags = u32_at(reply, 8).unwrap_or(0);
    let mut link = Link {
        index: u32_at(reply, 4).unwrap_or(0),
        up: flags & LinkFlags::Up.bits() != 0,
        carrier: flags & IFF_LOWER_UP != 0,
        takes_all: flags & LinkFlags::Promisc.bits() != 0,
        ..Link::default()
    };
    let mut below = None;
    for (kind, value) in attributes(reply, IFINFOMSG) {
        match kind {
            IFLA_ADDRESS => link.mac = value.try_into().ok(),
            IFLA_IFNAME => link.name = text(value),
            IFLA_MTU => link.mtu = u32_at(value, 0).unwrap_or(0),
            // 0 of tunnels without a device of their own (`gt1@NONE`).
            IFLA_LINK => link.lower = u32_at(value, 0).filter(|index| *index != 0),
            IFLA_LINK_NETNSID => {
                link.lower_ns = value.try_into().ok().map(i32::from_ne_bytes);
            }
            IFLA_PROMISCUITY => link.promiscuous = u32_at(value, 0).is_some_and(|count| count > 0),
            IFLA_MASTER => link.master = u32_at(value, 0),
            IFLA_GSO_MAX_SIZE => link.gso_max_size = u32_at(value, 0),
            IFLA_XDP => link.xdp = xdp_hook(value),
            IFLA_LINKINFO => {
                link.kind = attribute(value, 0, IFLA_INFO_KIND).map(text);
                let data = attribute(value, 0, IFLA_INFO_DATA).unwrap_or_default();
                link.vlan = attribute(data, 0, IFLA_VLAN_ID)
                    .filter(|_| link.kind.as_deref() == Some("vlan"))
                    .and_then(|id| u16_at(id, 0));
                below = below_tunnel(link.kind.as_deref(), data);
            }
            _ => {}
        }
    }
    link.lower = link.lower.or(below);
    link
}

/// The device that a tunnel was made on, of kinds that do not say it by `IFLA_LINK`.
fn below_tunnel(kind: Option<&str>, data: &[u8]) -> Option<u32> {
    let wanted = match kind? {
        "vxlan" => IFLA_VXLAN_LINK,
        "amt" => IFLA_AMT_LINK,
        _ => return None,
    };
    let index = u32_at(attribute(data, 0, wanted)?, 0);
    index.filter(|index| *index != 0)
}

fn xdp_hook(value: &[u8]) -> Option<XdpHook> {
    match *attribute(value, 0, IFLA_XDP_ATTACHED)?.first()? {
        XDP_ATTACHED_NONE => None,
        XDP_ATTACHED_SKB => Some(XdpHook::Stack),
        _ => Some(XdpHook::Driver),
    }
}
