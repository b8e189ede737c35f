//! Routes with their metrics, made and listed.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};

use crate::address::{
    RTA_GATEWAY, RTA_MULTIPATH, RTA_NH_ID, RTA_OIF, RTA_PREFSRC, RTA_VIA, RTMSG, RTN_UNICAST,
    check_prefix, family, hops, ip_at,
};
use crate::attrs::{attribute, attributes, u32_at};
use crate::error::{Error, Result};
use crate::handle::{Handle, refused};

const RTA_DST: u16 = 1;
const RTA_PRIORITY: u16 = 6;
const RTA_TABLE: u16 = 15;
/// Of a route that the kernel made for one destination (linux/rtnetlink.h).
const RTM_F_CLONED: u32 = 0x200;
/// The main table.
const MAIN: u32 = RouteHeader::RT_TABLE_MAIN as u32;

/// A unicast route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// First address of the destination.
    pub destination: IpAddr,
    /// Bits of the destination; 0 is the default route.
    pub prefix: u8,
    /// The gateway.
    pub via: Option<IpAddr>,
    /// Index of the device to send by.
    pub device: u32,
    /// The table; `None`: the main one.
    pub table: Option<u32>,
    /// Its metric; `None`: the kernel's default.
    pub priority: Option<u32>,
    /// Largest packet along this route, bytes.
    pub mtu: Option<u32>,
    /// Largest TCP segment to announce, bytes.
    pub advmss: Option<u32>,
    /// Its scope (`rtnetlink(7)`); `None`: `link` without a gateway, `global` with one.
    pub scope: Option<u8>,
}

impl Route {
    /// A route without metrics, in the main table.
    #[must_use]
    pub fn new(destination: IpAddr, prefix: u8, via: Option<IpAddr>, device: u32) -> Self {
        Self {
            destination,
            prefix,
            via,
            device,
            table: None,
            priority: None,
            mtu: None,
            advmss: None,
            scope: None,
        }
    }
}

impl Handle {
    /// Adds a route.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a prefix that is too long, [`Error::Kernel`](crate::Error::Kernel):
    /// `EEXIST` if there is one, `ENETUNREACH` for a gateway that cannot be reached.
    pub fn make_route(&self, route: &Route) -> Result<()> {
        self.send_route(route, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// As [`Self::make_route`], also where there is another route to the destination. In IPv4 this one is used then; in IPv6 both are, if
    /// they have gateways.
    ///
    /// # Errors
    /// As there; `EEXIST` if it is there itself.
    pub fn make_route_beside(&self, route: &Route) -> Result<()> {
        self.send_route(route, NLM_F_CREATE)
    }

    fn send_route(&self, route: &Route, flags: u16) -> Result<()> {
        let via = route.via.map(|via| format!(" via {via}"));
        let what = format!(
            "add route {}/{}{}",
            route.destination,
            route.prefix,
            via.unwrap_or_default()
        );
        check_prefix(&what, route.destination, route.prefix)?;
        let mut message = RouteMessage::default();
        message.header.address_family = family(route.destination);
        message.header.protocol = RouteProtocol::Static;
        message.header.kind = RouteType::Unicast;
        message.header.destination_prefix_length = route.prefix;
        message.header.scope = match (route.scope, route.via) {
            (Some(scope), _) => RouteScope::from(scope),
            (None, Some(_)) => RouteScope::Universe,
            (None, None) => RouteScope::Link,
        };
        let mut attributes = vec![
            RouteAttribute::Oif(route.device),
            RouteAttribute::Table(route.table.unwrap_or(MAIN)),
        ];
        if route.prefix > 0 {
            let destination = RouteAddress::from(route.destination);
            attributes.push(RouteAttribute::Destination(destination));
        }
        attributes.extend(
            route
                .via
                .map(|via| RouteAttribute::Gateway(RouteAddress::from(via))),
        );
        attributes.extend(route.priority.map(RouteAttribute::Priority));
        let metrics: Vec<RouteMetric> = [
            route.mtu.map(RouteMetric::Mtu),
            route.advmss.map(RouteMetric::Advmss),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !metrics.is_empty() {
            attributes.push(RouteAttribute::Metrics(metrics));
        }
        message.attributes = attributes;
        let message = RouteNetlinkMessage::NewRoute(message);
        self.request(message, flags)
            .map(drop)
            .map_err(|refusal| refused(&what, refusal))
    }

    /// The unicast routes of all tables that have one device, without their MTU and MSS.
    ///
    /// # Errors
    /// [`Error::Kernel`](crate::Error::Kernel) if the dump fails.
    pub fn routes(&self) -> Result<Vec<Route>> {
        let message = RouteNetlinkMessage::GetRoute(RouteMessage::default());
        let replies = self.dump("list the routes of a namespace", &message)?;
        Ok(replies.iter().filter_map(|reply| parse(reply)).collect())
    }

    /// Is there a unicast route to its destination by its gateway and device, in its table (`None`: the main one)? Next hops that share a
    /// destination count as routes.
    ///
    /// # Errors
    /// As [`Self::routes`].
    pub fn has_route(&self, wanted: &Route) -> Result<bool> {
        let message = RouteNetlinkMessage::GetRoute(RouteMessage::default());
        let replies = self.dump("list the routes of a namespace", &message)?;
        let place = (
            wanted.destination,
            wanted.prefix,
            Some(wanted.table.unwrap_or(MAIN)),
        );
        let is_it = |reply: &Vec<u8>| {
            let found =
                parse_any(reply).map(|found| (found.destination, found.prefix, found.table));
            found == Some(place) && hops(reply).contains(&(wanted.device, wanted.via))
        };
        Ok(replies.iter().any(is_it))
    }

    /// The devices of all default routes, those with several next hops included, by their numbers.
    ///
    /// # Errors
    /// As [`Self::routes`].
    pub fn devices_of_default_routes(&self) -> Result<Vec<u32>> {
        let of_default = |reply: &[u8]| reply.get(1) == Some(&0);
        self.devices_of(|reply| of_default(reply).then(|| devices(reply)))
    }

    /// The devices of all routes with several next hops, or with a next hop that is an object of its own (`ip nexthop`).
    ///
    /// # Errors
    /// As [`Self::routes`].
    pub fn devices_of_routes_by_next_hops(&self) -> Result<Vec<u32>> {
        let has = |reply: &[u8], kind| attribute(reply, RTMSG, kind).is_some();
        let is_one = |reply: &[u8]| has(reply, RTA_MULTIPATH) || has(reply, RTA_NH_ID);
        self.devices_of(|reply| is_one(reply).then(|| devices(reply)))
    }

    /// The devices of all routes whose preferred source is one of these addresses. When an IPv4 address is removed, the kernel removes
    /// these routes too, whatever their device (`fib_sync_down_addr`, net/ipv4/fib_semantics.c).
    ///
    /// # Errors
    /// As [`Self::routes`].
    pub fn devices_of_routes_from(&self, sources: &[IpAddr]) -> Result<Vec<u32>> {
        let source = |reply: &[u8]| attribute(reply, RTMSG, RTA_PREFSRC).and_then(ip_at);
        let is_one = |reply: &[u8]| source(reply).is_some_and(|ip| sources.contains(&ip));
        self.devices_of(|reply| is_one(reply).then(|| devices(reply)))
    }

    fn devices_of(&self, found: impl Fn(&[u8]) -> Option<Vec<u32>>) -> Result<Vec<u32>> {
        let what = "list the routes of a namespace";
        let message = RouteNetlinkMessage::GetRoute(RouteMessage::default());
        let replies = self.dump(what, &message)?;
        let mut all = Vec::new();
        for reply in replies
            .iter()
            .filter(|reply| reply.get(7) == Some(&RTN_UNICAST))
        {
            let Some(of_route) = found(reply) else {
                continue;
            };
            if of_route.is_empty() && attribute(reply, RTMSG, RTA_NH_ID).is_some() {
                return Err(Error::Reply {
                    what: what.to_owned(),
                    why: "the kernel does not say which device a route by `ip nexthop` has; it does with \
                          net.ipv4.nexthop_compat_mode=1"
                        .into(),
                });
            }
            all.extend(of_route);
        }
        Ok(all)
    }
}

/// The devices of a route, which may have several.
fn devices(route: &[u8]) -> Vec<u32> {
    hops(route).into_iter().map(|(device, _)| device).collect()
}

/// A route that has one device.
fn parse(reply: &[u8]) -> Option<Route> {
    parse_any(reply).filter(|route| route.device != 0)
}

/// A route, without the device if it has several.
fn parse_any(reply: &[u8]) -> Option<Route> {
    let header = reply.get(..RTMSG)?;
    // An exception that was learned, as of a smaller MTU, is no route of anybody's.
    let is_learned = u32_at(reply, 8).is_some_and(|flags| flags & RTM_F_CLONED != 0);
    if header[7] != RTN_UNICAST || is_learned {
        return None;
    }
    let any = match header[0] {
        2 => IpAddr::from([0; 4]),
        10 => IpAddr::from([0; 16]),
        _ => return None,
    };
    let mut route = Route::new(any, header[1], None, 0);
    route.table = Some(header[4].into());
    route.scope = Some(header[6]);
    for (kind, value) in attributes(reply, RTMSG) {
        match kind {
            RTA_DST => route.destination = ip_at(value)?,
            RTA_GATEWAY => route.via = ip_at(value),
            // The family of the address is before it.
            RTA_VIA => route.via = ip_at(value.get(2..).unwrap_or_default()),
            RTA_OIF => route.device = u32_at(value, 0)?,
            RTA_TABLE => route.table = u32_at(value, 0),
            RTA_PRIORITY => route.priority = u32_at(value, 0),
            _ => {}
        }
    }
    Some(route)
}
