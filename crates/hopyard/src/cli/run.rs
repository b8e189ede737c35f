//! `hopyard run`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hopyard_net::cpu;

use super::args::{Need, RunArgs};
use super::guest::cut_short;
use super::named;
use super::progress::Progress;
use super::report::for_stdout;
use super::rootless;
use super::{Done, Failure, by_gate, deliver};
use crate::assess::assess;
use crate::guest;
use crate::model::{Blocks, CellStatus, Ruleset, Settings};
use crate::plan::{self, Part, Paths, Plan};
use crate::report::{JSON, TEXT};
use crate::run::guest::Host;
use crate::run::guest::protocol::Order;
use crate::run::{Prepared, options_again};
use crate::store::{self, End, Header, Run};
use crate::{profile, run, signals};

/// Default directory of runs.
const RUNS: &str = "hopyard-runs";

pub(super) fn run(args: &RunArgs) -> Done {
    signals::listen().map_err(|e| Failure::internal(&e))?;
    told(measured(args)?, args.json)
}

/// The result of a run, here or in a guest.
pub(super) struct Measured {
    pub(super) run: Run,
    /// What ended it early, if anything.
    pub(super) failure: Option<Failure>,
    directory: PathBuf,
    /// Whether it can be continued. The machine of a guest is gone.
    resumable: bool,
}

/// Measures what was asked for.
pub(super) fn measured(args: &RunArgs) -> Result<Measured, Failure> {
    if let Some(kernel) = &args.guest.guest_kernel {
        guest::choose_kernel(kernel)?;
    }
    if let Some(host) = args.guest.host()? {
        return in_guest(args, &host);
    }
    let (prepared, directory) = match &args.resume {
        Some(directory) => resumed(args, directory)?,
        None => begun(args)?,
    };
    carried_out(prepared, directory)
}

fn in_guest(args: &RunArgs, host: &Host) -> Result<Measured, Failure> {
    check_out(args.out.as_deref())?;
    let plan = planned(args)?;
    named::check_peers(args)?;
    if plan.endpoints.is_some() {
        return Err(Failure::request(
            "--kernel boots a guest that reaches no endpoint of this host: leave one of the two out".to_owned(),
        ));
    }
    for (axis, is_file) in [
        ("ruleset", is_file_of_rules as fn(&str) -> bool),
        ("trace", |value| value != "sample"),
    ] {
        let reads = |part: &Part| {
            let mut set = part.set.iter();
            set.any(|(name, values)| name == axis && values.iter().any(|value| is_file(value)))
        };
        if plan.parts.iter().any(reads) {
            return Err(Failure::request(format!(
                "--kernel boots a guest that has no file of this host, so axis `{axis}` has nothing to load there: leave \
                 one of the two out"
            )));
        }
    }
    let order = Order {
        plan,
        seed: args.seed.unwrap_or_else(run::any_seed),
        profile: args.profile,
        left_out: None,
    };
    let place = |header: &Header| destination(args.out.as_deref(), &header.id);
    let carried = run::guest::carry_out(&order, host, place, &mut Progress::new())?;
    Ok(Measured {
        failure: carried.failure.as_ref().map(cut_short),
        run: carried.run,
        directory: carried.directory,
        resumable: false,
    })
}

fn is_file_of_rules(value: &str) -> bool {
    matches!(value.parse(), Ok(Ruleset::File { .. }))
}

/// Checks that a run can be stored there.
pub(super) fn check_out(out: Option<&Path>) -> Result<(), store::Error> {
    match out {
        Some(out) => store::check_place(out),
        None => store::check_writable(RUNS.as_ref()),
    }
}

/// The directory for a run with this id.
pub(super) fn destination(out: Option<&Path>, id: &str) -> PathBuf {
    out.map_or_else(|| unused(id), Path::to_owned)
}

/// Measures, and prints the result.
pub(super) fn carry_out(prepared: Prepared, directory: &Path, json: bool) -> Done {
    told(carried_out(prepared, directory.to_owned())?, json)
}

fn carried_out(prepared: Prepared, directory: PathBuf) -> Result<Measured, Failure> {
    let (run, failure) = prepared.carry_out(&directory, &mut Progress::new())?;
    Ok(Measured {
        run,
        failure: failure.map(Failure::from),
        directory,
        resumable: true,
    })
}

/// Prints a run; if it ended early, what was measured first, and then the reason.
fn told(measured: Measured, json: bool) -> Done {
    let Measured {
        run,
        failure,
        directory,
        resumable,
    } = measured;
    let shown = if failure.is_none() || !run.samples.is_empty() {
        show(&run, &directory, json, resumable)
    } else {
        Ok(ExitCode::SUCCESS)
    };
    match (failure, shown) {
        // A host that is not restored matters more than a result that nobody can read.
        (Some(failure), Err(unshown)) => {
            crate::note(format_args!("{}", unshown.message));
            Err(failure)
        }
        (Some(failure), Ok(_)) => Err(failure),
        (None, Ok(_)) if run.end == Some(End::Interrupted) => {
            Ok(ExitCode::from(signals::INTERRUPTED))
        }
        (None, shown) => shown,
    }
}

/// A new run, and its directory.
fn begun(args: &RunArgs) -> Result<(Prepared, PathBuf), Failure> {
    let plan = planned(args)?;
    check_out(args.out.as_deref())?;
    if args.profile {
        can_profile()?;
    }
    // Existing endpoints are reached from here, and a setting of this host has no effect in a namespace.
    if plan.endpoints.is_none() && args.a.is_none() {
        rootless::enter()?;
    }
    named::check_cells(args, &plan)?;
    let mut prepared = run::prepare(&plan, args.seed.unwrap_or_else(run::any_seed))?;
    if args.warm_up.is_some() && prepared.header.turn_ns.is_some() {
        crate::note(format_args!(
            "cells that take turns have some ms of traffic before each turn, whatever --warm-up says: --turns off measures them one after another"
        ));
    }
    prepared.header.profile = args.profile;
    let directory = destination(args.out.as_deref(), &prepared.header.id);
    Ok((prepared, directory))
}

/// A run that is continued in its directory.
fn resumed(args: &RunArgs, directory: &Path) -> Result<(Prepared, PathBuf), Failure> {
    let needs = Need::all(&args.need).map_err(Failure::request)?;
    let endpoints = args.endpoints.endpoints(None)?;
    if endpoints.is_none() && args.a.is_none() {
        rootless::enter()?;
    }
    let mut prepared = run::resume(
        directory,
        args.time_limit,
        settings(args).as_ref(),
        endpoints.as_ref(),
    )?;
    if let Some(loss) = args.fail_on {
        prepared.header.fail_on = Some(loss);
        run::check_gate(&prepared.header)?;
    }
    if let Some(needs) = needs {
        prepared.header.needs = needs;
    }
    if prepared.header.profile {
        can_profile()?;
    }
    Ok((prepared, directory.to_owned()))
}

fn can_profile() -> Result<(), Failure> {
    let cpus = cpu::online_cpus().map_err(crate::measure::Error::from)?;
    Ok(profile::check(&cpus)?)
}

/// The commands of two settings.
fn settings(args: &RunArgs) -> Option<Settings> {
    Some(Settings {
        a: args.a.clone()?,
        b: args.b.clone()?,
        restore: args.restore.clone(),
    })
}

/// The plan with changes from the command line.
pub(super) fn planned(args: &RunArgs) -> Result<Plan, Failure> {
    let mut plan = plan::find(&args.plan)?;
    // A path named on the command line must exist.
    plan.where_installed &= args.paths.is_none();
    plan.where_installed |= args.where_installed;
    plan.keep_awake = args.keep_awake;
    let set = named::axes(args)?;
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
        for (axis, values) in &set {
            part.set(axis, values);
        }
        if let Some(search) = args.search {
            part.set("search", &[search.to_string()]);
        }
        if !args.ruleset.is_empty() {
            part.set("ruleset", &args.ruleset);
        }
    }
    let searches = |part: &Part| part.set.iter().any(|(axis, _)| axis == "search");
    if args.profile && plan.parts.iter().any(searches) {
        return Err(Failure::request(
            "--profile cannot be combined with a search, because a profile is taken at one rate: search first, \
             then set the rate that was found with --set pace=…"
                .to_owned(),
        ));
    }
    let has_range = plan.blocks.min < plan.blocks.max;
    if args.quick {
        plan.apply_quick_preset();
    }
    plan.window = args.window.unwrap_or(plan.window);
    plan.warm_up = args.warm_up.unwrap_or(plan.warm_up);
    if let Some(difference) = args.decide {
        plan.decide_at(difference);
    } else if args.time_limit.is_some() && args.blocks.is_none() && has_range {
        // The whole given time may be used. A plan of a fixed number of blocks means that number.
        plan.blocks.max = Blocks::MOST;
    }
    plan.turns = args.turns.unwrap_or(plan.turns);
    if args.turns == Some(true) && !plan.takes_turns() {
        return Err(Failure::request(format!(
            "--turns on: each turn needs traffic before its window, and {} has none: leave out --turns on, or give --warm-up a time",
            if args.warm_up.is_some() {
                "--warm-up 0s".to_owned()
            } else {
                format!("plan {} (`warm_up = \"0s\"`)", plan.name)
            }
        )));
    }
    plan.blocks = args.blocks.unwrap_or(plan.blocks);
    if args.decide.is_some() && args.blocks.is_some_and(|blocks| blocks.min == blocks.max) {
        return Err(Failure::request(
            "--decide goes on until differences are seen, and --blocks gives a fixed number: leave one of them out, or give a \
             range, as --blocks 8..100"
                .to_owned(),
        ));
    }
    plan.half_width = args.half_width.unwrap_or(plan.half_width);
    plan.confidence = args.confidence.unwrap_or(plan.confidence);
    if let Some(base) = &args.base {
        plan.base = Some(base.clone());
        plan.base_asked = true;
    }
    if let Some(settings) = settings(args) {
        if args.sets(Plan::SETTING) {
            return Err(Failure::request(format!(
                "--set {}: --a and --b change this axis already, leave it out",
                Plan::SETTING
            )));
        }
        plan.compare_settings(settings);
    }
    args.endpoints.apply(&mut plan, args)?;
    if args.keep_awake && plan.endpoints.is_some() {
        return Err(Failure::request(format!(
            "--keep-awake keeps this machine's CPUs awake, and plan {} measures between endpoints that are reached by commands: leave it out",
            plan.name
        )));
    }
    plan.fail_on = args.fail_on;
    plan.needs = Need::all(&args.need)
        .map_err(Failure::request)?
        .unwrap_or_default();
    plan.time_limit = args.time_limit.or(plan.time_limit);
    plan.limit_asked = args.time_limit.is_some();
    Ok(plan)
}

/// A directory with the run's name; the later of two runs in one second gets a number.
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

fn show(run: &Run, directory: &Path, json: bool, resumable: bool) -> Done {
    let report = assess(run);
    let format = if json { &JSON } else { &TEXT };
    deliver(&for_stdout(format, &report, &[])?, None)?;
    let named = directory.to_string_lossy();
    let named = run::quoted(&named);
    crate::note(format_args!(
        "the run is in {}; `hopyard report {named} --format html -o report.html` makes a page of it{}",
        directory.display(),
        match run.end {
            Some(End::Complete) => String::new(),
            _ if !resumable => String::new(),
            _ => format!(
                ", `hopyard run --resume {named}{}` continues it",
                options_again(&run.header)
            ),
        }
    ));
    if !run.profiles.is_empty() {
        crate::note(format_args!(
            "`hopyard report {named} --flame DIR` draws flame graphs of the profiles"
        ));
    }
    // Figures of another way than the path are no figures of the path. Where nothing was built, others may use the devices too.
    let is_found = |name: &str| hopyard_lab::path(name).is_ok_and(|path| !path.is_built);
    let failed = report.cells.iter().any(|cell| match cell.status {
        // The gate, if there is one, counts cells that had no turn before the end.
        CellStatus::Failed => cell.failed_samples > 0 || report.gate.is_none(),
        CellStatus::Ok => !cell.way.problems.is_empty() && !is_found(&cell.path),
        CellStatus::Unsupported => false,
    });
    Ok(if failed {
        ExitCode::from(1)
    } else {
        by_gate(report.gate.as_ref())
    })
}

#[cfg(test)]
mod tests {
    use super::is_file_of_rules;

    /// Rules that come with hopyard come into a guest with it.
    #[test]
    fn rules_of_a_file_are_told_from_those_that_come_along() {
        assert!(!is_file_of_rules("none") && !is_file_of_rules("sample:bridge"));
        assert!(is_file_of_rules("mine.nft"));
    }
}
