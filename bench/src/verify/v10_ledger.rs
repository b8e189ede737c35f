//! Counters of V10: a rule set that counts every packet a device receives and sends, and the sums that must balance to
//! the packet.

use std::fmt::Write;

use hopyard::lab::Lab;
use hopyard::meter::devices;
use hopyard::model::DeviceCount;
use hopyard_net::{NetNs, NftCounter, nft_counters};

use crate::experiment::Failure;

/// The counter of packets that the rule dropped.
const DROPPED: &str = "dropped";

/// A rule set that counts, on each of `devices`, the flow's packets, other IP packets and ARP, in and out. With
/// `one_in`, it drops one in that many forwarded packets of the flow, at random.
pub(crate) fn ruleset(devices: &[&str], port: u16, one_in: Option<u32>) -> String {
    let mut counters = String::new();
    let mut arp_counters = String::new();
    let [mut pre, mut post, mut arp_in, mut arp_out] = [const { String::new() }; 4];
    for device in devices {
        let name = named(device);
        // Writing to a String cannot fail.
        let _ = write!(
            counters,
            "counter flow_in_{name} {{ }}\ncounter flow_out_{name} {{ }}\n\
             counter other_in_{name} {{ }}\ncounter other_out_{name} {{ }}\n"
        );
        let _ = write!(
            arp_counters,
            "counter arp_in_{name} {{ }}\ncounter arp_out_{name} {{ }}\n"
        );
        for (chain, side, way) in [(&mut pre, "iifname", "in"), (&mut post, "oifname", "out")] {
            let _ = writeln!(
                chain,
                "{side} \"{device}\" udp dport {port} counter name \"flow_{way}_{name}\" accept"
            );
            let _ = writeln!(
                chain,
                "{side} \"{device}\" counter name \"other_{way}_{name}\""
            );
        }
        let _ = writeln!(
            arp_in,
            "iifname \"{device}\" counter name \"arp_in_{name}\""
        );
        let _ = writeln!(
            arp_out,
            "oifname \"{device}\" counter name \"arp_out_{name}\""
        );
    }
    let dropping = one_in.map_or_else(String::new, |n| {
        format!(
            "counter {DROPPED} {{ }}\nchain passing {{ type filter hook forward priority 0;\n\
             udp dport {port} numgen random mod {n} == 0 counter name \"{DROPPED}\" drop\n}}\n"
        )
    });
    format!(
        "table inet verify {{\n{counters}{dropping}\
         chain before {{ type filter hook prerouting priority -300;\n{pre}}}\n\
         chain after {{ type filter hook postrouting priority 300;\n{post}}}\n}}\n\
         table arp verify {{\n{arp_counters}\
         chain taken {{ type filter hook input priority 0;\n{arp_in}}}\n\
         chain sent {{ type filter hook output priority 0;\n{arp_out}}}\n}}\n"
    )
}

/// A device's name as part of a counter's.
fn named(device: &str) -> String {
    device.replace('-', "_")
}

/// All counters of a lab at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Books {
    devices: Vec<DeviceCount>,
    rules: Vec<(&'static str, NftCounter)>,
}

impl Books {
    /// Reads the devices before and after the rules, and repeats that until nothing moved in between.
    pub(crate) fn read(lab: &Lab) -> Result<Self, Failure> {
        const TRIES: usize = 20;
        let devices = || devices::read(lab.spaces().iter().map(|s| (s.role, &s.handle)));
        let mut before = devices()?;
        for _ in 0..TRIES {
            let mut rules = Vec::new();
            for space in lab.spaces() {
                let counters = nft_counters(space.handle.ns())?;
                rules.extend(counters.into_iter().map(|counter| (space.role, counter)));
            }
            let after = devices()?;
            if after == before {
                return Ok(Self {
                    devices: after,
                    rules,
                });
            }
            before = after;
        }
        Err(Failure::NoFigure("a lab whose counters never rest"))
    }

    /// The difference to an earlier reading.
    pub(crate) fn since(&self, start: &Self) -> Self {
        let rules = self
            .rules
            .iter()
            .map(|(role, now)| {
                let before = start
                    .rules
                    .iter()
                    .find(|(r, c)| r == role && c.name == now.name)
                    .map_or(0, |(_, c)| c.packets);
                let mut counter = now.clone();
                counter.packets -= before;
                (*role, counter)
            })
            .collect();
        Self {
            devices: devices::since(&self.devices, &start.devices),
            rules,
        }
    }

    /// (received, sent) packets of a device.
    pub(crate) fn device(&self, role: &str, name: &str) -> (u64, u64) {
        self.devices
            .iter()
            .find(|d| d.namespace == role && d.name == name)
            .map_or((0, 0), |d| (d.rx_packets, d.tx_packets))
    }

    /// Packets of the flow that the rules of a device saw.
    pub(crate) fn flow(&self, role: &str, way: &str, device: &str) -> u64 {
        self.rule(role, &format!("flow_{way}_{}", named(device)))
    }

    /// Packets that are not of the flow: other IP and ARP.
    pub(crate) fn chatter(&self, role: &str, way: &str, device: &str) -> u64 {
        let name = named(device);
        self.rule(role, &format!("other_{way}_{name}"))
            + self.rule(role, &format!("arp_{way}_{name}"))
    }

    /// Packets that the rule dropped.
    pub(crate) fn dropped(&self, role: &str) -> u64 {
        self.rule(role, DROPPED)
    }

    fn rule(&self, role: &str, name: &str) -> u64 {
        self.rules
            .iter()
            .find(|(r, c)| *r == role && c.name == name)
            .map_or(0, |(_, c)| c.packets)
    }
}

/// Datagrams that the sockets of a namespace refused (`Udp:` of /proc/net/snmp: `InErrors`, which includes
/// `RcvbufErrors`).
pub(crate) fn socket_drops(ns: &NetNs) -> Result<u64, Failure> {
    let text = ns.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp"))??;
    parse_in_errors(&text).ok_or(Failure::NoFigure("/proc/net/snmp"))
}

fn parse_in_errors(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|l| l.strip_prefix("Udp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split_whitespace().position(|n| n == "InErrors")?;
    values.split_whitespace().nth(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_found_by_name() {
        let text = "Icmp: A\nIcmp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\n\
                    Udp: 10 2 3 11 3\nUdpLite: InErrors\nUdpLite: 9\n";
        assert_eq!(parse_in_errors(text), Some(3));
        assert_eq!(parse_in_errors("Udp: InErrors\n"), None);
    }

    #[test]
    fn every_device_has_its_counters() {
        let text = ruleset(&["veth-a"], 9, Some(1000));
        for part in [
            "iifname \"veth-a\" udp dport 9 counter name \"flow_in_veth_a\" accept",
            "oifname \"veth-a\" counter name \"arp_out_veth_a\"",
            "numgen random mod 1000 == 0 counter name \"dropped\" drop",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!ruleset(&["eth0"], 9, None).contains("numgen"));
    }
}
