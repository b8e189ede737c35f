//! The blocks of a run: every cell once, in random order, stored as it comes.

use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::groups::Group;
use super::{Error, Observer, Prepared, resume};
use crate::assess::{self, last_attempts};
use crate::measure::turns::Rounds;
use crate::measure::{self, QuietCores, Sampler, turns};
use crate::model::{Cell, Measurement, Outcome, ProfileWindow, Sample, Setting};
use crate::plan::{Blocks as PlannedBlocks, FOR_A_VERDICT};
use crate::stats;
use crate::store::{End, Record};
use crate::units::{ns, show_duration};

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
#[derive(Default)]
struct Visited {
    /// Cells visited so far.
    done: usize,
    /// What the hypervisor took of single windows, and how long they were. Turns look to it themselves.
    steal_ns: f64,
    time_ns: f64,
    /// A cell failed that may work yet.
    failed: bool,
}

impl Visited {
    fn take_in(&mut self, outcome: &Result<Measurement, String>, is_single: bool) {
        self.done += 1;
        if let Ok(measured) = outcome
            && is_single
        {
            self.steal_ns += measured.cpu.steal_ns;
            self.time_ns += measured.cpu.elapsed_ns * f64::from(measured.cpu.cpus);
        }
    }

    /// The hypervisor's share of single windows.
    fn steal(&self) -> f64 {
        if self.time_ns > 0.0 {
            self.steal_ns / self.time_ns
        } else {
            0.0
        }
    }
}

/// What came of a cell, or the cause of its failure.
type CellOutcome = (usize, Result<Measurement, String>);

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
        let looks = self.looks(blocks);
        for block in self.first.0..blocks.max {
            if looks.contains(&(block as usize)) {
                if self.is_enough() {
                    break;
                }
                if block == blocks.min {
                    self.tell_what_can_be_seen(block, observer);
                }
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

    /// After how many blocks to see whether they are enough.
    fn looks(&self, blocks: PlannedBlocks) -> Vec<usize> {
        let (min, max) = (blocks.min as usize, blocks.max as usize);
        if self.prepared.header.decide.is_some() {
            stats::frequent_looks(min, max)
        } else {
            stats::looks(min, max)
        }
    }

    fn is_enough(&self) -> bool {
        let (header, samples) = (&self.prepared.header, last_attempts(self.samples));
        match header.decide {
            Some(difference) => assess::detectable(header, &samples)
                .iter()
                .all(|detectable| *detectable <= difference),
            None => assess::settled(header, &samples),
        }
    }

    /// Says early what this machine can tell apart, and how long something finer takes: the error goes down with the square
    /// root of the blocks.
    fn tell_what_can_be_seen(&self, block: u32, observer: &mut dyn Observer) {
        const FINE: f64 = 0.05;
        let header = &self.prepared.header;
        let all = assess::detectable(header, &last_attempts(self.samples));
        let Some(&median) = all.get(all.len() / 2) else {
            return;
        };
        let wanted = header.decide.unwrap_or(FINE);
        if median <= wanted {
            return;
        }
        let percent = |share: f64| {
            if share < 9.995 {
                format!("{:.0} %", share * 100.0)
            } else {
                "1000 % or more".to_owned()
            }
        };
        let spent = self.began.elapsed();
        let factor = (median.ln_1p() / wanted.ln_1p()).powi(2) - 1.0;
        let more = Duration::try_from_secs_f64(spent.as_secs_f64() * factor);
        let more = more.map_or_else(
            |_| "an unlimited time".to_owned(),
            |more| {
                format!(
                    "about {} more",
                    show_duration(Duration::from_secs(more.as_secs()))
                )
            },
        );
        observer.note(&format!(
            "after {block} blocks, half of the {} comparisons could show a difference of {} or less; to show {} on \
             this machine takes {more}",
            all.len(),
            percent(median),
            percent(wanted)
        ));
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
            let visited = self.block(block, attempt, record, observer)?;
            let steal = visited.steal();
            if steal <= STEAL || visited.failed || attempt + 1 == first + ATTEMPTS {
                break;
            }
            observer.note(&format!(
                "the hypervisor took {:.1} % of the CPU time of block {}: measuring the block again",
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
    ) -> Result<Visited, Stop> {
        let mut order = order(self.prepared.header.seed, block, attempt);
        let groups = ordered(self.prepared.groups.clone(), &mut order);
        let of: usize = groups.iter().map(|group| group.cells.len()).sum();
        // What the quiet machine does is known of one and the same setting.
        self.switch(self.prepared.header.settings.as_ref().map(|_| Setting::A))?;
        let mut now = None;
        let quiet = self.prepared.sampler.quiet_cores().map_err(stop)?;
        let mut visited = Visited::default();
        for group in groups {
            if self.out_of_time() {
                return Err(Stop::End(End::TimeLimit));
            }
            if group.setting != now {
                self.switch(group.setting)?;
                now = group.setting;
            }
            let first = &self.prepared.header.cells[group.cells[0]].cell;
            observer.measuring(block, visited.done, of, first);
            let started = self.offset + self.began.elapsed();
            let outcomes = if group.takes_turns {
                self.generation(&group, block, quiet, &mut order, observer)?
            } else {
                let index = group.cells[0];
                vec![(index, self.measure(index, quiet, observer)?)]
            };
            let took = self.offset + self.began.elapsed() - started;
            for (cell, outcome) in outcomes {
                visited.take_in(&outcome, !group.takes_turns);
                let outcome = match outcome {
                    Ok(measurement) => Outcome::Measured(Box::new(measurement)),
                    Err(cause) => {
                        visited.failed |= !self.is_hopeless(cell);
                        Outcome::Failed { cause }
                    }
                };
                let sample = Sample {
                    block,
                    attempt,
                    cell,
                    order: u32::try_from(self.samples.len()).unwrap_or(u32::MAX),
                    started_ns: ns(started),
                    took_ns: ns(took),
                    outcome,
                };
                let measured = matches!(sample.outcome, Outcome::Measured(_));
                record.append(&sample)?;
                self.samples.push(sample);
                if measured && self.prepared.header.profile {
                    self.switch(self.prepared.header.cells[cell].cell.axes.setting)?;
                    self.profile((block, attempt, cell), record, observer)?;
                }
            }
        }
        Ok(visited)
    }

    /// Switches the host, if settings of it are compared.
    fn switch(&self, setting: Option<Setting>) -> Result<(), Stop> {
        match (self.prepared.host.borrow_mut().as_mut(), setting) {
            (Some(host), Some(setting)) => host.set(setting, "").map_err(|e| stop(e.into())),
            _ => Ok(()),
        }
    }

    fn is_hopeless(&self, index: usize) -> bool {
        self.failures[index].is_some_and(|n| n >= HOPELESS)
    }

    /// A sample of each cell of a group by turns, or the cause of its failure.
    fn generation(
        &mut self,
        group: &Group,
        block: u32,
        quiet: QuietCores,
        order: &mut ChaCha8Rng,
        observer: &mut dyn Observer,
    ) -> Result<Vec<CellOutcome>, Stop> {
        // Else it was done before.
        let is_switched = group.setting.is_none();
        let group = &group.cells;
        let (hopeless, tried): (Vec<usize>, Vec<usize>) =
            group.iter().partition(|cell| self.is_hopeless(**cell));
        let all = &self.prepared.header.cells;
        let cells: Vec<&Cell> = tried.iter().map(|cell| &all[*cell].cell).collect();
        let rounds = Rounds {
            wanted: self.rounds(group, &cells),
            deadline: self.fair_end(block, &cells),
        };
        let mut host = self.prepared.host.borrow_mut();
        let host = host.as_mut().filter(|_| is_switched);
        let measured = self
            .prepared
            .sampler
            .generation(&cells, rounds, quiet, order, host)
            .map_err(stop)?;
        let measured: Vec<_> = tried.into_iter().zip(measured).collect();
        let mut outcomes = Vec::with_capacity(group.len());
        for (cell, outcome) in measured {
            outcomes.push((cell, self.note(cell, outcome, observer)?));
        }
        let given_up = hopeless
            .into_iter()
            .map(|cell| (cell, Err(not_tried_again())));
        outcomes.extend(given_up);
        Ok(outcomes)
    }

    /// How many rounds the next generation of a group is to have: as many as the window that was asked for has, until its
    /// samples tell how to share the time between rounds and generations. Then as many as serve best, within a factor of
    /// what was asked for.
    fn rounds(&self, group: &[usize], cells: &[&Cell]) -> u32 {
        let asked = self.rounds_in_time(turns::rounds(self.prepared.sampler.window));
        let cost = Sampler::generation_cost(cells);
        let samples = last_attempts(self.samples);
        let worth = assess::rounds_worth(&self.prepared.header, &samples, group, cost);
        turns::chosen_rounds(asked, worth)
    }

    /// When the next generation of some cells is to end, so that the blocks that verdicts need fit into the time limit:
    /// rounds are taken again only for as long as that leaves time.
    fn fair_end(&self, block: u32, cells: &[&Cell]) -> Option<Instant> {
        /// The rest is for reading the quiet machine, and for labs that take longer than most.
        const OF_TURNS: f64 = 0.8;
        let limit = self.prepared.time_limit()?;
        let left = limit.saturating_sub(self.began.elapsed()).mul_f64(OF_TURNS);
        let needed = self.prepared.header.blocks_min.min(FOR_A_VERDICT);
        let blocks = needed.saturating_sub(block).max(1);
        let own: Duration = cells
            .iter()
            .map(|cell| self.prepared.sampler.turns_estimate(cell))
            .sum();
        let all = (self.prepared.block_estimate() * blocks).max(own);
        let share = own.as_secs_f64() / all.as_secs_f64().max(f64::MIN_POSITIVE);
        Some(Instant::now() + left.mul_f64(share.min(1.0)))
    }

    /// As many rounds as were asked for, fewer where the blocks that verdicts need would not fit into the time limit.
    fn rounds_in_time(&self, asked: u32) -> u32 {
        let Some(limit) = self.prepared.time_limit() else {
            return asked;
        };
        let blocks = self.prepared.header.blocks_min.min(FOR_A_VERDICT);
        let wanted = (self.prepared.block_estimate() * blocks).as_secs_f64();
        let share = (limit.as_secs_f64() / wanted).min(1.0);
        let fitting = (f64::from(asked) * share) as u32;
        fitting.max(asked.min(*turns::ROUNDS.start()))
    }

    /// One sample, or the cause of its failure.
    fn measure(
        &mut self,
        index: usize,
        quiet: QuietCores,
        observer: &mut dyn Observer,
    ) -> Result<Result<Measurement, String>, Stop> {
        if self.is_hopeless(index) {
            return Ok(Err(not_tried_again()));
        }
        let cell = &self.prepared.header.cells[index].cell;
        let outcome = self.prepared.sampler.measure(cell, quiet);
        self.note(index, outcome, observer)
    }

    /// Counts failures, and tells of them.
    fn note(
        &mut self,
        index: usize,
        outcome: Result<Measurement, measure::Error>,
        observer: &mut dyn Observer,
    ) -> Result<Result<Measurement, String>, Stop> {
        match outcome {
            Ok(measurement) => {
                self.failures[index] = None;
                Ok(Ok(measurement))
            }
            Err(error) if error.is_interrupt() => Err(stop(error)),
            Err(error) => {
                let cause = crate::chain(&error);
                observer.failed(&self.prepared.header.cells[index].cell, &cause);
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

fn not_tried_again() -> String {
    format!("not tried again after {HOPELESS} failures in a row")
}

/// How often a cell has failed from the start, or nothing once it worked.
fn straight_failures(samples: &[Sample], cell: usize) -> Option<u32> {
    let mut own = samples.iter().filter(|s| s.cell == cell);
    let failed = |s: &Sample| matches!(s.outcome, Outcome::Failed { .. });
    let failures = own.clone().count();
    own.all(failed)
        .then(|| u32::try_from(failures).unwrap_or(u32::MAX))
}

/// Groups in random order; those of one setting after each other, the settings in random order too.
fn ordered(mut groups: Vec<Group>, order: &mut ChaCha8Rng) -> Vec<Group> {
    groups.shuffle(order);
    let mut settings: Vec<Option<Setting>> = groups.iter().map(|group| group.setting).collect();
    settings.sort_unstable();
    settings.dedup();
    settings.shuffle(order);
    groups.sort_by_key(|group| settings.iter().position(|s| *s == group.setting));
    groups
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
