//! The second program of a port that is a netkit: it runs where the guest sends, so that a frame for another port takes no turn
//! through the receive queue of this one. The program at the port itself stays: it has broadcasts, whatever is odd, and all
//! frames where this one is missing.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hopyard_net::{DeviceHook, Error as NetError, Link, ProgramLink};

use crate::bpffs;
use crate::error::Result;
use crate::here::{DETACHING_LATE, Here};
use crate::hook::{GUEST, guest_link, program_file};
use crate::layout::{Config, SWITCH_BEHIND};
use crate::programs;

const A_MOMENT: Duration = Duration::from_millis(10);

/// Does a port get the program? Not if other programs or captures at the host's end are to see the frames.
pub(crate) fn is_for(config: &Config, link: &Link, is_queued: bool) -> bool {
    let is_netkit = link.kind.as_deref() == Some("netkit");
    is_netkit && link.xdp.is_none() && !is_queued && config.flags & SWITCH_BEHIND == 0
}

/// Attaches the program if the switch has loaded it; the link has no file yet. Until the device is a port, the program drops what its
/// guest sends. The caller need not hold the lock of switches.
pub(crate) fn attach(directory: &Path, here: &Here, link: &Link) -> Result<Option<ProgramLink>> {
    if !bpffs::is_there(&directory.join(program_file(GUEST)))? {
        return Ok(None);
    }
    let program = programs::opened(directory, GUEST)?;
    let began = Instant::now();
    loop {
        let device = &link.name;
        let linked = here
            .handle
            .link_program(device, program.as_fd(), DeviceHook::NetkitPeer);
        match linked {
            // The last port of this device had it, and the kernel is about to detach it.
            Err(NetError::Kernel { source, .. })
                if source.kind() == ErrorKind::AlreadyExists
                    && began.elapsed() < DETACHING_LATE =>
            {
                thread::sleep(A_MOMENT);
            }
            // The kernel attaches programs to the first end of a pair, and here that is the guest's. (The caller has the privilege: the
            // program at the port itself takes the same.)
            Err(NetError::Denied { .. }) => return Ok(None),
            linked => return Ok(Some(linked?)),
        }
    }
}

/// Gives a port the program, and its link a file. `attached` is a link that the device has already; its program may be an older one.
pub(crate) fn keep(
    directory: &Path,
    here: &Here,
    link: &Link,
    slot: u32,
    attached: Option<ProgramLink>,
) -> Result<()> {
    // Few switches have a netkit, and the kernel takes its time to check a program.
    if !bpffs::is_there(&directory.join(program_file(GUEST)))? {
        programs::load_one(directory, GUEST)?;
    }
    let program = programs::opened(directory, GUEST)?;
    let runs = match attached {
        Some(attached) => attached.replace(program.as_fd())?.then_some(attached),
        None => attach(directory, here, link)?,
    };
    // An earlier version of hopyard does not know this file and leaves it when it removes a port.
    detach(directory, slot)?;
    if let Some(runs) = runs {
        runs.pin(&directory.join(guest_link(slot)))?;
    }
    Ok(())
}

/// Whether a port has the program.
pub(crate) fn is_held(directory: &Path, slot: u32) -> Result<bool> {
    bpffs::is_there(&directory.join(guest_link(slot)))
}

/// The link of a port's program, if it has one.
pub(crate) fn held(directory: &Path, slot: u32) -> Result<Option<ProgramLink>> {
    if !is_held(directory, slot)? {
        return Ok(None);
    }
    Ok(Some(ProgramLink::open(&directory.join(guest_link(slot)))?))
}

/// Takes the program off a port, if it has one.
pub(crate) fn detach(directory: &Path, slot: u32) -> Result<()> {
    bpffs::remove_file(&directory.join(guest_link(slot)))
}

/// Has a port that has the program run the version that is pinned now.
pub(crate) fn replace(directory: &Path, slot: u32) -> Result<()> {
    if let Some(link) = held(directory, slot)? {
        link.replace(programs::opened(directory, GUEST)?)?;
    }
    Ok(())
}
