//! Keys and capabilities that other plugins have and this one refuses, with what to do instead.
//!
//! A key that is silently ignored leaves a network other than the one described. So a key must be known, and one that
//! asks for something the switch does not do is an error that names it.

use serde_json::Value;

use crate::bandwidth;
use crate::error::{Error, Result, code};

/// Keys of the specification, and of lists, which mean nothing to the plugin itself.
const STANDARD: [&str; 11] = [
    "cniVersion",
    "cniVersions",
    "name",
    "type",
    "args",
    "capabilities",
    "runtimeConfig",
    "prevResult",
    "disableCheck",
    "disableGC",
    "dns",
];

/// Keys that the plugin has itself, besides those of [`bandwidth`].
const OWN: [&str; 11] = [
    "switch",
    "master",
    "mtu",
    "mac",
    "device",
    "vlan",
    "macspoofchk",
    "portIsolation",
    "mode",
    "ipam",
    "ipamInProcess",
];

/// Keys of `bridge` and `macvlan`, and what to do instead.
const REFUSED: [(&str, &str); 16] = [
    (
        "isGateway",
        "the direct switch gives the host no address; the host is reached by the address it has at `master`: give the network's \
         router as gateway in `ipam`, or use plugin `bridge`",
    ),
    (
        "isDefaultGateway",
        "give the network's router as gateway and a default route in `ipam`, or use plugin `bridge`",
    ),
    (
        "ipMasq",
        "frames of the direct switch do not pass netfilter, which would have to translate addresses: have the network's router \
         do it, or use plugin `bridge`",
    ),
    (
        "ipMasqBackend",
        "frames of the direct switch do not pass netfilter",
    ),
    (
        "forceAddress",
        "it belongs to `isGateway`, which the direct switch does not do",
    ),
    (
        "bridge",
        "there is no bridge: name a switch with `switch`, or a device to the wire with `master`",
    ),
    (
        "hairpinMode",
        "the direct switch never sends a frame back to the port that it came from",
    ),
    (
        "promiscMode",
        "the plugin does not change the setting of `master`: `ip link set DEV promisc on`",
    ),
    (
        "vlanTrunk",
        "a port is in one VLAN: make a network for each VLAN, with `vlan`",
    ),
    (
        "preserveDefaultVlan",
        "a port with `vlan` is in that VLAN alone, VLAN 1 is nothing special: write false or leave it out",
    ),
    (
        "enabledad",
        "the switch's table says who has an address, and addresses are usable at once: write false or leave it out",
    ),
    (
        "disableContainerInterface",
        "the container's device has to be up: leave it out",
    ),
    (
        "linkInContainer",
        "`master` has to be in the host's network namespace",
    ),
    (
        "bcqueuelen",
        "it belongs to macvlan; broadcasts wait in the CPU's queue (`net.core.netdev_max_backlog`)",
    ),
    (
        "uplinkInterface",
        "name the device to the wire with `master`",
    ),
    (
        "portMappings",
        "containers have addresses of their own on the wire: connect to those, or use plugin `bridge` with `portmap`",
    ),
];

/// Capabilities that the plugin has; `ipRanges` is for the IPAM plugin, which gets the same configuration.
const CAPABILITIES: [&str; 4] = ["mac", "ips", "ipRanges", "bandwidth"];

/// Capabilities of other plugins, and what to do instead.
const REFUSED_CAPABILITIES: [(&str, &str); 2] = [
    (
        "portMappings",
        "frames of the direct switch do not pass netfilter, so no port of the host can be mapped: containers have addresses of \
         their own on the wire, connect to those, or use plugin `bridge` with `portmap`",
    ),
    ("dns", "give `dns` in the configuration"),
];

/// Does the value ask for anything?
fn asks(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(true) => true,
    }
}

fn refused(what: &str, key: &str, value: &Value, advice: &str) -> Error {
    let msg = format!("unsupported {what} `{key}` ({value}): {advice}");
    Error::new(code::UNSUPPORTED_FIELD, msg)
}

fn advice<'a>(list: &[(&str, &'a str)], key: &str) -> Option<&'a str> {
    list.iter()
        .find_map(|(name, advice)| (*name == key).then_some(*advice))
}

/// Refuses keys that the plugin does not have, by name.
pub(crate) fn check_keys(conf: &Value) -> Result<()> {
    for (key, value) in conf.as_object().into_iter().flatten() {
        let own = || OWN.iter().chain(&bandwidth::KEYS);
        let known = STANDARD.contains(&key.as_str()) || own().any(|own| own == key);
        // `cni.dev/…` and the like belong to whoever has that domain.
        if known || key.contains('/') {
            continue;
        }
        match advice(&REFUSED, key) {
            Some(advice) if asks(value) => return Err(refused("key", key, value, advice)),
            Some(_) => {}
            None => {
                let own: Vec<&str> = own().copied().collect();
                let advice = format!("the plugin has no such key; it has {}", own.join(", "));
                return Err(refused("key", key, value, &advice));
            }
        }
    }
    Ok(())
}

/// Refuses the keys of a part of the configuration that are not among those that it has, by name. `at` is the part's own name.
pub(crate) fn check_part(part: &Value, at: &str, known: &[&str]) -> Result<()> {
    for (key, value) in part.as_object().into_iter().flatten() {
        if !known.contains(&key.as_str()) {
            let advice = format!("there is no such key; `{at}` has {}", known.join(", "));
            return Err(refused("key", &format!("{at}.{key}"), value, &advice));
        }
    }
    Ok(())
}

/// Refuses capabilities that the plugin does not have, declared or used, by name.
pub(crate) fn check_capabilities(conf: &Value) -> Result<()> {
    for list in ["capabilities", "runtimeConfig"] {
        for (key, value) in conf[list].as_object().into_iter().flatten() {
            if CAPABILITIES.contains(&key.as_str()) || !asks(value) {
                continue;
            }
            let general =
                "the plugin has mac, ips, ipRanges and bandwidth: take it out of `capabilities`";
            let advice = advice(&REFUSED_CAPABILITIES, key).unwrap_or(general);
            return Err(refused("capability", key, value, advice));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refused_key_is_named_with_its_value_and_what_to_do() {
        for (key, advice) in REFUSED {
            let error = check_keys(&json!({ "name": "n", key: true })).unwrap_err();
            assert_eq!(error.code, code::UNSUPPORTED_FIELD);
            let begins = format!("unsupported key `{key}` (true): {advice}");
            assert_eq!(error.msg, begins);
            check_keys(&json!({ key: false })).unwrap();
        }
        let error = check_keys(&json!({ "portisolation": true })).unwrap_err();
        assert!(error.msg.contains("`portisolation` (true)"), "{error}");
        assert!(error.msg.contains("portIsolation"), "{error}");
        check_keys(&json!({ "cni.dev/valid-attachments": [1], "cniVersion": "1.0.0" })).unwrap();
    }

    #[test]
    fn a_refused_capability_is_named_whether_it_is_declared_or_used() {
        for key in ["portMappings", "dns", "aliases"] {
            for (list, value) in [("capabilities", json!(true)), ("runtimeConfig", json!([1]))] {
                let error = check_capabilities(&json!({ list: { key: value } })).unwrap_err();
                assert_eq!(error.code, code::UNSUPPORTED_FIELD);
                let named = format!("unsupported capability `{key}`");
                assert!(error.msg.starts_with(&named), "{error}");
            }
            check_capabilities(&json!({ "capabilities": { key: false } })).unwrap();
            check_capabilities(&json!({ "runtimeConfig": { key: [] } })).unwrap();
        }
        for key in CAPABILITIES {
            check_capabilities(&json!({ "capabilities": { key: true } })).unwrap();
        }
    }
}
