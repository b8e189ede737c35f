//! What a reader must know before trusting a ratio.

use super::facts;
use super::runs::{Group, Groups};
use super::table::Table;
use crate::model::{
    DiffWarning, DiffWarningCode as Code, Gate, IntervalFrom, Warning, WarningCode,
};
use crate::stats::RUNS_FOR_A_SCATTER;
use crate::units::counted;

pub(super) fn all(groups: &Groups<'_>, table: &Table, gate: Option<&Gate>) -> Vec<DiffWarning> {
    let mut all = Vec::new();
    all.extend(scatter_unknown(table));
    if let Some(gate) = gate {
        all.extend(about_the_gate(gate, table));
    }
    all.extend(runs_not_alike(groups));
    all.extend(repeats_unused(groups, table));
    all.extend(not_interleaved(&groups.sides));
    all.extend(some_runs_only(groups, table));
    let [a, b] = &groups.sides;
    all.extend(only("A", a, b, Code::OnlyA));
    all.extend(only("B", b, a, Code::OnlyB));
    let warning = |(code, message)| DiffWarning { code, message };
    all.into_iter().map(warning).collect()
}

type Told = (Code, String);

fn scatter_unknown(table: &Table) -> Option<Told> {
    let all = || table.cells.iter().flat_map(|c| c.comparisons.values());
    let unknown = all().filter(|q| q.interval_from == IntervalFrom::Blocks);
    let (unknown, all) = (unknown.count(), all().count());
    (unknown > 0).then(|| {
        let which = if unknown == all {
            String::new()
        } else {
            format!(" for {unknown} of {all} comparisons")
        };
        (
            Code::ScatterUnknown,
            format!(
                "How much two runs of the same thing differ here is not known{which}: no verdict. Repeat each side at least \
                 three times in turn, name five earlier runs of one thing (--repeats), or compare both in one run (hopyard \
                 run --a … --b …)."
            ),
        )
    })
}

fn about_the_gate(gate: &Gate, table: &Table) -> Vec<Told> {
    let mut said = Vec::new();
    let percent = crate::units::show_share(gate.fail_on_ratio);
    // The others have warnings of their own: more runs do not help them.
    let beside = table.lost + table.doubtful.len();
    let (blind, all) = (gate.blind - beside, gate.comparisons - beside);
    if blind > 0 {
        said.push((
            Code::GateBlind,
            format!(
                "{blind} of {all} comparisons leave a loss of {percent} open: the gate has not passed; more runs \
                 of each side decide it."
            ),
        ));
    }
    let missing = table.unseen;
    if missing > 0 {
        said.push((
            Code::GateMissing,
            format!("The gate did not look at {missing} of what A has figures of: see what is not compared."),
        ));
    }
    if !table.doubtful.is_empty() {
        said.push((
            Code::GateMissing,
            format!(
                "The gate does not trust B's figures of {}: a larger share of its samples than of A's failed, \
                 or a larger share of its runs has failed samples, cannot build it, has no such figure, or has traffic that did not take the path (see B's own report).",
                table.doubtful.join(", ")
            ),
        ));
    }
    said
}

/// Runs that are not repeats of one thing, and repeats that were made under other conditions.
fn runs_not_alike(groups: &Groups<'_>) -> Vec<Told> {
    let named = [("A", &groups.sides[0]), ("B", &groups.sides[1])];
    let repeats = groups.repeats.iter().map(|group| ("--repeats", group));
    let mut said = Vec::new();
    for (name, group) in named.into_iter().chain(repeats.clone()) {
        let differing = facts::not_alike(group);
        if !differing.is_empty() {
            let what = differing.join(", ");
            said.push(format!(
                "The runs of {name} are not all of one thing; they differ in: {what}. Their scatter has that in it."
            ));
        }
    }
    for (_, group) in repeats {
        let pair = group.first().zip(groups.sides[0].first());
        let differing = pair.map_or_else(Vec::new, |(own, a)| facts::other_conditions(own, a));
        if !differing.is_empty() {
            let what = differing.join(", ");
            said.push(format!(
                "The runs of --repeats differ from those compared in: {what}. How much runs differ may not be the same."
            ));
        }
    }
    let told = |message| (Code::RunsNotAlike, message);
    said.into_iter().map(told).collect()
}

/// Each side of each comparison has enough runs for a scatter of its own, so that the test does not look at others' (`compare_runs`).
fn repeats_unused(groups: &Groups<'_>, table: &Table) -> Option<Told> {
    let all = table.cells.iter().flat_map(|c| c.comparisons.values());
    let fewest = all.map(|q| q.runs_a.min(q.runs_b)).min()?;
    (fewest >= RUNS_FOR_A_SCATTER && !groups.repeats.is_empty()).then(|| {
        (
            Code::RepeatsUnused,
            format!(
                "No verdict rests on the runs of --repeats: A and B have {RUNS_FOR_A_SCATTER} runs or more each, and show \
                 themselves how much their runs differ."
            ),
        )
    })
}

/// All runs of one side came first: a change of the machine meanwhile favours one side.
fn not_interleaved([a, b]: &[Group<'_>; 2]) -> Option<Told> {
    if a.len().min(b.len()) < 2 {
        return None;
    }
    let before = |one: &Group<'_>, other: &Group<'_>| {
        let (last, first) = (one.last()?, other.first()?);
        Some(last.header.started < first.header.started)
    };
    let (first, then) = match (before(a, b), before(b, a)) {
        (Some(true), _) => ("A", "B"),
        (_, Some(true)) => ("B", "A"),
        _ => return None,
    };
    Some((
        Code::NotInterleaved,
        format!(
            "All runs of {first} were made before those of {then}: a machine that became faster or slower meanwhile counts as \
             a difference. Make them in turn (docs/diff.md)."
        ),
    ))
}

fn some_runs_only(groups: &Groups<'_>, table: &Table) -> Option<Told> {
    let lacking = |side: usize| {
        let runs = groups.sides[side].len();
        let cells = table.cells.iter();
        cells
            .filter(move |c| groups.having(side, &c.cell) < runs)
            .map(|c| c.cell.to_string())
    };
    let mut cells: Vec<String> = lacking(0).chain(lacking(1)).collect();
    cells.sort();
    cells.dedup();
    (!cells.is_empty()).then(|| {
        (
            Code::SomeRunsOnly,
            format!(
                "Some runs have no figures of these cells: {}.",
                cells.join(", ")
            ),
        )
    })
}

/// Warnings of a kind that no run of the other side has. Few blocks in a run are no reason to doubt a comparison of
/// runs.
fn only(
    name: &str,
    side: &Group<'_>,
    other: &Group<'_>,
    code: fn(WarningCode) -> Code,
) -> Vec<Told> {
    let warnings = |group: &Group<'_>| -> Vec<Warning> {
        let all = group.iter().flat_map(|run| run.report.warnings.clone());
        all.collect()
    };
    let others = warnings(other);
    let mut found: Vec<(Warning, usize)> = Vec::new();
    for own in warnings(side) {
        if own.code == WarningCode::QuickLook || others.iter().any(|w| w.code == own.code) {
            continue;
        }
        match found.iter_mut().find(|(known, _)| known.code == own.code) {
            Some((_, times)) => *times += 1,
            None => found.push((own, 1)),
        }
    }
    let told = |(warning, times): (Warning, usize)| {
        let runs = match side.len() {
            1 => String::new(),
            all => format!(" ({times} of {})", counted(all, "run")),
        };
        let message = format!("In {name} only{runs}: {}", warning.message);
        (code(warning.code), message)
    };
    found.into_iter().map(told).collect()
}
