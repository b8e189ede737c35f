//! The programs as classifiers of `clsact` queueing disciplines.

use std::os::fd::BorrowedFd;

use aya::programs::tc;
use hopyard_net::{Classifier, Handle, NewClassifier, Side};

use crate::error::{Error, Result};
use crate::hook::Hook;

/// Behind what others have there, whose priorities are rarely above what the kernel gives by itself (0xc000).
const PRIORITY: u16 = 0xd000;
const HANDLE: u16 = 1;

/// Attaches a program to a device, whose `clsact` is made where there is none. It stays when this process ends.
pub(crate) fn attach(
    handle: &Handle,
    program: BorrowedFd<'_>,
    hook: Hook,
    device: &str,
) -> Result<()> {
    handle.add_clsact(device)?;
    Ok(handle.add_classifier(device, hook.side(), &new(program, hook))?)
}

/// Puts a program in the place of the one that [`attach`] attached, without a packet that sees neither or both.
pub(crate) fn replace(
    handle: &Handle,
    program: BorrowedFd<'_>,
    hook: Hook,
    device: &str,
) -> Result<()> {
    Ok(handle.replace_classifier(device, hook.side(), &new(program, hook))?)
}

fn new(program: BorrowedFd<'_>, hook: Hook) -> NewClassifier<'_> {
    NewClassifier {
        program,
        name: hook.program(),
        priority: PRIORITY,
        handle: HANDLE,
    }
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
