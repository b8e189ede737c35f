//! Profiles: sampled call chains of the whole machine, and their subsystems.
//!
//! [`Profiler`] samples, [`Symbols`] names addresses, [`fold`] combines samples for storing, and [`subsystems`]
//! classifies call chains. Sampling slows the load, so it has windows of its own; the cost of a subsystem is its share
//! there of the cost measured elsewhere (docs/profile.md).

pub mod fold;
mod kallsyms;
mod record;
mod sampling;

use std::ops::RangeInclusive;
use std::time::Duration;

pub use crate::assess::subsystems;
pub use kallsyms::Symbols;
pub use record::RawSample;
pub use sampling::{Profiler, Taken};

/// Samples per second and CPU. Near 1 kHz, because more would slow the load more. A prime number, so that samples do
/// not keep in step with the kernel's tick (100, 250, 1000 Hz) or a load's own timers and always find the same work.
pub(crate) const FREQUENCY_HZ: u64 = 997;

/// Shortest and longest window of a profile.
pub(crate) const WINDOW: RangeInclusive<Duration> =
    Duration::from_millis(500)..=Duration::from_secs(5);

/// The sampling window for a measured window of this length, where the plan gives none.
#[must_use]
pub fn window(measured: Duration) -> Duration {
    measured.clamp(*WINDOW.start(), *WINDOW.end())
}

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No privilege to watch all CPUs.
    #[error(
        "cannot sample CPU {cpu}: permission denied; run as root (CAP_PERFMON), or set sysctl \
         kernel.perf_event_paranoid to 0 or less; or leave --profile out"
    )]
    Denied { cpu: usize },
    /// The kernel lacks support.
    #[error(
        "cannot sample CPU {cpu}: this kernel has no perf events; build it with CONFIG_PERF_EVENTS, or leave \
         --profile out"
    )]
    Unsupported { cpu: usize },
    /// The kernel refused.
    #[error("cannot {what} CPU {cpu}")]
    Kernel {
        what: &'static str,
        cpu: usize,
        #[source]
        source: std::io::Error,
    },
    /// The names of kernel functions cannot be read.
    #[error("cannot read the kernel's symbols from /proc/kallsyms; it takes CONFIG_KALLSYMS")]
    Symbols(#[source] std::io::Error),
    /// The names have no addresses.
    #[error(
        "cannot name kernel functions: /proc/kallsyms shows no addresses; run as root (CAP_SYSLOG) with sysctl \
         kernel.kptr_restrict at 0 or 1, or leave --profile out"
    )]
    NoAddresses,
}

/// Checks whether profiles can be taken here, before anything is built.
///
/// # Errors
/// The privilege or the kernel's support is missing; the error says what to do.
pub fn check(cpus: &[usize]) -> Result<(), Error> {
    Profiler::open(cpus, *WINDOW.start())?;
    Symbols::read().map(drop)
}
