//! Packet filter rules that frames between ports never meet.

use std::collections::BTreeSet;

use hopyard_net::{Error, LegacyChain, NetNs, NftChain, legacy_chains, nft_chains};

/// Hooks that a bridge's frames, or with bridge netfilter its packets, would pass.
const FORWARDING: [&str; 3] = ["prerouting", "forward", "postrouting"];
/// Hooks of single devices: the switch's programs run before the first and instead of the second.
const OF_DEVICES: [&str; 2] = ["ingress", "egress"];

/// What of a namespace's rules a switch bypasses.
///
/// Frames between ports, and between ports and the wire, are redirected before the host's network layer
/// sees them. What goes to the host itself meets the host's rules as ever, except those of bridges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bypassed {
    /// The chains: family, table, name.
    pub chains: BTreeSet<String>,
    /// What could not be looked at, a sentence each.
    pub unknown: Vec<String>,
}

impl Bypassed {
    /// All of it as warnings.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.unknown.clone();
        if !self.chains.is_empty() {
            let chains: Vec<&str> = self.chains.iter().map(String::as_str).collect();
            warnings.push(format!(
                "frames between ports, and between ports and the wire, BYPASS these packet filter chains: {}",
                chains.join(", ")
            ));
        }
        warnings
    }
}

/// Looks for rules that a switch bypasses. `concerns` says of a device and a hook of devices (`ingress`,
/// `egress`) whether a switch is there.
#[must_use]
pub fn bypassed_rules(ns: &NetNs, concerns: impl Fn(&str, &str) -> bool) -> Bypassed {
    let mut found = Bypassed::default();
    match nft_chains(ns) {
        Ok(chains) => {
            let bypassed = chains.iter().filter(|chain| is_bypassed(chain, &concerns));
            found.chains.extend(bypassed.map(name));
        }
        // A kernel without nf_tables has no rules to bypass; without the program nobody can tell.
        Err(Error::Unsupported { feature, .. }) if feature == "nft" => found.unknown.push(
            "whether there are packet filter rules that frames between ports bypass is not known: install \
             nftables to look"
                .to_owned(),
        ),
        Err(Error::Unsupported { .. }) => {}
        Err(error) => found
            .unknown
            .push(format!("cannot look for bypassed rules: {error}")),
    }
    match legacy_chains(ns) {
        Ok(chains) => {
            let bypassed = chains
                .iter()
                .filter(|chain| FORWARDING.contains(&chain.hook.as_str()));
            found.chains.extend(bypassed.map(legacy_name));
        }
        Err(error) => found
            .unknown
            .push(format!("cannot look for bypassed rules: {error}")),
    }
    found
}

fn is_bypassed(chain: &NftChain, concerns: impl Fn(&str, &str) -> bool) -> bool {
    let hook = chain.hook.as_str();
    if OF_DEVICES.contains(&hook) {
        // Better named without need than passed over: an older nft does not say whose device.
        return chain.devices.is_empty() || chain.devices.iter().any(|d| concerns(d, hook));
    }
    // Where there is no bridge, not even what is for the host passes a bridge's hooks.
    chain.family == "bridge" || FORWARDING.contains(&hook)
}

fn name(chain: &NftChain) -> String {
    let name = format!("{} {} {}", chain.family, chain.table, chain.name);
    let hook = &chain.hook;
    if !OF_DEVICES.contains(&hook.as_str()) {
        name
    } else if chain.devices.is_empty() {
        format!("{name} ({hook})")
    } else {
        format!("{name} ({hook} of {})", chain.devices.join(", "))
    }
}

fn legacy_name(chain: &LegacyChain) -> String {
    let (family, table) = (&chain.family, &chain.table);
    format!(
        "{family} {table} {} (iptables-legacy)",
        chain.hook.to_uppercase()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(family: &str, hook: &str, devices: &[&str]) -> NftChain {
        let mut chain = NftChain::default();
        chain.family = family.to_owned();
        chain.table = "t".to_owned();
        chain.name = "c".to_owned();
        chain.hook = hook.to_owned();
        chain.rules = 1;
        chain.devices = devices.iter().map(|device| (*device).to_owned()).collect();
        chain
    }

    #[test]
    fn bypassed_is_what_forwards_what_bridges_and_what_a_device_of_the_switch_would_meet() {
        let at = |device: &str, hook: &str| device == "p0" || hook == "ingress" && device == "up0";
        for (bypassed, chain) in [
            (true, chain("inet", "forward", &[])),
            (true, chain("ip", "prerouting", &[])),
            (true, chain("ip6", "postrouting", &[])),
            (false, chain("inet", "input", &[])),
            (false, chain("ip", "output", &[])),
            (true, chain("bridge", "input", &[])),
            (true, chain("netdev", "ingress", &["eth9", "up0"])),
            (true, chain("inet", "ingress", &["p0"])),
            (false, chain("netdev", "ingress", &["eth9"])),
            (true, chain("netdev", "egress", &["p0"])),
            (false, chain("netdev", "egress", &["up0"])),
            (true, chain("netdev", "egress", &[])),
        ] {
            assert_eq!(is_bypassed(&chain, at), bypassed, "{chain:?}");
        }
        for (devices, expected) in [
            (&["a", "b"][..], "netdev t c (egress of a, b)"),
            (&[], "netdev t c (egress)"),
        ] {
            assert_eq!(name(&chain("netdev", "egress", devices)), expected);
        }
        assert_eq!(name(&chain("ip", "forward", &[])), "ip t c");
    }
}
