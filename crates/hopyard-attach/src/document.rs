//! What was seen, and the document of it.

use std::collections::BTreeMap;
use std::path::Path;

use hopyard_host::bounded;
use hopyard_model::plain;
use hopyard_model::stored::End;
use hopyard_stats::{Estimate, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::plan::Plan;

/// Name and version of the document.
pub const SCHEMA: &str = "hopyard/attach/1";

/// Attachments made and taken away side by side, once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Visit {
    /// Which fresh hosts, from 0.
    pub block: u32,
    /// Containers of the network that were there.
    pub ports: u32,
    /// How many side by side.
    pub beside: u32,
    /// Visits of all networks in one round follow each other at once.
    pub round: u32,
    /// Name of the network.
    pub network: String,
    /// For each attachment: from the call of ADD to its end, ns.
    pub add_ns: Vec<u64>,
    /// From the call of ADD to the answer of the first packet that was answered, ns.
    pub answer_ns: Vec<u64>,
    /// From the call of DEL to its end, ns.
    pub del_ns: Vec<u64>,
    /// CPU time of all processes of these calls, those that went on after them too, ns.
    pub cpu_ns: u64,
    /// From the end of the last DEL to that of the last process that the calls left, ns.
    pub rest_ns: u64,
    /// Why it is not whole; the times are then left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed: Option<String>,
}

/// The removal of all containers that were there, some side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cleared {
    /// See [`Visit`].
    pub block: u32,
    /// How many were removed.
    pub ports: u32,
    /// Name of the network.
    pub network: String,
    /// From the first DEL to the end of the last one, ns.
    pub clear_ns: u64,
}

/// Everything that was measured: figures can be computed from it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// What was asked for.
    pub plan: Plan,
    /// The order of blocks, rounds and networks comes from it.
    pub seed: u64,
    /// When, RFC 3339.
    pub started: String,
    /// Kernel release.
    pub kernel: String,
    /// Processors.
    pub cpus: usize,
    /// What each plugin says of itself.
    pub plugins: BTreeMap<String, String>,
    /// CPU time that the hypervisor kept, as a share of all, while measuring.
    pub steal: f64,
    /// How often visits began while the kernel still removed network namespaces, of these hosts or of other programs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsettled: u32,
    /// In the order in which they were made.
    pub visits: Vec<Visit>,
    /// What removing those took that were there before.
    pub cleared: Vec<Cleared>,
    /// How it ended; `interrupted`, too, where `broken` says why it could not go on.
    #[serde(default = "as_planned")]
    pub end: End,
    /// Why the process that calls the plugins ended before its work was done; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Documents of earlier versions have no `end`: all of them ended so.
fn as_planned() -> End {
    End::Complete
}

/// An estimate, or a quantile of all attachments with its interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// With its interval; `n` are blocks, of a p99 attachments.
    pub estimate: Estimate,
    /// Against the base; absent for the base, and for quantities that are not compared.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub versus: Option<Versus>,
}

/// A figure against that of the base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Versus {
    /// Name of the base.
    pub base: String,
    /// This network's over the base's.
    pub ratio: Estimate,
    /// Absent with fewer blocks than a verdict needs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub verdict: Option<Verdict>,
    /// Smallest difference that could have been shown; absent where none could.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub smallest_detectable: Option<f64>,
}

/// A network with so many containers there and so many ADDs side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Its name.
    pub network: String,
    /// See [`Visit`].
    pub ports: u32,
    /// See [`Visit`].
    pub beside: u32,
    /// Attachments that were measured.
    pub attachments: usize,
    /// Visits that failed, and why the first did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed: Option<(usize, String)>,
    /// By quantity: `add_p50_ns`, `add_p99_ns`, `answer_p50_ns`, …, `cpu_ns`, `rest_ns`.
    pub figures: BTreeMap<String, Figure>,
}

/// What `--json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was measured.
    pub run: Run,
    /// What is computed from it.
    pub cells: Vec<Cell>,
    /// What to doubt, in sentences.
    pub warnings: Vec<String>,
}

/// The run of a document; everything else of it is computed again.
///
/// # Errors
/// It cannot be read, or is none.
pub fn read(file: &Path) -> Result<Run> {
    #[derive(Deserialize)]
    struct Kept {
        schema: String,
        run: Run,
    }
    let name = plain::line(&file.display().to_string());
    // Each attachment of thousands has its times in it.
    let text = bounded::read_up_to(file, bounded::MOST_OF_LINES).map_err(|source| Error::Read {
        file: name.clone(),
        source,
    })?;
    let wrong = |why: &str| Error::Wrong(format!("{name}: {}", plain::line(why)));
    let kept: Kept = serde_json::from_slice(&text).map_err(|error| wrong(&error.to_string()))?;
    if kept.schema != SCHEMA {
        return Err(wrong(&format!(
            "schema `{}` is not `{SCHEMA}`",
            kept.schema
        )));
    }
    let run = kept.run;
    run.plan.check()?;
    for visit in &run.visits {
        let counts = [&visit.add_ns, &visit.answer_ns, &visit.del_ns].map(Vec::len);
        let whole = counts.map(u32::try_from) == [Ok(visit.beside); 3];
        if visit.failed.is_none() && !whole {
            return Err(wrong("a visit has not a time for each attachment"));
        }
        if visit.block >= run.plan.blocks {
            return Err(wrong("a visit is in no block of the plan"));
        }
    }
    Ok(run)
}

/// The JSON schema (2020-12) of the document.
#[must_use]
pub fn schema() -> serde_json::Value {
    hopyard_model::named_schema(schemars::schema_for!(Document), SCHEMA)
}
