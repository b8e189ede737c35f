//! A network of podman's: its options, subnets and routes.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopyard_net::Handle;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::Call;
use crate::conf::Conf;
use crate::error::{Error, Result, code};
use crate::names::NETAVARK;
use crate::outcome::{Addresses, network};
use crate::switch::{look, other_switch_on};
use crate::values::network_name;
use crate::version::Version;

/// What the options are, for whoever mistypes one.
const KNOWN: [&str; 8] = [
    "parent",
    "switch",
    "mtu",
    "vlan",
    "isolate",
    "allow_spoof",
    "metric",
    "no_default_route",
];
/// Metric of default routes, unless asked otherwise: that of netavark's own drivers.
const METRIC: u64 = 100;

/// A network as podman keeps it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Network {
    #[serde(skip)]
    pub(super) name: String,
    network_interface: Option<String>,
    #[serde(default)]
    internal: bool,
    options: Option<BTreeMap<String, String>>,
    ipam_options: Option<BTreeMap<String, String>>,
    subnets: Option<Vec<Subnet>>,
    routes: Option<Vec<Value>>,
    network_dns_servers: Option<Vec<IpAddr>>,
}

#[derive(Debug, Deserialize)]
struct Subnet {
    /// With its length.
    subnet: Value,
    gateway: Option<IpAddr>,
}

fn bad(msg: impl Into<String>) -> Error {
    Error::new(code::BAD_CONFIG, msg)
}

/// Reads a part of what netavark says.
pub(super) fn read<T: serde::de::DeserializeOwned>(what: &str, value: &Value) -> Result<T> {
    serde_json::from_value(value.clone())
        .map_err(|error| bad(format!("{what} on stdin cannot be read: {error}")))
}

impl Network {
    /// Reads one, without a look at its options.
    pub(super) fn of(document: &Value) -> Result<Self> {
        let network: Self = read("the network", document)?;
        Ok(Self {
            name: network_name(document)?,
            ..network
        })
    }

    fn option(&self, key: &str) -> Option<&str> {
        let value = self.options.as_ref()?.get(key)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// The device to the wire.
    fn parent(&self) -> Option<&str> {
        let interface = self.network_interface.as_deref();
        self.option("parent")
            .or_else(|| interface.filter(|name| !name.is_empty()))
    }

    fn flag(&self, key: &str) -> Result<bool> {
        match self.option(key) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(other) => Err(bad(format!(
                "option `{key}` (\"{other}\") is neither true nor false"
            ))),
        }
    }

    fn number(&self, key: &str) -> Result<Option<u64>> {
        let number = self.option(key).map(|text| {
            text.parse()
                .map_err(|_| bad(format!("option `{key}` (\"{text}\") is no number")))
        });
        number.transpose()
    }

    /// The switch and the device to the wire alone, which say where a container is connected.
    pub(super) fn place(&self) -> Value {
        json!({ "master": self.parent(), "switch": self.option("switch") })
    }

    /// The options as keys of the plugin.
    pub(super) fn conf(&self) -> Result<Value> {
        for (key, value) in self.options.iter().flatten() {
            if !KNOWN.contains(&key.as_str()) {
                let known = KNOWN.join("`, `");
                let msg = format!("unknown option `{key}` (\"{value}\"): there are `{known}`");
                return Err(Error::new(code::UNSUPPORTED_FIELD, msg));
            }
        }
        self.check_place()?;
        let mut conf = self.place();
        conf["mtu"] = self.number("mtu")?.into();
        conf["vlan"] = self.number("vlan")?.into();
        conf["portIsolation"] = self.flag("isolate")?.into();
        conf["macspoofchk"] = (!self.flag("allow_spoof")?).into();
        Ok(conf)
    }

    fn ipam_driver(&self) -> Option<&str> {
        self.ipam_options
            .as_ref()?
            .get("driver")
            .map(String::as_str)
    }

    /// Who gives addresses? podman chooses a subnet for its own bridges alone.
    fn check_subnets(&self) -> Result<()> {
        for subnet in self.subnets.iter().flatten() {
            network(&subnet.subnet)?;
        }
        let has_some = self.subnets.as_ref().is_some_and(|all| !all.is_empty());
        match self.ipam_driver() {
            Some("dhcp") => Err(bad(
                "addresses by DHCP are not netavark's to get for this driver: `--ipam-driver none`, and a DHCP client in the \
                 container",
            )),
            Some("none") => Ok(()),
            _ if has_some => Ok(()),
            _ => Err(bad(
                "there is no subnet: give `--subnet`, `--gateway` and `--ip-range`, or `--ipam-driver none` for containers \
                 without addresses",
            )),
        }
    }

    fn check_place(&self) -> Result<()> {
        let parent = self.parent();
        if let (Some(interface), Some(parent)) = (&self.network_interface, parent)
            && !interface.is_empty()
            && interface != parent
        {
            return Err(bad(format!(
                "option `parent` (\"{parent}\") is not the `--interface-name` (\"{interface}\"): give one of them"
            )));
        }
        match (
            parent.is_some() || self.option("switch").is_some(),
            self.internal,
        ) {
            (true, true) => Err(bad(
                "an internal network has no way to the wire: leave `--internal` out, or the options `parent` and `switch`",
            )),
            (false, false) => Err(bad(
                "there is no way to the wire: name its device (`-o parent=eth0`) or a switch (`-o switch=guests`), or make \
                 the network `--internal`",
            )),
            _ => Ok(()),
        }
    }

    /// A call about this network; about no container yet.
    pub(super) fn call(&self, conf: Value) -> Call {
        Call {
            version: Version::NEWEST,
            network: format!("{NETAVARK}{}", self.name),
            container: String::new(),
            netns: "".into(),
            ifname: String::new(),
            args: String::new(),
            path: String::new(),
            text: conf.to_string(),
            conf,
        }
    }

    /// Finds what would keep every container from this network.
    pub(super) fn check(&self, here: &Handle) -> Result<()> {
        self.check_subnets()?;
        self.routes()?;
        let call = self.call(self.conf()?);
        let mut conf = Conf::of(&call)?;
        let found = look(here, &mut conf, &call.conf)?;
        if let (None, Some(uplink)) = (&found.glance, &found.uplink)
            && let Some(other) =
                other_switch_on(here.ns().inode()?, uplink.index, &conf.switch.name)
        {
            return Err(bad(format!(
                "`{}` is the uplink of switch `{other}`: name that with `-o switch={other}` in place of `parent`",
                uplink.name
            )));
        }
        Ok(())
    }

    /// The network as podman is to keep it.
    pub(super) fn settings(&self, mut document: Value) -> Value {
        if let Some(parent) = self.parent() {
            document["network_interface"] = parent.into();
        }
        // Nobody here answers for names of containers. podman takes name servers (`--dns`) for networks with DNS alone.
        if self.dns_servers().is_empty() {
            document["dns_enabled"] = false.into();
        }
        document
    }

    /// The routes of its containers, as the plugin takes them.
    fn routes(&self) -> Result<Vec<Value>> {
        let metric = self.number("metric")?.unwrap_or(METRIC);
        let mut routes = Vec::new();
        if !self.internal && !self.flag("no_default_route")? {
            for gateway in self.subnets.iter().flatten().filter_map(|s| s.gateway) {
                let all = if gateway.is_ipv4() {
                    "0.0.0.0/0"
                } else {
                    "::/0"
                };
                routes.push(json!({ "dst": all, "gw": gateway, "priority": metric }));
            }
        }
        for route in self.routes.iter().flatten() {
            // netavark 2 has routes of other types (`blackhole`, …).
            if let Some(kind) = route["route_type"]
                .as_str()
                .filter(|kind| *kind != "unicast")
            {
                let msg =
                    format!("routes of type `{kind}` are not supported: make it in the container");
                return Err(Error::new(code::UNSUPPORTED_FIELD, msg));
            }
            let priority = route["metric"].as_u64().unwrap_or(METRIC);
            routes.push(
                json!({ "dst": route["destination"], "gw": route["gateway"], "priority": priority }),
            );
        }
        // Reads all of them.
        Addresses::of(&json!({ "routes": routes }))?;
        Ok(routes)
    }

    /// What a container with these addresses gets; `None`: it has none, and may choose some.
    pub(super) fn addresses(&self, ips: &[IpAddr]) -> Result<Option<Addresses>> {
        if ips.is_empty() {
            return Ok(None);
        }
        let of = |ip: &IpAddr| {
            for subnet in self.subnets.iter().flatten() {
                let (first, bits) = network(&subnet.subnet)?;
                if contains(first, bits, *ip) {
                    let address = format!("{ip}/{bits}");
                    return Ok(json!({ "address": address, "gateway": subnet.gateway }));
                }
            }
            Err(bad(format!("{ip} is in none of the network's subnets")))
        };
        let ips: Vec<Value> = ips.iter().map(of).collect::<Result<_>>()?;
        Addresses::of(&json!({ "ips": ips, "routes": self.routes()? })).map(Some)
    }

    /// Name servers that its containers are to ask.
    pub(super) fn dns_servers(&self) -> &[IpAddr] {
        self.network_dns_servers.as_deref().unwrap_or_default()
    }
}

/// Is it an address of this prefix?
fn contains(first: IpAddr, bits: u8, ip: IpAddr) -> bool {
    let differ = match (first, ip) {
        (IpAddr::V4(first), IpAddr::V4(ip)) => u128::from(u32::from(first) ^ u32::from(ip)) << 96,
        (IpAddr::V6(first), IpAddr::V6(ip)) => u128::from(first) ^ u128::from(ip),
        _ => return false,
    };
    differ.leading_zeros() >= u32::from(bits)
}

#[cfg(test)]
mod tests;
