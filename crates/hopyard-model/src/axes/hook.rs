//! Where the programs of the direct switch run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::axis::{Decides, shown_by_name};
use super::descriptor::{Descriptor, word};

/// Where the kernel runs the programs of the direct switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Hook {
    /// tcx (Linux 6.6): attaching waits for a grace period, some 10 ms for each device.
    Tcx,
    /// Classifiers of a `clsact` queueing discipline, as before tcx.
    Clsact,
}

shown_by_name!(Hook);

pub(super) const HOOK: Descriptor<Option<Hook>> = Descriptor {
    name: "hook",
    summary: "where the kernel runs the programs of the direct switch",
    values: "tcx, clsact (default tcx; clsact for more than 64 ports and before Linux 6.6)",
    other: "clsact",
    of_path: true,
    ..word(Decides::Lab)
};
