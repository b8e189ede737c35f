//! What a switch is, beside what the kernel has now; differences are warnings.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopyard_net::{Handle, Link, NetNs};
use serde::Serialize;

use crate::bypass::bypassed_rules;
use crate::error::Result;
use crate::here::is_pair;
use crate::layout::{
    ETHERNET_HEADER, HOLDS_PREFIX, PORT_ANY_SOURCE, PORT_DECLARED, PORT_DHCP, PORT_FOLLOW,
    PORT_ISOLATED, PORT_PEER, PORT_RATE_IN, PORT_RATE_OUT, PORT_ROUTER, PortRecord, SWITCH_ANSWERS,
};
use crate::limit::Broadcasts;
use crate::mac::Mac;
use crate::netkit;
use crate::prefix::Prefix;
use crate::rate::{Rate, RateLimit};
use crate::shortcut::Shortcut;
use crate::switch::Switch;

mod hook;
mod port;
mod uplink;
mod warning;

use hook::Findings;
use port::PortSeen;
pub use warning::{Warning, WayOut};

/// A switch as it stands. Lists are in the order of the slots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Shown {
    /// Name of the switch.
    pub name: String,
    /// The inode of its network namespace.
    pub netns: u64,
    /// The uplink, where the switch has one.
    pub uplink: Option<ShownUplink>,
    /// Does it answer ARP and neighbour solicitations from the table?
    pub answers: bool,
    /// The shortcut, where the switch has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shortcut: Option<Shortcut>,
    /// The ports, in the order of their slots.
    pub ports: Vec<ShownPort>,
    /// What is not as it should be.
    pub warnings: Vec<Warning>,
}

/// An uplink as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ShownUplink {
    /// Name of the uplink's device.
    pub device: String,
    /// The host's Ethernet address there.
    pub mac: Mac,
    /// Other Ethernet addresses of the host behind it.
    pub host_macs: Vec<Mac>,
    /// Bytes of payload that a frame takes.
    pub mtu_bytes: u32,
}

/// A port as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ShownPort {
    /// Name of the port's device in the namespace of the switch.
    pub device: String,
    /// The Ethernet addresses that are its; the guest's own first.
    pub macs: Vec<Mac>,
    /// The IP addresses that it is held to; none: any, or none until it gets some ([`NewPort::ips_follow`](crate::NewPort)).
    pub ips: Vec<IpAddr>,
    /// The IP prefixes that it may use.
    pub prefixes: Vec<Prefix>,
    /// Its VLAN; `None`: untagged.
    pub vlan: Option<u16>,
    /// Does it talk to the uplink and the host only?
    pub isolated: bool,
    /// May it send from any address that is nobody else's?
    pub allow_spoof: bool,
    /// May it advertise itself as a router?
    pub router: bool,
    /// May it answer DHCP?
    pub dhcp_server: bool,
    /// Broadcasts that it may send a second; `None`: any number.
    pub broadcasts_per_second: Option<u32>,
    /// Was it made from a description of the switch, which [`apply`](crate::apply) keeps it to?
    pub declared: bool,
    /// How fast it may get frames; `None`: as fast as they come.
    pub rate_in: Option<RateLimit>,
    /// How fast it may send; `None`: as fast as it can.
    pub rate_out: Option<RateLimit>,
    /// Do frames go straight into the guest's namespace?
    pub direct: bool,
    /// Does the switch's program run where the guest sends, and not only behind the receive queue of the port's device (netkit)?
    pub direct_out: bool,
    /// Bytes of payload that a frame takes.
    pub mtu_bytes: u32,
}

impl Switch {
    /// What it is. Devices are looked up in the calling thread's namespace, which should be the
    /// switch's own; elsewhere the warnings say so.
    ///
    /// # Errors
    /// The kernel's maps or devices cannot be read.
    pub fn show(&self) -> Result<Shown> {
        let config = self.state.config()?;
        let ns = NetNs::current()?;
        let mut findings = Findings::default();
        let at_home = ns.inode()? == config.netns;
        let handle = Handle::new(&ns)?;
        let links: BTreeMap<u32, Link> = if at_home {
            handle.links()?.into_iter().map(|l| (l.index, l)).collect()
        } else {
            findings.warn(format!(
                "the switch is in another network namespace (net:[{}]): its devices cannot be looked at \
                 from here",
                config.netns
            ));
            BTreeMap::new()
        };
        if at_home {
            findings.warnings.extend(
                self.bypassed(&ns, config.uplink, &links)?
                    .into_iter()
                    .map(Warning::from),
            );
            findings
                .warnings
                .extend(self.gone(&links).map(Warning::from));
            findings
                .warnings
                .extend(self.unknown_of_host(&handle)?.iter().map(|key| {
                    let wrong = format!(
                        "the host or its gateway has the address {} now, which ports are not kept from claiming: ",
                        key.ip()
                    );
                    Warning::new(wrong, WayOut::Upgrade, " takes it over")
                }));
        }
        let uplink = (config.uplink != 0).then(|| {
            let link = links.get(&config.uplink);
            if at_home {
                self.check_uplink(&handle, &config, &links, &mut findings);
            }
            ShownUplink {
                device: name_of(link, config.uplink),
                mac: Mac::from_number(config.host_mac),
                host_macs: self.state.hosts().unwrap_or_default(),
                mtu_bytes: link.map_or(0, |link| link.mtu),
            }
        });
        let qdiscs: BTreeMap<u32, String> = if at_home {
            handle.root_qdiscs()?.into_iter().collect()
        } else {
            BTreeMap::new()
        };
        let (macs, ips) = self.addresses();
        let mut ports = Vec::new();
        for (slot, record) in self.state.ports()? {
            let link = links.get(&record.device);
            if let Some(link) = link {
                let peer = is_pair(link)
                    .then(|| handle.lower_of(link).ok().flatten())
                    .flatten();
                let port = PortSeen {
                    record: &record,
                    link,
                    peer: peer.as_ref(),
                    qdisc: qdiscs.get(&link.index).map(String::as_str),
                };
                self.check_port(&handle, &port, &mut findings);
            }
            let [rate_in, rate_out] = self.rates(slot, &record)?.map(Rate::limit);
            let mut macs = macs.get(&slot).cloned().unwrap_or_default();
            macs.sort_by_key(|mac| (mac.to_number() != record.mac, *mac));
            ports.push(ShownPort {
                device: name_of(link, record.device),
                macs,
                ips: ips.get(&slot).cloned().unwrap_or_default(),
                prefixes: self.prefixes(slot, &record)?,
                vlan: (record.vlan != 0).then_some(record.vlan),
                isolated: record.flags & PORT_ISOLATED != 0,
                allow_spoof: record.flags & PORT_ANY_SOURCE != 0,
                router: record.flags & PORT_ROUTER != 0,
                dhcp_server: record.flags & PORT_DHCP != 0,
                broadcasts_per_second: Broadcasts::from_number(record.broadcasts).per_second(),
                declared: record.flags & PORT_DECLARED != 0,
                rate_in,
                rate_out,
                direct: is_direct(&record, link),
                direct_out: netkit::is_held(&self.directory, slot)?,
                mtu_bytes: link.map_or(0, |link| link.mtu),
            });
        }
        match &uplink {
            // One that is gone takes nothing.
            Some(up) if up.mtu_bytes == 0 => {}
            Some(up) => {
                let differ = ports
                    .iter()
                    .filter(|port| port.mtu_bytes > 0 && port.mtu_bytes != up.mtu_bytes);
                let other = format!("uplink `{}`", up.device);
                findings
                    .warnings
                    .extend(differ.map(|port| mismatch(port, &other, up.mtu_bytes).into()));
            }
            None => findings
                .warnings
                .extend(differing(&ports).into_iter().map(Warning::from)),
        }
        if let Some(up) = uplink.as_ref().filter(|_| at_home)
            && ports.iter().any(|port| port.isolated)
            && uplink::forwards(&handle, &up.device)
        {
            findings.warn(uplink::leads_back(&up.device));
        }
        let shortcut = self.shortcut()?;
        findings.warnings.extend(
            shortcut
                .iter()
                .flat_map(Shortcut::warnings)
                .map(Warning::from),
        );
        Ok(Shown {
            name: self.name.clone(),
            netns: config.netns,
            uplink,
            answers: config.flags & SWITCH_ANSWERS != 0,
            shortcut,
            ports,
            warnings: findings.into_warnings(),
        })
    }

    /// A warning of the ports that were forgotten when the switch was opened.
    fn gone(&self, links: &BTreeMap<u32, Link>) -> Option<String> {
        let gone = self.forgotten.iter().filter(|at| !links.contains_key(at));
        let gone: Vec<String> = gone.map(|index| format!("#{index}")).collect();
        (!gone.is_empty()).then(|| {
            format!(
                "these devices are gone or in another network namespace, and no ports any more: {}",
                gone.join(", ")
            )
        })
    }

    /// Warnings of rules that its frames bypass. What leaves by the uplink meets the rules of its egress.
    fn bypassed(
        &self,
        ns: &NetNs,
        uplink: u32,
        links: &BTreeMap<u32, Link>,
    ) -> Result<Vec<String>> {
        let name = |index| links.get(&index).map(|link| link.name.as_str());
        let records = self.state.ports()?;
        let ports: Vec<_> = records.iter().filter_map(|(_, r)| name(r.device)).collect();
        let uplink = name(uplink);
        let concerns = |device: &str, hook: &str| {
            ports.contains(&device) || hook == "ingress" && uplink == Some(device)
        };
        Ok(bypassed_rules(ns, concerns).warnings())
    }

    /// How fast a port may get frames, and send.
    pub(crate) fn rates(&self, slot: u32, record: &PortRecord) -> Result<[Rate; 2]> {
        let limits = self.state.limits(slot)?;
        let rate = |flag, bucket| match record.flags & flag {
            0 => Rate::Unlimited,
            _ => Rate::from_bucket(bucket),
        };
        Ok([
            rate(PORT_RATE_IN, &limits.inward),
            rate(PORT_RATE_OUT, &limits.outward),
        ])
    }

    pub(crate) fn prefixes(&self, slot: u32, record: &PortRecord) -> Result<Vec<Prefix>> {
        let holdings = self.state.holdings(slot, record.holdings)?;
        let prefixes = holdings.iter().filter(|(_, h)| h.kind == HOLDS_PREFIX);
        Ok(prefixes
            .map(|(_, h)| Prefix::from_mapped(h.address.ip(), h.prefix))
            .collect())
    }

    /// The Ethernet and IP addresses by slot.
    pub(crate) fn addresses(&self) -> (BTreeMap<u32, Vec<Mac>>, BTreeMap<u32, Vec<IpAddr>>) {
        let mut macs: BTreeMap<u32, Vec<Mac>> = BTreeMap::new();
        for (key, station) in self.state.stations.iter().flatten() {
            macs.entry(station.slot)
                .or_default()
                .push(Mac::from_number(key));
        }
        let mut ips: BTreeMap<u32, Vec<IpAddr>> = BTreeMap::new();
        for (key, address) in self.state.addresses.iter().flatten() {
            ips.entry(address.slot).or_default().push(key.ip());
        }
        // A list from which something is removed meanwhile may begin anew.
        for list in ips.values_mut() {
            list.sort();
            list.dedup();
        }
        for list in macs.values_mut() {
            list.sort();
            list.dedup();
        }
        (macs, ips)
    }
}

/// Do frames go straight into the guest's namespace, as its device is now?
fn is_direct(record: &PortRecord, link: Option<&Link>) -> bool {
    let follows = record.flags & PORT_FOLLOW != 0;
    let elsewhere = link.is_none_or(|link| link.lower_ns.is_some());
    record.flags & PORT_PEER != 0 && (!follows || elsewhere)
}

/// What is wrong where a device takes less than it did when the switch learned of it: frames up to `sure_len`
/// are handed to it unasked.
fn shrunk(link: &Link, sure_len: u32, mend: WayOut) -> Option<Warning> {
    let had = sure_len.saturating_sub(ETHERNET_HEADER);
    (link.mtu < had).then(|| {
        let wrong = format!(
            "`{}` has an MTU of {} now, and had one of {had} when it became part of the switch: longer frames \
             are handed to it still, and may be lost uncounted; ",
            link.name, link.mtu
        );
        Warning::new(wrong, mend, "")
    })
}

/// Where no uplink sets the measure, the port that takes least does.
fn differing(ports: &[ShownPort]) -> Vec<String> {
    let known = ports.iter().filter(|port| port.mtu_bytes > 0);
    let Some(least) = known.min_by_key(|port| port.mtu_bytes) else {
        return Vec::new();
    };
    let longer = ports.iter().filter(|port| port.mtu_bytes > least.mtu_bytes);
    longer
        .map(|port| mismatch(port, &format!("port `{}`", least.device), least.mtu_bytes))
        .collect()
}

fn mismatch(port: &ShownPort, other: &str, other_mtu: u32) -> String {
    format!(
        "`{}` has an MTU of {}, the {other} one of {other_mtu}: longer frames between them are dropped \
         (reason mtu)",
        port.device, port.mtu_bytes
    )
}

fn name_of(link: Option<&Link>, index: u32) -> String {
    link.map_or_else(|| format!("#{index}"), |link| link.name.clone())
}
