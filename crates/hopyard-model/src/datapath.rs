//! Who forwards on a path whose switch is a program of its own.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Hook;

/// As [`Datapath::switch`] has it.
pub const OPEN_VSWITCH: &str = "Open vSwitch";

/// As [`Datapath::switch`] has it.
pub const DIRECT_SWITCH: &str = "the direct switch";

/// What forwards frames, where it can be more than one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Datapath {
    /// The switch ("Open vSwitch").
    pub switch: String,
    /// Its version; empty where it does not tell.
    pub version: String,
    /// Where frames are forwarded.
    pub kind: DatapathKind,
    /// Where its eBPF programs run, if it is made of such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<Hook>,
}

/// Where frames are forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DatapathKind {
    /// In the kernel; the program sees the first frame of a flow alone.
    Kernel,
    /// In the program: every frame crosses from the kernel and back.
    Userspace,
}

impl fmt::Display for DatapathKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "kernel",
            Self::Userspace => "userspace",
        })
    }
}

impl fmt::Display for Datapath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.switch)?;
        if !self.version.is_empty() {
            write!(f, " {}", self.version)?;
        }
        match self.hook {
            Some(hook) => write!(f, " at {hook} hooks"),
            None => write!(f, ", {} datapath", self.kind),
        }
    }
}
