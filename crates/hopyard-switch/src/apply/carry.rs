//! Taking the steps.

use std::collections::BTreeMap;

use hopyard_net::{Handle, NetNs};

use super::devices::{Ends, Place};
use super::plan::{Change, Plan};
use super::shortcut;
use super::{PortSpec, SETTINGS, SwitchSpec};
use crate::again::LastProgram;
use crate::change::PortChange;
use crate::error::{Error, Result};
use crate::making::NewSwitch;
use crate::switch::Switch;
use crate::uplink::NewUplink;

impl Plan {
    /// Takes all steps, one after another, and tells of each that is done. In the end ports are kept from the addresses that the host
    /// and its gateways have by now, also where there was no step to take.
    ///
    /// # Errors
    /// There are [`Plan::problems`], and nothing was done; or a step failed: those before it are done, and comparing again
    /// gives those that are left.
    pub fn carry_out(&self, mut done: impl FnMut(&Change)) -> Result<()> {
        if let Some(problem) = self.problems.first() {
            let what = format!("apply switch `{}`", self.name);
            return Err(Error::invalid(what, problem.why.clone()));
        }
        let mut last = BTreeMap::new();
        for change in &self.changes {
            self.take(change, &mut last)?;
            done(change);
        }
        Switch::learn_host_of(&self.name)
    }

    /// Is this device a port again by the end?
    fn adds(&self, device: &str) -> bool {
        let is_it = |change: &Change| matches!(change, Change::Add(port) if port.device == device);
        self.changes.iter().any(is_it)
    }

    /// Takes a step. `last` has the programs of ports that were removed and will be added again, by device.
    fn take(&self, change: &Change, last: &mut BTreeMap<String, LastProgram>) -> Result<()> {
        let open = || Switch::open(&self.name);
        match change {
            Change::Create(spec) => create(spec),
            Change::Answers(answers) => open()?.set_answers(*answers),
            Change::Uplink {
                device, host_macs, ..
            } => open()?.set_uplink(&NewUplink {
                device,
                host_macs: Some(host_macs),
            }),
            Change::NoUplink { .. } => open()?.unset_uplink(),
            Change::Mtu { device, mtu, was } => set_mtu(device, *mtu, was),
            Change::Remove { device, .. } => match self.remove(device) {
                // It went with its device meanwhile.
                Err(Error::Net(hopyard_net::Error::Missing { .. })) => Ok(()),
                removed => {
                    last.extend(removed?.map(|program| (device.clone(), program)));
                    Ok(())
                }
            },
            Change::Set { port, .. } => open()?.set_port(&change_to(port)),
            Change::Add(port) => match last.remove(&port.device) {
                Some(program) => open()?.add_again(&port.new_port(), program),
                None => open()?.add_port(&port.new_port()),
            },
            Change::Shortcut { wanted, was } => {
                shortcut::set(open()?, wanted, was.as_ref(), self.tested.as_ref())
            }
            Change::NoShortcut { .. } => open()?.remove_shortcut(),
        }
    }

    /// Removes a port, whose program stays where it may be the next port's.
    fn remove(&self, device: &str) -> Result<Option<LastProgram>> {
        let mut switch = Switch::open(&self.name)?;
        if self.adds(device) {
            return switch.remove_for_now(device);
        }
        switch.remove_port(device).map(|()| None)
    }
}

fn create(spec: &SwitchSpec) -> Result<()> {
    let new = NewSwitch {
        name: &spec.name,
        uplink: spec.uplink.as_deref(),
        host_macs: spec.host_macs.clone(),
        answers: spec.answers,
        behind_others: spec.behind_others,
        ..NewSwitch::default()
    };
    Switch::create(&new).map(drop)
}

/// All settings that can change while the port stands.
fn change_to(port: &PortSpec) -> PortChange<'_> {
    let mut change = PortChange {
        device: &port.device,
        declared: Some(true),
        ..PortChange::default()
    };
    for set in SETTINGS.iter().filter_map(|setting| setting.change) {
        set(port, &mut change);
    }
    change
}

fn set_mtu(device: &str, mtu: u32, ends: &Ends) -> Result<()> {
    Handle::here()?.set_mtu(device, mtu)?;
    let Some(Place { netns, device }) = ends.place.as_ref().filter(|_| ends.guest.is_some()) else {
        return Ok(());
    };
    let there = match netns {
        Some(file) => Handle::new(&NetNs::open(file)?)?,
        None => Handle::here()?,
    };
    there.set_mtu(device, mtu).map_err(Error::from)
}
