//! The published claims: what each says, by which rule it is judged, and what it takes.
//!
//! ```text
//! claims/*.toml ──> file ──> demand (which cells of which plans) ──> campaign (the runs), bench
//!                                                                      │
//!  report <── document <── verdict <── judge <── evidence <── kept <───┘
//!                             └──────> further (what to measure more of)
//! ```
//!
//! A claim is data. Judges ([`rule::Judge`]) are few, and cells are those of the ordinary plans.

mod answer;
pub mod bench;
mod bounds;
mod called;
pub mod campaign;
mod code;
mod demand;
mod document;
mod evidence;
mod figure;
mod file;
mod further;
mod gather;
mod groups;
pub mod guest;
pub mod in_guest;
mod judge;
pub mod kept;
mod label;
mod lacking;
mod lacks;
mod peak;
mod place;
mod position;
mod premise;
mod profiles;
mod published;
mod rule;
mod select;
mod sentence;
mod settling;
mod shapes;
#[cfg(test)]
mod tests;
mod values;
mod verdict;
mod what;

use std::sync::LazyLock;

use hopyard_analysis as assess;
use hopyard_host::{bounded, note, signals};
use hopyard_lab as lab;
use hopyard_model::{self as model, plain::chain, units};
use hopyard_report as report;
use hopyard_run::{measure, plan, profile, run, store};
use hopyard_stats as stats;

pub use code::Code;
pub use demand::{Demand, PlanDemand, demand};
pub use document::{answers, document};
pub use evidence::Evidence;
pub use file::{Claim, Error, Question, Report, parse};
pub use further::{Further, MOST_TIMES, further};
pub use lacking::has_kvm;
pub use lacks::{Lack, lacks};
pub use rule::{Check, Judge, Said};
pub use verdict::judge;

use model::UnknownName;

/// Files of the folder `claims` by these names: (file name, text).
macro_rules! claims {
    ($($name:literal),+ $(,)?) => {
        &[$((
            concat!($name, ".toml"),
            include_str!(concat!("../../../claims/", $name, ".toml")),
        )),+]
    };
}

/// The files that come with the program: (file name, text).
static FILES: &[(&str, &str)] = claims![
    "netns-macvlan-2007",
    "multiqueue-tap-2011",
    "namespace-switching-2014",
    "netback-direct-2006",
    "planetlab-containers-2007",
];

static REPORTS: LazyLock<Result<Vec<Report>, Error>> =
    LazyLock::new(|| FILES.iter().map(|(file, text)| parse(file, text)).collect());

/// Every report with its claims.
///
/// # Errors
/// A file that comes along is wrong, which a test rules out.
pub fn reports() -> Result<&'static [Report], &'static Error> {
    REPORTS.as_deref()
}

/// A claim with the report that it is of.
#[derive(Debug, Clone, Copy)]
pub struct Chosen<'a> {
    pub report: &'a Report,
    pub claim: &'a Claim,
    /// Was it named by its id?
    pub by_id: bool,
}

impl<'a> Chosen<'a> {
    /// The plan whose cells a check is about.
    #[must_use]
    pub fn plan_of(&self, check: &'a Check) -> &'a str {
        check.plan.as_deref().unwrap_or(&self.report.plan)
    }
}

/// The claims of these names, ids or reports, in the order of the reports; all where none is named.
///
/// # Errors
/// There is no claim or report of a name.
pub fn choose<'a>(reports: &'a [Report], names: &[String]) -> Result<Vec<Chosen<'a>>, UnknownName> {
    choose_of(reports, names, |report| &report.claims, "claim or report")
}

/// The same of questions.
///
/// # Errors
/// There is no question or report of a name.
pub fn choose_questions<'a>(
    reports: &'a [Report],
    names: &[String],
) -> Result<Vec<Chosen<'a>>, UnknownName> {
    choose_of(
        reports,
        names,
        |report| &report.asked,
        "open question or report",
    )
}

fn choose_of<'a>(
    reports: &'a [Report],
    names: &[String],
    of: fn(&Report) -> &Vec<Claim>,
    kind: &'static str,
) -> Result<Vec<Chosen<'a>>, UnknownName> {
    let by_id = |claim: &Claim, name: &String| name.eq_ignore_ascii_case(&claim.id);
    let all = || {
        reports.iter().flat_map(|report| {
            let claims = of(report).iter();
            claims.map(move |claim| Chosen {
                report,
                claim,
                by_id: names.iter().any(|name| by_id(claim, name)),
            })
        })
    };
    let known =
        |name: &String| all().any(|one| by_id(one.claim, name) || *name == one.report.report);
    if let Some(name) = names.iter().find(|name| !known(name)) {
        return Err(UnknownName::new(kind, name, choices(reports, of)));
    }
    let wanted =
        |one: &Chosen<'_>| names.is_empty() || one.by_id || names.contains(&one.report.report);
    Ok(all().filter(wanted).collect())
}

/// `NM1 to NM11 (netns-macvlan-2007)`, …
fn choices(
    reports: &[Report],
    of: fn(&Report) -> &Vec<Claim>,
) -> impl Iterator<Item = String> + '_ {
    reports.iter().map(move |report| {
        let first = of(report).first().map_or("", |claim| claim.id.as_str());
        let last = of(report).last().map_or("", |claim| claim.id.as_str());
        format!("{first} to {last} ({})", report.report)
    })
}
