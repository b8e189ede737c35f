//! Offload flags of every device of a lab: set as the axes ask, read back as they are.

use std::collections::HashSet;

use hopyard_net::Offload;
use hopyard_net::OffloadState as Active;

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
        let active = handle.offloads(device)?;
        let of_device = OffloadFlag::ALL.map(|flag| {
            let by_device = match active.get(kernel_name(flag)) {
                Active::On => ("on", false),
                Active::Off => ("off", false),
                Active::Fixed(true) => ("on", true),
                Active::Fixed(false) => ("off", true),
                Active::Mixed => ("mixed", false),
            };
            let (state, fixed) = by_device;
            let fixed = fixed || is_fixed(builder, role, device, flag);
            OffloadState {
                namespace: role.to_owned(),
                device: device.to_owned(),
                flag,
                state: state.to_owned(),
                fixed,
                asked: axes.offload_of(role, device, flag).map(|(to, _)| to),
            }
        });
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
    Ok(states)
}

/// Has the lab the devices that switches are for?
fn all_are_there(builder: &Builder, path: &'static str, peer: Peer) -> Result<()> {
    let switches = builder.axes().device_offload.iter();
    for switch in switches.flat_map(DeviceOffloads::iter) {
        let mut devices = builder.devices().iter();
        if devices.any(|(role, device)| switch.is_of(role, device)) {
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
    let devices = builder.devices().iter();
    let names = devices.filter_map(|(role, device)| {
        let is_first = ClientSlot::alike(role, device).is_none_or(|kind| told.insert(kind));
        is_first.then(|| format!("{role}/{device}"))
    });
    match names.collect::<Vec<_>>() {
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

fn kernel_name(flag: OffloadFlag) -> Offload {
    match flag {
        OffloadFlag::Tso => Offload::Tso,
        OffloadFlag::Gso => Offload::Gso,
        OffloadFlag::Gro => Offload::Gro,
        OffloadFlag::Lro => Offload::Lro,
        OffloadFlag::TxChecksum => Offload::TxChecksum,
    }
}
