//! What the kernel tells about a tap or tun without its being opened (`tun_fill_info` in
//! `drivers/net/tun.c`).

use netlink_packet_route::RouteNetlinkMessage;

use crate::attrs::{attribute, text, u32_at};
use crate::error::{Error, Result};
use crate::handle::{Handle, missing_device};
use crate::link::{IFINFOMSG, IFLA_INFO_KIND, IFLA_LINKINFO, named};

const IFLA_INFO_DATA: u16 = 2;
const IFLA_TUN_OWNER: u16 = 1;
const IFLA_TUN_GROUP: u16 = 2;
const IFLA_TUN_TYPE: u16 = 3;
const IFLA_TUN_PI: u16 = 4;
const IFLA_TUN_VNET_HDR: u16 = 5;
const IFLA_TUN_PERSIST: u16 = 6;
const IFLA_TUN_MULTI_QUEUE: u16 = 7;
const IFLA_TUN_NUM_QUEUES: u16 = 8;
const IFLA_TUN_NUM_DISABLED_QUEUES: u16 = 9;
/// `IFF_TAP`, the value of [`IFLA_TUN_TYPE`] for a tap.
const TAP: u8 = 2;

/// What passes a tap or tun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TunLayer {
    /// A tap: Ethernet frames.
    Tap,
    /// A tun: IP packets without an Ethernet header.
    Tun,
}

/// A tap or tun as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TunLink {
    /// Its index in its namespace.
    pub index: u32,
    /// Does it pass Ethernet frames or IP packets?
    pub layer: TunLayer,
    /// Whether it can have more than one queue.
    pub multi_queue: bool,
    /// Queues that are attached; `None` of a device with a single one.
    pub attached: Option<u32>,
    /// Queues that are open and detached; `None` of a device with a single one.
    pub detached: Option<u32>,
    /// Whether it outlives its last queue.
    pub persistent: bool,
    /// Whether frames carry a `virtio_net_hdr`.
    pub vnet_header: bool,
    /// Whether frames carry a `tun_pi`.
    pub packet_info: bool,
    /// The user who may attach without `CAP_NET_ADMIN`.
    pub owner: Option<u32>,
    /// The group whose members may attach without `CAP_NET_ADMIN`.
    pub group: Option<u32>,
}

impl Handle {
    /// A tap or tun of the namespace; `None` where the device of that name is of another kind. Takes no
    /// privilege.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is no device of that name.
    pub fn tun_link(&self, name: &str) -> Result<Option<TunLink>> {
        let what = format!("read tap or tun `{name}`");
        // The kernel would refuse the name as out of range.
        if name.len() >= libc::IFNAMSIZ {
            return Err(missing_device(&what, name));
        }
        let replies = self.ask(&what, name, RouteNetlinkMessage::GetLink(named(name)), 0)?;
        let reply = replies.first().map(Vec::as_slice).unwrap_or_default();
        let Some(info) = attribute(reply, IFINFOMSG, IFLA_LINKINFO) else {
            return Ok(None);
        };
        if attribute(info, 0, IFLA_INFO_KIND).map(text).as_deref() != Some("tun") {
            return Ok(None);
        }
        let data = attribute(info, 0, IFLA_INFO_DATA).ok_or_else(|| Error::Reply {
            what,
            why: "the kernel says nothing about it; that takes Linux 4.16".into(),
        })?;
        Ok(Some(parse(u32_at(reply, 4).unwrap_or(0), data)))
    }
}

fn parse(index: u32, data: &[u8]) -> TunLink {
    let byte = |kind| attribute(data, 0, kind).and_then(|value| value.first().copied());
    let flag = |kind| byte(kind).is_some_and(|value| value != 0);
    let number = |kind| attribute(data, 0, kind).and_then(|value| u32_at(value, 0));
    TunLink {
        index,
        layer: match byte(IFLA_TUN_TYPE) {
            Some(TAP) => TunLayer::Tap,
            _ => TunLayer::Tun,
        },
        multi_queue: flag(IFLA_TUN_MULTI_QUEUE),
        attached: number(IFLA_TUN_NUM_QUEUES),
        detached: number(IFLA_TUN_NUM_DISABLED_QUEUES),
        persistent: flag(IFLA_TUN_PERSIST),
        vnet_header: flag(IFLA_TUN_VNET_HDR),
        packet_info: flag(IFLA_TUN_PI),
        owner: number(IFLA_TUN_OWNER),
        group: number(IFLA_TUN_GROUP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, value) in attributes {
            let length = u16::try_from(4 + value.len()).unwrap();
            bytes.extend(length.to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(*value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn reads_what_the_kernel_tells() {
        let told = message(&[
            (IFLA_TUN_TYPE, &[2]),
            (IFLA_TUN_OWNER, &1000u32.to_ne_bytes()),
            (IFLA_TUN_VNET_HDR, &[1]),
            (IFLA_TUN_PI, &[0]),
            (IFLA_TUN_MULTI_QUEUE, &[1]),
            (IFLA_TUN_NUM_QUEUES, &3u32.to_ne_bytes()),
            (IFLA_TUN_NUM_DISABLED_QUEUES, &1u32.to_ne_bytes()),
        ]);
        let link = parse(7, &told);
        assert_eq!((link.index, link.layer), (7, TunLayer::Tap));
        assert!(link.multi_queue && link.vnet_header && !link.packet_info && !link.persistent);
        assert_eq!((link.attached, link.detached), (Some(3), Some(1)));
        assert_eq!((link.owner, link.group), (Some(1000), None));
    }

    #[test]
    fn a_single_queue_tun_has_no_counts() {
        let link = parse(7, &message(&[(IFLA_TUN_TYPE, &[1])]));
        assert_eq!(link.layer, TunLayer::Tun);
        assert_eq!((link.attached, link.detached), (None, None));
        assert_eq!(parse(7, &[]).attached, None);
    }
}
