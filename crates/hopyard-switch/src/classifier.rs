//! The programs as classifiers of `clsact` queueing disciplines.

use aya::programs::tc::{NlOptions, SchedClassifierLink, TcAttachOptions, TcError, TcHandle};
use aya::programs::{ProgramError, SchedClassifier, tc};
use hopyard_net::{Classifier, Handle, Side};

use crate::error::{Error, Result};
use crate::hook::Hook;

/// Behind what others have there, whose priorities are rarely above what the kernel gives by itself (0xc000).
const PRIORITY: u16 = 0xd000;
const HANDLE: TcHandle = TcHandle::new(0, 1);

/// Attaches a program to a device, whose `clsact` is made where there is none. It stays when this process ends.
pub(crate) fn attach(
    handle: &Handle,
    program: &mut SchedClassifier,
    hook: Hook,
    device: &str,
) -> Result<()> {
    handle.add_clsact(device)?;
    let what =
        |error: ProgramError| Error::bpf(format!("attach {} to `{device}`", hook.program()))(error);
    let options = TcAttachOptions::Netlink(NlOptions {
        priority: PRIORITY,
        handle: HANDLE,
        classid: None,
    });
    let id = program
        .attach_with_options(device, hook.attach_type(), options)
        .map_err(what)?;
    keep(program.take_link(id).map_err(what)?);
    Ok(())
}

/// Puts a program in the place of the one that [`attach`] attached, without a packet that sees neither or both.
pub(crate) fn replace(program: &mut SchedClassifier, hook: Hook, device: &str) -> Result<()> {
    let what = |error: ProgramError| {
        Error::bpf(format!("replace {} at `{device}`", hook.program()))(error)
    };
    let old = SchedClassifierLink::attached(device, hook.attach_type(), PRIORITY, HANDLE, None)
        .map_err(|error| what(TcError::IoError(error).into()))?;
    let id = program.attach_to_link(old).map_err(what)?;
    keep(program.take_link(id).map_err(what)?);
    Ok(())
}

/// Takes the program of this identity off a device of the handle's namespace, which is the calling thread's, and the
/// `clsact` with the last program of anybody; nothing is fine.
pub(crate) fn detach(handle: &Handle, hook: Hook, device: &str, program: u32) -> Result<()> {
    let there = handle.classifiers(device, hook.side())?;
    let is_it = |one: &Classifier| one.name == hook.program() && one.program == Some(program);
    if !there.iter().any(is_it) {
        return Ok(());
    }
    let what = format!("detach {} from `{device}`", hook.program());
    tc::qdisc_detach_program(device, hook.attach_type(), hook.program())
        .map_err(Error::bpf(what))?;
    for side in [Side::Ingress, Side::Egress] {
        if !handle.classifiers(device, side)?.is_empty() {
            return Ok(());
        }
    }
    Ok(handle.remove_clsact(device)?)
}

/// A value of this kind detaches its program when it ends.
fn keep(link: SchedClassifierLink) {
    std::mem::forget(link);
}
