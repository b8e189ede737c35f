//! Messages between host and guest when a plan runs inside: a JSON object per line.
//!
//! ```text
//! guest   hello
//! host    order
//! guest   note of each reason that modules were refused for
//! guest   prepared, then planned, measuring, sample, profile, failed, note as they come
//! guest   ended | refused
//! ```

use serde::{Deserialize, Serialize};

use crate::model::{Blocks, Cell, ProfileWindow, Sample};
use crate::plan::Plan;
use crate::store::{End, Header};

/// The host's order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The plan, with changes from the command line.
    pub plan: Plan,
    /// Seed of every random order.
    pub seed: u64,
    /// Whether profiles are taken too.
    pub profile: bool,
    /// Paths that are already left out, with the reason. If there is such a list, paths that the guest cannot build are
    /// left out as well; otherwise they are an error.
    #[serde(default)]
    pub left_out: Option<Vec<(String, String)>>,
}

/// What the host asks instead, where no plan can show it: to try things by name, which whoever started the program knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deeds {
    pub deeds: Vec<String>,
}

/// What came of one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// Did it do what is claimed? Absent where it cannot be tried.
    #[serde(default)]
    pub passed: Option<bool>,
    /// What was seen, or why it cannot be tried.
    pub seen: String,
}

/// Either.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Wanted {
    Deeds(Deeds),
    Plan(Box<Order>),
}

/// What the guest answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Said {
    /// First line.
    Hello {
        /// Version of the program.
        version: String,
    },
    /// The plan is checked and every lab was built once.
    Prepared(Box<Header>),
    /// As [`Observer::planned`](crate::run::Observer::planned).
    Planned {
        /// Number of cells in the plan.
        cells: usize,
        /// Fewest and most blocks.
        blocks: Blocks,
        /// How long a block takes, roughly, ms.
        block_ms: u64,
    },
    /// A sample begins.
    Measuring {
        /// Number of the block.
        block: u32,
        /// Cells of the block that are done.
        done: usize,
        /// Number of cells in the block.
        of: usize,
        /// The cell that is measured.
        cell: Box<Cell>,
    },
    /// A sample is complete.
    Sample(Box<Sample>),
    /// A window of profiling is complete.
    Profile(Box<ProfileWindow>),
    /// A sample failed.
    Failed {
        /// The cell that failed.
        cell: Box<Cell>,
        /// Why the sample failed, in a sentence.
        cause: String,
    },
    /// One of the deeds was tried.
    Tried {
        name: String,
        #[serde(flatten)]
        tried: Tried,
    },
    /// A sentence worth reading.
    Note {
        /// Text of the note.
        text: String,
    },
    /// The run is over.
    Ended {
        /// How the run ended.
        end: End,
    },
    /// The plan cannot be executed, or not to its end.
    Refused {
        /// Operation, object and advice.
        message: String,
        /// Whether the request cannot be met, as opposed to a malfunction.
        request: bool,
    },
}
