//! What the running kernel has.

use std::sync::LazyLock;

use crate::error::{Error, Result};
use crate::hook::Hooks;

/// Refuses kernels that lack what the switch is made of.
pub(crate) fn check_kernel(what: &str, hooks: Hooks) -> Result<()> {
    let kernel = Kernel::running();
    let (lacks, needs) = match hooks {
        Hooks::Tcx => ("tcx hooks", TCX),
        Hooks::Clsact => ("bpf_cast_to_kern_ctx", KERNEL_CONTEXT),
    };
    if kernel.is_at_least(needs) {
        return Ok(());
    }
    let (release, (major, minor)) = (kernel.release, needs);
    let why =
        format!("this kernel ({release}) has no {lacks}; it takes Linux {major}.{minor} or newer");
    Err(Error::invalid(what, why))
}

/// Has this kernel tcx hooks? They came with Linux 6.6.
#[must_use]
pub fn has_tcx() -> bool {
    static HAS: LazyLock<bool> = LazyLock::new(|| Kernel::running().is_at_least(TCX));
    *HAS
}

/// Where tcx came.
const TCX: (u32, u32) = (6, 6);
/// Where `bpf_cast_to_kern_ctx` came.
const KERNEL_CONTEXT: (u32, u32) = (6, 2);

struct Kernel {
    release: String,
}

impl Kernel {
    fn running() -> Self {
        // It fails for a bad address alone.
        let release = nix::sys::utsname::uname()
            .map(|names| names.release().to_string_lossy().into_owned())
            .unwrap_or_default();
        Self { release }
    }

    /// A release that says no version is left to the kernel to refuse.
    fn is_at_least(&self, version: (u32, u32)) -> bool {
        let mut parts = self.release.split(|c: char| !c.is_ascii_digit());
        let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok());
        match (number(), number()) {
            (Some(major), Some(minor)) => (major, minor) >= version,
            _ => true,
        }
    }
}
