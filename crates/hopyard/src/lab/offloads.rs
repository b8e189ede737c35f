//! Offload flags of every device of a lab: set as the axes ask, read back as they are.

use std::collections::HashSet;

use hopyard_net::Offload;
use hopyard_net::OffloadState as Active;

use super::{Builder, ClientSlot, Error, Result};
use crate::model::{OffloadFlag, OffloadState, Switch};

/// An offload flag that is off and stays so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fixed {
    role: &'static str,
    device: String,
    flag: OffloadFlag,
}

impl Builder {
    /// Takes note of offload flags that the path's switch does not bear.
    pub(super) fn fix_off(&mut self, role: &'static str, device: &str, flags: &[OffloadFlag]) {
        self.fixed.extend(flags.iter().map(|flag| Fixed {
            role,
            device: device.to_owned(),
            flag: *flag,
        }));
    }
}

/// Sets what the axes ask for on every device and reads every flag back.
///
/// Of the devices that containers have one each of, one in each state is in the answer.
///
/// `offload` changes what can be changed. A flag asked for by its own name must be what was asked.
pub(super) fn apply(builder: &Builder, path: &'static str) -> Result<Vec<OffloadState>> {
    let axes = builder.axes();
    for fixed in &builder.fixed {
        if let Some(handle) = builder.handle(fixed.role) {
            handle.set_offload(&fixed.device, kernel_name(fixed.flag), false)?;
        }
    }
    for (role, device) in builder.devices() {
        let Some(handle) = builder.handle(role) else {
            continue;
        };
        for flag in OffloadFlag::ALL {
            let Some(wanted) = axes.offload_wanted(flag) else {
                continue;
            };
            let active = if is_fixed(builder, role, device, flag) {
                Active::Fixed(false)
            } else {
                handle.set_offload(device, kernel_name(flag), wanted == Switch::On)?
            };
            if let (Some(named), Active::Fixed(on)) = (axes.offload_named(flag), active)
                && on != (named == Switch::On)
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
    for (role, device) in builder.devices() {
        let Some(handle) = builder.handle(role) else {
            continue;
        };
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
                namespace: (*role).to_owned(),
                device: device.clone(),
                flag,
                state: state.to_owned(),
                fixed,
                asked: axes.offload_wanted(flag),
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
