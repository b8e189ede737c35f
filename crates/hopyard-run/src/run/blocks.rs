//! The blocks of a run: every cell once, in random order, each sample stored at once.

mod alike;
mod enough;
mod order;
mod time;

use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;

use self::order::{order, ordered};
use super::groups::Group;
use super::{Error, Observer, Prepared, resume};
use crate::assess::{self, last_attempts};
use crate::measure::turns::{Labs, Participant, Rounds};
use crate::measure::{self, QuietCores, QuietReading, let_netns_cleanup_end};
use crate::model::{Cell, GIVEN_UP_AFTER, Measurement, Outcome, ProfileWindow, Sample, Setting};
use crate::signals;
use crate::store::{End, Record};
use crate::units::ns;

/// The blocks of a run in progress.
pub(super) struct Blocks<'a> {
    prepared: &'a Prepared,
    samples: &'a mut Vec<Sample>,
    profiles: &'a mut Vec<ProfileWindow>,
    began: Instant,
    /// Where the run continues: the time used before, the block, and the attempt at it.
    offset: Duration,
    first: (u32, u32),
    /// Consecutive failures from the start, by cell. A cell that worked once is never given up.
    failures: Vec<Option<u32>>,
    /// The last reading of the idle machine, with the figures of the most precise one so far: steal hides them in some blocks.
    quiet: Option<QuietReading>,
}

/// The measurement of a cell, or the cause of its failure.
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

/// An interrupt ends the run; any other failure of the instrument is an error.
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
            quiet: None,
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
            if self.all_are_given_up() {
                break;
            }
            if looks.contains(&(block as usize)) {
                if self.is_enough() {
                    break;
                }
                if block == blocks.min {
                    self.tell_what_can_be_seen(block, observer);
                }
            }
            if self.next_block_is_too_late(block) {
                return Ok(End::TimeLimit);
            }
            if record.is_full(block) {
                observer.note(&format!(
                    "the run ends after {block} blocks, since with one more its file may be too large to be read again. Longer windows \
                     (--window) or fewer cells say more in as many blocks"
                ));
                break;
            }
            let attempt = if block == self.first.0 {
                self.first.1
            } else {
                0
            };
            match self.block(block, attempt, record, observer) {
                Ok(()) => observer.compared(block + 1, &self.prepared.header, &|| {
                    assess::so_far(&self.prepared.header, &last_attempts(self.samples))
                }),
                Err(Stop::End(end)) => return Ok(end),
                Err(Stop::Error(error)) => return Err(error),
            }
        }
        Ok(End::Complete)
    }

    /// Visits every cell once, in random order.
    fn block(
        &mut self,
        block: u32,
        attempt: u32,
        record: &mut dyn Record,
        observer: &mut dyn Observer,
    ) -> Result<(), Stop> {
        let mut order = order(self.prepared.header.seed, block, attempt);
        let groups = ordered(self.prepared.groups.clone(), &mut order);
        let of: usize = groups.iter().map(|group| group.cells.len()).sum();
        let groups = self.with_rounds(groups);
        let quiet = self.quiet_cores()?;
        let block_end = self.block_end(block);
        let mut now = None;
        let mut done = 0;
        let mut labs = Labs::default();
        for (at, (group, rounds)) in groups.iter().enumerate() {
            if self.out_of_time() {
                return Err(Stop::End(End::TimeLimit));
            }
            if group.setting != now {
                // No lab exists while a command runs (docs/ab.md).
                labs = Labs::default();
                let_netns_cleanup_end().map_err(stop)?;
                self.switch(group.setting)?;
                now = group.setting;
            }
            let first = self.cell(group.cells[0]);
            observer.measuring(block, done, of, first);
            let started = self.offset + self.began.elapsed();
            let outcomes = if group.takes_turns {
                let rounds = Rounds {
                    wanted: *rounds,
                    deadline: self.group_end(block_end, &groups[at..]),
                };
                self.generation(group, rounds, &mut labs, (quiet, &mut order), observer)?
            } else {
                let index = group.cells[0];
                vec![(index, self.measure(index, quiet, observer)?)]
            };
            let took = self.offset + self.began.elapsed() - started;
            let mut measured = Vec::new();
            for (cell, outcome) in outcomes {
                done += 1;
                let outcome = match outcome {
                    Ok(measurement) => Outcome::Measured(Box::new(measurement)),
                    Err(cause) => Outcome::Failed { cause },
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
                if matches!(sample.outcome, Outcome::Measured(_)) {
                    measured.push(cell);
                }
                record.append(&sample)?;
                self.samples.push(sample);
            }
            if !self.prepared.header.profile {
                continue;
            }
            let has_settings = self.prepared.header.settings.is_some();
            if has_settings {
                labs = Labs::default();
            }
            for cell in measured {
                if self.out_of_time() {
                    return Err(Stop::End(End::TimeLimit));
                }
                if has_settings {
                    // Also for the lab of the previous profile.
                    let_netns_cleanup_end().map_err(stop)?;
                }
                self.switch(self.cell(cell).axes.setting)?;
                self.profile((block, attempt, cell), record, observer)?;
            }
        }
        Ok(())
    }

    /// What the idle machine uses. It is read again if the last reading is too old, or was disturbed.
    fn quiet_cores(&mut self) -> Result<QuietCores, Stop> {
        if let Some(quiet) = self.quiet.filter(|reading| reading.holds()) {
            // The kernel may still remove the last labs. Cells that take turns wait for that once their own labs are built.
            if !self.prepared.groups.iter().all(|group| group.takes_turns) {
                let_netns_cleanup_end().map_err(stop)?;
            }
            return Ok(quiet.cores);
        }
        // Always under the same setting, and while no lab exists.
        if self.prepared.header.settings.is_some() {
            let_netns_cleanup_end().map_err(stop)?;
        }
        self.switch(self.prepared.header.settings.as_ref().map(|_| Setting::A))?;
        let reading = self.prepared.sampler.read_quiet(self.quiet).map_err(stop)?;
        self.quiet = Some(reading);
        Ok(reading.cores)
    }

    /// Switches the host, if settings are compared.
    fn switch(&self, setting: Option<Setting>) -> Result<(), Stop> {
        match (self.prepared.host.borrow_mut().as_mut(), setting) {
            (Some(host), Some(setting)) => host.set(setting, "").map_err(|e| stop(e.into())),
            _ => Ok(()),
        }
    }

    fn cell(&self, index: usize) -> &'a Cell {
        &self.prepared.header.cells[index].cell
    }

    /// A cell of a group, with its turns in each round.
    fn participant(&self, group: &Group, index: usize) -> Participant<'a> {
        Participant {
            cell: self.cell(index),
            turns: group.turns(index),
        }
    }

    fn participants(&self, group: &Group) -> Vec<Participant<'a>> {
        let cells = group.cells.iter();
        cells.map(|cell| self.participant(group, *cell)).collect()
    }

    pub(super) fn is_hopeless(&self, index: usize) -> bool {
        self.failures[index].is_some_and(|n| n >= GIVEN_UP_AFTER)
    }

    /// A sample of each cell of a group by turns, or the cause of its failure.
    fn generation(
        &mut self,
        group: &Group,
        rounds: Rounds,
        labs: &mut Labs,
        (quiet, order): (QuietCores, &mut ChaCha8Rng),
        observer: &mut dyn Observer,
    ) -> Result<Vec<CellOutcome>, Stop> {
        // Otherwise it is switched already.
        let is_switched = group.setting.is_none();
        let (hopeless, tried): (Vec<usize>, Vec<usize>) = group
            .cells
            .iter()
            .partition(|cell| self.is_hopeless(**cell));
        let cells: Vec<Participant<'_>> = tried
            .iter()
            .map(|cell| self.participant(group, *cell))
            .collect();
        let mut host = self.prepared.host.borrow_mut();
        if host.is_some() {
            // A lab is built under the setting under which it is measured.
            *labs = Labs::default();
        }
        let host = host.as_mut().filter(|_| is_switched);
        let measured = self
            .prepared
            .sampler
            .generation(&cells, rounds, quiet, order, host, labs)
            .map_err(stop)?;
        let measured: Vec<_> = tried.into_iter().zip(measured).collect();
        let mut outcomes = Vec::with_capacity(group.cells.len());
        for (cell, outcome) in measured {
            outcomes.push((cell, self.note(cell, outcome, observer)?));
        }
        let given_up = hopeless
            .into_iter()
            .map(|cell| (cell, Err(not_tried_again())));
        outcomes.extend(given_up);
        Ok(outcomes)
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

    /// Counts failures, and reports them.
    fn note(
        &mut self,
        index: usize,
        outcome: Result<Measurement, measure::Error>,
        observer: &mut dyn Observer,
    ) -> Result<Result<Measurement, String>, Stop> {
        let cause = match outcome {
            Ok(measurement) => match self.doubt(index, &measurement) {
                None => {
                    self.failures[index] = None;
                    return Ok(Ok(measurement));
                }
                Some(why) => why,
            },
            Err(error) if error.is_interrupt() => return Err(stop(error)),
            // A terminal's Ctrl-C ends programs that a lab is built with too, and that is no failure of the cell.
            Err(_) if signals::interrupted() => return Err(Stop::End(End::Interrupted)),
            Err(error) => crate::chain(&error),
        };
        observer.failed(&self.prepared.header.cells[index].cell, &cause);
        self.failures[index] = self.failures[index].map(|n| n + 1);
        Ok(Err(cause))
    }

    /// Why a measurement must not be added to those of its cell. A far end may report impossible figures, and a stored run that has such
    /// figures is refused as damaged.
    fn doubt(&self, cell: usize, measured: &Measurement) -> Option<String> {
        if let Err(why) = measured.check() {
            return Some(format!("impossible figures: {why}"));
        }
        let mut own = self.samples.iter().filter(|sample| sample.cell == cell);
        let first = own.find_map(|sample| match &sample.outcome {
            Outcome::Measured(first) => Some(first),
            Outcome::Failed { .. } => None,
        });
        alike::unlike(first?, measured)
    }

    /// Takes a profile besides a sample. If that fails, the sample counts nevertheless.
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
}

fn not_tried_again() -> String {
    format!("not tried again after {GIVEN_UP_AFTER} failures in a row")
}

/// How often a cell has failed from the start; `None` once it has worked.
fn straight_failures(samples: &[Sample], cell: usize) -> Option<u32> {
    let mut own = samples.iter().filter(|s| s.cell == cell);
    let failed = |s: &Sample| matches!(s.outcome, Outcome::Failed { .. });
    let failures = own.clone().count();
    own.all(failed)
        .then(|| u32::try_from(failures).unwrap_or(u32::MAX))
}
