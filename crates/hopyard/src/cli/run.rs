//! `hopyard run`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hopyard_net::cpu;

use super::args::RunArgs;
use super::progress::Progress;
use super::{Done, Failure, guest, print};
use crate::assess::assess;
use crate::guest::choose_kernel;
use crate::model::CellStatus;
use crate::plan::{self, Paths, Plan};
use crate::report::{Format, render};
use crate::store::{self, End, Run};
use crate::{profile, run, signals};

/// Where runs go by themselves.
const RUNS: &str = "hopyard-runs";

pub(super) fn run(args: &RunArgs) -> Done {
    signals::listen().map_err(|e| Failure::internal(&e))?;
    if let Some(kernel) = &args.guest.guest_kernel {
        choose_kernel(kernel)?;
    }
    let mut progress = Progress::new();
    let (run, directory, failure) = match &args.guest.kernel {
        Some(kernel) => {
            check_place(args)?;
            let carried = guest::carry_out(args, kernel, &mut progress)?;
            let failure = carried.failure.as_ref().map(guest::cut_short);
            (carried.run, carried.directory, failure)
        }
        None => {
            let (prepared, directory) = match &args.resume {
                Some(directory) => resumed(args, directory)?,
                None => begun(args)?,
            };
            let (run, failure) = prepared.carry_out(&directory, &mut progress)?;
            (run, directory, failure.map(Failure::from))
        }
    };
    // What was measured until then is shown before the reason why it ended.
    let status = if failure.is_none() || !run.samples.is_empty() {
        show(&run, args, &directory)?
    } else {
        ExitCode::SUCCESS
    };
    match failure {
        Some(failure) => Err(failure),
        None if run.end == Some(End::Interrupted) => Ok(ExitCode::from(signals::INTERRUPTED)),
        None => Ok(status),
    }
}

/// A new run, and where it goes.
fn begun(args: &RunArgs) -> Result<(run::Prepared, PathBuf), Failure> {
    let plan = planned(args)?;
    check_place(args)?;
    if args.profile {
        can_profile()?;
    }
    let mut prepared = run::prepare(&plan, args.seed.unwrap_or_else(run::any_seed))?;
    prepared.header.profile = args.profile;
    let directory = destination(args, &prepared.header.id);
    Ok((prepared, directory))
}

/// Can the run be written where it is to go?
fn check_place(args: &RunArgs) -> Result<(), Failure> {
    match &args.out {
        Some(out) => store::check_place(out)?,
        None => store::check_writable(RUNS.as_ref())?,
    }
    Ok(())
}

/// Where a run goes.
pub(super) fn destination(args: &RunArgs, id: &str) -> PathBuf {
    args.out.clone().unwrap_or_else(|| unused(id))
}

/// A run that goes on where it is.
fn resumed(args: &RunArgs, directory: &Path) -> Result<(run::Prepared, PathBuf), Failure> {
    let prepared = run::resume(directory, args.time_limit)?;
    if prepared.header.profile {
        can_profile()?;
    }
    Ok((prepared, directory.to_owned()))
}

fn can_profile() -> Result<(), Failure> {
    let cpus = cpu::online_cpus().map_err(crate::measure::Error::from)?;
    Ok(profile::check(&cpus)?)
}

/// The plan with what the command line changes of it.
pub(super) fn planned(args: &RunArgs) -> Result<Plan, Failure> {
    let mut plan = plan::find(&args.plan)?;
    for part in &mut plan.parts {
        if let Some(names) = &args.paths {
            part.paths = Paths::from_names(names);
        }
        if let Some(peers) = &args.peer {
            part.peers.clone_from(peers);
        }
        if let Some(loads) = &args.loads {
            part.loads.clone_from(loads);
        }
        for (axis, values) in &args.set {
            part.set(axis, values);
        }
    }
    if args.quick {
        plan.hurry();
    }
    plan.window = args.window.unwrap_or(plan.window);
    plan.blocks = args.blocks.unwrap_or(plan.blocks);
    plan.half_width = args.half_width.unwrap_or(plan.half_width);
    plan.confidence = args.confidence.unwrap_or(plan.confidence);
    plan.base = args.base.clone().or(plan.base);
    plan.time_limit = args.time_limit.or(plan.time_limit);
    Ok(plan)
}

/// A directory of the run's name; of two runs in one second the later gets a number.
fn unused(id: &str) -> PathBuf {
    let home = PathBuf::from(RUNS);
    let mut directory = home.join(id);
    let mut number = 2;
    while directory.exists() {
        directory = home.join(format!("{id}-{number}"));
        number += 1;
    }
    directory
}

fn show(run: &Run, args: &RunArgs, directory: &Path) -> Done {
    let report = assess(run);
    let format = if args.json {
        Format::Json
    } else {
        Format::Text
    };
    print(&render(&report, format))?;
    crate::note(format_args!(
        "the run is in {0}; `hopyard report {0}` prints it again{1}",
        directory.display(),
        match run.end {
            Some(End::Complete) => String::new(),
            // Its machine is gone.
            _ if args.guest.kernel.is_some() => String::new(),
            _ => format!(
                ", `hopyard run --resume {}` goes on with it",
                directory.display()
            ),
        }
    ));
    if !run.profiles.is_empty() {
        crate::note(format_args!(
            "`hopyard report {} --flame DIR` draws flame graphs of the profiles",
            directory.display()
        ));
    }
    let failed = report
        .cells
        .iter()
        .any(|cell| cell.status == CellStatus::Failed);
    Ok(ExitCode::from(u8::from(failed)))
}
