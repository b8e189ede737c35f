//! eBPF programs at the tcx hooks of a card.

use std::thread;
use std::time::{Duration, Instant};

use aya::programs::{ProgramError, ProgramInfo, SchedClassifier, TcAttachType};
use hopyard_switch::has_tcx;
use nix::errno::Errno;

use crate::Result;
use crate::error::Bpf;

/// How long the kernel may take to detach the programs of the switch of an earlier lab.
const DETACHING: Duration = Duration::from_secs(10);

/// The programs at both hooks of a device of the calling thread's namespace, for people.
pub(super) fn programs_at(device: &str) -> Result<Vec<String>> {
    if !has_tcx() {
        return Ok(Vec::new());
    }
    let end = Instant::now() + DETACHING;
    loop {
        let mut there = at(device, TcAttachType::Ingress)?;
        there.extend(at(device, TcAttachType::Egress)?);
        let is_a_switchs = |one: &ProgramInfo| one.name().starts_with(b"hopyard_");
        if there.is_empty() || !there.iter().all(is_a_switchs) || Instant::now() >= end {
            return Ok(there.iter().map(name).collect());
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The kernel lists numbers, and each program is asked for by its own: where one went in between, the list is old.
fn at(device: &str, hook: TcAttachType) -> Result<Vec<ProgramInfo>> {
    let mut again = 100;
    loop {
        match SchedClassifier::query_tcx(device, hook) {
            Err(ProgramError::SyscallError(call))
                if again > 0 && call.io_error.raw_os_error() == Some(Errno::ENOENT as i32) =>
            {
                again -= 1;
            }
            asked => {
                let asked = asked.map_err(Bpf::of(format!("ask what runs at `{device}`")))?;
                return Ok(asked.1);
            }
        }
    }
}

fn name(program: &ProgramInfo) -> String {
    let name = String::from_utf8_lossy(program.name());
    format!("program {} (`{name}`)", program.id())
}
