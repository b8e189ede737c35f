//! Measuring what claims need on this host: first so many blocks of every plan that they can decide anything, then more of
//! what undecided claims need.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{ClaimsArgs, budget, seed, take_back};
use crate::claims::campaign::{self, Next, Wants};
use crate::claims::kept::{self, Place};
use crate::claims::{self, Chosen, Demand, Further};
use crate::cli::Failure;
use crate::cli::progress::Progress;
use crate::run::{self, Observer};
use crate::store::End;
use crate::units::show_duration;
use crate::{profile, signals};

/// All that is to be measured, once nothing is in its way.
fn ready(args: &ClaimsArgs, place: &mut Place, demand: &Demand) -> Result<Vec<Next>, Failure> {
    if demand.plans.iter().any(|plan| plan.profile) {
        let cpus = hopyard_net::cpu::online_cpus().map_err(crate::measure::Error::from)?;
        profile::check(&cpus)?;
    }
    prepare_all(args, place, demand)
}

/// Runs on this host; returns false if the user interrupted.
pub(super) fn measure_here(
    args: &ClaimsArgs,
    chosen: &[Chosen<'_>],
    place: &mut Place,
    demand: &Demand,
) -> Result<bool, Failure> {
    let mut progress = Progress::new();
    let mut next = ready(args, place, demand).inspect_err(|_| {
        if args.resume.is_none() {
            take_back(place);
        }
    })?;
    place.keep()?;
    // What short plans leave over is there for the long ones, which decide more the longer they go on.
    next.sort_by_key(|one| one.wants.most);
    let takes: Duration = next.iter().map(|next| next.wants.most).sum();
    let limit = budget(args, place);
    progress.note(&format!(
        "{}, and {} checks some seconds each",
        said(next.len(), takes, limit, goes_on(args, place)),
        demand.deeds.len() + demand.benches.len()
    ));
    if !place.try_out(demand, &mut progress)? {
        return Ok(false);
    }
    let began = Instant::now();
    let mut wanted: Vec<Wants> = next.iter().map(|one| one.wants).collect();
    for mut one in next {
        if let Some(limit) = limit {
            let left = limit.saturating_sub(began.elapsed());
            let shares = campaign::shares(&wanted, left);
            one.limit_to(shares.first().copied().unwrap_or(left));
        }
        wanted.remove(0);
        if !carry_out(one)? {
            return Ok(false);
        }
    }
    match limit {
        // Only a new limit is a reason to look for more.
        Some(limit)
            if goes_on(args, place) && (!place.asked.is_settled || args.time_limit.is_some()) =>
        {
            measure_further(args, chosen, place, (began, limit), &mut progress)
        }
        _ => Ok(true),
    }
}

/// Whether undecided claims get more blocks in the time that is left. Without a time for all plans each plan has its own.
pub(super) fn goes_on(args: &ClaimsArgs, place: &Place) -> bool {
    let asked = &place.asked;
    budget(args, place).is_some() && !asked.quick && !asked.questions
}

/// Prepares all runs before any is made, so that mistakes and the total time are known first.
fn prepare_all(
    args: &ClaimsArgs,
    place: &mut Place,
    demand: &Demand,
) -> Result<Vec<Next>, Failure> {
    let mut next = Vec::new();
    for plan in &demand.plans {
        let directory = place.of_plan(&plan.plan.name);
        match plan.prepare(directory, seed(args, place), args.time_limit) {
            Ok(prepared) => next.extend(prepared),
            Err(kept::Error::Run(run::Error::Nothing(why))) => {
                place.asked.not_run.insert(plan.plan.name.clone(), why);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(next)
}

/// How long so many plans take, and what becomes of the rest of a limit.
fn said(plans: usize, takes: Duration, limit: Option<Duration>, goes_on: bool) -> String {
    let show = |time: Duration| show_duration(Duration::from_secs(time.as_secs()));
    let plans = format!("{plans} plans take {}", show(takes));
    match limit {
        Some(limit) if limit < takes => format!("{plans}, cut short to {}", show(limit)),
        Some(limit) if goes_on => {
            format!(
                "{plans}, claims that are undecided then {} more",
                show(limit - takes)
            )
        }
        _ => plans,
    }
}

/// Gives claims that are undecided more blocks, one after another, the soonest decided first. False where somebody
/// interrupted. An error ends it, and the claims are judged by what was measured.
fn measure_further(
    args: &ClaimsArgs,
    chosen: &[Chosen<'_>],
    place: &mut Place,
    (began, limit): (Instant, Duration),
    progress: &mut Progress,
) -> Result<bool, Failure> {
    let mut spent: HashMap<String, Duration> = HashMap::new();
    loop {
        let left = limit.saturating_sub(began.elapsed());
        let had = place.further()?;
        let times = |one: &&Chosen<'_>| had.iter().filter(|id| **id == one.claim.id).count();
        let open = chosen.iter().filter(|one| times(one) < claims::MOST_TIMES);
        let open: Vec<Chosen<'_>> = open.copied().collect();
        let evidence = place.evidence()?;
        let of = |claim: &str| spent.get(claim).copied().unwrap_or_default();
        let next =
            claims::further(&open, &evidence, left, &of).map_err(|e| Failure::internal(&e))?;
        let Some(mut next) = next else {
            place.asked.is_settled = true;
            place.keep()?;
            return Ok(true);
        };
        progress.note(&format!(
            "{} is undecided: {} blocks more of {} cells; some {} may decide it",
            next.claim,
            next.demand.plan.blocks.max,
            next.demand.plan.parts.len(),
            show_duration(Duration::from_secs(next.takes.as_secs()))
        ));
        next.demand.plan.keep_awake = place.asked.keep_awake;
        // Each has random orders of its own.
        let seed = seed(args, place).wrapping_add(had.len() as u64 + 1);
        let directory = place.of_further(had.len(), &next.claim);
        let begins = Instant::now();
        match measure_more(directory, seed, left, &next) {
            Ok(true) => *spent.entry(next.claim).or_default() += begins.elapsed(),
            Ok(false) => return Ok(false),
            Err(_) if signals::interrupted() => return Ok(false),
            Err(error) => {
                progress.note(&format!("no further blocks: {}", crate::chain(&error)));
                return Ok(true);
            }
        }
    }
}

fn measure_more(
    directory: PathBuf,
    seed: u64,
    left: Duration,
    further: &Further,
) -> Result<bool, kept::Error> {
    let Some(mut next) = further.demand.prepare(directory, seed, None)? else {
        return Ok(true);
    };
    next.limit_to(left);
    carry_out(next).map_err(kept::Error::from)
}

/// Makes a run; false where somebody interrupted.
fn carry_out(next: Next) -> Result<bool, run::Error> {
    let (run, failure) = next
        .prepared
        .carry_out(&next.directory, &mut Progress::new())?;
    match failure {
        Some(error) => Err(error),
        None => Ok(run.end != Some(End::Interrupted)),
    }
}
