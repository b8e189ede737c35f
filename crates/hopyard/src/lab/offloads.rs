//! Offload flags of every device of a lab: set as the axes ask, read back as they are.

use hopyard_net::Offload;
use hopyard_net::OffloadState as Active;

use super::{Builder, Error, Result};
use crate::model::{Axes, OffloadFlag, OffloadState, Switch};

/// Sets what the axes ask for on every device and reads every flag back.
///
/// `offload` changes what can be changed. A flag asked for by its own name must be what was asked.
pub(super) fn apply(
    builder: &Builder,
    path: &'static str,
    axes: &Axes,
) -> Result<Vec<OffloadState>> {
    for (role, device) in builder.devices() {
        let Some(handle) = builder.handle(role) else {
            continue;
        };
        for flag in OffloadFlag::ALL {
            let Some(wanted) = axes.offload_wanted(flag) else {
                continue;
            };
            let active = handle.set_offload(device, kernel_name(flag), wanted == Switch::On)?;
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
    for (role, device) in builder.devices() {
        let Some(handle) = builder.handle(role) else {
            continue;
        };
        let active = handle.offloads(device)?;
        states.extend(OffloadFlag::ALL.map(|flag| {
            let (state, fixed) = match active.get(kernel_name(flag)) {
                Active::On => ("on", false),
                Active::Off => ("off", false),
                Active::Fixed(true) => ("on", true),
                Active::Fixed(false) => ("off", true),
                Active::Mixed => ("mixed", false),
            };
            OffloadState {
                namespace: (*role).to_owned(),
                device: device.clone(),
                flag,
                state: state.to_owned(),
                fixed,
                asked: axes.offload_wanted(flag),
            }
        }));
    }
    Ok(states)
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
