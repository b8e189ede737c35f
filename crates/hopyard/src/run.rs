//! The orchestrator: carries a plan out, block by block, and stores what comes of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::assess::{self, last_attempts};
use crate::lab::{self, Lab};
use crate::measure::{self, Sampler};
use crate::meter;
use crate::model::{Cell, Outcome, Sample};
use crate::plan::{self, Expanded, FOR_A_VERDICT, Plan};
use crate::signals;
use crate::stats;
use crate::store::{self, End, Header, PlannedCell, Run, Writer};

/// A block with more steal than this share is measured once more (docs/method.md, rule 5).
const STEAL: f64 = 0.01;
/// How often a block may be measured in all.
const ATTEMPTS: u32 = 2;
/// A cell that failed so often from the start will not work.
const HOPELESS: u32 = 3;

/// What can end a run before it begins, or in the middle.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan cannot be carried out here.
    #[error(transparent)]
    Plan(#[from] plan::ExpandError),
    /// No cell of it can be built.
    #[error("nothing to measure: {0}")]
    Nothing(String),
    /// The run directory.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The instrument.
    #[error(transparent)]
    Measure(#[from] measure::Error),
}

/// Who wants to know how it goes.
pub trait Observer {
    /// The plan is known: this many cells, and so long a block takes, roughly.
    fn planned(&mut self, _cells: usize, _blocks: plan::Blocks, _block: Duration) {}
    /// A sample begins.
    fn measuring(&mut self, _block: u32, _done: usize, _of: usize, _cell: &Cell) {}
    /// A sample failed.
    fn failed(&mut self, _cell: &Cell, _cause: &str) {}
    /// A sentence worth reading.
    fn note(&mut self, _text: &str) {}
    /// The last sample is in.
    fn finished(&mut self) {}
}

/// Nobody does.
#[derive(Debug, Default, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {}

/// A run about to be made: checked, with its header.
#[derive(Debug)]
pub struct Prepared {
    plan: Plan,
    sampler: Sampler,
    /// What will be written down.
    pub header: Header,
}

/// A seed nobody chose.
#[must_use]
pub fn any_seed() -> u64 {
    let now = jiff::Timestamp::now().as_nanosecond();
    // 32 bits are enough to be different and short enough to be typed again.
    (now as u64 ^ u64::from(std::process::id())) & 0xffff_ffff
}

/// Checks a plan whole on this host: names and values, every lab built once, the generator's ceiling.
///
/// # Errors
/// It cannot be carried out; nothing is left behind.
pub fn prepare(plan: Plan, seed: u64) -> Result<Prepared, Error> {
    let Expanded { cells, left_out } = plan::expand(&plan)?;
    let sampler = Sampler::new(plan.window, plan.warm_up)?;
    let unsupported = try_labs(&cells)?;
    let ceilings = ceilings(&sampler, &cells)?;
    let cells: Vec<PlannedCell> = cells
        .into_iter()
        .map(|cell| PlannedCell {
            unsupported: unsupported.get(&shape(&cell)).cloned(),
            ceiling_per_s: ceilings.get(&load_key(&cell)).copied(),
            cell,
        })
        .collect();
    if let Some(cause) = cells.first().and_then(|c| c.unsupported.clone())
        && cells.iter().all(|cell| cell.unsupported.is_some())
    {
        return Err(Error::Nothing(cause));
    }
    let started = jiff::Timestamp::now();
    let ns = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let header = Header {
        schema: store::SCHEMA.to_owned(),
        id: format!("{}-{}", started.strftime("%Y%m%d-%H%M%S"), plan.name),
        plan: plan.name.clone(),
        seed,
        started: started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        window_ns: ns(plan.window),
        warm_up_ns: ns(plan.warm_up),
        blocks_min: plan.blocks.min,
        blocks_max: plan.blocks.max,
        half_width: plan.half_width,
        confidence: plan.confidence,
        margin: plan.margin,
        base: plan.base.clone(),
        left_out,
        cells,
        environment: meter::environment::capture(&sampler.meter),
    };
    Ok(Prepared {
        plan,
        sampler,
        header,
    })
}

/// What decides whether a lab can be built.
fn shape(cell: &Cell) -> String {
    let axes = &cell.axes;
    format!(
        "{} {} {:?} {} {:?} {:?}",
        cell.path,
        cell.peer,
        axes.placement,
        axes.mtu_bytes,
        axes.rate_bps,
        crate::model::OffloadFlag::ALL.map(|flag| (axes.offload, axes.offload_named(flag)))
    )
}

/// What decides the generator's ceiling.
fn load_key(cell: &Cell) -> String {
    let axes = &cell.axes;
    format!(
        "{} {:?} {:?} {:?}",
        cell.load, axes.message_size_bytes, axes.request_size_bytes, axes.response_size_bytes
    )
}

/// Builds each different lab once: shape → why it cannot be built.
fn try_labs(cells: &[Cell]) -> Result<BTreeMap<String, String>, Error> {
    let cpus = hopyard_net::cpu::current_affinity().map_err(measure::Error::from)?;
    let mut tried = BTreeMap::new();
    for cell in cells {
        if signals::interrupted() {
            return Err(measure::Error::Interrupted.into());
        }
        tried.entry(shape(cell)).or_insert_with(|| {
            let path = lab::path(&cell.path)?;
            measure::places(cell.axes.placement, &cpus)?;
            Lab::build(path, cell.peer, &cell.axes).map(drop)
        });
    }
    let mut unsupported = BTreeMap::new();
    for (shape, outcome) in tried {
        match outcome {
            Ok(()) => {}
            Err(e) if e.is_unsupported() => {
                unsupported.insert(shape, crate::chain(&e));
            }
            Err(e) => return Err(measure::Error::Lab(e).into()),
        }
    }
    Ok(unsupported)
}

fn ceilings(sampler: &Sampler, cells: &[Cell]) -> Result<BTreeMap<String, f64>, Error> {
    let mut ceilings = BTreeMap::new();
    for cell in cells {
        if !ceilings.contains_key(&load_key(cell)) {
            ceilings.insert(load_key(cell), sampler.ceiling(cell.load, &cell.axes)?);
        }
    }
    Ok(ceilings)
}

impl Prepared {
    /// How long a block takes, roughly.
    #[must_use]
    pub fn block_estimate(&self) -> Duration {
        let cells = self
            .header
            .cells
            .iter()
            .filter(|c| c.unsupported.is_none())
            .count();
        self.sampler.estimate() * u32::try_from(cells).unwrap_or(u32::MAX)
    }

    /// Carries it out and gives back what was stored.
    ///
    /// # Errors
    /// The directory cannot be written, or the instrument fails. What was measured until then is in
    /// the directory.
    pub fn carry_out(
        self,
        directory: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Run, (Option<Run>, Error)> {
        let mut writer =
            Writer::create(directory, &self.header).map_err(|e| (None, Error::from(e)))?;
        let mut samples = Vec::new();
        let block = self.block_estimate();
        observer.planned(self.header.cells.len(), self.plan.blocks, block);
        self.warn_of_the_limit(block, observer);
        let outcome = Blocks::new(&self, &mut samples).run(&mut writer, observer);
        observer.finished();
        let end = outcome.and_then(|end| {
            writer.finish(end)?;
            Ok(end)
        });
        let Self { header, .. } = self;
        match end {
            Ok(end) => Ok(Run {
                header,
                samples,
                end: Some(end),
            }),
            Err(error) => Err((
                Some(Run {
                    header,
                    samples,
                    end: None,
                }),
                error,
            )),
        }
    }

    fn warn_of_the_limit(&self, block: Duration, observer: &mut dyn Observer) {
        let Some(limit) = self.plan.time_limit else {
            return;
        };
        let wanted = self.plan.blocks.min.min(FOR_A_VERDICT);
        if block * wanted > limit {
            observer.note(&format!(
                "{wanted} blocks take about {}, more than the time limit of {}: expect fewer blocks \
                 and no verdicts",
                crate::units::show_duration(block * wanted),
                crate::units::show_duration(limit)
            ));
        }
    }
}

/// The blocks of a run under way.
struct Blocks<'a> {
    prepared: &'a Prepared,
    samples: &'a mut Vec<Sample>,
    order: ChaCha8Rng,
    began: Instant,
    /// Straight failures from the start, by cell; a cell that worked once is never given up.
    failures: Vec<Option<u32>>,
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

impl<'a> Blocks<'a> {
    fn new(prepared: &'a Prepared, samples: &'a mut Vec<Sample>) -> Self {
        Self {
            prepared,
            samples,
            order: ChaCha8Rng::seed_from_u64(prepared.header.seed),
            began: Instant::now(),
            failures: vec![Some(0); prepared.header.cells.len()],
        }
    }

    fn run(mut self, writer: &mut Writer, observer: &mut dyn Observer) -> Result<End, Error> {
        let blocks = self.prepared.plan.blocks;
        let looks = stats::looks(blocks.min as usize, blocks.max as usize);
        for block in 0..blocks.max {
            if self.next_block_is_too_late(block) {
                return Ok(End::TimeLimit);
            }
            for attempt in 0..ATTEMPTS {
                match self.block(block, attempt, writer, observer) {
                    Ok(steal) if steal > STEAL && attempt + 1 < ATTEMPTS => {
                        observer.note(&format!(
                            "the hypervisor took {:.1} % of block {}: measuring it once more",
                            steal * 100.0,
                            block + 1
                        ));
                    }
                    Ok(_) => break,
                    Err(Stop::End(end)) => return Ok(end),
                    Err(Stop::Error(error)) => return Err(error),
                }
            }
            let done = block as usize + 1;
            if looks.contains(&done)
                && assess::settled(&self.prepared.header, &last_attempts(self.samples))
            {
                break;
            }
        }
        Ok(End::Complete)
    }

    fn next_block_is_too_late(&self, block: u32) -> bool {
        let Some(limit) = self.prepared.plan.time_limit else {
            return false;
        };
        let spent = self.began.elapsed();
        block > 0 && spent + spent / block > limit
    }

    /// Visits every cell once, in random order; answers with the share of steal.
    fn block(
        &mut self,
        block: u32,
        attempt: u32,
        writer: &mut Writer,
        observer: &mut dyn Observer,
    ) -> Result<f64, Stop> {
        let header = &self.prepared.header;
        let mut cells: Vec<usize> = (0..header.cells.len())
            .filter(|&i| header.cells[i].unsupported.is_none())
            .filter(|&i| self.failures[i].is_none_or(|n| n < HOPELESS))
            .collect();
        cells.shuffle(&mut self.order);
        let quiet_cores = match self.prepared.sampler.quiet_cores() {
            Err(error) if error.is_interrupt() => return Err(Stop::End(End::Interrupted)),
            quiet => quiet?,
        };
        let (mut steal_ns, mut time_ns) = (0.0, 0.0);
        for (done, &index) in cells.iter().enumerate() {
            if self.out_of_time() {
                return Err(Stop::End(End::TimeLimit));
            }
            let cell = &header.cells[index].cell;
            observer.measuring(block, done, cells.len(), cell);
            let started = self.began.elapsed();
            let outcome = match self.prepared.sampler.measure(cell, quiet_cores) {
                Ok(measurement) => {
                    steal_ns += measurement.cpu.steal_ns;
                    time_ns += measurement.cpu.elapsed_ns * f64::from(measurement.cpu.cpus);
                    self.failures[index] = None;
                    Outcome::Measured(Box::new(measurement))
                }
                Err(error) if error.is_interrupt() => {
                    return Err(Stop::End(End::Interrupted));
                }
                Err(error) => {
                    let cause = crate::chain(&error);
                    observer.failed(cell, &cause);
                    self.failures[index] = self.failures[index].map(|n| n + 1);
                    Outcome::Failed { cause }
                }
            };
            let ns = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
            let sample = Sample {
                block,
                attempt,
                cell: index,
                order: u32::try_from(self.samples.len()).unwrap_or(u32::MAX),
                started_ns: ns(started),
                took_ns: ns(self.began.elapsed() - started),
                outcome,
            };
            writer.append(&sample)?;
            self.samples.push(sample);
        }
        Ok(if time_ns > 0.0 {
            steal_ns / time_ns
        } else {
            0.0
        })
    }

    fn out_of_time(&self) -> bool {
        self.prepared
            .plan
            .time_limit
            .is_some_and(|limit| self.began.elapsed() > limit)
    }
}
