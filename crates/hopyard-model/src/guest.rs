//! An endpoint that is a guest.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A guest at an endpoint, as it was booted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuestUsed {
    /// Release of its kernel.
    pub kernel: String,
    /// Number of CPUs of the guest.
    pub cpus: u32,
    /// Whether its CPU was emulated (QEMU without KVM).
    pub emulated: bool,
}

impl fmt::Display for GuestUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.emulated { ", emulated" } else { "" };
        write!(
            f,
            "guest with Linux {}, CPUs: {}{how}",
            self.kernel, self.cpus
        )
    }
}
