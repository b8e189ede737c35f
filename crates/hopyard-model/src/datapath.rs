//! What forwards on a path whose switch is a program.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Hook;

/// Value of [`Datapath::switch`].
pub const OPEN_VSWITCH: &str = "Open vSwitch";

/// Value of [`Datapath::switch`].
pub const DIRECT_SWITCH: &str = "the direct switch";

/// What forwards frames, if there are several possibilities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Datapath {
    /// The switch ("Open vSwitch").
    pub switch: String,
    /// Its version; empty if it is unknown.
    pub version: String,
    /// Where frames are forwarded.
    pub kind: DatapathKind,
    /// Where its eBPF programs run, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<Hook>,
}

/// Where frames are forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DatapathKind {
    /// In the kernel; the program sees only the first frame of a flow.
    Kernel,
    /// In the program: every frame goes from the kernel to it and back.
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
