//! Packet filter rules that frames between ports never meet.

use std::collections::BTreeSet;

use hopyard_net::{NetNs, nft_chains};

/// Hooks that a bridge's frames, or with bridge netfilter its packets, would pass.
const FORWARDING: [&str; 3] = ["prerouting", "forward", "postrouting"];

/// What of the namespace's rules a switch bypasses, a sentence each; empty when there is none.
///
/// Frames between ports, and between ports and the wire, are redirected before the host's network layer
/// sees them. What goes to the host itself meets the host's rules as ever.
#[must_use]
pub fn bypassed_rules(ns: &NetNs) -> Vec<String> {
    let chains = match nft_chains(ns) {
        Ok(chains) => chains,
        // A kernel without nf_tables has no rules to bypass; without the program nobody can tell.
        Err(hopyard_net::Error::Unsupported { feature, .. }) if feature == "nft" => {
            return vec![
                "whether there are packet filter rules that frames between ports bypass is not known: \
                 install nftables to look"
                    .to_owned(),
            ];
        }
        Err(hopyard_net::Error::Unsupported { .. }) => return Vec::new(),
        Err(error) => return vec![format!("cannot look for bypassed rules: {error}")],
    };
    let bypassed: BTreeSet<String> = chains
        .iter()
        .filter(|chain| FORWARDING.contains(&chain.hook.as_str()))
        .map(|chain| format!("{} {} {}", chain.family, chain.table, chain.name))
        .collect();
    if bypassed.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "frames between ports, and between ports and the wire, BYPASS these packet filter chains: {}",
        bypassed.into_iter().collect::<Vec<_>>().join(", ")
    )]
}
