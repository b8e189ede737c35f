//! May this process make an io_uring?

use std::fs;
use std::io;

use super::Ring;
use crate::error::{Error, Result};
use crate::fresh_thread::on_fresh_thread;

/// Whether the kernel lets processes make one: 0 all, 1 some, 2 none (Linux 6.6).
const DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";

/// Can this process make an io_uring?
///
/// # Errors
/// [`Error::Unsupported`] where it cannot, with the reason.
pub fn probe() -> Result<()> {
    // A closed ring keeps the verifier of eBPF programs from its work on this thread for some 40 ms.
    on_fresh_thread("ring probe", || Ring::new(1, &[1], 0).map(drop))
        .map_err(|error| Error::from_io(WHAT, error))?
}

const WHAT: &str = "use io_uring";

pub(super) fn explained(error: io::Error) -> Error {
    if let Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) = error.raw_os_error() {
        return Error::from_io(WHAT, error);
    }
    let disabled = fs::read_to_string(DISABLED).unwrap_or_default();
    let remedy = match disabled.trim() {
        level @ ("1" | "2") => {
            format!("kernel.io_uring_disabled is {level}, and 0 allows it ({error})")
        }
        _ => format!(
            "it takes Linux 6.1 with CONFIG_IO_URING, and a container or sandbox that allows io_uring_setup ({error})"
        ),
    };
    Error::Unsupported {
        what: WHAT.into(),
        feature: "io_uring for this process".into(),
        remedy,
    }
}
