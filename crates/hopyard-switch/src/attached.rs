//! Programs of a switch that are attached to devices.

use std::path::Path;

use hopyard_net::Handle;

use crate::classifier;
use crate::error::Result;
use crate::here::{Here, device_name};
use crate::hook::{Hook, Hooks};
use crate::layout::{
    Config, PORT_CLASSIFIER, PortRecord, SWITCH_BEHIND, SWITCH_CLSACT, SWITCH_UPGRADING,
};
use crate::programs::{self, Place};
use crate::running::ours_at;
use crate::state::State;

/// The hooks of an uplink.
pub(crate) const UPLINK: [Hook; 2] = [Hook::UplinkIn, Hook::UplinkOut];

impl Config {
    pub(crate) fn hooks(&self) -> Hooks {
        match self.flags & SWITCH_CLSACT {
            0 => Hooks::Tcx,
            _ => Hooks::Clsact,
        }
    }

    /// Where the program of a port runs.
    pub(crate) fn hooks_of(&self, port: &PortRecord) -> Hooks {
        match port.flags & PORT_CLASSIFIER {
            0 => self.hooks(),
            _ => Hooks::Clsact,
        }
    }

    pub(crate) fn place<'a>(&self, here: &'a Here) -> Place<'a> {
        Place {
            handle: &here.handle,
            hooks: self.hooks(),
            behind: self.flags & SWITCH_BEHIND != 0,
        }
    }
}

/// A program of a switch that runs at a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attached {
    pub(crate) hook: Hook,
    /// Index of the device.
    pub(crate) device: u32,
    pub(crate) hooks: Hooks,
}

impl Attached {
    pub(crate) fn port(config: &Config, record: &PortRecord) -> Self {
        Self {
            hook: Hook::Port,
            device: record.device,
            hooks: config.hooks_of(record),
        }
    }
}

/// All programs of a switch that run at devices.
pub(crate) fn attached(state: &State, config: &Config) -> Result<Vec<Attached>> {
    let ports = state.ports()?;
    let ports = ports.iter().map(|(_, port)| Attached::port(config, port));
    let uplink = UPLINK.into_iter().map(|hook| Attached {
        hook,
        device: config.uplink,
        hooks: config.hooks(),
    });
    Ok(uplink.filter(|one| one.device != 0).chain(ports).collect())
}

/// Takes the classifiers among these programs off their devices; goes on after errors, and gives the first. From another namespace
/// than the switch's they stay until their device goes.
pub(crate) fn detach_classifiers(
    directory: &Path,
    config: &Config,
    from: &[Attached],
) -> Result<()> {
    let mut classifiers = from
        .iter()
        .filter(|one| one.hooks == Hooks::Clsact)
        .peekable();
    if classifiers.peek().is_none() {
        return Ok(());
    }
    let here = Here::new()?;
    if here.inode != config.netns {
        return Ok(());
    }
    let mut done = Ok(());
    for one in classifiers {
        let Some(device) = device_name(one.device) else {
            continue;
        };
        let detached = detach_one(directory, config, &here.handle, one.hook, &device);
        // A container may end meanwhile, and its device with it.
        if detached.is_err() && device_name(one.device).is_some() {
            done = done.and(detached);
        }
    }
    done
}

fn detach_one(
    directory: &Path,
    config: &Config,
    handle: &Handle,
    hook: Hook,
    device: &str,
) -> Result<()> {
    // An upgrade that was killed leaves programs of both versions at devices.
    let ours = match config.flags & SWITCH_UPGRADING {
        0 => vec![programs::identity(directory, hook)?],
        _ => ours_at(handle, device, hook)?,
    };
    ours.into_iter()
        .try_for_each(|program| classifier::detach(handle, hook, device, program))
}
