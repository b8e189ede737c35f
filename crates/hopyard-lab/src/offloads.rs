//! Offload flags of every device of a lab: set as the axes ask, read back as they are.

use std::collections::HashSet;

use hopyard_net::OffloadState as Active;

use super::far::FarMachine;
use super::flags::{kernel_name, read_flags};
use super::topology::role;
use super::{Builder, ClientSlot, Error, Result};
use crate::model::{DeviceOffloads, OffloadFlag, OffloadState, Peer, Switch};

/// Sets what the axes ask for on every device and reads every flag back.
///
/// Of the devices that containers have one each of, one in each state is in the answer.
///
/// `offload` changes what can be changed. A flag asked for by its own name must be what was asked, and a device named must be
/// there.
pub(super) fn apply(
    builder: &Builder,
    path: &'static str,
    peer: Peer,
) -> Result<Vec<OffloadState>> {
    let axes = builder.axes();
    all_are_there(builder, path, peer)?;
    for fixed in &builder.fixed {
        if let Some(handle) = builder.handle(fixed.role) {
            handle.set_offload(&fixed.device, kernel_name(fixed.flag), false)?;
        }
    }
    for (role, device, handle) in builder.devices_in_reach() {
        for flag in OffloadFlag::ALL {
            let Some((wanted, is_named)) = axes.offload_of(role, device, flag) else {
                continue;
            };
            let active = if is_fixed(builder, role, device, flag) {
                Active::Fixed(false)
            } else {
                handle.set_offload(device, kernel_name(flag), wanted == Switch::On)?
            };
            if let (true, Active::Fixed(on)) = (is_named, active)
                && on != (wanted == Switch::On)
            {
                return Err(Error::OffloadFixed {
                    path,
                    device: format!("{role}/{device}"),
                    flag: flag.name(),
                    state: if on { "on" } else { "off" },
                });
            }
        }
    }
    // Only now: a bridge's own flags follow those of its ports.
    let mut states = Vec::new();
    let mut told = HashSet::new();
    for (role, device, handle) in builder.devices_in_reach() {
        let is_fixed = |flag| is_fixed(builder, role, device, flag);
        let asked = |flag| axes.offload_of(role, device, flag).map(|(to, _)| to);
        let of_device = read_flags(handle, role, device, is_fixed, asked)?;
        // Containers are alike: of a thousand devices those are told that are not as another.
        let is_new = ClientSlot::alike(role, device).is_none_or(|kind| {
            told.insert((
                kind,
                of_device.each_ref().map(|s| (s.state.clone(), s.fixed)),
            ))
        });
        if is_new {
            states.extend(of_device);
        }
    }
    for state in states_of_far(builder) {
        check_far(builder, path, state)?;
        states.push(state.clone());
    }
    Ok(states)
}

/// What the far machine says of the devices of its end, where the wire is a real cable.
fn states_of_far(builder: &Builder) -> impl Iterator<Item = &OffloadState> {
    builder.parts::<FarMachine>().flat_map(FarMachine::offloads)
}

/// A flag that was asked for by its own name must be so at the far end too.
fn check_far(builder: &Builder, path: &'static str, state: &OffloadState) -> Result<()> {
    let asked = builder
        .axes()
        .offload_of(role::FAR, &state.device, state.flag);
    match asked {
        Some((to, true)) if state.fixed && (state.state == "on") != (to == Switch::On) => {
            Err(Error::OffloadFixed {
                path,
                device: format!("{}/{}", role::FAR, state.device),
                flag: state.flag.name(),
                state: if state.state == "on" { "on" } else { "off" },
            })
        }
        _ => Ok(()),
    }
}

/// All devices, those of a far machine too, some of them more than once.
fn devices(builder: &Builder) -> impl Iterator<Item = (&'static str, &str)> {
    let here = builder.devices().iter();
    let far = states_of_far(builder).map(|state| (role::FAR, &*state.device));
    here.map(|(role, device)| (*role, &**device)).chain(far)
}

/// Has the lab the devices that switches are for?
fn all_are_there(builder: &Builder, path: &'static str, peer: Peer) -> Result<()> {
    let switches = builder.axes().device_offload.iter();
    for switch in switches.flat_map(DeviceOffloads::iter) {
        if devices(builder).any(|(role, device)| switch.is_of(role, device)) {
            continue;
        }
        return Err(Error::NoSuchDevice {
            path,
            peer,
            device: switch.device.clone(),
            switch: switch.to_string(),
            choices: choices(builder),
        });
    }
    Ok(())
}

/// The devices of a lab, of those that containers have one each of the first.
fn choices(builder: &Builder) -> String {
    let mut told = HashSet::new();
    let firsts = devices(builder).filter(|(role, device)| {
        ClientSlot::alike(role, device).is_none_or(|kind| told.insert(kind))
    });
    let mut names: Vec<String> = firsts
        .map(|(role, device)| format!("{role}/{device}"))
        .collect();
    // The far machine tells of a device flag by flag.
    names.dedup();
    match names {
        none if none.is_empty() => {
            "other paths, since this one has no devices of its own".to_owned()
        }
        names => names.join(", "),
    }
}

/// Does the path's switch want it off, whatever the device could do?
fn is_fixed(builder: &Builder, role: &str, device: &str, flag: OffloadFlag) -> bool {
    let mut all = builder.fixed.iter();
    all.any(|f| f.role == role && f.device == device && f.flag == flag)
}
