//! Profiles: what the CPUs were at in one window of its own, as kernel call chains, raw.

use serde::{Deserialize, Serialize};

use super::sample::{Absurd, plausible};

/// Call chains of one cell in one block, taken in a window beside the measured one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileWindow {
    /// Block, from 0.
    pub block: u32,
    /// As of the samples of that block.
    pub attempt: u32,
    /// Place of the cell in the run's list.
    pub cell: usize,
    /// How long samples were taken, ns.
    pub span_ns: u64,
    /// Samples per second and CPU.
    pub frequency_hz: u64,
    /// CPUs watched.
    pub cpus: u32,
    /// Samples of other people's processes and of hopyard's controller: left out, as their CPU time is
    /// left out of costs.
    pub elsewhere: u64,
    /// Samples that the kernel could not store.
    pub lost: u64,
    /// Every frame that occurs, once.
    pub frames: Vec<String>,
    /// The stacks.
    pub stacks: Vec<Stack>,
}

/// How often one call chain was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Places in [`ProfileWindow::frames`], the outermost first: who ran (`client`, `server`, `idle`, a kernel
    /// thread), then functions.
    pub frames: Vec<u32>,
    /// Samples.
    pub samples: u64,
}

/// A stored window that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadProfile {
    /// A count no window can hold.
    #[error(transparent)]
    Absurd(#[from] Absurd),
    /// A stack refers to a frame that is not there.
    #[error("a stack names frame {frame} of {frames}")]
    NoFrame {
        /// The place.
        frame: u32,
        /// How many there are.
        frames: usize,
    },
    /// A stack without a frame says nothing.
    #[error("a stack has no frames")]
    Empty,
}

impl ProfileWindow {
    /// Can it be? What is stored may be damaged.
    ///
    /// # Errors
    /// A count is larger than any window can hold, or a stack names a frame that is not there.
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
