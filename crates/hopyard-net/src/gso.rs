//! The largest packets that a device takes in one piece: to be segmented (GSO), and joined on receipt (GRO).

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::LinkAttribute;

use crate::attrs::{attribute, u32_at};
use crate::error::Result;
use crate::handle::{Handle, missing_device};
use crate::link::{IFINFOMSG, named};

const IFLA_GSO_MAX_SEGS: u16 = 40;
const IFLA_GSO_MAX_SIZE: u16 = 41;
const IFLA_GRO_MAX_SIZE: u16 = 58;
const IFLA_TSO_MAX_SIZE: u16 = 59;
const IFLA_GSO_IPV4_MAX_SIZE: u16 = 63;
const IFLA_GRO_IPV4_MAX_SIZE: u16 = 64;

/// Sizes in bytes, and a number of packets; `None` where the kernel does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MaxSizes {
    /// To be segmented; on kernels without `gso_ipv4` over both IP versions.
    pub gso: Option<u32>,
    /// The most segments of one packet.
    pub gso_max_segs: Option<u32>,
    /// Joined on receipt (Linux 5.19).
    pub gro: Option<u32>,
    /// To be segmented, over IPv4 (Linux 6.3).
    pub gso_ipv4: Option<u32>,
    /// Joined on receipt, over IPv4 (Linux 6.3).
    pub gro_ipv4: Option<u32>,
    /// The most that the device lets `gso` and `gso_ipv4` be (Linux 5.19).
    pub limit: Option<u32>,
}

impl Handle {
    /// The largest packets of a device.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) if there is none of that name.
    pub fn max_sizes(&self, name: &str) -> Result<MaxSizes> {
        let what = format!("read the packet sizes of `{name}`");
        let replies = self.ask(&what, name, RouteNetlinkMessage::GetLink(named(name)), 0)?;
        let reply = replies.first().ok_or_else(|| missing_device(&what, name))?;
        let size = |kind| attribute(reply, IFINFOMSG, kind).and_then(|value| u32_at(value, 0));
        Ok(MaxSizes {
            gso: size(IFLA_GSO_MAX_SIZE),
            gso_max_segs: size(IFLA_GSO_MAX_SEGS),
            gro: size(IFLA_GRO_MAX_SIZE),
            gso_ipv4: size(IFLA_GSO_IPV4_MAX_SIZE),
            gro_ipv4: size(IFLA_GRO_IPV4_MAX_SIZE),
            limit: size(IFLA_TSO_MAX_SIZE),
        })
    }

    /// Sets the largest packets of a device, to be segmented and joined, over both IP versions. Kernels pass over
    /// attributes that they do not know: see [`Handle::max_sizes`] for what came of it.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) if there is none of that name; [`Error::Kernel`](crate::Error::Kernel) (`EINVAL`) beyond the device's limit.
    pub fn set_max_sizes(&self, name: &str, bytes: u32) -> Result<()> {
        let what = format!("set the largest GSO and GRO packets of `{name}` to {bytes} bytes");
        let mut message = named(name);
        // The kernel takes them in this order, and the first two change the others up to 64 KiB.
        message.attributes.extend([
            LinkAttribute::GsoMaxSize(bytes),
            LinkAttribute::GroMaxSize(bytes),
            LinkAttribute::GsoIpv4MaxSize(bytes),
            LinkAttribute::GroIpv4MaxSize(bytes),
        ]);
        self.ask(&what, name, RouteNetlinkMessage::SetLink(message), 0)
            .map(drop)
    }

    /// Sets the most segments of a packet that a device is given. With 1, TCP sends no packet that has to be segmented, by the
    /// device or by the kernel. Existing connections keep the old limit.
    ///
    /// # Errors
    /// [`Error::Missing`](crate::Error::Missing) if there is none of that name; [`Error::Kernel`](crate::Error::Kernel) (`EINVAL`) beyond the device's limit.
    pub fn set_gso_max_segs(&self, name: &str, segments: u32) -> Result<()> {
        let what = format!("set the most segments of a GSO packet of `{name}` to {segments}");
        let mut message = named(name);
        message.attributes.push(LinkAttribute::GsoMaxSegs(segments));
        self.ask(&what, name, RouteNetlinkMessage::SetLink(message), 0)
            .map(drop)
    }
}
