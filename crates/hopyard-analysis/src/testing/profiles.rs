//! Synthetic profiles.

use crate::model::{ProfileWindow, Stack};

/// A profile window of half a second: the client's samples by function, and 50 of an idle CPU.
#[must_use]
pub fn profile_window(cell: usize, block: u32, functions: &[(&str, u64)]) -> ProfileWindow {
    let idle = ("pv_native_safe_halt", 50);
    let mut frames = vec!["client".to_owned()];
    let mut stacks = Vec::new();
    for (function, samples) in functions.iter().chain([&idle]) {
        stacks.push(Stack {
            frames: vec![0, frames.len().try_into().unwrap()],
            samples: *samples,
        });
        frames.push((*function).to_owned());
    }
    ProfileWindow {
        block,
        attempt: 0,
        cell,
        span_ns: 500_000_000,
        frequency_hz: 997,
        cpus: 2,
        elsewhere: 1,
        lost: 0,
        frames,
        stacks,
    }
}
