//! Labs for one window each, and what they leave behind for a while.

use std::time::Duration;

use hopyard_net::clock;

use super::{Error, wait_until};
use crate::lab::{self, Endpoints, Lab};
use crate::meter;
use crate::model::Cell;
use crate::units::ns;

/// The kernel takes down a lab's namespaces in the background for about so long; a thousand of them longer.
pub(super) const DUST: Duration = Duration::from_millis(100);
/// How often in that time to look whether it still does.
const LOOKS: u32 = 4;
/// Other people's may come and go for ever.
const MOST_DUST: Duration = Duration::from_secs(10);
/// What so many containers leave is gone before the next lab's warm-up is over; what more leave is waited for.
const FEW: usize = 8;

/// Does something in a lab of a cell's own. What is done next is not disturbed by its end.
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

/// Until the kernel has had no namespaces to take down for a while.
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
