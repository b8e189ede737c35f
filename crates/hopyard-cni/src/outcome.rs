//! Results: what the IPAM plugin gives, and what the runtime gets.

use std::net::IpAddr;
use std::path::Path;

use hopyard_net::Route;
use hopyard_switch::Mac;
use serde_json::{Value, json};

use crate::call::Call;
use crate::error::{Error, Result, code};
use crate::version::Version;

/// Addresses and routes, of an IPAM plugin or of an earlier ADD.
#[derive(Debug, Clone, Default)]
pub(crate) struct Addresses {
    pub(crate) ips: Vec<Ip>,
    pub(crate) routes: Vec<RouteTo>,
    /// As it came.
    dns: Value,
}

/// An address with its prefix, and the gateway that goes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ip {
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
    pub(crate) gateway: Option<IpAddr>,
    /// Index into the interfaces of the same result.
    pub(crate) interface: Option<u64>,
}

/// A route as the specification has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RouteTo {
    pub(crate) destination: IpAddr,
    pub(crate) prefix: u8,
    pub(crate) gateway: Option<IpAddr>,
    /// As it came, with its metrics.
    document: Value,
}

fn not(what: &str, value: &Value) -> Error {
    let msg = format!("a result has {value} where {what} should be");
    Error::new(code::IPAM, msg)
}

pub(crate) fn network(value: &Value) -> Result<(IpAddr, u8)> {
    let parsed = value.as_str().and_then(|text| {
        let (ip, prefix) = text.split_once('/')?;
        let ip: IpAddr = ip.parse().ok()?;
        // Without a sign.
        let digits = Some(prefix).filter(|prefix| prefix.bytes().all(|byte| byte.is_ascii_digit()));
        let prefix: u8 = digits?.parse().ok()?;
        (prefix <= if ip.is_ipv4() { 32 } else { 128 }).then_some((ip, prefix))
    });
    parsed.ok_or_else(|| not("an address with its prefix", value))
}

fn gateway(value: &Value) -> Result<Option<IpAddr>> {
    match value.as_str() {
        None | Some("") => Ok(None),
        Some(text) => {
            let ip = text.parse().map_err(|_| not("a gateway", value))?;
            Ok(Some(ip))
        }
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

impl Addresses {
    /// Reads those of a result.
    pub(crate) fn of(result: &Value) -> Result<Self> {
        let ips = items(&result["ips"]).map(|ip| {
            let (address, prefix) = network(&ip["address"])?;
            Ok(Ip {
                address,
                prefix,
                gateway: gateway(&ip["gateway"])?,
                interface: ip["interface"].as_u64(),
            })
        });
        let routes = items(&result["routes"]).map(|route| {
            let (destination, prefix) = network(&route["dst"])?;
            Ok(RouteTo {
                destination,
                prefix,
                gateway: gateway(&route["gw"])?,
                document: route.clone(),
            })
        });
        Ok(Self {
            ips: ips.collect::<Result<_>>()?,
            routes: routes.collect::<Result<_>>()?,
            dns: result["dns"].clone(),
        })
    }

    /// The addresses, without prefixes and gateways.
    pub(crate) fn all(&self) -> Vec<IpAddr> {
        self.ips.iter().map(|ip| ip.address).collect()
    }

    /// The route as the kernel takes it. Without a gateway of its own it has that of an address of its family.
    pub(crate) fn route(&self, to: &RouteTo, device: u32) -> Route {
        let same = |ip: &IpAddr| ip.is_ipv4() == to.destination.is_ipv4();
        let mut gateways = self.ips.iter().filter_map(|ip| ip.gateway);
        let via = to.gateway.or_else(|| gateways.find(same));
        let number = |key: &str| {
            let number = to.document[key].as_u64().filter(|number| *number > 0);
            number.and_then(|number| u32::try_from(number).ok())
        };
        Route {
            table: number("table"),
            priority: number("priority"),
            mtu: number("mtu"),
            advmss: number("advmss"),
            scope: to.document["scope"]
                .as_u64()
                .and_then(|scope| u8::try_from(scope).ok()),
            ..Route::new(to.destination, to.prefix, via, device)
        }
    }
}

/// A device of a result.
pub(crate) struct Interface<'a> {
    pub(crate) name: &'a str,
    pub(crate) mac: Option<Mac>,
    pub(crate) mtu: u32,
    pub(crate) sandbox: Option<&'a Path>,
}

impl Interface<'_> {
    fn document(&self, version: Version) -> Value {
        let mut document = json!({ "name": self.name });
        if let Some(mac) = self.mac {
            document["mac"] = mac.to_string().into();
        }
        if version >= Version::V1_1_0 {
            document["mtu"] = self.mtu.into();
        }
        if let Some(sandbox) = self.sandbox {
            document["sandbox"] = sandbox.to_string_lossy().into();
        }
        document
    }
}

/// The result of ADD, in the version of the call. The container's device is the second.
pub(crate) fn document(
    call: &Call,
    interfaces: [Interface<'_>; 2],
    addresses: &Addresses,
) -> Value {
    let ips = addresses.ips.iter().map(|ip| {
        let mut document = json!({
            "interface": 1,
            "address": format!("{}/{}", ip.address, ip.prefix),
        });
        if let Some(gateway) = ip.gateway {
            document["gateway"] = gateway.to_string().into();
        }
        // Results of 1.0.0 have it no longer.
        if call.version < Version::V1_0_0 {
            document["version"] = if ip.address.is_ipv4() { "4" } else { "6" }.into();
        }
        document
    });
    let routes = addresses.routes.iter().map(|route| route.document.clone());
    let asks = |dns: &Value| dns.as_object().is_some_and(|dns| !dns.is_empty());
    let own = &call.conf["dns"];
    let dns = if asks(own) { own } else { &addresses.dns };
    json!({
        "cniVersion": call.version.name(),
        "interfaces": interfaces.map(|interface| interface.document(call.version)),
        "ips": ips.collect::<Vec<_>>(),
        "routes": routes.collect::<Vec<_>>(),
        "dns": if asks(dns) { dns.clone() } else { json!({}) },
    })
}

/// What a `prevResult` says of one attachment: the addresses of its device, all routes, and its Ethernet address.
pub(crate) fn previous(call: &Call) -> Result<(Addresses, Option<String>)> {
    let result = &call.conf["prevResult"];
    if !result.is_object() {
        let msg = "CHECK takes the result of ADD: `prevResult` is missing";
        return Err(Error::new(code::BAD_CONFIG, msg));
    }
    let mut addresses = Addresses::of(result)?;
    let is_its = |interface: &Value| {
        interface["name"].as_str() == Some(&call.ifname)
            && interface["sandbox"].as_str().is_some_and(|s| !s.is_empty())
    };
    let found = (0..)
        .zip(items(&result["interfaces"]))
        .find(|(_, i)| is_its(i));
    let Some((number, interface)) = found else {
        let msg = format!(
            "`prevResult` has no interface `{}` of the container",
            call.ifname
        );
        return Err(Error::new(code::BAD_CONFIG, msg));
    };
    addresses
        .ips
        .retain(|ip| ip.interface.is_none_or(|of| of == number));
    Ok((addresses, interface["mac"].as_str().map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_routes_are_read() {
        let result = json!({
            "ips": [
                { "version": "4", "address": "10.0.0.7/24", "gateway": "10.0.0.1" },
                { "address": "fd00::7/64" },
            ],
            "routes": [
                { "dst": "0.0.0.0/0" },
                { "dst": "10.9.0.0/16", "gw": "10.0.0.9", "mtu": 1400, "table": 7, "scope": 0 },
                { "dst": "::/0" },
            ],
        });
        let all = Addresses::of(&result).unwrap();
        assert_eq!(all.ips.len(), 2);
        let routes: Vec<Route> = all.routes.iter().map(|to| all.route(to, 3)).collect();
        assert_eq!(routes[0].via, Some([10, 0, 0, 1].into()));
        assert_eq!(routes[1].via, Some([10, 0, 0, 9].into()));
        assert_eq!((routes[1].mtu, routes[1].table), (Some(1400), Some(7)));
        assert_eq!(routes[1].scope, Some(0));
        assert_eq!(routes[2].via, None);
        for wrong in [
            json!({ "ips": [{ "address": "10.0.0.7" }] }),
            json!({ "ips": [{ "address": "10.0.0.7/33" }] }),
            json!({ "ips": [{ "address": "10.0.0.7/+24" }] }),
            json!({ "ips": [{ "address": "10.0.0.7/24", "gateway": "x" }] }),
            json!({ "routes": [{ "dst": null }] }),
        ] {
            assert!(Addresses::of(&wrong).is_err(), "{wrong}");
        }
    }
}
