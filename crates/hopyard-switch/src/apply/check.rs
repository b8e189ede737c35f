//! Everything that can be found wrong before anything is changed.

use std::collections::{BTreeMap, BTreeSet};

use hopyard_net::Link;

use super::claim::{Claim, Host, claims};
use super::devices::{Device, Sought, find};
use super::plan::steps;
use super::problem::Problem;
use super::shortcut;
use super::{Change, Plan, PortSpec, Present, PresentPort, SwitchSpec, Why};
use crate::bpffs::check_name;
use crate::error::{Error, Result};
use crate::here::{Here, check_uplink};
use crate::hook::Hooks;
use crate::host::own_addresses;
use crate::kernel::check_kernel;
use crate::layout::{FIRST_PORT, MAX_HOSTS, MAX_SLOTS};
use crate::mac::Mac;
use crate::port::MAX_VLAN;
use crate::switch::Switch;

impl SwitchSpec {
    /// Compares the switch, the devices of the calling thread's namespace and this description, and changes nothing. With
    /// `prune`, ports that were not made from a description are removed as well.
    ///
    /// # Errors
    /// The switch is in another namespace or of another version, or cannot be read. What is wrong with the description, or
    /// with a device, is in [`Plan::problems`].
    pub fn compare(&self, prune: bool) -> Result<Plan> {
        let what = format!("apply switch `{}`", self.name);
        check_name(&what, &self.name)?;
        check_kernel(&what, Hooks::Tcx)?;
        let here = Here::new()?;
        let present = match Switch::open(&self.name) {
            Err(Error::NoSwitch { .. }) => None,
            opened => Some(opened?.present(&what)?),
        };
        let mut plan = Plan {
            name: self.name.clone(),
            ..Plan::default()
        };
        let mut wanted = Self {
            ports: Vec::new(),
            ..self.clone()
        };
        // The place of each port in the description.
        let mut places = Vec::new();
        let mut ends = BTreeMap::new();
        let mut indices = BTreeSet::new();
        let mut may_be_described = false;
        for (n, port) in self.ports.iter().enumerate() {
            match found(&here, &self.name, port, present.as_ref()) {
                Ok((port, device)) => {
                    plan.other_mac.extend(other_mac(&port, &device));
                    indices.insert(device.link.index);
                    ends.insert(port.device.clone(), device.ends);
                    wanted.ports.push(port);
                    places.push(n);
                }
                Err((_, Sought::Missing(why))) if port.optional => {
                    may_be_described |= port.guest.is_some();
                    plan.missing.push(why);
                }
                Err((key, sought)) => {
                    plan.problems.push(Problem::of_device(Some(n), key, sought));
                }
            }
        }
        let mut host = Host::default();
        if let Some(device) = &self.uplink {
            match uplink(&here, &self.name, device) {
                Ok(link) => {
                    host.mac = link.mac.map(Mac);
                    // As the switch has them once it is made: the device by its own name, and its own address not among the others.
                    wanted.uplink = Some(link.name.clone());
                    wanted.host_macs.retain(|mac| Some(*mac) != host.mac);
                    let is_port = |index| indices.contains(&index);
                    host.addresses = own_addresses(&here.handle, &link, &is_port)?;
                }
                Err(sought) => plan
                    .problems
                    .push(Problem::of_device(None, "uplink", sought)),
            }
        }
        let stays = |port: &PresentPort| match port.declared {
            true => may_be_described,
            false => !prune,
        };
        let conflicts = conflicts(&wanted, present.as_ref(), &host, stays).into_iter();
        plan.problems.extend(conflicts.map(|problem| Problem {
            port: problem.port.and_then(|n| places.get(n).copied()),
            ..problem
        }));
        (plan.changes, plan.left_alone) = steps(&wanted, present.as_ref(), &host, &ends, prune);
        if may_be_described {
            leave_undescribed_alone(&mut plan);
        }
        shortcut::check(&mut plan)?;
        Ok(plan)
    }
}

/// Whoever is in a namespace may rename its device, and then the host's end is not found by it. That must not take its port off, after
/// which it would talk to the host itself.
fn leave_undescribed_alone(plan: &mut Plan) {
    let left_alone = &mut plan.left_alone;
    plan.changes.retain(|change| match change {
        Change::Remove {
            device,
            why: Why::Undescribed,
        } => {
            left_alone.push(device.clone());
            false
        }
        _ => true,
    });
}

/// The port with all that its device says, and the device. A port that stands keeps its own Ethernet address unless another is
/// given: its guest may have changed the address of its device since then.
fn found(
    here: &Here,
    switch: &str,
    port: &PortSpec,
    present: Option<&Present>,
) -> std::result::Result<(PortSpec, Device), (&'static str, Sought)> {
    let of_device = |sought| ("device", sought);
    let device = find(here, port).map_err(of_device)?;
    let owner = here.tied_to(&device.link, Some(switch));
    if let Some(owner) = owner.map_err(|error| of_device(error.into()))? {
        let why = owner.of(&device.link.name);
        return Err(of_device(Sought::Unfit(why)));
    }
    let mut port = port.clone();
    port.device.clone_from(&device.link.name);
    port.queued |= device.queued;
    if port.macs.is_empty() {
        let mut there = present.into_iter().flat_map(|present| &present.ports);
        let standing = there.find(|now| now.spec.device == port.device);
        let own = standing.and_then(|now| now.spec.macs.first());
        port.macs.extend(own.copied());
    }
    if port.macs.is_empty() {
        let why = format!(
            "the guest's Ethernet address cannot be read from `{}`: give it",
            port.device
        );
        let own = device.guest_mac.ok_or(("mac", Sought::Unfit(why)))?;
        port.macs.push(own);
    }
    let ends = &device.ends;
    if port.mtu.is_some_and(|mtu| !ends.are(mtu)) && ends.guest.is_some() && ends.place.is_none() {
        let why = "the guest's end is in another namespace: name the port by that (`netns`), or set its MTU there";
        return Err(("mtu", Sought::Unfit(why.to_owned())));
    }
    port.sort();
    Ok((port, device))
}

/// Says that the guest of a port has another address than the port, from which it may not send.
fn other_mac(port: &PortSpec, device: &Device) -> Option<String> {
    let guest = device.guest_mac.filter(|mac| !port.macs.contains(mac))?;
    let own = port.macs.first().filter(|_| !port.allow_spoof)?;
    Some(format!(
        "port `{}` has {own}, but its guest now has {guest}",
        port.device
    ))
}

fn uplink(here: &Here, switch: &str, device: &str) -> std::result::Result<Link, Sought> {
    let link = here.fit_device("", device)?;
    check_uplink("", &link)?;
    if link.mac.is_none() {
        let why = format!("`{device}` has no Ethernet address");
        return Err(Sought::Unfit(why));
    }
    match here.tied_to(&link, Some(switch))? {
        Some(owner) => Err(Sought::Unfit(owner.of(device))),
        None => Ok(link),
    }
}

/// What does not go together: in the description itself, with the host, and with ports that stay without being described, which
/// `stays` tells.
pub(super) fn conflicts(
    wanted: &SwitchSpec,
    present: Option<&Present>,
    host: &Host,
    stays: impl Fn(&PresentPort) -> bool,
) -> Vec<Problem> {
    let mut problems = of_switch(wanted, present);
    let mut devices: BTreeMap<&str, usize> = BTreeMap::new();
    let mut taken: BTreeMap<Claim, String> = BTreeMap::new();
    let described: BTreeSet<&str> = wanted.ports.iter().map(|p| p.device.as_str()).collect();
    let staying = present.into_iter().flat_map(|present| &present.ports);
    let staying: Vec<_> = staying
        .filter(|port| !described.contains(port.spec.device.as_str()) && stays(port))
        .collect();
    for port in &staying {
        let owner = format!(
            "port `{}`, which is not in the description",
            port.spec.device
        );
        taken.extend(claims(&port.spec).map(|claim| (claim, owner.clone())));
    }
    let is_uplink = |port: &&&PresentPort| wanted.uplink.as_ref() == Some(&port.spec.device);
    if let Some(port) = staying.iter().find(is_uplink) {
        let why = format!(
            "`{}` is a port that is not in the description: remove it first",
            port.spec.device
        );
        problems.push(Problem::new(None, "uplink", why));
    }
    problems.extend(taken_of_host(wanted, &staying, host));
    for (n, port) in wanted.ports.iter().enumerate() {
        let mut wrong = |key, why: String| problems.push(Problem::new(Some(n), key, why));
        let device = &port.device;
        if devices.insert(device, n).is_some() {
            wrong("device", format!("`{device}` is described twice"));
            continue;
        }
        if wanted.uplink.as_ref() == Some(device) {
            wrong("device", format!("`{device}` is the uplink as well"));
        }
        if let Some(vlan) = port.vlan.filter(|vlan| !(1..=MAX_VLAN).contains(vlan)) {
            wrong("vlan", format!("{vlan} is outside 1 to {MAX_VLAN}"));
        }
        for (n, prefix) in port.prefixes.iter().enumerate() {
            if port.prefixes[..n].contains(prefix) {
                wrong("ip_prefix", format!("{prefix} is given twice"));
            }
        }
        let mut own = BTreeSet::new();
        for claim in claims(port) {
            let (key, text) = claim.named();
            let why = if !own.insert(claim) {
                "is given twice".to_owned()
            } else if !claim.is_fit() {
                "is no address of a station".to_owned()
            } else if host.has(wanted, &claim) {
                "is the host's own address".to_owned()
            } else if let Some(owner) = taken.get(&claim) {
                format!("is taken by {owner}")
            } else {
                continue;
            };
            wrong(key, format!("{text} {why}"));
        }
        for claim in own {
            taken
                .entry(claim)
                .or_insert_with(|| format!("port `{device}`"));
        }
    }
    let most = (MAX_SLOTS - FIRST_PORT) as usize;
    let ports = staying.len() + wanted.ports.len();
    if ports > most {
        let why = format!("the switch would have {ports} ports, and can have {most}");
        problems.push(Problem::new(None, "ports", why));
    }
    problems
}

/// The Ethernet addresses that are to be the host's, and are those of ports that stay though they are not described.
fn taken_of_host(wanted: &SwitchSpec, staying: &[&PresentPort], host: &Host) -> Vec<Problem> {
    let mut problems = Vec::new();
    for PresentPort { spec, .. } in staying {
        for mac in &spec.macs {
            let Some(key) = host.key_of(wanted, *mac) else {
                continue;
            };
            let why = format!(
                "the host's address {mac} is taken by port `{}`, which is not in the description: remove it first",
                spec.device
            );
            problems.push(Problem::new(None, key, why));
        }
    }
    problems
}

fn of_switch(wanted: &SwitchSpec, present: Option<&Present>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(present) = present
        && present.behind_others != wanted.behind_others
    {
        let why = format!(
            "it is {} and cannot change while the switch stands: delete the switch first",
            present.behind_others
        );
        problems.push(Problem::new(None, "behind_others", why));
    }
    if wanted.uplink.is_none() && !wanted.host_macs.is_empty() {
        let why = "other addresses of the host take an uplink";
        problems.push(Problem::new(None, "host_mac", why));
    }
    if let Some(mac) = wanted.host_macs.iter().find(|mac| !mac.is_station()) {
        let why = format!("{mac} is no address of a station");
        problems.push(Problem::new(None, "host_mac", why));
    }
    if wanted.host_macs.len() > MAX_HOSTS {
        let why = format!("the host may have {MAX_HOSTS} other addresses");
        problems.push(Problem::new(None, "host_mac", why));
    }
    problems
}

impl Claim {
    fn named(&self) -> (&'static str, String) {
        match self {
            Self::Mac(_, mac) => ("mac", mac.to_string()),
            Self::Ip(_, ip) => ("ip", ip.to_string()),
        }
    }

    fn is_fit(&self) -> bool {
        match self {
            Self::Mac(_, mac) => mac.is_station(),
            Self::Ip(_, ip) => !ip.is_unspecified() && !ip.is_multicast(),
        }
    }
}
