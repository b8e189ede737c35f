//! What all experiments share: the sampler, the CPUs, the seed, waiting.

use std::cell::{self, OnceCell};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hopyard::measure::{QuietCores, Sampler};
use hopyard::meter::environment;
use hopyard::model::{Cell, Environment, Measurement};
use hopyard::signals;
use hopyard::units;
use hopyard_net::{clock, cpu};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::experiment::Failure;

/// What the user asked of all experiments.
#[derive(Debug, clap::Args)]
pub(crate) struct Asked {
    /// Fewer and shorter samples: a look at whether it works, not a proof
    #[arg(long)]
    quick: bool,
    /// Tables of V18 (two comparisons each), tables per load of V19, short runs per load of V20
    #[arg(long, value_name = "N")]
    tables: Option<usize>,
    /// Directory that keeps the tables of V18, V19 and V20: those that are there are not measured again
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Begin no further table of V18, V19 and V20 after this time; with --keep, say it again to go on
    #[arg(long, value_name = "TIME", value_parser = time)]
    time_limit: Option<Duration>,
    /// Seed of every random order and simulation
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

fn time(text: &str) -> Result<Duration, String> {
    units::parse_duration(text).map_err(|error| error.to_string())
}

/// The run.
#[derive(Debug)]
pub(crate) struct Bench {
    /// Shorter and fewer samples.
    pub(crate) quick: bool,
    /// Seed of every random order and simulation.
    pub(crate) seed: u64,
    /// The number of tables from the command line.
    tables: Option<usize>,
    /// Where tables of long experiments are kept.
    pub(crate) keep: Option<PathBuf>,
    /// No table begins after it.
    deadline: Option<Instant>,
    program: PathBuf,
    cpus: Vec<usize>,
    /// Machine and kernel, read where they are first asked for.
    machine: OnceCell<Environment>,
    /// Was it said that another revision measured some tables?
    pub(crate) told_revision: cell::Cell<bool>,
}

impl Bench {
    pub(crate) fn new(asked: &Asked) -> Result<Self, Failure> {
        let program = std::env::current_exe()?.with_file_name("hopyard");
        if !program.is_file() {
            return Err(Failure::NoWorker {
                path: program.display().to_string(),
            });
        }
        // The controller's waits end when the window does, not 50 µs later.
        clock::sharp_timers()?;
        Ok(Self {
            quick: asked.quick,
            seed: asked.seed,
            tables: asked.tables,
            keep: asked.keep.clone(),
            deadline: asked.time_limit.map(|limit| Instant::now() + limit),
            program,
            cpus: cpu::current_affinity()?,
            machine: OnceCell::new(),
            told_revision: cell::Cell::default(),
        })
    }

    /// One of two values, by `--quick`.
    pub(crate) fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// The number of tables: from the command line, else one of two numbers, by `--quick`.
    pub(crate) fn tables(&self, full: usize, quick: usize) -> usize {
        self.tables.unwrap_or(self.pick(full, quick))
    }

    /// Is the time over in which tables may begin?
    pub(crate) fn is_over(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Machine and kernel that this runs on.
    pub(crate) fn machine(&self) -> Result<&Environment, Failure> {
        if let Some(known) = self.machine.get() {
            return Ok(known);
        }
        let sampler = self.sampler(0, 0)?;
        Ok(self
            .machine
            .get_or_init(|| environment::capture(&sampler.meter)))
    }

    /// A sampler whose workers are the product's.
    pub(crate) fn sampler(&self, window_ms: u64, warm_up_ms: u64) -> Result<Sampler, Failure> {
        let mut sampler = Sampler::new(
            Duration::from_millis(window_ms),
            Duration::from_millis(warm_up_ms),
        )?;
        sampler.program.clone_from(&self.program);
        Ok(sampler)
    }

    /// Random numbers of one experiment. They do not depend on which other experiments run.
    pub(crate) fn rng(&self, experiment: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(experiment);
        rng
    }

    /// Random numbers of one table. They do not depend on which tables an earlier call kept.
    pub(crate) fn rng_of_table(&self, experiment: u64, table: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(((table + 1) << 16) | experiment);
        rng
    }

    /// The first and the last CPU this process may use.
    pub(crate) fn two_cpus(&self) -> Result<(usize, usize), Failure> {
        match self.cpus.as_slice() {
            [first, .., last] => Ok((*first, *last)),
            few => Err(Failure::Cpus {
                needed: 2,
                found: few.len(),
            }),
        }
    }
}

/// Measures a cell, and again if others disturbed the window: see [`until_calm`].
pub(crate) fn undisturbed(
    sampler: &Sampler,
    cell: &Cell,
    quiet: impl Into<QuietCores>,
    foreign: f64,
) -> Result<Measurement, Failure> {
    let quiet = quiet.into();
    let taken = until_calm(foreign, || Ok((measure(sampler, cell, quiet)?, ())))?;
    Ok(taken.0)
}

/// Repeats a measurement if others disturbed the window: they started processes, used more than 5 % of a CPU beyond the
/// `foreign` share that the experiment itself causes, or the hypervisor took more than 1 %. After a few tries the last
/// measurement is used.
pub(crate) fn until_calm<T>(
    foreign: f64,
    mut take: impl FnMut() -> Result<(Measurement, T), Failure>,
) -> Result<(Measurement, T), Failure> {
    const TRIES: usize = 6;
    let mut taken = take()?;
    for _ in 1..TRIES {
        let cpu = &taken.0.cpu;
        let share = |ns: f64| ns / cpu.elapsed_ns;
        let calm = cpu.forks == 0
            && share(cpu.foreign_ns) <= foreign + 0.05
            && share(cpu.steal_ns) <= 0.01;
        if calm {
            break;
        }
        taken = take()?;
    }
    Ok(taken)
}

/// What the idle machine uses, in CPUs: the least of several readings. Other processes that start and end within a
/// window cannot be told from the machine itself, and only add to it.
pub(crate) fn quiet_cores(sampler: &Sampler) -> Result<QuietCores, Failure> {
    const WINDOWS: usize = 5;
    let mut quietest = sampler.quiet_cores()?;
    for _ in 1..WINDOWS {
        let again = sampler.quiet_cores()?;
        if again.most < quietest.most {
            quietest = again;
        }
    }
    Ok(quietest)
}

/// Measures a cell; without path proof it is an error.
pub(crate) fn measure(
    sampler: &Sampler,
    cell: &Cell,
    quiet: impl Into<QuietCores>,
) -> Result<Measurement, Failure> {
    on_its_way(sampler.measure(cell, quiet)?)
}

/// Returns the measurement if its path proof succeeded.
pub(crate) fn on_its_way(m: Measurement) -> Result<Measurement, Failure> {
    if m.way.proved {
        Ok(m)
    } else {
        Err(Failure::Way(m.way.problems.join("; ")))
    }
}

/// The upper one of the two in the middle, where their number is even; no number if there are none.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Sleeps until an instant of `CLOCK_MONOTONIC`, and checks now and then whether the user wants to stop.
pub(crate) fn wait_until(instant_ns: u64) -> Result<(), Failure> {
    if signals::sleep_until(instant_ns)? {
        Ok(())
    } else {
        Err(Failure::Interrupted)
    }
}
