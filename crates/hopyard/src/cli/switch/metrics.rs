//! `hopyard switch metrics`: the counters of switches as OpenMetrics.
//!
//! Only counters and gauges are used, and `# UNIT` and `# EOF` are comments in the older text format. So the textfile
//! collector of node_exporter, which supports no other types, can read the page too.

use std::path::Path;

use hopyard_switch::{Counters, DROP_REASONS, Error, PartyStats, Role, ShortcutCounters, Switch};

use super::of_all;
use crate::cli::{Done, deliver};
use crate::openmetrics::{Label, Page};

/// The counters of a switch.
struct Counted {
    name: String,
    parties: Vec<PartyStats>,
}

pub(super) fn metrics(name: Option<String>, file: Option<&Path>) -> Done {
    let counted = match name {
        Some(name) => vec![count(name)?],
        None => of_all(|name| count(name.to_owned()))?,
    };
    deliver(&page(&counted), file)
}

fn count(name: String) -> Result<Counted, Error> {
    let parties = Switch::open(&name)?.stats()?;
    Ok(Counted { name, parties })
}

type Count = fn(&Counters) -> u64;

/// Name, unit, description, and accessor.
const COUNTERS: [(&str, &str, &str, Count); 7] = [
    (
        "hopyard_switch_rx_packets",
        "packets",
        "Packets from the party; a GSO packet counts as one",
        |c| c.rx_packets,
    ),
    (
        "hopyard_switch_rx_bytes",
        "bytes",
        "Bytes from the party, Ethernet header included",
        |c| c.rx_bytes,
    ),
    (
        "hopyard_switch_tx_packets",
        "packets",
        "Packets to the party",
        |c| c.tx_packets,
    ),
    (
        "hopyard_switch_tx_bytes",
        "bytes",
        "Bytes to the party",
        |c| c.tx_bytes,
    ),
    (
        "hopyard_switch_answered_packets",
        "packets",
        "Questions of the party (ARP, neighbour solicitation) that the switch answered itself",
        |c| c.answered,
    ),
    (
        "hopyard_switch_over_rate_packets",
        "packets",
        "Packets to the party that its rate had no room for; among the drops of their senders",
        |c| c.over_rate,
    ),
    (
        "hopyard_switch_too_big_packets",
        "packets",
        "ICMP messages to the party that its packets are longer than their receiver takes",
        |c| c.too_big,
    ),
];

type ShortcutCount = fn(&ShortcutCounters) -> u64;

/// As [`COUNTERS`], for the shortcut. The others do not include it.
const SHORTCUT_COUNTERS: [(&str, &str, &str, ShortcutCount); 6] = [
    (
        "hopyard_switch_shortcut_joined_sockets",
        "sockets",
        "Sockets of the port that found the other end of their connection",
        |c| c.joined,
    ),
    (
        "hopyard_switch_shortcut_refused_sockets",
        "sockets",
        "Sockets of the port that the kernel did not take",
        |c| c.refused,
    ),
    (
        "hopyard_switch_shortcut_rx_messages",
        "messages",
        "Messages from the port's sockets, without packets",
        |c| c.rx_messages,
    ),
    (
        "hopyard_switch_shortcut_rx_bytes",
        "bytes",
        "Bytes in them",
        |c| c.rx_bytes,
    ),
    (
        "hopyard_switch_shortcut_tx_messages",
        "messages",
        "Messages to the port's sockets, without packets",
        |c| c.tx_messages,
    ),
    (
        "hopyard_switch_shortcut_tx_bytes",
        "bytes",
        "Bytes in them",
        |c| c.tx_bytes,
    ),
];

fn page(switches: &[Counted]) -> String {
    let mut page = Page::default();
    page.family(
        "hopyard_switch_ports",
        "gauge",
        "ports",
        "Ports of the switch",
    );
    for switch in switches {
        let ports = switch.parties.iter().filter(|p| p.role == Role::Port);
        let labels = [("switch", switch.name.clone())];
        page.sample("hopyard_switch_ports", &labels, &ports.count().to_string());
    }
    for (name, unit, help, of) in COUNTERS {
        page.family(name, "counter", unit, help);
        for (labels, party) in parties(switches) {
            page.sample(&total(name), &labels, &of(&party.counters).to_string());
        }
    }
    let dropped = "hopyard_switch_dropped_packets";
    page.family(
        dropped,
        "counter",
        "packets",
        "Packets of the party that were dropped; a broadcast counts once for each copy that was not made",
    );
    for (labels, party) in parties(switches) {
        // Zeros too: if a counter first appears with its first drop, `increase` misses that drop.
        for ((reason, _), drops) in DROP_REASONS.iter().zip(party.counters.drops) {
            let mut labels = labels.clone();
            labels.push(("reason", (*reason).to_owned()));
            page.sample(&total(dropped), &labels, &drops.to_string());
        }
    }
    shortcuts(&mut page, switches);
    page.finish()
}

/// For switches with a shortcut.
fn shortcuts(page: &mut Page, switches: &[Counted]) {
    let joined: Vec<(Vec<Label>, &ShortcutCounters)> = parties(switches)
        .filter_map(|(labels, party)| Some((labels, party.shortcut.as_ref()?)))
        .collect();
    if joined.is_empty() {
        return;
    }
    for (name, unit, help, of) in SHORTCUT_COUNTERS {
        page.family(name, "counter", unit, help);
        for (labels, counters) in &joined {
            page.sample(&total(name), labels, &of(counters).to_string());
        }
    }
}

/// The name of a counter's samples.
fn total(family: &str) -> String {
    format!("{family}_total")
}

fn parties(switches: &[Counted]) -> impl Iterator<Item = (Vec<Label>, &PartyStats)> {
    switches.iter().flat_map(|switch| {
        let labels = |party: &PartyStats| {
            vec![
                ("switch", switch.name.clone()),
                ("role", role(party.role).to_owned()),
                ("party", party.party.clone()),
            ]
        };
        let parties = switch.parties.iter();
        parties.map(move |party| (labels(party), party))
    })
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Wire => "wire",
        Role::Host => "host",
        _ => "port",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_switch_is_a_page_without_samples() {
        let page = page(&[]);
        assert!(page.starts_with("# TYPE hopyard_switch_ports gauge\n# UNIT "));
        assert!(page.ends_with("\n# EOF\n"));
        assert!(page.lines().all(|line| line.starts_with('#')), "{page}");
    }
}
