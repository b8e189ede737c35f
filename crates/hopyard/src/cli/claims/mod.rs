//! `hopyard claims`.

mod guests;
mod lacks;
mod measure;
mod show;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
pub(super) use lacks::doctor;
pub(super) use show::list;

use crate::claims::kept::{self, Asked, Place, evidence_from};
use crate::claims::{self, Chosen, Evidence, Judge, Report};
use crate::cli::guest::GuestArgs;
use crate::cli::run::{check_out, destination};
use crate::cli::{Done, Failure, args, deliver, rootless};
use crate::guest;
use crate::model::ClaimsReport;
use crate::report::claims::Detail;
use crate::run;
use crate::signals;

/// Time for the plans of a first look; functional checks and benches need part of the ten minutes too.
const QUICK: Duration = Duration::from_secs(520);
/// What the plans of all claims take at most, so that all is known within an hour.
const ALL: Duration = Duration::from_secs(55 * 60);

#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_precedence_over_arg = true,
    after_help = "\
Examples:
  hopyard claims --quick                           # a first look at every claim that can be tested here, in 10 minutes
  hopyard claims list                              # all claims
  hopyard claims show NS1                          # one claim: its rule, what was published, what it needs
  hopyard claims NM1 NM2                           # two of them, thoroughly
  hopyard claims namespace-switching-2014          # all of one report
  hopyard claims --from hopyard-runs/…             # judge a run that was measured before
  hopyard claims --questions --from hopyard-runs/… what it says to the questions that the reports left open
  hopyard claims --resume hopyard-runs/…-claims    # continue claims that were interrupted
  hopyard claims NS3 NS7 MQ12 --guest auto         # what this kernel lacks, in a guest of another
  hopyard claims NS3 $(hopyard kernel fetch 6.1)   # all of it on another kernel, in a guest

A verdict is no error: the exit status is 0 when claims were judged. docs/claims.md has more."
)]
pub(super) struct ClaimsArgs {
    #[command(subcommand)]
    command: Option<ClaimsCommand>,
    /// Claims by id, or reports by name (default: all)
    #[arg(value_name = "ID|REPORT")]
    names: Vec<String>,
    /// Answer the questions that the reports left open instead of judging their claims
    #[arg(long, conflicts_with = "resume")]
    questions: bool,
    /// A first look: short windows, 8 blocks, fewer values of each axis
    #[arg(long)]
    quick: bool,
    /// Judge an existing run or directory of claims, without measuring
    #[arg(long, value_name = "DIR", conflicts_with_all = ["quick", "resume", "out", "seed", "kernel", "time_limit"])]
    from: Vec<PathBuf>,
    /// Continue claims that were interrupted
    #[arg(long, value_name = "DIR", conflicts_with_all = ["names", "quick", "out", "kernel"])]
    resume: Option<PathBuf>,
    /// Measure all plans no longer than this together: first the fewest blocks of each that decide anything, then more for claims that
    /// are undecided (default: of all claims 55m, of named ones each plan its own time limit)
    #[arg(long, value_name = "TIME", value_parser = crate::plan::time_limit)]
    time_limit: Option<Duration>,
    /// Seed of every random order (default: random, and recorded)
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Keep CPUs from halting while plans are measured: on virtual machines this avoids the steal of wake-ups. Figures are those of a machine
    /// whose CPUs do not sleep
    #[arg(long, conflicts_with_all = ["from", "resume", "beside"])]
    keep_awake: bool,
    /// Directory for the runs (default: hopyard-runs/TIME-claims)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Show every point that a rule covers, not only the one that decides
    #[arg(long)]
    points: bool,
    /// Show each claim in a sentence, or with --format markdown in one row: what was published, what was measured here, the verdict
    #[arg(long, conflicts_with = "points")]
    brief: bool,
    /// How to print it
    #[arg(long, default_value = "text", value_parser = args::format(|export| export.claims))]
    format: fn(&ClaimsReport, Detail) -> String,
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Try what this kernel lacks (Open vSwitch, vhost-net, …) in a guest of a kernel that is fetched: `auto`, or a series as 6.1
    #[arg(long = "guest", value_name = "auto|SERIES", conflicts_with_all = ["kernel", "from"])]
    beside: Option<String>,
    #[command(flatten)]
    guest: GuestArgs,
    #[command(flatten)]
    cable: CableArgs,
}

/// Claims are not measured over a cable; these are there to say what to do instead.
#[derive(Debug, ClapArgs)]
struct CableArgs {
    #[arg(long, value_name = "CARD", hide = true)]
    uplink: Option<String>,
    #[arg(long, value_name = "PREFIX", hide = true)]
    far: Option<String>,
    #[arg(long, value_name = "CARD", hide = true)]
    far_uplink: Option<String>,
}

impl CableArgs {
    fn check(&self) -> Result<(), Failure> {
        let given = [&self.uplink, &self.far, &self.far_uplink];
        if given.into_iter().all(Option::is_none) {
            return Ok(());
        }
        Err(Failure::request(
            "claims are measured on this host alone: measure a plan over the cable, and judge that run: `hopyard run \
             netns-macvlan-2007 --uplink CARD --far PREFIX` (or netback-direct-2006), then `hopyard claims --from DIR` \
             (docs/uplink.md)"
                .to_owned(),
        ))
    }
}

#[derive(Debug, Subcommand)]
enum ClaimsCommand {
    /// List all claims
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Say what a claim is, how it is judged, and what that needs
    Show {
        /// Claims and open questions by id, or reports by name
        #[arg(required = true, value_name = "ID|REPORT")]
        names: Vec<String>,
    },
}

impl From<kept::Error> for Failure {
    fn from(error: kept::Error) -> Self {
        match error {
            kept::Error::Run(error) => error.into(),
            error => Self::asked(&error),
        }
    }
}

pub(super) fn claims(args: &ClaimsArgs) -> Done {
    args.cable.check()?;
    match &args.command {
        Some(ClaimsCommand::List { json }) => show::list(*json),
        Some(ClaimsCommand::Show { names }) => show::show(names),
        None if args.from.is_empty() => check(args),
        None => judge_from(args),
    }
}

/// The built-in claims; a test checks that they are valid.
fn reports() -> Result<&'static [Report], Failure> {
    claims::reports().map_err(|error| Failure::internal(error))
}

/// Judges the contents of directories.
fn judge_from(args: &ClaimsArgs) -> Done {
    let reports = reports()?;
    let evidence = evidence_from(&args.from)?;
    if args.questions {
        let chosen = claims::choose_questions(reports, &args.names)?;
        return tell(args, &chosen, &evidence, true);
    }
    let mut chosen = claims::choose(reports, &args.names)?;
    if args.names.is_empty() {
        let mut asked = Vec::new();
        for names in &evidence.asked {
            let of_one = claims::choose(reports, names)?;
            asked.extend(of_one.iter().map(|one| &one.claim.id));
        }
        chosen.retain(|one| asked.contains(&&one.claim.id) || is_about(*one, &evidence));
    }
    if chosen.is_empty() {
        let plans: Vec<&str> = evidence
            .runs
            .iter()
            .map(|run| run.header.plan.as_str())
            .collect();
        return Err(Failure::request(format!(
            "no claim is judged by a run of plan {}: `hopyard claims show ID` names the plan of a claim",
            plans.join(", ")
        )));
    }
    tell(args, &chosen, &evidence, false)
}

/// Whether the evidence says anything about a claim.
fn is_about(one: Chosen<'_>, evidence: &Evidence) -> bool {
    one.claim.measured().any(|check| match &check.judge {
        Judge::Missing { .. } => false,
        Judge::Does { does } => evidence.done.contains_key(does),
        Judge::Bench { bench } => evidence.benched.contains_key(bench),
        _ => {
            let plan = one.plan_of(check);
            evidence.runs.iter().any(|run| run.header.plan == plan)
        }
    })
}

fn tell(args: &ClaimsArgs, chosen: &[Chosen<'_>], evidence: &Evidence, questions: bool) -> Done {
    let document = if questions {
        claims::answers(chosen, evidence)
    } else {
        claims::document(chosen, evidence)
    };
    let detail = match (args.brief, args.points) {
        (true, _) => Detail::Brief,
        (_, true) => Detail::Points,
        _ => Detail::Parts,
    };
    let text = (args.format)(&document, detail);
    deliver(&text, args.output.as_deref())
}

/// Claims or open questions with these names.
fn choose<'a>(
    reports: &'a [Report],
    names: &[String],
    questions: bool,
) -> Result<Vec<Chosen<'a>>, Failure> {
    Ok(if questions {
        claims::choose_questions(reports, names)?
    } else {
        claims::choose(reports, names)?
    })
}

/// Measures what claims need, and judges them.
fn check(args: &ClaimsArgs) -> Done {
    signals::listen().map_err(|e| Failure::internal(&e))?;
    if let Some(kernel) = &args.guest.guest_kernel {
        guest::choose_kernel(kernel)?;
    }
    let host = args.guest.host()?;
    if host.is_none() {
        rootless::only_with_root("`hopyard claims`")?;
    }
    // It may have to be fetched, which is not to fail after an hour.
    let fetch_kernel = || args.beside.as_deref().map(guests::kernel).transpose();
    let reports = reports()?;
    let (mut place, chosen, kernel) = match &args.resume {
        Some(directory) => {
            let place = Place::open(directory)?;
            if place.asked.in_guest {
                return Err(Failure::request(format!(
                    "{} holds claims that were measured in guests of another kernel, which cannot be resumed: \
                     start again with --kernel and another --out",
                    directory.display()
                )));
            }
            let chosen = choose(reports, &place.asked.names, place.asked.questions)?;
            let has_guest = place.asked.guest.is_some();
            let kernel = if has_guest { None } else { fetch_kernel()? };
            (place, chosen, kernel)
        }
        None => {
            let chosen = choose(reports, &args.names, args.questions)?;
            check_out(args.out.as_deref())?;
            let kernel = fetch_kernel()?;
            let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
            let directory = destination(args.out.as_deref(), &format!("{now}-claims"));
            let mut asked = Asked::new(&args.names, args.quick);
            asked.questions = args.questions;
            asked.time_limit = args.time_limit;
            asked.keep_awake = args.keep_awake;
            asked.seed = args.seed;
            asked.in_guest = host.is_some();
            (Place::create(&directory, asked)?, chosen, kernel)
        }
    };
    let mut demand = claims::demand(&chosen, place.asked.quick, host.is_some())
        .map_err(|e| Failure::internal(&e))?;
    let limit = args.time_limit.or(place.asked.time_limit);
    for plan in &mut demand.plans {
        plan.plan.time_limit = limit.or(plan.plan.time_limit);
        plan.plan.keep_awake = place.asked.keep_awake;
        if host.is_none() && measure::goes_on(args, &place) {
            plan.plan.blocks.max = plan.plan.blocks.min;
        }
    }
    place.asked.not_run.extend(demand.not_run.clone());
    place.keep()?;
    let (whole, failed) = match &host {
        Some(host) => match guests::measure_all(args, host, &mut place, &demand) {
            Ok(whole) => (whole, None),
            // What was measured is told nevertheless.
            Err(failure) if place.evidence().is_ok_and(|found| !found.runs.is_empty()) => {
                (false, Some(failure))
            }
            Err(failure) => {
                take_back(&place);
                return Err(failure);
            }
        },
        None if !measure::measure_here(args, &chosen, &mut place, &demand)? => (false, None),
        None => match guests::measure_beside(args, kernel, &chosen, &mut place) {
            Ok(whole) => (whole, None),
            // What was measured here is told nevertheless.
            Err(failure) => (false, Some(failure)),
        },
    };
    let directory = place.directory().to_owned();
    let evidence = place.evidence()?;
    let questions = place.asked.questions;
    let done = tell(args, &chosen, &evidence, questions);
    let named = directory.display().to_string();
    let named = run::quoted(&named);
    crate::note(format_args!(
        "the runs are in {}; `hopyard claims{2} --from {named}` {3} again{1}",
        directory.display(),
        if whole || place.asked.in_guest {
            String::new()
        } else {
            format!(
                ", `hopyard claims --resume {named}{}` continues",
                run::guest_kernel_again()
            )
        },
        if questions { " --questions" } else { "" },
        if questions {
            "answers them"
        } else {
            "judges them"
        }
    ));
    let done = done?;
    if let Some(failure) = failed {
        Err(failure)
    } else if whole {
        Ok(done)
    } else {
        Err(Failure::interrupted())
    }
}

/// Removes a directory in which nothing was measured, so that the same command can be tried again.
fn take_back(place: &Place) {
    if let Err(error) = place.take_back() {
        crate::note(format_args!("{}", crate::chain(&error)));
    }
}

/// How long all plans may take together, if anybody says so.
fn budget(args: &ClaimsArgs, place: &Place) -> Option<Duration> {
    let asked = args.time_limit.or(place.asked.time_limit);
    let quick = || place.asked.quick.then_some(QUICK);
    let all = || place.asked.names.is_empty().then_some(ALL);
    asked.or_else(quick).or_else(all)
}

/// The seed asked for, now or when the claims were begun.
fn seed(args: &ClaimsArgs, place: &Place) -> u64 {
    let asked = args.seed.or(place.asked.seed);
    asked.unwrap_or_else(run::any_seed)
}
