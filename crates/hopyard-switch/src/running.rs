//! What runs at the hooks of a device: programs of ours and of others.

use std::fmt;

use aya::programs::{ProgramError, ProgramInfo, SchedClassifier, TcAttachType};
use hopyard_net::{Handle, Side};
use nix::errno::Errno;

use crate::error::{Error, Result};
use crate::hook::Hook;
use crate::kernel::has_tcx;

/// What the kernel says of an identity that nothing has any more.
pub(crate) const GONE: i32 = Errno::ENOENT as i32;

/// The identities of the programs that run at a hook of a device of the handle's namespace, which is the calling
/// thread's, and carry the name of ours.
pub(crate) fn ours_at(handle: &Handle, device: &str, hook: Hook) -> Result<Vec<u32>> {
    let ours = at(handle, device, hook.side())?;
    let ours = ours.iter().filter(|one| one.is_ours());
    Ok(ours.filter_map(|one| one.program).collect())
}

/// Something that the kernel runs for each packet at one side of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The identity of an eBPF program.
    pub(crate) program: Option<u32>,
    /// The program's name; of a filter that is none, its kind.
    pub(crate) name: String,
}

impl Running {
    /// Is it a program of a switch, by its name?
    #[must_use]
    pub fn is_ours(&self) -> bool {
        Hook::ALL.iter().any(|hook| hook.program() == self.name)
    }
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.program {
            Some(id) => write!(f, "program {id} (`{}`)", self.name),
            None => write!(f, "a filter `{}`", self.name),
        }
    }
}

/// What runs at one side of a device of the handle's namespace, which is the calling thread's, in its order: programs at
/// the tcx hook, then classifiers.
///
/// # Errors
/// The device is not there, or may not be looked at.
pub fn at(handle: &Handle, device: &str, side: Side) -> Result<Vec<Running>> {
    let mut there = Vec::new();
    if has_tcx() {
        let programs = at_tcx(device, side)?;
        there.extend(programs.iter().map(|info| Running {
            program: Some(info.id()),
            // As text the library gives it after it has tried out what the kernel can do, for a millisecond.
            name: String::from_utf8_lossy(info.name()).into_owned(),
        }));
    }
    let classifiers = handle.classifiers(device, side)?.into_iter();
    there.extend(classifiers.map(|one| Running {
        program: one.program,
        name: if one.name.is_empty() {
            one.kind
        } else {
            one.name
        },
    }));
    Ok(there)
}

/// The programs at a tcx hook of a device. The kernel lists identities, and each program is asked for by its own:
/// where one went in between, the list is old and asked for again.
fn at_tcx(device: &str, side: Side) -> Result<Vec<ProgramInfo>> {
    let hook = match side {
        Side::Ingress => TcAttachType::Ingress,
        Side::Egress => TcAttachType::Egress,
    };
    let mut again = 100;
    loop {
        match SchedClassifier::query_tcx(device, hook) {
            Err(ProgramError::SyscallError(e))
                if again > 0 && e.io_error.raw_os_error() == Some(GONE) =>
            {
                again -= 1;
            }
            asked => {
                let what = format!("ask what runs at `{device}`");
                return asked
                    .map(|(_, programs)| programs)
                    .map_err(Error::bpf(what));
            }
        }
    }
}

/// Is a program one of a device's classifiers?
pub(crate) fn is_classifier(handle: &Handle, device: &str, program: u32) -> Result<bool> {
    for side in [Side::Ingress, Side::Egress] {
        let classifiers = handle.classifiers(device, side)?;
        if classifiers.iter().any(|one| one.program == Some(program)) {
            return Ok(true);
        }
    }
    Ok(false)
}
