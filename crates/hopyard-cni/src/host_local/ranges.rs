//! Ranges of addresses, and the order in which they are given.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use serde_json::{Value, json};

use crate::error::Result;
use crate::outcome::network;
use crate::refused::check_part;
use crate::values::invalid;

/// The keys of a range.
pub(super) const KEYS: [&str; 4] = ["subnet", "rangeStart", "rangeEnd", "gateway"];

/// Addresses of one subnet, from `start` to `end`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    start: IpAddr,
    end: IpAddr,
    /// No container gets it.
    gateway: IpAddr,
    prefix: u8,
}

/// All addresses of a subnet.
struct Subnet {
    first: IpAddr,
    last: IpAddr,
    prefix: u8,
}

/// Ranges of one family, of which a container gets one address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RangeSet(Vec<Range>);

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u32::from(ip).into(),
        IpAddr::V6(ip) => ip.into(),
    }
}

/// An address of the family of `like`.
fn address(like: IpAddr, number: u128) -> IpAddr {
    match like {
        // Ranges of IPv4 have no greater numbers.
        IpAddr::V4(_) => Ipv4Addr::from(number as u32).into(),
        IpAddr::V6(_) => Ipv6Addr::from(number).into(),
    }
}

/// The address of a key; an empty text is none. IPv4 addresses that are written as IPv6 are IPv4 addresses.
pub(super) fn optional_address(of: &Value, key: &str, at: &str) -> Result<Option<IpAddr>> {
    let value = &of[key];
    let parsed = match value {
        Value::Null => return Ok(None),
        Value::String(text) if text.is_empty() => return Ok(None),
        value => value.as_str().and_then(|text| text.parse::<IpAddr>().ok()),
    };
    match parsed {
        Some(ip) => Ok(Some(ip.to_canonical())),
        None => Err(invalid(&format!("{at}.{key}"), value, "is no IP address")),
    }
}

impl Subnet {
    /// Reads the subnet of a range; `at` is where the range is.
    fn of(value: &Value, at: &str) -> Result<Self> {
        let subnet = &value["subnet"];
        let wrong = |why: &str| invalid(&format!("{at}.subnet"), subnet, why);
        let (base, prefix) =
            network(subnet).map_err(|_| wrong("is no subnet with its prefix, as 10.1.0.0/16"))?;
        if base != base.to_canonical() {
            return Err(wrong("is an IPv4 subnet written as IPv6: write it as IPv4"));
        }
        let bits = if base.is_ipv4() { 32 } else { 128 };
        let free = bits - u32::from(prefix);
        if free < 2 {
            return Err(wrong(
                "is too small: the smallest are /30 with IPv4 and /126 with IPv6",
            ));
        }
        let hosts = u128::MAX >> (128 - free);
        let first = address(base, number(base) & !hosts);
        if base != first {
            let why = format!("has host bits set: the network address is {first}");
            return Err(wrong(&why));
        }
        Ok(Self {
            first,
            last: address(base, number(base) | hosts),
            prefix,
        })
    }

    /// The second address, which is the gateway's by default and the first that containers get.
    fn second(&self) -> IpAddr {
        address(self.first, number(self.first) + 1)
    }

    /// The last address that containers get: with IPv4 not the broadcast address.
    fn last_for_containers(&self) -> IpAddr {
        let is_broadcast = u128::from(self.last.is_ipv4());
        address(self.last, number(self.last) - is_broadcast)
    }

    /// An address of the range, which has to be in the subnet.
    fn inside(&self, value: &Value, key: &str, at: &str) -> Result<Option<IpAddr>> {
        match optional_address(value, key, at)? {
            Some(ip) if ip < self.first || ip > self.last => {
                let why = format!("is not in `{at}.subnet` {}", value["subnet"]);
                Err(invalid(&format!("{at}.{key}"), &value[key], &why))
            }
            found => Ok(found),
        }
    }
}

impl Range {
    /// Reads the keys of a range; `at` is where they are.
    pub(super) fn of(value: &Value, at: &str) -> Result<Self> {
        let subnet = Subnet::of(value, at)?;
        let second = subnet.second();
        let start = subnet.inside(value, "rangeStart", at)?.unwrap_or(second);
        let end = subnet.inside(value, "rangeEnd", at)?;
        let end = end.unwrap_or(subnet.last_for_containers());
        if start > end {
            let key = if value["rangeEnd"].is_null() {
                "rangeStart"
            } else {
                "rangeEnd"
            };
            let why = format!("leaves no address: the range would go from {start} to {end}");
            return Err(invalid(&format!("{at}.{key}"), &value[key], &why));
        }
        Ok(Self {
            start,
            end,
            gateway: optional_address(value, "gateway", at)?.unwrap_or(second),
            prefix: subnet.prefix,
        })
    }

    fn contains(&self, ip: IpAddr) -> bool {
        // IPv4 addresses come before all of IPv6.
        self.start <= ip && ip <= self.end
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

impl From<Range> for RangeSet {
    fn from(range: Range) -> Self {
        Self(vec![range])
    }
}

impl RangeSet {
    /// Reads a list of ranges; `at` is where it is.
    pub(super) fn of(value: &Value, at: &str) -> Result<Self> {
        let mut ranges: Vec<Range> = Vec::new();
        for (n, one) in value.as_array().into_iter().flatten().enumerate() {
            let at = format!("{at}[{n}]");
            check_part(one, &at, &KEYS)?;
            let range = Range::of(one, &at)?;
            if ranges.iter().any(|other| other.overlaps(&range)) {
                return Err(invalid(&at, one, "overlaps with an earlier range"));
            }
            if ranges
                .iter()
                .any(|other| other.start.is_ipv4() != range.start.is_ipv4())
            {
                let why = "is of another family than those before it: write it in a set of its own";
                return Err(invalid(&at, one, why));
            }
            ranges.push(range);
        }
        if ranges.is_empty() {
            return Err(invalid(at, value, "is no list with a range"));
        }
        Ok(Self(ranges))
    }

    fn range_of(&self, ip: IpAddr) -> Option<&Range> {
        self.0.iter().find(|range| range.contains(ip))
    }

    pub(super) fn contains(&self, ip: IpAddr) -> bool {
        self.range_of(ip).is_some()
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let mut own = self.0.iter();
        own.any(|range| other.0.iter().any(|other| range.overlaps(other)))
    }

    /// Is it the gateway of the range that it is in?
    pub(super) fn is_gateway(&self, ip: IpAddr) -> bool {
        self.range_of(ip).is_some_and(|range| range.gateway == ip)
    }

    /// The address as a result has it; `None`: it is in none of the ranges.
    pub(super) fn result(&self, ip: IpAddr) -> Option<Value> {
        let range = self.range_of(ip)?;
        Some(json!({
            "address": format!("{ip}/{}", range.prefix),
            "gateway": range.gateway.to_string(),
        }))
    }

    /// All addresses but the gateways, each once, in a circle that begins after the one that was given last. So an address that is
    /// freed is the last to be given again. Where that one is in none of the ranges, they begin with the first.
    pub(super) fn candidates(&self, last: Option<IpAddr>) -> impl Iterator<Item = IpAddr> {
        let whole = |range: &Range| (*range, number(range.start)..=number(range.end));
        let found = last.and_then(|last| {
            let place = self.0.iter().position(|range| range.contains(last))?;
            Some((place, last))
        });
        let parts: Vec<(Range, RangeInclusive<u128>)> = match found {
            None => self.0.iter().map(whole).collect(),
            Some((place, last)) => {
                let range = self.0[place];
                let mut behind = number(last)..=number(range.end);
                behind.next();
                let before = number(range.start)..=number(last);
                let others = self.0[place + 1..].iter().chain(&self.0[..place]);
                [(range, behind)]
                    .into_iter()
                    .chain(others.map(whole))
                    .chain([(range, before)])
                    .collect()
            }
        };
        parts.into_iter().flat_map(|(range, numbers)| {
            let all = numbers.map(move |number| address(range.start, number));
            all.filter(move |ip| *ip != range.gateway)
        })
    }
}

impl fmt::Display for RangeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, range) in self.0.iter().enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            write!(f, "{comma}{} to {}", range.start, range.end)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
