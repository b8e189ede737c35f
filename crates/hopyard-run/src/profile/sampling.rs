//! Sampling every CPU: a `cpu-clock` event on each, with a ring buffer that is read after the window.

use std::io;
use std::time::Duration;

use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};

use super::record::{self, RawSample};
use super::{Error, FREQUENCY_HZ};

/// Room for a sample with a chain of 60 functions; chains of network paths have some 30.
const SAMPLE_BYTES: u64 = 512;
/// `PERF_RECORD_LOST` and `PERF_RECORD_SAMPLE` (include/uapi/linux/perf_event.h).
const LOST: u32 = 2;
const SAMPLE: u32 = 9;

/// Events on all CPUs, before or after counting.
pub struct Profiler {
    cpus: Vec<(usize, Sampler)>,
}

/// What was sampled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    /// The samples, CPU by CPU.
    pub samples: Vec<RawSample>,
    /// Samples for which there was no room, and records that could not be read.
    pub lost: u64,
}

impl std::fmt::Debug for Profiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Profiler")
            .field("cpus", &self.cpus.len())
            .finish_non_exhaustive()
    }
}

impl Profiler {
    /// Opens an event on each CPU, with room for a window of that length.
    ///
    /// # Errors
    /// Without privilege, or without the kernel's support.
    pub fn open(cpus: &[usize], window: Duration) -> Result<Self, Error> {
        let cpus = cpus
            .iter()
            .map(|&cpu| Ok((cpu, open(cpu, window)?)))
            .collect::<Result<_, Error>>()?;
        Ok(Self { cpus })
    }

    /// Starts sampling.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn start(&mut self) -> Result<(), Error> {
        self.each("start sampling", |sampler| sampler.enable())
    }

    /// Stops sampling.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.each("stop sampling", |sampler| sampler.disable())
    }

    fn each(
        &mut self,
        what: &'static str,
        act: impl Fn(&mut Sampler) -> io::Result<()>,
    ) -> Result<(), Error> {
        for (cpu, sampler) in &mut self.cpus {
            act(sampler).map_err(|source| Error::Kernel {
                what,
                cpu: *cpu,
                source,
            })?;
        }
        Ok(())
    }

    /// Reads the buffers. Call it after [`Profiler::stop`].
    pub fn take(&mut self) -> Taken {
        let mut taken = Taken::default();
        for (_, sampler) in &mut self.cpus {
            while let Some(record) = sampler.next_record() {
                let bytes = record.to_contiguous();
                match record.ty() {
                    SAMPLE => match record::sample(record.misc(), &bytes) {
                        Some(sample) => taken.samples.push(sample),
                        None => taken.lost += 1,
                    },
                    LOST => taken.lost += record::lost(&bytes).unwrap_or(1),
                    // Throttling and other records without samples.
                    _ => {}
                }
            }
        }
        taken
    }
}

fn open(cpu: usize, window: Duration) -> Result<Sampler, Error> {
    Builder::new(Software::CPU_CLOCK)
        .any_pid()
        .one_cpu(cpu)
        .include_kernel()
        .exclude_callchain_user(true)
        .sample_frequency(FREQUENCY_HZ)
        .sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::CALLCHAIN)
        .clockid(Clock::MONOTONIC)
        .build()
        .and_then(|counter| counter.sampled(buffer_bytes(window)))
        .map_err(|source| refused(cpu, source))
}

/// Size of a buffer for the window: a power of two.
fn buffer_bytes(window: Duration) -> usize {
    const LEAST: u64 = 1 << 16;
    const MOST: u64 = 1 << 23;
    let ms = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
    let bytes = ms.saturating_mul(FREQUENCY_HZ * SAMPLE_BYTES) / 1000;
    usize::try_from(bytes.clamp(LEAST, MOST).next_power_of_two()).unwrap_or(usize::MAX)
}

fn refused(cpu: usize, source: io::Error) -> Error {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Error::Denied { cpu },
        Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP) => Error::Unsupported { cpu },
        _ => Error::Kernel {
            what: "sample",
            cpu,
            source,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_hold_their_window() {
        let of = |ms| buffer_bytes(Duration::from_millis(ms));
        assert_eq!(of(500), 1 << 18);
        assert_eq!(of(5000), 1 << 22);
        assert_eq!(of(u64::MAX), 1 << 23);
        assert_eq!(of(0), 1 << 16);
    }

    #[test]
    fn refusals_say_the_way_out() {
        let of = |errno| refused(3, io::Error::from_raw_os_error(errno)).to_string();
        assert!(of(libc::EACCES).contains("CPU 3") && of(libc::EPERM).contains("run as root"));
        assert!(of(libc::ENOENT).contains("CONFIG_PERF_EVENTS"));
        assert_eq!(of(libc::EMFILE), "cannot sample CPU 3");
    }
}
