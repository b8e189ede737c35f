//! What claims amount to, as the document `hopyard/claims/1`.

use std::collections::BTreeSet;

use super::{Chosen, Evidence, Report};
use crate::assess;
use crate::model::{ClaimsReport, ClaimsRun, Environment, FurtherBlocks, ReportOfClaims};
use crate::report::claims::SCHEMA;
use crate::store::Run;

/// The document: claims judged by evidence.
#[must_use]
pub fn document(chosen: &[Chosen<'_>], evidence: &Evidence) -> ClaimsReport {
    let mut reports: Vec<ReportOfClaims> = Vec::new();
    for one in chosen {
        let judged = super::judge(*one, evidence);
        match reports.iter_mut().find(|r| r.report == one.report.report) {
            Some(report) => report.claims.push(judged),
            None => reports.push(ReportOfClaims {
                claims: vec![judged],
                ..empty(one, evidence)
            }),
        }
    }
    whole(reports, chosen, evidence)
}

/// The document with questions in place of claims: what this machine says to each.
#[must_use]
pub fn answers(chosen: &[Chosen<'_>], evidence: &Evidence) -> ClaimsReport {
    let mut reports: Vec<ReportOfClaims> = Vec::new();
    for one in chosen {
        let answered = super::answer::answer(*one, evidence);
        match reports.iter_mut().find(|r| r.report == one.report.report) {
            Some(report) => report.questions.push(answered),
            None => reports.push(ReportOfClaims {
                questions: vec![answered],
                ..empty(one, evidence)
            }),
        }
    }
    whole(reports, chosen, evidence)
}

fn empty(one: &Chosen<'_>, evidence: &Evidence) -> ReportOfClaims {
    let Report {
        stand_in,
        stand_in_on_a_cable,
        ..
    } = one.report;
    let has_cable = evidence.of_plan(&one.report.plan).is_ok_and(is_on_a_cable);
    let on_a_cable = stand_in_on_a_cable.as_ref().filter(|_| has_cable);
    ReportOfClaims {
        report: one.report.report.clone(),
        title: one.report.title.clone(),
        source: one.report.source.clone(),
        stand_in: on_a_cable.or(stand_in.as_ref()).cloned(),
        claims: Vec::new(),
        questions: Vec::new(),
    }
}

/// Was it measured between cards of two machines?
fn is_on_a_cable(run: &Run) -> bool {
    let endpoints = run.header.endpoints.as_ref();
    endpoints.is_some_and(|endpoints| endpoints.cards.is_some())
}

fn whole(reports: Vec<ReportOfClaims>, chosen: &[Chosen<'_>], evidence: &Evidence) -> ClaimsReport {
    // Only those that these claims are judged by; the machine is that of all of them.
    let is_about = |run: &&Run| {
        let checks = |one: &Chosen<'_>| -> bool {
            let mut plans = one.claim.measured().map(|check| one.plan_of(check));
            plans.any(|plan| plan == run.header.plan)
        };
        chosen.iter().any(checks)
    };
    ClaimsReport {
        schema: SCHEMA.to_owned(),
        machine: evidence
            .runs
            .first()
            .map(|run| machine(&run.header.environment)),
        runs: evidence
            .runs
            .iter()
            .filter(is_about)
            .map(|run| of_run(run, evidence))
            .collect(),
        reports,
    }
}

fn of_run(run: &Run, evidence: &Evidence) -> ClaimsRun {
    let report = assess::assess(run);
    let first = evidence.first_further.get(&run.header.plan);
    let warnings = report.warnings.into_iter();
    ClaimsRun {
        plan: report.run.plan,
        id: report.run.id,
        started: report.run.started,
        further: first.map(|first| further(run, *first)),
        // Further blocks may have every cell too.
        blocks: first.map_or(report.run.blocks, |first| report.run.blocks.min(*first)),
        window_s: report.run.window_s,
        confidence: report.run.confidence,
        complete: report.run.complete,
        warnings: warnings
            .filter(|warning| !super::evidence::expected(warning.code))
            .map(|warning| warning.message)
            .collect(),
    }
}

/// The blocks of a run that were measured for claims that were undecided.
fn further(run: &Run, first: u32) -> FurtherBlocks {
    let later = run.samples.iter().filter(|sample| sample.block >= first);
    let (blocks, cells): (BTreeSet<u32>, BTreeSet<usize>) =
        later.map(|sample| (sample.block, sample.cell)).unzip();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    FurtherBlocks {
        blocks: count(blocks.len()),
        cells: count(cells.len()),
    }
}

fn machine(environment: &Environment) -> String {
    let emulated = if environment.is_emulated() {
        " · emulated: shape only"
    } else {
        ""
    };
    format!(
        "Linux {} · {}, {} CPUs · hopyard {}{emulated}",
        environment.kernel_release,
        environment.cpu_model,
        environment.cpus,
        environment.hopyard_version
    )
}
