//! eBPF programs at the tcx hooks of a card.

use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::{Handle, Side};
use hopyard_switch::{Running, running_at};

use crate::Result;

/// How long the kernel may take to detach the programs of the switch of an earlier lab.
const DETACHING: Duration = Duration::from_secs(10);

/// What runs for the packets of a device of the handle's namespace, which is the calling thread's, for people.
pub(super) fn programs_at(home: &Handle, device: &str) -> Result<Vec<String>> {
    let end = Instant::now() + DETACHING;
    loop {
        let mut there = running_at(home, device, Side::Ingress)?;
        there.extend(running_at(home, device, Side::Egress)?);
        let may_go = there.iter().all(Running::is_ours) && Instant::now() < end;
        if there.is_empty() || !may_go {
            return Ok(there.iter().map(ToString::to_string).collect());
        }
        thread::sleep(Duration::from_millis(10));
    }
}
