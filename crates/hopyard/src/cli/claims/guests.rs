//! Claims in guests: all of them on another kernel (`--kernel`), or what this machine's kernel lacks (`--guest`).

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{ClaimsArgs, budget, seed};
use crate::claims::guest::Guest;
use crate::claims::in_guest;
use crate::claims::kept::{self, Place};
use crate::claims::{self, Chosen, Demand, PlanDemand};
use crate::cli::Failure;
use crate::cli::guest::cut_short;
use crate::cli::progress::Progress;
use crate::guest::{self, Kernel, fetch};
use crate::run::guest::{Host, protocol::Order};
use crate::run::{self, Observer};
use crate::store::End;

/// The word for the newest kernel that was fetched before, or the newest that there is to fetch.
const AUTO: &str = "auto";

/// Tries and measures it in a guest of this kernel, if there is one. False where somebody interrupted.
pub(super) fn measure_beside(
    args: &ClaimsArgs,
    kernel: Option<Kernel>,
    chosen: &[Chosen<'_>],
    place: &mut Place,
) -> Result<bool, Failure> {
    let Some(kernel) = kernel else {
        return Ok(true);
    };
    if place.asked.guest.is_some() {
        return Ok(true);
    }
    let emulated = !claims::has_kvm();
    let demand_of = |emulated| {
        in_guest::demand_of_guest(chosen, &place.asked.done, place.asked.quick, emulated)
            .map_err(|e| Failure::internal(&e))
    };
    let demand = demand_of(emulated)?;
    let mut progress = Progress::new();
    if demand.plans.is_empty() && demand.deeds.is_empty() {
        progress.note("no guest: this kernel has all that these claims can be tested by in one");
        return Ok(true);
    }
    let cpus = hopyard_net::cpu::current_affinity().map_err(crate::measure::Error::from)?;
    let host = Host::new(kernel, "", None, cpus.len())?;
    let names: Vec<String> = demand.deeds.iter().cloned().collect();
    let tried = run::guest::try_out(&names, &host, &mut progress)?;
    // A KVM that is there may boot no guest: then the plans are those of an emulated one.
    let demand = match tried.emulated && !emulated {
        true => demand_of(true)?,
        false => demand,
    };
    let mut said = Guest {
        release: tried.release,
        emulated: tried.emulated,
        ..Guest::default()
    };
    said.add(tried.deeds);
    let (limit, began) = (budget(args, place), Instant::now());
    for (plans_left, plan) in (1..=demand.plans.len()).rev().zip(&demand.plans) {
        let plan = &within(limit, began, plans_left, plan);
        let name = &plan.plan.name;
        let directory = place.of_plan_in_guest(name);
        // One that was cut short begins anew: the guest that had it is gone.
        if directory.exists() {
            std::fs::remove_dir_all(&directory).map_err(|source| kept::Error::Write {
                file: directory.clone(),
                source,
            })?;
        }
        match run_in_guest(args, place, plan, &host, directory)? {
            Ran::Done => {}
            Ran::Interrupted => return Ok(false),
            Ran::Lacks(what) => {
                said.not_run.insert(name.clone(), what);
            }
        }
    }
    place.asked.guest = Some(said);
    place.keep()?;
    Ok(true)
}

/// What became of a plan in a guest.
enum Ran {
    Done,
    Interrupted,
    /// The guest lacks something: that is an answer.
    Lacks(String),
}

/// Runs a plan in a guest of its own.
fn run_in_guest(
    args: &ClaimsArgs,
    place: &Place,
    demand: &PlanDemand,
    host: &Host,
    directory: PathBuf,
) -> Result<Ran, Failure> {
    let order = Order {
        plan: demand.plan.clone(),
        seed: seed(args, place),
        profile: demand.profile,
        left_out: Some(demand.left_out.clone()),
    };
    match run::guest::carry_out(&order, host, |_| directory, &mut Progress::new()) {
        Ok(carried) => match &carried.failure {
            Some(error) => Err(cut_short(error)),
            None if carried.run.end == Some(End::Interrupted) => Ok(Ran::Interrupted),
            None => Ok(Ran::Done),
        },
        Err(run::guest::Error::Guest(guest::Error::Refused {
            message,
            request: true,
        })) => Ok(Ran::Lacks(message)),
        Err(error) => Err(error.into()),
    }
}

/// A kernel of that series that was fetched before, else it is fetched now.
pub(super) fn kernel(wanted: &str) -> Result<Kernel, Failure> {
    let home = fetch::home();
    let is_it = |image: &std::path::PathBuf| {
        let name = image.file_name().unwrap_or_default().to_string_lossy();
        let release = name.trim_start_matches("vmlinuz-");
        let rest = release.strip_prefix(wanted);
        wanted == AUTO || rest.is_some_and(|rest| rest.starts_with(['.', '-', '+']))
    };
    match fetch::fetched(&home).iter().find(|image| is_it(image)) {
        Some(image) => Ok(Kernel::open(image, None)?),
        None => {
            let series = (wanted != AUTO).then_some(wanted);
            Ok(fetch::fetch(series, &home)?)
        }
    }
}

/// A plan with its share of what is left of a time, which it has with the plans after it.
fn within(
    limit: Option<Duration>,
    began: Instant,
    plans_left: usize,
    plan: &PlanDemand,
) -> PlanDemand {
    let mut plan = plan.clone();
    if let Some(limit) = limit {
        let left = limit.saturating_sub(began.elapsed());
        let share = left / u32::try_from(plans_left).unwrap_or(u32::MAX);
        let own = plan.plan.time_limit;
        plan.plan.time_limit = Some(own.map_or(share, |own| own.min(share)));
    }
    plan
}

/// Runs each plan in a guest of its own. What is no run is not tried there.
pub(super) fn measure_all(
    args: &ClaimsArgs,
    host: &Host,
    place: &mut Place,
    demand: &Demand,
) -> Result<bool, Failure> {
    place.leave_out(demand, "only plans are run in a guest of another kernel");
    place.keep()?;
    let limit = budget(args, place);
    let began = Instant::now();
    for (plans_left, plan) in (1..=demand.plans.len()).rev().zip(&demand.plans) {
        let plan = within(limit, began, plans_left, plan);
        let name = plan.plan.name.clone();
        let directory = place.of_plan(&name);
        match run_in_guest(args, place, &plan, host, directory)? {
            Ran::Done => {}
            Ran::Interrupted => return Ok(false),
            Ran::Lacks(what) => {
                place.asked.not_run.insert(name, what);
                place.keep()?;
            }
        }
    }
    Ok(true)
}
