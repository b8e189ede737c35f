//! The configuration of `host-local`: its part of the network's, and what the runtime asks for.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::ranges::{KEYS, Range, RangeSet, optional_address};
use crate::call::{arg, ignores_unknown};
use crate::error::{Error, Result, code, failed};
use crate::outcome::network;
use crate::refused::check_part;
use crate::values::{invalid, text};

/// Where reservations are, unless `dataDir` says otherwise.
const HOME: &str = "/var/lib/cni/networks";

/// Keys besides those of a range.
const OWN: [&str; 5] = ["type", "ranges", "routes", "dataDir", "resolvConf"];

/// Numbers of a route, which go into the result as they come.
const METRICS: [&str; 5] = ["mtu", "advmss", "priority", "table", "scope"];

/// What ADD is to give.
#[derive(Debug)]
pub(super) struct Config {
    /// A container gets an address of each. Their order names files of the store.
    pub(super) sets: Vec<RangeSet>,
    /// The address that was asked for, of each set.
    pub(super) asked: Vec<Option<IpAddr>>,
    pub(super) routes: Vec<Value>,
    /// The file that the result's `dns` comes from.
    resolv_conf: Option<String>,
}

/// Where the reservations of a network are.
pub(super) fn directory(conf: &Value, network: &str) -> Result<PathBuf> {
    Ok(home(conf)?.join(network))
}

/// The directory of all networks.
pub(super) fn home(conf: &Value) -> Result<PathBuf> {
    let home = text(&conf["ipam"], "dataDir")?;
    Ok(home.unwrap_or_else(|| HOME.to_owned()).into())
}

impl Config {
    /// Reads and checks all of it. `args` is `CNI_ARGS`.
    pub(super) fn of(conf: &Value, args: &str) -> Result<Self> {
        let ipam = &conf["ipam"];
        let known: Vec<&str> = OWN.into_iter().chain(KEYS).collect();
        check_part(ipam, "ipam", &known)?;
        let sets = sets(conf)?;
        let asked = asked(&sets, &requests(conf, args)?)?;
        Ok(Self {
            sets,
            asked,
            routes: routes(ipam)?,
            resolv_conf: text(ipam, "resolvConf")?,
        })
    }

    /// The `dns` of the result.
    pub(super) fn dns(&self) -> Result<Value> {
        let Some(file) = &self.resolv_conf else {
            return Ok(Value::Null);
        };
        let text = fs::read(file).map_err(failed("read `ipam.resolvConf`", Path::new(file)))?;
        Ok(dns_of(&String::from_utf8_lossy(&text)))
    }
}

/// Does every release of the reference program read the configuration as [`Config::of`] does? Those before 1.5 pass over the numbers of a
/// route. All of them read the keys of `args` whatever their case.
pub(super) fn is_read_alike(conf: &Value, args: &str) -> bool {
    let has_number = |route: &Value| METRICS.iter().any(|key| !route[*key].is_null());
    let is_plain = |config: Config| !config.routes.iter().any(has_number);
    home(conf).is_ok()
        && Config::of(conf, args).is_ok_and(is_plain)
        && has_no_other_case(&conf["args"], "cni")
        && has_no_other_case(&conf["args"]["cni"], "ips")
}

fn has_no_other_case(value: &Value, key: &str) -> bool {
    let mut keys = value.as_object().into_iter().flat_map(Map::keys);
    !keys.any(|other| other != key && other.eq_ignore_ascii_case(key))
}

/// A list that may be missing.
fn items<'a>(value: &'a Value, key: &str) -> Result<&'a [Value]> {
    match value {
        Value::Null => Ok(&[]),
        Value::Array(items) => Ok(items.as_slice()),
        other => Err(invalid(key, other, "is no list")),
    }
}

/// Those of the runtime, then that of the keys without a list, then those of the list.
fn sets(conf: &Value) -> Result<Vec<RangeSet>> {
    let ipam = &conf["ipam"];
    let read = |value: &Value, key: &str| -> Result<Vec<RangeSet>> {
        let items = items(value, key)?.iter().enumerate();
        items
            .map(|(n, set)| RangeSet::of(set, &format!("{key}[{n}]")))
            .collect()
    };
    let mut sets = read(&conf["runtimeConfig"]["ipRanges"], "runtimeConfig.ipRanges")?;
    if KEYS.iter().any(|key| !ipam[*key].is_null()) {
        sets.push(Range::of(ipam, "ipam")?.into());
    }
    sets.extend(read(&ipam["ranges"], "ipam.ranges")?);
    if sets.is_empty() {
        let why = "has no range: `host-local` takes `ipam.ranges`, each with its `subnet`";
        return Err(invalid("ipam", ipam, why));
    }
    for (n, set) in sets.iter().enumerate() {
        if let Some(m) = sets[..n].iter().position(|other| other.overlaps(set)) {
            let msg = format!(
                "key `ipam.ranges`: range sets {m} ({}) and {n} ({set}) overlap",
                sets[m]
            );
            return Err(Error::new(code::BAD_CONFIG, msg));
        }
    }
    Ok(sets)
}

/// The addresses that are asked for, each with the key that does.
fn requests(conf: &Value, args: &str) -> Result<Vec<(&'static str, IpAddr)>> {
    if !ignores_unknown(args)
        && let Some(gateway) = arg(args, "GATEWAY")
    {
        let msg = format!(
            "CNI_ARGS `{args}` has `GATEWAY` ({gateway}), which `host-local` does not know; `IgnoreUnknown=1` passes over it"
        );
        return Err(Error::new(code::BAD_ENVIRONMENT, msg));
    }
    let mut requests = Vec::new();
    if let Some(ip) = arg(args, "IP") {
        let key = "IP in CNI_ARGS";
        requests.push((key, address(&ip.into(), key)?));
    }
    for (key, list) in [
        ("args.cni.ips", &conf["args"]["cni"]["ips"]),
        ("runtimeConfig.ips", &conf["runtimeConfig"]["ips"]),
    ] {
        for ip in items(list, key)? {
            requests.push((key, address(ip, key)?));
        }
    }
    Ok(requests)
}

/// An address with or without a prefix, which does not count.
fn address(value: &Value, key: &str) -> Result<IpAddr> {
    let plain = || value.as_str().and_then(|text| text.parse::<IpAddr>().ok());
    let found = network(value).ok().map(|(ip, _)| ip).or_else(plain);
    found
        .map(|ip| ip.to_canonical())
        .ok_or_else(|| invalid(key, value, "is no IP address"))
}

/// The address that is asked for of each set.
fn asked(sets: &[RangeSet], requests: &[(&str, IpAddr)]) -> Result<Vec<Option<IpAddr>>> {
    let mut asked: Vec<Option<IpAddr>> = vec![None; sets.len()];
    for (key, ip) in requests {
        let not =
            |why: String| Error::new(code::BAD_CONFIG, format!("`{key}`: the address {ip} {why}"));
        let Some(n) = sets.iter().position(|set| set.contains(*ip)) else {
            let all: Vec<String> = sets.iter().map(RangeSet::to_string).collect();
            return Err(not(format!("is in no range ({})", all.join("; "))));
        };
        if sets[n].is_gateway(*ip) {
            return Err(not("is the gateway of its range".to_owned()));
        }
        match asked[n] {
            Some(other) if other != *ip => {
                let why = format!("is of the range set that gives {other}, and it gives one alone");
                return Err(not(why));
            }
            _ => asked[n] = Some(*ip),
        }
    }
    Ok(asked)
}

fn routes(ipam: &Value) -> Result<Vec<Value>> {
    let routes = items(&ipam["routes"], "ipam.routes")?.iter().enumerate();
    routes
        .map(|(n, value)| route(value, &format!("ipam.routes[{n}]")))
        .collect()
}

/// Checks a route, which goes into the result without what is empty in it.
fn route(value: &Value, at: &str) -> Result<Value> {
    let known: Vec<&str> = ["dst", "gw"].into_iter().chain(METRICS).collect();
    check_part(value, at, &known)?;
    let destination = &value["dst"];
    network(destination).map_err(|_| {
        let why = "is no destination with its prefix, as 0.0.0.0/0";
        invalid(&format!("{at}.dst"), destination, why)
    })?;
    let gateway = optional_address(value, "gw", at)?;
    for key in METRICS {
        let number = &value[key];
        if !number.is_null() && !number.is_u64() {
            return Err(invalid(&format!("{at}.{key}"), number, "is no number"));
        }
    }
    let mut route = value.as_object().cloned().unwrap_or_default();
    route.retain(|_, value| !value.is_null() && value.as_str() != Some(""));
    if let Some(gateway) = gateway {
        route.insert("gw".to_owned(), gateway.to_string().into());
    }
    Ok(Value::Object(route))
}

/// What a file as `resolv.conf(5)` says.
fn dns_of(text: &str) -> Value {
    let (mut servers, mut search, mut options) = (Vec::new(), Vec::new(), Vec::new());
    let mut dns = Map::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("nameserver") => servers.extend(words.next()),
            Some("search") => search.extend(words),
            Some("options") => options.extend(words),
            Some("domain") => {
                if let Some(domain) = words.next() {
                    dns.insert("domain".to_owned(), domain.into());
                }
            }
            // Comments as well.
            _ => {}
        }
    }
    let lists = [
        ("nameservers", servers),
        ("search", search),
        ("options", options),
    ];
    for (key, list) in lists {
        if !list.is_empty() {
            dns.insert(key.to_owned(), list.into());
        }
    }
    Value::Object(dns)
}

#[cfg(test)]
mod tests;
