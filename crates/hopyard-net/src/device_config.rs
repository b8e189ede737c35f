//! What is configured of a device, to be put back after the device was in another namespace: the kernel forgets all of it on the way.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_REPLACE, NetlinkSerializable};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::route::RouteMessage;
use netlink_packet_route::tc::TcMessage;

use crate::address::{RTA_GATEWAY, RTA_OIF, RTA_PREFSRC, RTMSG};
use crate::attrs::{TCA_KIND, TCMSG, attribute, attributes, text, u32_at};
use crate::error::{Error, Result};
use crate::handle::{Handle, refused};

const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
/// An attribute that a dump has and a request must not: when a route was last used, and when it expires.
const RTA_CACHEINFO: u16 = 12;
/// What a request has in its place: when a route expires, s (IPv6).
const RTA_EXPIRES: u16 = 23;
/// Offset in `struct rta_cacheinfo` of the time after which the route expires, in ticks of [`USER_HZ`]; 0 where it does not.
const EXPIRES: usize = 8;
const USER_HZ: u32 = 100;
/// Made by the kernel itself, with an address (`RTPROT_KERNEL`), or by a network manager that keeps the kernel from it.
const BY_KERNEL: u8 = 2;
/// `RT_TABLE_LOCAL`: an address brings those of this table back by itself.
const LOCAL: u8 = 255;
/// `RTN_UNICAST`.
const UNICAST: u8 = 1;
/// Learned of a destination, such as its MTU (`RTM_F_CLONED`); it ends by itself.
const CLONED: u32 = 0x200;
/// How long the kernel may look for others that have an IPv6 address: some 2 s, once there is a carrier.
const DETECTION: Duration = Duration::from_secs(8);
/// How often to try again meanwhile.
const LOOK: Duration = Duration::from_millis(100);
/// Below /proc/sys/net, a directory for each device.
const PLACES: [&str; 4] = ["ipv4/conf", "ipv6/conf", "ipv4/neigh", "ipv6/neigh"];

/// What a user has set of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeviceConfig {
    /// Largest packet, bytes.
    pub mtu: u32,
    /// Is it up?
    pub is_up: bool,
    /// Its addresses, as messages of the kernel (`struct ifaddrmsg` and attributes).
    pub addresses: Vec<Vec<u8>>,
    /// Routes by it, likewise (`struct rtmsg`), without those that the kernel makes in any case.
    pub routes: Vec<Vec<u8>>,
    /// Its sysctls by their keys below /proc/sys.
    pub sysctls: BTreeMap<String, String>,
}

/// A message as the kernel gave it.
struct Raw {
    kind: u16,
    bytes: Vec<u8>,
}

impl NetlinkSerializable for Raw {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.bytes.len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.bytes);
    }
}

impl Handle {
    /// What is configured of a device now.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is none of that name, [`Error::Kernel`].
    pub fn device_config(&self, name: &str) -> Result<DeviceConfig> {
        let link = self.link(name)?;
        let ask = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let mut addresses = self.dump("list the addresses of a device", &ask)?;
        addresses.retain(|m| u32_at(m, 4) == Some(link.index));
        let ask = RouteNetlinkMessage::GetRoute(RouteMessage::default());
        let mut routes = self.dump("list the routes of a device", &ask)?;
        routes.retain(|m| {
            let by = attribute(m, RTMSG, RTA_OIF).and_then(|value| u32_at(value, 0));
            by == Some(link.index) && is_of_user(m)
        });
        let key_of = |place: &str| format!("net/{place}/{name}");
        let sysctls = self.ns().run(|| {
            PLACES
                .iter()
                .flat_map(|place| settings(&key_of(place)))
                .collect()
        })?;
        Ok(DeviceConfig {
            mtu: link.mtu,
            is_up: link.up,
            addresses,
            routes,
            sysctls,
        })
    }

    /// Has a device a queueing discipline or filters that somebody gave it? Those that the kernel gives by itself have no number.
    ///
    /// # Errors
    /// As [`Handle::device_config`].
    pub fn qdiscs_of_user(&self, name: &str) -> Result<Vec<String>> {
        const HANDLE: usize = 8;
        let index = self.index(name)?;
        let ask = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::default());
        let all = self.dump("list queueing disciplines", &ask)?;
        let of_user = all.iter().filter(|m| {
            u32_at(m, 4) == Some(index) && u32_at(m, HANDLE).is_some_and(|number| number != 0)
        });
        Ok(of_user
            .filter_map(|m| attribute(m, TCMSG, TCA_KIND).map(text))
            .collect())
    }

    /// Puts back what was configured of a device. Goes on past what the kernel refuses, and gives its refusals.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is none of that name.
    pub fn configure_device(&self, name: &str, config: &DeviceConfig) -> Result<Vec<Error>> {
        let index = self.index(name)?;
        let mut problems = Vec::new();
        let mut noted = |result: Result<()>| problems.extend(result.err());
        noted(self.set_mtu(name, config.mtu));
        // Before it comes up: they say which addresses the kernel then makes.
        let current = |key: &String| self.sysctl(key).ok();
        let changed = config
            .sysctls
            .iter()
            .filter(|(key, value)| current(key).as_ref() != Some(*value));
        for (key, value) in changed {
            noted(self.set_sysctl(key, value));
        }
        if config.is_up {
            noted(self.set_up(name));
        }
        for address in &config.addresses {
            noted(self.put_back(
                "put an address back",
                (RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE),
                with_index_at(address, 4, index),
            ));
        }
        problems.extend(self.put_routes_back(&config.routes, index));
        Ok(problems)
    }

    /// Puts routes back, and returns the errors of those that the kernel refused.
    fn put_routes_back(&self, routes: &[Vec<u8>], index: u32) -> Vec<Error> {
        let mut problems = Vec::new();
        let deadline = Instant::now() + DETECTION;
        // Routes to gateways come after those by which the gateways are reached.
        let mut routes: Vec<&Vec<u8>> = routes.iter().collect();
        routes.sort_by_key(|route| attribute(route, RTMSG, RTA_GATEWAY).is_some());
        for route in routes {
            let mut put = self.put_route_back(route, index);
            while is_too_early(route, &put) && Instant::now() < deadline {
                thread::sleep(LOOK);
                put = self.put_route_back(route, index);
            }
            problems.extend(put.err());
        }
        problems
    }

    fn put_route_back(&self, route: &[u8], index: u32) -> Result<()> {
        // `NLM_F_REPLACE` would take away another device's route with the same destination and metric. The kernel may have made this
        // one already, with its address.
        let put = self.put_back(
            "put a route back",
            (RTM_NEWROUTE, NLM_F_CREATE | NLM_F_APPEND),
            route_by(route, index),
        );
        match put {
            Err(error) if error.errno() == Some(libc::EEXIST) => Ok(()),
            put => put,
        }
    }

    fn put_back(&self, what: &str, (kind, flags): (u16, u16), bytes: Vec<u8>) -> Result<()> {
        self.request(Raw { kind, bytes }, flags)
            .map(drop)
            .map_err(|refusal| refused(what, refusal))
    }
}

/// Must a route be put back? A subnet's route too, although it looks like the kernel's: for an address with `noprefixroute` the kernel
/// makes none.
fn is_of_user(route: &[u8]) -> bool {
    let [table, protocol, kind] = [4, 5, 7].map(|at| route.get(at).copied());
    let is_learned = u32_at(route, 8).is_some_and(|flags| flags & CLONED != 0);
    let is_kernels = protocol == Some(BY_KERNEL) && (table == Some(LOCAL) || kind != Some(UNICAST));
    !is_learned && !is_kernels
}

/// Was an IPv6 route refused because of its source address? The kernel does not take one before it has found out that nobody else
/// has the address (RFC 4862, section 5.4).
fn is_too_early(route: &[u8], put: &Result<()>) -> bool {
    let is_refused = put
        .as_ref()
        .is_err_and(|error| error.errno() == Some(libc::EINVAL));
    let is_ipv6 = route.first().copied().map(i32::from) == Some(libc::AF_INET6);
    is_refused && is_ipv6 && attribute(route, RTMSG, RTA_PREFSRC).is_some()
}

fn with_index_at(message: &[u8], at: usize, index: u32) -> Vec<u8> {
    let mut bytes = message.to_vec();
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&index.to_ne_bytes());
    }
    bytes
}

/// A route by another index, without what only the kernel says of one.
fn route_by(route: &[u8], index: u32) -> Vec<u8> {
    let mut bytes = route.get(..RTMSG).unwrap_or_default().to_vec();
    if let Some(flags) = bytes.get_mut(8..12) {
        // `RTNH_F_LINKDOWN` and such are states, of which requests have none; `RTNH_F_ONLINK` is the user's.
        const ONLINK: u32 = 4;
        let own = u32_at(route, 8).unwrap_or(0) & ONLINK;
        flags.copy_from_slice(&own.to_ne_bytes());
    }
    for (kind, value) in attributes(route, RTMSG) {
        let by = index.to_ne_bytes();
        let left = u32_at(value, EXPIRES)
            .unwrap_or(0)
            .div_ceil(USER_HZ)
            .to_ne_bytes();
        let (kind, value) = match kind {
            RTA_CACHEINFO if left == [0; 4] => continue,
            RTA_CACHEINFO => (RTA_EXPIRES, &left[..]),
            RTA_OIF => (kind, &by[..]),
            _ => (kind, value),
        };
        let length = u16::try_from(4 + value.len()).unwrap_or(4);
        bytes.extend(length.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

/// The sysctls in a directory below /proc/sys that can be read.
fn settings(directory: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(Path::new("/proc/sys").join(directory));
    let names = entries.into_iter().flatten().flatten();
    names
        .filter_map(|entry| {
            let value = fs::read_to_string(entry.path()).ok()?;
            let name = entry.file_name().into_string().ok()?;
            Some((format!("{directory}/{name}"), value.trim_end().to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_is_told_from_what_the_kernel_makes_or_learns() {
        let route = |table, protocol, kind, flags: u32| {
            let mut route = vec![2, 24, 0, 0, table, protocol, 0, kind];
            route.extend(flags.to_ne_bytes());
            is_of_user(&route)
        };
        assert!(route(254, BY_KERNEL, UNICAST, 0), "of a subnet");
        assert!(route(254, 3, UNICAST, 16) && route(254, 4, 6, 0));
        assert!(!route(LOCAL, BY_KERNEL, 2, 0) && !route(LOCAL, BY_KERNEL, 3, 0));
        assert!(!route(254, 0, UNICAST, CLONED));
    }

    #[test]
    fn a_route_gets_another_index_and_loses_what_the_kernel_says_of_it() {
        let mut route = vec![2, 0, 0, 0, 254, 3, 0, 1];
        // Its link is down, it is on the link.
        route.extend((4_u32 | 16).to_ne_bytes());
        for (kind, value) in [(RTA_OIF, 7_u32), (RTA_CACHEINFO, 1), (5, 9)] {
            route.extend(8_u16.to_ne_bytes());
            route.extend(kind.to_ne_bytes());
            route.extend(value.to_ne_bytes());
        }
        let back = route_by(&route, 12);
        assert_eq!(u32_at(&back, 8), Some(4));
        let found: Vec<(u16, u32)> = attributes(&back, RTMSG)
            .map(|(k, v)| (k, u32_at(v, 0).unwrap()))
            .collect();
        assert_eq!(found, [(RTA_OIF, 12), (5, 9)]);
        // One that ends in 90 s ends then.
        route.extend(16_u16.to_ne_bytes());
        route.extend(RTA_CACHEINFO.to_ne_bytes());
        route.extend([1_u32, 2, 9000].map(u32::to_ne_bytes).concat());
        let back = route_by(&route, 12);
        assert_eq!(
            attribute(&back, RTMSG, RTA_EXPIRES),
            Some(&90_u32.to_ne_bytes()[..])
        );
    }
}
