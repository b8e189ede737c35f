//! Receive packet steering on every receive queue of every device.

use hopyard_net::{ReceiveSteering, cpu};

use super::{OnLab, need_no_guests};
use crate::model::Switch;
use crate::{Builder, Error, Result};

pub(super) struct Rps;

impl OnLab for Rps {
    /// Before [`Rfs`](super::rfs::Rfs), which steers by the same queues, and more.
    fn apply(&self, lab: &mut Builder) -> Result<()> {
        if lab.axes().rps != Some(Switch::On) {
            return Ok(());
        }
        need_no_guests(lab, "rps", "on", "is steered by the guest")?;
        let steering = ReceiveSteering {
            cpus: cpu::online_cpus()?,
            flows: 0,
        };
        for (role, device, handle) in lab.devices_in_reach() {
            handle.set_receive_steering(device, &steering)?;
            if handle
                .receive_steering(device)?
                .iter()
                .any(|queue| *queue != steering)
            {
                let why = "the kernel keeps some CPUs from this device's packets (isolated ones, see \
                           `isolcpus`); leave `rps` out";
                return Err(Error::refused(format!("{role}/{device}"), "rps", "on", why));
            }
        }
        Ok(())
    }
}
