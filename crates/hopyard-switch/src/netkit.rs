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

/// Is the program to run at a device that is a port or becomes one? Not where others may see frames before the switch, at the port's
/// own hooks.
pub(crate) fn is_for(config: &Config, link: &Link, is_queued: bool) -> bool {
    let is_netkit = link.kind.as_deref() == Some("netkit");
    is_netkit && link.xdp.is_none() && !is_queued && config.flags & SWITCH_BEHIND == 0
}

/// Attaches the program without a file, if the switch has it already; it drops what the guest of no port sends. Takes no lock of
/// switches.
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
            // It is the guest's end that they can be attached to. (The program at the port itself takes the same privilege.)
            Err(NetError::Denied { .. }) => return Ok(None),
            linked => return Ok(Some(linked?)),
        }
    }
}

/// Has a port run the program from now on. It may be attached already, in an earlier version too.
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
    // An earlier version, which knows of no such file, may have removed a port of this slot.
    detach(directory, slot)?;
    if let Some(runs) = runs {
        runs.pin(&directory.join(guest_link(slot)))?;
    }
    Ok(())
}

/// The link of a port's program, if it has one.
pub(crate) fn held(directory: &Path, slot: u32) -> Result<Option<ProgramLink>> {
    let file = directory.join(guest_link(slot));
    if !bpffs::is_there(&file)? {
        return Ok(None);
    }
    Ok(Some(ProgramLink::open(&file)?))
}

/// Takes the program off a port, if it has one.
pub(crate) fn detach(directory: &Path, slot: u32) -> Result<()> {
    bpffs::remove_file(&directory.join(guest_link(slot)))
}

/// Makes the program of a port, if it has one, that which is pinned now.
pub(crate) fn replace(directory: &Path, slot: u32) -> Result<()> {
    if let Some(link) = held(directory, slot)? {
        link.replace(programs::opened(directory, GUEST)?)?;
    }
    Ok(())
}
