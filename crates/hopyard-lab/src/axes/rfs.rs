//! Receive flow steering on every receive queue of every device.

use hopyard_net::{ReceiveSteering, cpu};

use super::{OnLab, need_no_guests};
use crate::flow_table::{self, ENTRIES};
use crate::need::Need;
use crate::{Builder, Result};
use hopyard_model::{Axes, Switch};

pub(super) struct Rfs;

impl OnLab for Rfs {
    fn needs(&self, axes: &Axes) -> &'static [Need] {
        match axes.rfs {
            Some(Switch::On) => &[flow_table::NEED],
            Some(Switch::Off) | None => &[],
        }
    }

    fn apply(&self, lab: &mut Builder) -> Result<()> {
        if lab.axes().rfs != Some(Switch::On) {
            return Ok(());
        }
        need_no_guests(lab, "rfs", "on", "is steered by the guest")?;
        lab.use_flow_table()?;
        let cpus = cpu::online_cpus()?;
        for (_, device, handle) in lab.devices_in_reach() {
            let queues = handle.receive_steering(device)?.len().max(1);
            let queues = u32::try_from(queues).unwrap_or(u32::MAX);
            let steering = ReceiveSteering {
                cpus: cpus.clone(),
                flows: (ENTRIES / queues).max(1).next_power_of_two(),
            };
            handle.set_receive_steering(device, &steering)?;
        }
        Ok(())
    }
}
