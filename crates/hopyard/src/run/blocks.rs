//! The blocks of a run: every cell once, in random order, stored as it comes.

use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::{Error, Observer, Prepared, resume};
use crate::assess::{self, last_attempts};
use crate::measure::{self, QuietCores};
use crate::model::{Measurement, Outcome, ProfileWindow, Sample};
use crate::stats;
use crate::store::{End, Record};
use crate::units::ns;

/// A block with more steal than this share is measured once more (docs/method.md, "Blocks").
const STEAL: f64 = 0.01;
/// How often a block may be measured in all.
const ATTEMPTS: u32 = 2;
/// A cell that failed so often from the start will not work.
const HOPELESS: u32 = 3;

/// The blocks of a run under way.
pub(super) struct Blocks<'a> {
    prepared: &'a Prepared,
    samples: &'a mut Vec<Sample>,
    profiles: &'a mut Vec<ProfileWindow>,
    began: Instant,
    /// Where the run goes on: the time it had taken, its block and the attempt at that.
    offset: Duration,
    first: (u32, u32),
    /// Straight failures from the start, by cell; a cell that worked once is never given up.
    failures: Vec<Option<u32>>,
}

/// What became of a block.
struct Visit {
    /// The hypervisor's share of its windows.
    steal: f64,
    /// A cell failed that may work yet.
    failed: bool,
}

/// Why a block ended early.
enum Stop {
    End(End),
    Error(Error),
}

impl<E: Into<Error>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// An interrupt ends the run; anything else that the instrument cannot do is an error.
fn stop(error: measure::Error) -> Stop {
    if error.is_interrupt() {
        Stop::End(End::Interrupted)
    } else {
        Stop::Error(error.into())
    }
}

impl<'a> Blocks<'a> {
    pub(super) fn new(
        prepared: &'a Prepared,
        samples: &'a mut Vec<Sample>,
        profiles: &'a mut Vec<ProfileWindow>,
    ) -> Self {
        let ends = samples.iter().map(|s| s.started_ns + s.took_ns);
        Self {
            offset: Duration::from_nanos(ends.max().unwrap_or(0)),
            first: resume::place(&prepared.header, samples),
            failures: (0..prepared.header.cells.len())
                .map(|cell| straight_failures(samples, cell))
                .collect(),
            prepared,
            samples,
            profiles,
            began: Instant::now(),
        }
    }

    pub(super) fn run(
        mut self,
        record: &mut dyn Record,
        observer: &mut dyn Observer,
    ) -> Result<End, Error> {
        let blocks = self.prepared.blocks();
        let looks = stats::looks(blocks.min as usize, blocks.max as usize);
        for block in self.first.0..blocks.max {
            if looks.contains(&(block as usize))
                && assess::settled(&self.prepared.header, &last_attempts(self.samples))
            {
                break;
            }
            if self.next_block_is_too_late(block - self.first.0) {
                return Ok(End::TimeLimit);
            }
            match self.undisturbed(block, record, observer) {
                Ok(()) => {}
                Err(Stop::End(end)) => return Ok(end),
                Err(Stop::Error(error)) => return Err(error),
            }
        }
        Ok(End::Complete)
    }

    /// Would another block, taking as long as those done just now, end after the limit?
    fn next_block_is_too_late(&self, done: u32) -> bool {
        let Some(limit) = self.prepared.time_limit() else {
            return false;
        };
        let spent = self.began.elapsed();
        done > 0 && spent + spent / done > limit
    }

    /// Measures a block, once more if the hypervisor took too much of it. What failed in it is a finding, which no second
    /// attempt may hide.
    fn undisturbed(
        &mut self,
        block: u32,
        record: &mut dyn Record,
        observer: &mut dyn Observer,
    ) -> Result<(), Stop> {
        let first = if block == self.first.0 {
            self.first.1
        } else {
            0
        };
        for attempt in first..first + ATTEMPTS {
            let Visit { steal, failed } = self.block(block, attempt, record, observer)?;
            if steal <= STEAL || failed || attempt + 1 == first + ATTEMPTS {
                break;
            }
            observer.note(&format!(
                "the hypervisor took {:.1} % of block {}: measuring it once more",
                steal * 100.0,
                block + 1
            ));
        }
        Ok(())
    }

    /// Visits every cell once, in random order.
    fn block(
        &mut self,
        block: u32,
        attempt: u32,
        record: &mut dyn Record,
        observer: &mut dyn Observer,
    ) -> Result<Visit, Stop> {
        let header = &self.prepared.header;
        let mut cells: Vec<usize> = (0..header.cells.len())
            .filter(|&i| header.cells[i].unsupported.is_none())
            .collect();
        cells.shuffle(&mut order(header.seed, block, attempt));
        let quiet = self.prepared.sampler.quiet_cores().map_err(stop)?;
        let (mut steal_ns, mut time_ns, mut failed) = (0.0, 0.0, false);
        for (done, &index) in cells.iter().enumerate() {
            if self.out_of_time() {
                return Err(Stop::End(End::TimeLimit));
            }
            observer.measuring(block, done, cells.len(), &header.cells[index].cell);
            let started = self.offset + self.began.elapsed();
            let outcome = match self.measure(index, quiet, observer)? {
                Ok(measured) => {
                    steal_ns += measured.cpu.steal_ns;
                    time_ns += measured.cpu.elapsed_ns * f64::from(measured.cpu.cpus);
                    Outcome::Measured(Box::new(measured))
                }
                Err(cause) => {
                    failed |= !self.is_hopeless(index);
                    Outcome::Failed { cause }
                }
            };
            let sample = Sample {
                block,
                attempt,
                cell: index,
                order: u32::try_from(self.samples.len()).unwrap_or(u32::MAX),
                started_ns: ns(started),
                took_ns: ns(self.offset + self.began.elapsed() - started),
                outcome,
            };
            let measured = matches!(sample.outcome, Outcome::Measured(_));
            record.append(&sample)?;
            self.samples.push(sample);
            if measured && self.prepared.header.profile {
                self.profile((block, attempt, index), record, observer)?;
            }
        }
        let steal = if time_ns > 0.0 {
            steal_ns / time_ns
        } else {
            0.0
        };
        Ok(Visit { steal, failed })
    }

    fn is_hopeless(&self, index: usize) -> bool {
        self.failures[index].is_some_and(|n| n >= HOPELESS)
    }

    /// One sample, or the cause of its failure.
    fn measure(
        &mut self,
        index: usize,
        quiet: QuietCores,
        observer: &mut dyn Observer,
    ) -> Result<Result<Measurement, String>, Stop> {
        let cell = &self.prepared.header.cells[index].cell;
        if self.is_hopeless(index) {
            return Ok(Err(format!(
                "not tried again after {HOPELESS} failures in a row"
            )));
        }
        match self.prepared.sampler.measure(cell, quiet) {
            Ok(measurement) => {
                self.failures[index] = None;
                Ok(Ok(measurement))
            }
            Err(error) if error.is_interrupt() => Err(stop(error)),
            Err(error) => {
                let cause = crate::chain(&error);
                observer.failed(cell, &cause);
                self.failures[index] = self.failures[index].map(|n| n + 1);
                Ok(Err(cause))
            }
        }
    }

    /// Takes a profile beside a sample. Where it fails the sample counts all the same.
    fn profile(
        &mut self,
        (block, attempt, index): (u32, u32, usize),
        record: &mut dyn Record,
        observer: &mut dyn Observer,
    ) -> Result<(), Stop> {
        let cell = &self.prepared.header.cells[index].cell;
        match self.prepared.sampler.profile(cell) {
            Ok(window) => {
                let window = ProfileWindow {
                    block,
                    attempt,
                    cell: index,
                    ..window
                };
                record.append_profile(&window)?;
                self.profiles.push(window);
            }
            Err(error) if error.is_interrupt() => return Err(stop(error)),
            Err(error) => {
                observer.note(&format!("no profile of {cell}: {}", crate::chain(&error)));
            }
        }
        Ok(())
    }

    fn out_of_time(&self) -> bool {
        self.prepared
            .time_limit()
            .is_some_and(|limit| self.began.elapsed() > limit)
    }
}

/// How often a cell has failed from the start, or nothing once it worked.
fn straight_failures(samples: &[Sample], cell: usize) -> Option<u32> {
    let mut own = samples.iter().filter(|s| s.cell == cell);
    let failed = |s: &Sample| matches!(s.outcome, Outcome::Failed { .. });
    let failures = own.clone().count();
    own.all(failed)
        .then(|| u32::try_from(failures).unwrap_or(u32::MAX))
}

/// What orders the cells of a block: the seed, the block and the attempt alone, so that a block that was
/// measured once more leaves the order of all others as it was.
fn order(seed: u64, block: u32, attempt: u32) -> ChaCha8Rng {
    let mut order = ChaCha8Rng::seed_from_u64(seed);
    order.set_stream(u64::from(block) << 32 | u64::from(attempt));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_and_attempt_has_an_order_of_its_own() {
        let cells = |seed, block, attempt| {
            let mut cells: Vec<usize> = (0..20).collect();
            cells.shuffle(&mut order(seed, block, attempt));
            cells
        };
        assert_eq!(cells(7, 1, 0), cells(7, 1, 0));
        for other in [cells(8, 1, 0), cells(7, 0, 0), cells(7, 1, 1)] {
            assert_ne!(cells(7, 1, 0), other);
        }
    }
}
