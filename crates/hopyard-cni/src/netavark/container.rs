//! One container at one network, as netavark names it for `setup` and `teardown`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::network::{Network, read};
use crate::call::{Call, check_container, check_ifname};
use crate::error::{Error, Result, code};
use crate::outcome::Addresses;

/// What `setup` and `teardown` are about.
pub(super) struct Container {
    network: Network,
    netns: PathBuf,
    said: Said,
}

/// What netavark says of the container.
#[derive(Debug, Deserialize)]
struct Said {
    container_id: String,
    port_mappings: Option<Vec<Value>>,
    network_options: Options,
}

#[derive(Debug, Deserialize)]
struct Options {
    interface_name: String,
    static_ips: Option<Vec<IpAddr>>,
    static_mac: Option<String>,
    options: Option<BTreeMap<String, String>>,
}

fn unsupported(msg: String) -> Error {
    Error::new(code::UNSUPPORTED_FIELD, msg)
}

impl Container {
    pub(super) fn of(document: &Value, netns: &Path) -> Result<Self> {
        let said: Said = read("the container", document)?;
        check_container(&said.container_id)?;
        check_ifname(&said.network_options.interface_name)?;
        Ok(Self {
            network: Network::of(&document["network"])?,
            netns: netns.to_owned(),
            said,
        })
    }

    fn call(&self, conf: Value) -> Call {
        Call {
            container: self.said.container_id.clone(),
            netns: self.netns.clone(),
            ifname: self.said.network_options.interface_name.clone(),
            ..self.network.call(conf)
        }
    }

    /// The call that connects it.
    pub(super) fn add(&self) -> Result<Call> {
        let options = &self.said.network_options;
        if let Some(port) = self.said.port_mappings.iter().flatten().next() {
            return Err(unsupported(format!(
                "ports of the host are not mapped (here {}): frames of the direct switch do not pass netfilter. The container has \
                 an address of its own on the wire: connect to that, or use driver `bridge`",
                port["host_port"]
            )));
        }
        if let Some((key, value)) = options.options.iter().flatten().next() {
            return Err(unsupported(format!(
                "unknown option `{key}` (\"{value}\") of a container: it may have `ip`, `mac` and `interface_name`; the others \
                 are options of the network"
            )));
        }
        let mut conf = self.network.conf()?;
        conf["mac"] = options.static_mac.clone().into();
        Ok(self.call(conf))
    }

    /// What podman has chosen for it.
    pub(super) fn addresses(&self) -> Result<Option<Addresses>> {
        let ips = self.said.network_options.static_ips.as_deref();
        self.network.addresses(ips.unwrap_or_default())
    }

    /// The call that takes it off. Where there is a record, that says more.
    pub(super) fn del(&self) -> Result<Call> {
        Ok(self.call(self.network.place()))
    }

    /// What netavark wants to hear of a result of ADD.
    pub(super) fn status(&self, result: &Value) -> Value {
        let subnet = |ip: &Value| match ip.get("gateway") {
            Some(gateway) => json!({ "ipnet": ip["address"], "gateway": gateway }),
            None => json!({ "ipnet": ip["address"] }),
        };
        let ips = result["ips"].as_array().into_iter().flatten();
        let subnets: Vec<Value> = ips.map(subnet).collect();
        let device = &self.said.network_options.interface_name;
        json!({
            "interfaces": {
                device: { "mac_address": result["interfaces"][1]["mac"], "subnets": subnets }
            },
            "dns_server_ips": self.network.dns_servers(),
            "dns_search_domains": [],
        })
    }
}
