//! `hopyard claims list` and `hopyard claims show`.

use serde_json::json;

use super::reports;
use crate::claims::{self, Check, Chosen, Claim, Code, Judge, Question, Report};
use crate::cli::{Done, pretty, print, table};

/// Every claim in a line.
pub(in crate::cli) fn list(as_json: bool) -> Done {
    let reports = reports()?;
    if as_json {
        let all = reports.iter().flat_map(|report| {
            report.claims.iter().map(|claim| {
                json!({
                    "id": claim.id,
                    "report": report.report,
                    "statement": claim.statement,
                    "measure": claim.measure,
                    "rule": claim.rule,
                    "published": claim.published,
                    "where": claim.places.iter().map(|code| code.code()).collect::<Vec<_>>(),
                    "here": means(claim),
                    "missing": claim.missing,
                })
            })
        });
        return print(&pretty(&all.collect::<Vec<_>>())?);
    }
    let mut table = table(&["claim", "where", "here", "what is claimed"]);
    for report in reports {
        table.add_row(["", "", "", &format!("{} ({})", report.title, report.report)]);
        for claim in &report.claims {
            let here = match means(claim).as_slice() {
                [] => "–".to_owned(),
                means => means.join(" "),
            };
            let codes = codes(claim);
            table.add_row([claim.id.as_str(), &codes, &here, claim.statement.as_str()]);
        }
    }
    let open: usize = reports.iter().map(|report| report.questions.len()).sum();
    let meanings = Code::ALL
        .iter()
        .map(|c| format!("{:7} {}\n", c.code(), c.meaning()));
    print(&format!(
        "{table}\n\nwhere\n{}here\nplan    cells of a plan are measured\nbench   something is timed or counted by \
         itself\ndeed    something is tried in a throw-away lab\n–       it cannot be tested: `hopyard claims show \
         ID` says what is missing\n\n{open} open questions: `hopyard claims show REPORT` has them, `hopyard claims --questions` what this machine says to them.\n",
        meanings.collect::<String>()
    ))
}

/// How a claim is tested here; empty if it cannot be.
fn means(claim: &Claim) -> Vec<&'static str> {
    let means_of = |check: &Check| match check.judge {
        Judge::Does { .. } => Some("deed"),
        Judge::Bench { .. } => Some("bench"),
        Judge::Missing { .. } => None,
        _ => Some("plan"),
    };
    let mut means: Vec<&str> = claim.checks.iter().filter_map(means_of).collect();
    means.sort_unstable();
    means.dedup();
    means
}

fn codes(claim: &Claim) -> String {
    let codes: Vec<&str> = claim.places.iter().map(|code| code.code()).collect();
    codes.join(" ")
}

/// Each claim with its rule, and each open question that is named or whose report is.
pub(super) fn show(names: &[String]) -> Done {
    let reports = reports()?;
    let all = || {
        reports
            .iter()
            .flat_map(|report| report.questions.iter().map(move |one| (report, one)))
    };
    let is_one = |name: &String| all().any(|(_, one)| one.id.eq_ignore_ascii_case(name));
    let (asked, others): (Vec<String>, Vec<String>) = names.iter().cloned().partition(is_one);
    let mut text = String::new();
    if asked.is_empty() || !others.is_empty() {
        for one in claims::choose(reports, &others)? {
            text.push_str(&described(one));
        }
    }
    for (report, question) in all() {
        let is_named = asked.iter().any(|id| id.eq_ignore_ascii_case(&question.id));
        if is_named || names.contains(&report.report) {
            text.push_str(&asked_of(report, question));
        }
    }
    print(&text)
}

fn asked_of(report: &Report, question: &Question) -> String {
    let mut text = format!(
        "{}  {}\n  method    {}\n",
        question.id, question.question, question.method
    );
    for figure in &question.figures {
        text.push_str(&format!("  here      {}\n", how(&figure.0, &report.plan)));
    }
    text.push('\n');
    text
}

fn described(one: Chosen<'_>) -> String {
    let Chosen { report, claim, .. } = one;
    let places: Vec<String> = claim
        .places
        .iter()
        .map(|code| format!("{} ({})", code.code(), code.meaning()))
        .collect();
    let mut lines = vec![
        ("source", report.source.clone()),
        ("measure", claim.measure.clone()),
        ("rule", claim.rule.clone()),
        ("published", claim.published.clone()),
        (
            "where",
            claim
                .where_remark
                .clone()
                .unwrap_or_else(|| places.join(", ")),
        ),
    ];
    for check in &claim.checks {
        lines.push(("here", how(check, &report.plan)));
    }
    for said in &claim.beside {
        lines.push(("beside it", how(&said.0, &report.plan)));
    }
    lines.extend(claim.missing.clone().map(|missing| ("lacks", missing)));
    lines.extend(report.stand_in.clone().map(|text| ("stand-in", text)));
    lines.extend(claim.remark.clone().map(|text| ("remark", text)));
    let mut text = format!("{}  {}\n", claim.id, claim.statement);
    for (name, said) in lines {
        text.push_str(&format!("  {name:10}{said}\n"));
    }
    text.push('\n');
    text
}

/// How a part of a rule is tested here.
fn how(check: &Check, plan: &str) -> String {
    let what = match &check.judge {
        Judge::Does { does } => {
            return format!("tried in a throw-away lab: {}", does.replace('-', " "));
        }
        Judge::Missing { missing } => return format!("not tested: {missing}"),
        Judge::Bench { bench } => format!("measured by itself: {}", bench.replace('-', " ")),
        _ => format!(
            "plan {}: {}",
            check.plan.as_deref().unwrap_or(plan),
            check.in_words()
        ),
    };
    match (check.at_least, check.at_most) {
        (None, None) => what,
        _ => format!("{what}; {}", check.bounds_in_words()),
    }
}
