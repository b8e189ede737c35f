//! Profiles: what the CPUs did in a separate window, as raw kernel call chains.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counted::{InvalidSample, plausible};
use hopyard_stats::Estimate;

/// Call chains of one cell in one block, taken in a window besides the measured one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileWindow {
    /// Block, from 0.
    pub block: u32,
    /// As in the samples of that block.
    pub attempt: u32,
    /// Index of the cell in the run's list.
    pub cell: usize,
    /// How long samples were taken, ns.
    pub span_ns: u64,
    /// Samples per second and CPU.
    pub frequency_hz: u64,
    /// Number of CPUs that were sampled.
    pub cpus: u32,
    /// Samples of other processes and of hopyard's controller. They are left out, as their CPU time is left out of
    /// costs.
    pub elsewhere: u64,
    /// Samples that the kernel could not store.
    pub lost: u64,
    /// Every frame that occurs, once.
    pub frames: Vec<String>,
    /// Every call chain that was sampled, once.
    pub stacks: Vec<Stack>,
}

/// A call chain and its number of samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Indices into [`ProfileWindow::frames`], the outermost first: who ran (`client`, `server`, `idle`, a kernel
    /// thread), then functions.
    pub frames: Vec<u32>,
    /// Number of samples with this call chain.
    pub samples: u64,
}

/// Why a stored window is impossible.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadProfile {
    /// A count that no window can hold.
    #[error(transparent)]
    InvalidSample(#[from] InvalidSample),
    /// A stack refers to a frame that does not exist.
    #[error("a stack names frame {frame} of {frames}")]
    NoFrame {
        /// Index of the frame in [`ProfileWindow::frames`].
        frame: u32,
        /// Number of frames.
        frames: usize,
    },
    /// A stack without frames.
    #[error("a stack has no frames")]
    Empty,
}

impl ProfileWindow {
    /// Checks whether the values are possible; stored ones may be damaged.
    ///
    /// # Errors
    /// A count is larger than any window can hold, or a stack names a frame that does not exist.
    pub fn check(&self) -> Result<(), BadProfile> {
        plausible(&[
            ("span_ns", self.span_ns),
            ("frequency_hz", self.frequency_hz),
            ("elsewhere", self.elsewhere),
            ("lost", self.lost),
        ])?;
        for stack in &self.stacks {
            plausible(&[("samples", stack.samples)])?;
            if stack.frames.is_empty() {
                return Err(BadProfile::Empty);
            }
            let frames = self.frames.len();
            let gone = |place: &&u32| **place as usize >= frames;
            if let Some(&frame) = stack.frames.iter().find(gone) {
                return Err(BadProfile::NoFrame { frame, frames });
            }
        }
        Ok(())
    }

    /// The stacks with their frames by name, the outermost first.
    pub fn stacks(&self) -> impl Iterator<Item = (Vec<&str>, u64)> {
        self.stacks.iter().map(|stack| {
            let name = |place: &u32| self.frames.get(*place as usize).map(String::as_str);
            (
                stack.frames.iter().filter_map(name).collect(),
                stack.samples,
            )
        })
    }
}

/// The CPU cost of a cell by subsystem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileReport {
    /// The estimate that is broken down; all costs here have its unit.
    pub quantity: String,
    /// Windows in which samples were taken, at most one per block.
    pub windows: u32,
    /// Windows with too few busy samples.
    pub thin_windows: u32,
    /// Length of a window, s.
    pub window_s: f64,
    /// Samples per second and CPU.
    pub frequency_hz: u64,
    /// Samples of CPUs at work for the load.
    pub busy_samples: u64,
    /// Samples of idle CPUs.
    pub idle_samples: u64,
    /// Samples of other processes and of hopyard's controller, left out.
    pub elsewhere_samples: u64,
    /// Samples that the kernel could not store.
    pub lost_samples: u64,
    /// Subsystems, the costliest first; costs sum to the estimate.
    pub subsystems: Vec<SubsystemCost>,
    /// Difference from the base path; absent for the base itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<ProfileDifference>,
}

/// The cost of one kernel subsystem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubsystemCost {
    /// Name of the subsystem.
    pub name: String,
    /// Its share of the busy samples; shares sum to 1.
    pub share_ratio: f64,
    /// `share_ratio` times the cost of the cell, in the unit of [`ProfileReport::quantity`].
    pub cost: Estimate,
    /// Its costliest functions, in falling order.
    pub functions: Vec<FunctionCost>,
}

/// The cost of one function, without the functions of other subsystems that it calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionCost {
    /// Name of the function, without arguments.
    pub name: String,
    /// Its share of busy samples times the cost of the cell, in the unit of [`ProfileReport::quantity`].
    pub cost: f64,
}

/// What a path adds to the base path, by subsystem; paired within blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfileDifference {
    /// Name of the base path.
    pub base: String,
    /// This path's cost minus the base's.
    pub total: Estimate,
    /// The same by subsystem, the largest change first; they sum to `total`.
    pub subsystems: Vec<SubsystemDifference>,
}

/// What a path adds to the base path in one subsystem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubsystemDifference {
    /// Name of the subsystem.
    pub name: String,
    /// This path's cost minus the base's.
    pub cost: Estimate,
}
