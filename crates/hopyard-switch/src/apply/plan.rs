//! The steps from the switch there is to the one that is wanted. Nothing here asks the kernel.

mod joining;

pub(super) use self::joining::stays;

use std::collections::{BTreeMap, BTreeSet};

use super::claim::{Claim, Host, claims};
use super::devices::Ends;
use super::problem::Problem;
use super::{PortSpec, Present, PresentPort, SETTINGS, ShortcutSpec, SwitchSpec};
use crate::mac::Mac;
use crate::shortcut::{SelfTest, Shortcut};

/// What is to be done, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// The switch that it is about.
    pub name: String,
    /// The steps; none: the switch is as it was described.
    pub changes: Vec<Change>,
    /// Why nothing can be done. None: [`Plan::carry_out`] may begin.
    pub problems: Vec<Problem>,
    /// Ports that are not described and stay, since they were not made from a description.
    pub left_alone: Vec<String>,
    /// Optional ports whose device is missing.
    pub missing: Vec<String>,
    /// Ports whose guest has an Ethernet address that is none of the port's, so that its frames are dropped; each names both addresses.
    pub other_mac: Vec<String>,
    /// What joined sockets lack on this kernel, where a step asks for a shortcut.
    pub(super) tested: Option<SelfTest>,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Make the switch, without ports.
    Create(SwitchSpec),
    /// Answer ARP and neighbour solicitations from now on, or do not.
    Answers(bool),
    /// Set the uplink.
    Uplink {
        /// Its name.
        device: String,
        /// The host's Ethernet addresses behind it, beside its own.
        host_macs: Vec<Mac>,
        /// The uplink there was.
        was: Option<String>,
        /// What is wrong with that.
        wrong: Option<String>,
    },
    /// Let go of the uplink.
    NoUplink {
        /// The uplink there was; `None`: somebody who let go of it was interrupted.
        was: Option<String>,
    },
    /// Set the MTU of both ends of a port.
    Mtu {
        /// The host's end.
        device: String,
        /// Bytes of payload.
        mtu: u32,
        /// What the ends took.
        was: Ends,
    },
    /// Remove a port.
    Remove {
        /// Its device.
        device: String,
        /// Why it goes.
        why: Why,
    },
    /// Change a port that stays; no frame is lost.
    Set {
        /// The port as it is to be.
        port: PortSpec,
        /// The settings that change.
        differences: Vec<Difference>,
        /// Was it somebody else's? From now on it is one of the description.
        adopt: bool,
        /// Did its devices take more when it was added than they do now?
        shrunk: bool,
    },
    /// Add a port.
    Add(PortSpec),
    /// Give it a shortcut.
    Shortcut {
        /// What it is to be.
        wanted: ShortcutSpec,
        /// The one there was. In the same control group it stays, and what it may lack is noted anew.
        was: Option<Shortcut>,
    },
    /// Take the shortcut away.
    NoShortcut {
        /// The one there was.
        was: Shortcut,
    },
}

/// Why a port is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// It was made from a description that has it no longer.
    Undescribed,
    /// It is somebody else's, and those were to be removed.
    Pruned,
    /// Settings differ that cannot change while it stands. A later step adds it again.
    Changed(Vec<Difference>),
    /// Somebody took the switch's program off its device. A later step adds it again.
    Detached,
    /// This comes before the switch's program at its device. A later step adds it again, and is first then.
    NotFirst(String),
}

/// A setting that is not as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its name in files.
    pub key: &'static str,
    /// The value there is, as TOML has it.
    pub was: String,
    /// The value that is wanted.
    pub wanted: String,
}

/// The steps, and the ports that are left alone. `wanted` has all Ethernet addresses; `ends` are the devices of its ports.
pub(super) fn steps(
    wanted: &SwitchSpec,
    present: Option<&Present>,
    host: &Host,
    ends: &BTreeMap<String, Ends>,
    prune: bool,
) -> (Vec<Change>, Vec<String>) {
    let nothing = Present::default();
    let mut changes = Vec::new();
    if present.is_none() {
        changes.push(Change::Create(SwitchSpec {
            ports: Vec::new(),
            shortcut: None,
            ..wanted.clone()
        }));
    } else if present.is_some_and(|present| present.answers != wanted.answers) {
        changes.push(Change::Answers(wanted.answers));
    }
    let stands = present.is_some();
    let present = present.unwrap_or(&nothing);
    changes.extend(joining::end(wanted, present));
    let described: BTreeSet<&str> = wanted.ports.iter().map(|p| p.device.as_str()).collect();
    let mut left_alone = Vec::new();
    for port in &present.ports {
        let device = &port.spec.device;
        let why = match (described.contains(device.as_str()), port.declared) {
            (true, _) => continue,
            (false, true) => Why::Undescribed,
            (false, false) if prune => Why::Pruned,
            (false, false) => {
                left_alone.push(device.clone());
                continue;
            }
        };
        changes.push(remove(device, why));
    }
    // The switch has the longest frame of a port from the MTU of the host's end.
    let lower = |port: &PortSpec| {
        let now = ends.get(&port.device);
        port.mtu
            .is_some_and(|mtu| now.is_some_and(|now| mtu < now.host))
    };
    let there: BTreeMap<&str, &PresentPort> = present
        .ports
        .iter()
        .map(|port| (port.spec.device.as_str(), port))
        .collect();
    let mut kept = Vec::new();
    let mut replaced = Vec::new();
    let mut added = Vec::new();
    for port in &wanted.ports {
        let Some(now) = there.get(port.device.as_str()) else {
            added.push(port);
            continue;
        };
        match replacing(port, now) {
            Some(why) => replaced.push((port, *now, why)),
            None => kept.extend(keeping(port, now, lower(port))),
        }
    }
    // A port whose address another one, or the host, is to have has to go before.
    let mut sought: BTreeMap<Claim, BTreeSet<&str>> = BTreeMap::new();
    for port in replaced
        .iter()
        .map(|(port, ..)| *port)
        .chain(added.iter().copied())
    {
        for claim in claims(port) {
            sought.entry(claim).or_default().insert(&port.device);
        }
    }
    let in_the_way = |now: &PresentPort| {
        let is_for_another = |claim: Claim| {
            let others = sought.get(&claim);
            others.is_some_and(|others| others.iter().any(|other| *other != now.spec.device))
        };
        let is_for_the_host = |mac: &Mac| host.key_of(wanted, *mac).is_some();
        claims(&now.spec).any(is_for_another) || now.spec.macs.iter().any(is_for_the_host)
    };
    let mut late = Vec::new();
    for (port, now, why) in replaced {
        let remove = remove(&port.device, why);
        if in_the_way(now) {
            changes.push(remove);
        } else {
            late.push(remove);
        }
        late.push(Change::Add(port.clone()));
    }
    changes.extend(stands.then(|| uplink(wanted, present)).flatten());
    changes.extend(wanted.ports.iter().filter_map(|port| mtu(port, ends)));
    changes.extend(kept);
    changes.extend(late);
    changes.extend(added.into_iter().cloned().map(Change::Add));
    changes.extend(joining::begin(wanted, present));
    (changes, left_alone)
}

fn remove(device: &str, why: Why) -> Change {
    Change::Remove {
        device: device.to_owned(),
        why,
    }
}

fn uplink(wanted: &SwitchSpec, present: &Present) -> Option<Change> {
    let Present {
        uplink: was,
        uplink_wrong: wrong,
        host_macs,
        ..
    } = present;
    let Some(device) = &wanted.uplink else {
        let is_there = was.is_some() || wrong.is_some();
        return is_there.then(|| Change::NoUplink { was: was.clone() });
    };
    let same = was.as_ref() == Some(device) && wrong.is_none();
    let differs = !same || sorted(host_macs) != sorted(&wanted.host_macs);
    differs.then(|| Change::Uplink {
        device: device.clone(),
        host_macs: wanted.host_macs.clone(),
        was: was.clone(),
        wrong: wrong.clone(),
    })
}

fn sorted(macs: &[Mac]) -> BTreeSet<Mac> {
    macs.iter().copied().collect()
}

fn mtu(port: &PortSpec, ends: &BTreeMap<String, Ends>) -> Option<Change> {
    let was = ends.get(&port.device)?;
    let mtu = port.mtu.filter(|mtu| !was.are(*mtu))?;
    Some(Change::Mtu {
        device: port.device.clone(),
        mtu,
        was: was.clone(),
    })
}

fn differences(wanted: &PortSpec, now: &PortSpec) -> Vec<(Difference, bool)> {
    let each = SETTINGS.iter().map(|setting| {
        let difference = Difference {
            key: setting.key,
            was: (setting.text)(now),
            wanted: (setting.text)(wanted),
        };
        (difference, setting.change.is_some())
    });
    each.filter(|(difference, _)| difference.was != difference.wanted)
        .collect()
}

/// Why a port has to be removed and added again, if it has.
fn replacing(wanted: &PortSpec, now: &PresentPort) -> Option<Why> {
    let differences = differences(wanted, &now.spec);
    if differences.iter().any(|(_, in_place)| !in_place) {
        let all = differences.into_iter().map(|(difference, _)| difference);
        return Some(Why::Changed(all.collect()));
    }
    if now.detached {
        return Some(Why::Detached);
    }
    now.preceded_by.clone().map(Why::NotFirst)
}

/// How a port that stays changes, if it does.
fn keeping(wanted: &PortSpec, now: &PresentPort, shrinks: bool) -> Option<Change> {
    let differences = differences(wanted, &now.spec);
    let shrunk = now.shrunk || shrinks;
    let changes = !differences.is_empty() || !now.declared || shrunk;
    changes.then(|| Change::Set {
        port: wanted.clone(),
        differences: differences.into_iter().map(|(one, _)| one).collect(),
        adopt: !now.declared,
        shrunk,
    })
}
