//! The orchestrator: executes a plan, block by block, and stores the samples.

mod blocks;
mod environment;
mod estimate;
mod groups;
pub mod guest;
mod resume;
mod survey;
mod tried;

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

pub use resume::{check_machine, guest_kernel_again, options_again, quoted, resume, this_machine};

use crate::assess::{self, SoFar};
use crate::lab::{self, Endpoints};
use crate::measure::{self, Sampler};
use crate::model::stored::left_out_in_words;
use crate::model::{
    Blocks, Cell, ProfileWindow, Sample, Settings, SettingsReport, SwitchedBetween,
};
use crate::plan::{self, Expanded, Plan};
use crate::settings::Host;
use crate::signals;
use crate::store::{self, End, Header, PlannedCell, Record, Run, Writer};
use crate::units::ns;

pub use survey::survey_offloads;
use tried::{LoopKey, TrialKey, ceilings, try_labs};

/// What can end a run before it begins, or early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan cannot run here.
    #[error(transparent)]
    Plan(#[from] plan::ExpandError),
    /// None of its cells can be built.
    #[error("nothing to measure: {0}")]
    Nothing(String),
    /// Nothing can be compared with the given base.
    #[error("cannot compare with `{base}`: {why}")]
    Base {
        base: String,
        /// Why not, and what to do.
        why: String,
    },
    /// The gate could decide nothing.
    #[error("{0}")]
    Gate(String),
    /// The run cannot be continued.
    #[error("cannot resume {run}: {why}")]
    Resume {
        /// The run's directory.
        run: String,
        /// Why not, and what to do.
        why: String,
    },
    /// The run directory cannot be used.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Measuring failed.
    #[error(transparent)]
    Measure(#[from] measure::Error),
}

impl Error {
    /// Whether this host cannot do what was asked, as opposed to a malfunction.
    #[must_use]
    pub fn is_request(&self) -> bool {
        match self {
            Self::Plan(_)
            | Self::Nothing(_)
            | Self::Base { .. }
            | Self::Gate(_)
            | Self::Resume { .. }
            | Self::Store(_) => true,
            Self::Measure(error) => error.is_request(),
        }
    }
}

/// Receives the progress of a run.
pub trait Observer {
    /// The plan is known, with its number of cells and the approximate duration of a block.
    fn planned(&mut self, _cells: usize, _blocks: Blocks, _block: Duration) {}
    /// How long measuring may take, if there is a limit.
    fn limited(&mut self, _limit: Duration) {}
    /// This many blocks are done, and nothing is being measured. `so_far` computes the comparisons so far.
    fn compared(&mut self, _blocks: u32, _header: &Header, _so_far: &dyn Fn() -> Vec<SoFar>) {}
    /// A sample begins.
    fn measuring(&mut self, _block: u32, _done: usize, _of: usize, _cell: &Cell) {}
    /// A sample failed.
    fn failed(&mut self, _cell: &Cell, _cause: &str) {}
    /// A note for the user.
    fn note(&mut self, _text: &str) {}
    /// The last sample is stored.
    fn finished(&mut self) {}
}

/// A run that is ready to start: checked, with its header.
#[derive(Debug)]
pub struct Prepared {
    sampler: Sampler,
    /// The groups of cells that are visited together.
    groups: Vec<groups::Group>,
    /// The header to be stored.
    pub header: Header,
    /// What is stored already, for a continued run.
    before: Option<resume::Before>,
    /// The host, if settings are compared. Dropping it restores the host.
    host: RefCell<Option<Host>>,
}

/// A random seed.
#[must_use]
pub fn any_seed() -> u64 {
    let now = jiff::Timestamp::now().as_nanosecond();
    // 32 bits are enough to be different, and short enough to be typed.
    (now as u64 ^ u64::from(std::process::id())) & 0xffff_ffff
}

/// Checks a plan completely on this host: names and values, every lab built once, the generator's ceiling.
///
/// # Errors
/// It cannot run; nothing is left behind.
pub fn prepare(plan: &Plan, seed: u64) -> Result<Prepared, Error> {
    let Expanded {
        cells,
        left_out,
        without,
    } = plan::expand(plan)?;
    for (path, why) in without {
        crate::note(format_args!(
            "path `{path}` {why}; its cells of that load are left out"
        ));
    }
    let base = plan::base_with_digest(plan)?;
    let mut sampler = Sampler::new(plan.window, plan.warm_up)?;
    sampler.profile_window = plan.profile_window;
    sampler.endpoints.clone_from(&plan.endpoints);
    if plan.keep_awake {
        sampler.meter.keep_awake().map_err(measure::Error::Awake)?;
    }
    let tried = try_labs(&sampler, &cells)?;
    let ceilings = ceilings(&sampler, &cells)?;
    let traces =
        plan::traces(cells.iter().map(|cell| &cell.axes)).map_err(plan::ExpandError::from)?;
    let cells: Vec<PlannedCell> = cells
        .into_iter()
        .map(|cell| {
            // The path between existing endpoints is not known.
            let path = lab::path(&cell.path).ok().filter(|path| path.is_built);
            PlannedCell {
                unsupported: tried.missing.get(&TrialKey::of(&cell)).cloned(),
                filter_sees: path.map(|path| path.filter_sees.contains(&cell.peer)),
                rules_instead: path
                    .filter(|path| !path.filter_sees.contains(&cell.peer))
                    .map(|path| (path.rules_instead)(cell.peer).to_owned()),
                chains: tried.chains.get(&TrialKey::of(&cell)).cloned(),
                offers: path.map(|path| path.offers(cell.peer, &cell.axes)),
                ceiling_per_s: ceilings.get(&LoopKey::of(&cell)).copied(),
                cell,
            }
        })
        .collect();
    if let Some(cause) = cells.first().and_then(|c| c.unsupported.clone())
        && cells.iter().all(|cell| cell.unsupported.is_some())
    {
        return Err(Error::Nothing(cause));
    }
    let started = jiff::Timestamp::now();
    let environment = environment::of_run(plan, &sampler)?;
    // The last trial: from here on the host must be restored.
    let mut host = plan.settings.clone().map(Host::new);
    if let Some(host) = host.as_mut().filter(|_| plan.limit_asked) {
        host.allow_all_of_the_limit();
    }
    let mut header = Header {
        schema: store::SCHEMA.to_owned(),
        id: id(&started, &plan.name),
        plan: plan.name.clone(),
        seed,
        started: started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        window_ns: ns(plan.window),
        warm_up_ns: ns(plan.warm_up),
        profile_window_ns: plan.profile_window.map(ns),
        blocks_min: plan.blocks.min,
        blocks_max: plan.blocks.max,
        half_width: plan.half_width,
        confidence: plan.confidence,
        margin: plan.margin,
        base: base.clone(),
        base_asked: plan.base_asked,
        limit_asked: plan.limit_asked,
        needs: plan.needs.clone(),
        time_limit_ns: plan.time_limit.map(ns),
        profile: false,
        decide: plan.decide,
        turn_ns: None,
        shortest_turn_ns: None,
        published: plan.published.clone(),
        offloads: None,
        settings: None,
        endpoints: plan.endpoints.as_ref().map(Endpoints::asked),
        fail_on: plan.fail_on,
        left_out,
        traces,
        cells,
        environment,
    };
    assess::check_base(&header).map_err(|why| Error::Base {
        base: plan.base.clone().unwrap_or_default(),
        why,
    })?;
    check_gate(&header)?;
    if plan.takes_turns() && sampler.has_turns() {
        groups::note_turns(&mut header);
    }
    if signals::interrupted() {
        return Err(measure::Error::Interrupted.into());
    }
    if let (Some(host), Some(commands)) = (&mut host, &plan.settings) {
        host.limit(plan.time_limit);
        // The labs that were tried are gone before a command runs.
        measure::let_netns_cleanup_end()?;
        let piloted = pilot(host, commands, header.turn_ns.is_some()).or_else(|error| {
            // A host that was not restored is the graver of the two.
            host.restore()
                .inspect_err(|_| crate::note(format_args!("{}", crate::chain(&error))))?;
            Err(error)
        });
        header.settings = Some(piloted?);
    }
    Ok(Prepared {
        sampler,
        groups: groups::of_run(&header),
        header,
        before: None,
        host: RefCell::new(host),
    })
}

/// Tries the commands of two settings, and decides when to switch.
fn pilot(
    host: &mut Host,
    commands: &Settings,
    with_turns: bool,
) -> Result<SettingsReport, measure::Error> {
    let (between, switch) = host.pilot()?;
    Ok(SettingsReport {
        commands: commands.clone(),
        switched_between: if with_turns {
            between
        } else {
            SwitchedBetween::Generations
        },
        switch_s: switch.as_secs_f64(),
    })
}

/// Checks that a gate, if there is one, can decide anything.
///
/// # Errors
/// It cannot.
pub fn check_gate(header: &Header) -> Result<(), Error> {
    assess::check_gate(header).map_err(Error::Gate)
}

/// Time and plan: the name of the directory.
fn id(started: &jiff::Timestamp, plan: &str) -> String {
    const LONGEST: usize = 50;
    let plan = plan.replace(|c: char| c == '/' || c.is_control(), "-");
    let plan: String = plan.chars().take(LONGEST).collect();
    format!("{}-{plan}", started.strftime("%Y%m%d-%H%M%S"))
}

impl Prepared {
    /// Fewest and most blocks.
    fn blocks(&self) -> Blocks {
        Blocks {
            min: self.header.blocks_min,
            max: self.header.blocks_max,
        }
    }

    fn time_limit(&self) -> Option<Duration> {
        self.header.time_limit_ns.map(Duration::from_nanos)
    }

    /// Executes the plan, and returns what was stored and what ended it early, if anything.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn carry_out(
        mut self,
        directory: &Path,
        observer: &mut dyn Observer,
    ) -> Result<(Run, Option<Error>), Error> {
        let (mut writer, mut samples, mut profiles) = match self.before.take() {
            Some(mut before) => {
                before.writer.go_on(&self.header)?;
                (before.writer, before.samples, before.profiles)
            }
            None => (
                Writer::create(directory, &self.header)?,
                Vec::new(),
                Vec::new(),
            ),
        };
        let outcome = self.measure(&mut samples, &mut profiles, &mut writer, observer);
        let restored = self.restore();
        // After restoring: a run that is killed meanwhile can be continued, which restores the host.
        let outcome = outcome.and_then(|end| {
            // One whose host was not restored is not complete: continuing it restores the host.
            if restored.is_ok() {
                writer.finish(end)?;
            }
            Ok(end)
        });
        let (end, failure) = match (outcome, restored) {
            (Ok(end), Ok(())) => (Some(end), None),
            (Ok(_), Err(error)) | (Err(error), Ok(())) => (None, Some(error)),
            (Err(error), Err(other)) => {
                observer.note(&crate::chain(&other));
                (None, Some(error))
            }
        };
        let run = Run {
            header: self.header,
            samples,
            profiles,
            end,
        };
        Ok((run, failure))
    }

    /// Restores the host, if settings were compared.
    fn restore(&self) -> Result<(), Error> {
        if self.host.borrow().as_ref().is_some_and(Host::is_to_restore) {
            // If this cannot be read, the command runs nevertheless.
            let _ = measure::let_netns_cleanup_end_to_restore();
        }
        match self.host.borrow_mut().as_mut().map(Host::restore) {
            None | Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(measure::Error::from(error).into()),
        }
    }

    /// Executes the plan; the caller stores the samples.
    ///
    /// # Errors
    /// What ended it early.
    pub(crate) fn carry_out_for(
        &self,
        record: &mut dyn Record,
        observer: &mut dyn Observer,
    ) -> Result<End, Error> {
        let end = self.measure(&mut Vec::new(), &mut Vec::new(), record, observer)?;
        record.finish(end)?;
        Ok(end)
    }

    fn measure(
        &self,
        samples: &mut Vec<Sample>,
        profiles: &mut Vec<ProfileWindow>,
        record: &mut dyn Record,
        observer: &mut dyn Observer,
    ) -> Result<End, Error> {
        if let Some(left_out) = left_out_in_words(&self.header.left_out) {
            observer.note(&left_out);
        }
        let block = self.block_estimate();
        observer.planned(self.header.cells.len(), self.blocks(), block);
        if let Some(limit) = self.time_limit() {
            observer.limited(limit);
        }
        if let Some(host) = &mut *self.host.borrow_mut() {
            host.limit(self.time_limit());
        }
        self.warn_of_the_limit(samples, observer);
        let outcome = blocks::Blocks::new(self, samples, profiles).run(record, observer);
        observer.finished();
        outcome
    }
}
