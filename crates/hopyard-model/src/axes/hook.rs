//! Where the programs of the direct switch run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, Descriptor, one_of, shown_as};

/// Where the kernel runs the programs of the direct switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Hook {
    /// tcx (Linux 6.6): attaching waits for a grace period, some 10 ms for each device.
    Tcx,
    /// Classifiers of a `clsact` queueing discipline, as before tcx.
    Clsact,
}

const HOOKS: [(&str, Hook); 2] = [("tcx", Hook::Tcx), ("clsact", Hook::Clsact)];

shown_as!(Hook: HOOKS);

pub(super) struct HookAxis;

impl Descriptor for HookAxis {
    type Value = Option<Hook>;
    const NAME: &'static str = "hook";
    const SUMMARY: &'static str = "where the kernel runs the programs of the direct switch";
    const VALUES: &'static str =
        "tcx, clsact (default tcx; clsact for more than 64 ports and before Linux 6.6)";
    const OTHER: &'static str = "clsact";
    const ABSENT: Self::Value = None;
    const DECIDES: Decides = Decides::Lab;
    const OF_PATH: bool = true;

    one_of!(HOOKS);
}
