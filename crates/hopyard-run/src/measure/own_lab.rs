//! Labs for one window each, and the time until the kernel has removed them.

use std::time::Duration;

use hopyard_net::clock;

use super::{Error, wait_until};
use crate::lab::{self, Endpoints, Lab};
use crate::meter;
use crate::model::Cell;
use crate::units::ns;

/// Typical time the kernel takes to remove a lab's namespaces in the background; a thousand take longer.
pub(super) const DUST: Duration = Duration::from_millis(100);
/// How many checks are made in that time.
const LOOKS: u32 = 4;
/// Give up after this time: other programs may create and remove namespaces all the time.
const MOST_DUST: Duration = Duration::from_secs(10);
/// The namespaces of this many containers are gone before the next lab's warm-up is over. After more, the next lab
/// waits.
const FEW: usize = 8;

/// Runs `use_lab` in a cell's own lab. The removal of the lab does not disturb what follows.
pub(super) fn in_own_lab<T>(
    cell: &Cell,
    endpoints: Option<&Endpoints>,
    work: impl FnOnce(&Lab) -> Result<T, Error>,
) -> Result<T, Error> {
    let path = lab::path(&cell.path).map_err(lab::Error::from)?;
    let lab = Lab::build_between(path, cell.peer, &cell.axes, endpoints)?;
    let done = work(&lab);
    let leaves_much = lab.topology.containers.len() > FEW;
    drop(lab);
    if leaves_much {
        wait_for_netns_cleanup()?;
    }
    done
}

/// Waits until the kernel has had no namespaces to remove for a while.
pub(super) fn wait_for_netns_cleanup() -> Result<(), Error> {
    let deadline = clock::monotonic_ns() + ns(MOST_DUST);
    let mut clear = 0;
    while clear < LOOKS && clock::monotonic_ns() < deadline {
        wait_until(clock::monotonic_ns() + ns(DUST / LOOKS))?;
        clear = if meter::namespaces_are_going()? {
            0
        } else {
            clear + 1
        };
    }
    Ok(())
}
