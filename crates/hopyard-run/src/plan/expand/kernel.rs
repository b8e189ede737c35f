//! What cells ask of the running kernel, whatever their path.

use std::path::Path;

use super::{Error, lab};
use crate::model::{Api, Cell, Switch};

/// Has the kernel what the cells ask of it?
pub(super) fn check(cells: &[Cell]) -> Result<(), Error> {
    check_congestion(cells)?;
    check_mptcp(cells)?;
    check_uring(cells)
}

fn check_congestion(cells: &[Cell]) -> Result<(), Error> {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let Ok(available) = std::fs::read_to_string(file) else {
        return Ok(());
    };
    let wanted = cells
        .iter()
        .filter_map(|cell| cell.axes.congestion.as_deref());
    for name in wanted {
        // The kernel loads a module by itself for root, so only a name without one is refused.
        if !available.split_whitespace().any(|a| a == name) && !module_exists(name) {
            return Err(Error::Congestion {
                name: name.to_owned(),
                available: available.split_whitespace().collect::<Vec<_>>().join(", "),
            });
        }
    }
    Ok(())
}

fn check_mptcp(cells: &[Cell]) -> Result<(), Error> {
    let is_wanted = cells.iter().any(|cell| cell.axes.mptcp == Some(Switch::On));
    if is_wanted && !Path::new("/proc/sys/net/mptcp").exists() {
        return Err(Error::NoMptcp);
    }
    Ok(())
}

/// Endpoints that are found rather than built may be elsewhere: there the worker says so.
fn check_uring(cells: &[Cell]) -> Result<(), Error> {
    let is_here = |cell: &Cell| lab::path(&cell.path).is_ok_and(|path| path.is_built);
    let mut by_uring = cells.iter().filter(|c| c.axes.api == Some(Api::Uring));
    if by_uring.any(is_here) {
        hopyard_net::uring::probe().map_err(Error::NoUring)?;
    }
    Ok(())
}

/// Is there a module `tcp_NAME` for the running kernel?
fn module_exists(name: &str) -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let list = format!("/lib/modules/{}/modules.dep", release.trim());
    std::fs::read_to_string(list)
        .is_ok_and(|text| text.lines().any(|l| l.contains(&format!("/tcp_{name}.ko"))))
}
