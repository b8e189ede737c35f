//! Offload flags of a single device: what is asked for, setting and reading them. Also for the devices of a far end, which another
//! machine makes.

use hopyard_net::OffloadState as Active;
use hopyard_net::{Handle, Offload};
use serde::{Deserialize, Serialize};

use super::Result;
use super::topology::role;
use crate::model::{Axes, OffloadFlag, OffloadState, Switch};

/// What is asked for of a device that another machine makes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    device: String,
    flag: OffloadFlag,
    to: Switch,
}

/// What the axes ask for of devices of the far end.
pub(super) fn asked_of_far(axes: &Axes, devices: &[&str]) -> Vec<Asked> {
    let of_device = |device: &&str| {
        let device = (*device).to_owned();
        OffloadFlag::ALL.into_iter().filter_map(move |flag| {
            let (to, _) = axes.offload_of(role::FAR, &device, flag)?;
            let device = device.clone();
            Some(Asked { device, flag, to })
        })
    };
    devices.iter().flat_map(of_device).collect()
}

/// Sets what is asked for of a device of the far end.
pub(super) fn set(here: &Handle, device: &str, asked: &[Asked]) -> Result<()> {
    for one in asked.iter().filter(|one| one.device == device) {
        here.set_offload(device, kernel_name(one.flag), one.to == Switch::On)?;
    }
    Ok(())
}

/// What became of it: every flag of a device of the far end, as read back.
pub(super) fn read_back(here: &Handle, device: &str, asked: &[Asked]) -> Result<Vec<OffloadState>> {
    let asked_of = |flag| {
        let mut own = asked.iter().filter(|one| one.device == device);
        own.find(|one| one.flag == flag).map(|one| one.to)
    };
    Ok(read_flags(here, role::FAR, device, |_| false, asked_of)?.into())
}

/// Every flag of a device, as it is.
pub(super) fn read_flags(
    handle: &Handle,
    role: &str,
    device: &str,
    is_fixed: impl Fn(OffloadFlag) -> bool,
    asked: impl Fn(OffloadFlag) -> Option<Switch>,
) -> Result<[OffloadState; OffloadFlag::ALL.len()]> {
    let active = handle.offloads(device)?;
    Ok(OffloadFlag::ALL.map(|flag| {
        let (state, fixed) = match active.get(kernel_name(flag)) {
            Active::On => ("on", false),
            Active::Off => ("off", false),
            Active::Fixed(true) => ("on", true),
            Active::Fixed(false) => ("off", true),
            Active::Mixed => ("mixed", false),
        };
        OffloadState {
            namespace: role.to_owned(),
            device: device.to_owned(),
            flag,
            state: state.to_owned(),
            fixed: fixed || is_fixed(flag),
            asked: asked(flag),
        }
    }))
}

/// The feature that the kernel has for a flag.
pub(super) fn kernel_name(flag: OffloadFlag) -> Offload {
    match flag {
        OffloadFlag::Tso => Offload::Tso,
        OffloadFlag::Gso => Offload::Gso,
        OffloadFlag::Gro => Offload::Gro,
        OffloadFlag::Lro => Offload::Lro,
        OffloadFlag::TxChecksum => Offload::TxChecksum,
    }
}
