//! Which way the kernel sends packets to an address.

use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};

use crate::address::{RTA_OIF, RTMSG, family, ip_at};
use crate::attrs::{attributes, u32_at};
use crate::error::{Error, Result};
use crate::handle::{Handle, refused};

const RTA_PREFSRC: u16 = 7;

/// The way to an address, as the kernel chooses it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WayTo {
    /// Name of the device that sends the packets: `lo` for the namespace's own addresses.
    pub device: String,
    /// Source address of the packets; `None` where the kernel names none.
    pub source: Option<IpAddr>,
}

impl Handle {
    /// The way to an address (`ip route get`).
    ///
    /// # Errors
    /// [`Error::Kernel`]: `ENETUNREACH` or `EHOSTUNREACH` where there is none, [`Error::Reply`] where the kernel names no
    /// device.
    pub fn way_to(&self, address: IpAddr) -> Result<WayTo> {
        let what = format!("find the route to {address}");
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
        let destination = RouteAddress::from(address);
        message.attributes = vec![RouteAttribute::Destination(destination)];
        let replies = self
            .request(RouteNetlinkMessage::GetRoute(message), 0)
            .map_err(|refusal| refused(&what, refusal))?;
        let nameless = || Error::Reply {
            what: what.clone(),
            why: "it names no device".to_owned(),
        };
        let reply = replies.first().ok_or_else(nameless)?;
        let (mut index, mut source) = (None, None);
        for (kind, value) in attributes(reply, RTMSG) {
            match kind {
                RTA_OIF => index = u32_at(value, 0),
                RTA_PREFSRC => source = ip_at(value),
                _ => {}
            }
        }
        let index = index.ok_or_else(nameless)?;
        let link = self.links()?.into_iter().find(|link| link.index == index);
        let device = link.ok_or_else(nameless)?.name;
        Ok(WayTo { device, source })
    }
}
