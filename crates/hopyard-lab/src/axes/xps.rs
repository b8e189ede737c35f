//! Transmit packet steering on every device that has several transmit queues.

use hopyard_net::cpu;

use super::{OnLab, need_no_guests};
use crate::model::Switch;
use crate::{Builder, Error, Result};

const AXIS: &str = "xps";
/// The value that does something.
const ON: &str = "on";

pub(super) struct Xps;

impl OnLab for Xps {
    fn apply(&self, lab: &mut Builder) -> Result<()> {
        if lab.axes().xps != Some(Switch::On) {
            return Ok(());
        }
        need_no_guests(lab, AXIS, ON, "is steered by the guest")?;
        let cpus = cpu::online_cpus()?;
        let (mut steered, mut taps) = (0_u32, 0_u32);
        for (role, device, handle) in lab.devices_in_reach() {
            let queues = handle.transmit_steering(device)?.len();
            if queues < 2 {
                continue;
            }
            // The kernel does not ask these settings where the driver chooses the queue (`tun_select_queue`).
            if handle.link(device)?.kind.as_deref() == Some("tun") {
                taps += 1;
                continue;
            }
            let wanted = shares(&cpus, queues);
            handle.set_transmit_steering(device, &wanted)?;
            if handle.transmit_steering(device)? != wanted {
                let why = "the kernel keeps other CPUs for its transmit queues; leave `xps` out";
                return Err(Error::refused(format!("{role}/{device}"), AXIS, ON, why));
            }
            steered += 1;
        }
        let why = match (steered, taps) {
            (1.., _) => return Ok(()),
            (0, 1..) => {
                "a tap chooses the transmit queue itself: set `steering=cpu`, which does the same, and leave `xps` out"
            }
            (0, 0) => {
                "no device of this lab has several transmit queues: set `queues=2` on a path that has this axis, as \
                 `veth` has, or choose another path"
            }
        };
        Err(Error::refused("eth0", AXIS, ON, why))
    }
}

/// The CPUs of each queue: they are dealt out to the queues; where there are more queues, each CPU has several, among which a
/// hash of the flow chooses.
fn shares(cpus: &[usize], queues: usize) -> Vec<Vec<usize>> {
    let of_queue = |queue: usize| {
        let dealt = cpus.iter().enumerate();
        let own = dealt.filter(|(nth, _)| nth % queues == queue % cpus.len());
        own.map(|(_, cpu)| *cpu).collect()
    };
    (0..queues).map(of_queue).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_has_a_queue_and_every_queue_a_cpu() {
        assert_eq!(shares(&[0, 1], 2), [[0], [1]]);
        assert_eq!(shares(&[0, 1, 2, 5], 2), [[0, 2], [1, 5]]);
        assert_eq!(shares(&[0, 1, 2], 2), [vec![0, 2], vec![1]]);
        assert_eq!(shares(&[3, 4], 5), [[3], [4], [3], [4], [3]]);
    }
}
