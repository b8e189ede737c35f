//! What is said to open questions: figures with intervals, the words that go with them, and what is missing.

use super::*;
use crate::model::{Answered, QuestionReport};
use crate::report::export;

/// A report of one question with these figures.
fn one_question(figures: &str) -> Report {
    let text = format!(
        r#"
report = "mine"
title = "Of mine"
source = "nobody"
plan = "plan"
[[claim]]
id = "X1"
statement = "s"
measure = "m"
rule = "r"
published = "p"
where = ["HOST"]
missing = "nothing"
[[question]]
id = "X-Q1"
question = "Is a bridge slower?"
method = "both side by side"
{figures}
"#
    );
    parse("mine.toml", &text).unwrap()
}

fn answered(figures: &str, evidence: &Evidence) -> QuestionReport {
    let report = one_question(figures);
    let chosen = choose_questions(std::slice::from_ref(&report), &[]).unwrap();
    let mut document = answers(&chosen, evidence);
    document.reports.remove(0).questions.remove(0)
}

fn of_runs(runs: Vec<Run>) -> Evidence {
    Evidence {
        runs,
        ..Evidence::default()
    }
}

const BRIDGE: &str = "[[question.figure]]\njudge = \"ratio\"\nquantity = \"rate\"\ncells = { path = \"bridge\" }\nto = [\"veth\"]\nat_least = 0.95\nat_most = 1.05\nsays = { inside = \"It is as fast\", outside = \"It is not as fast\", across = \"Nobody knows\" }\n";
const MISSING: &str =
    "[[question.figure]]\njudge = \"missing\"\nmissing = \"a bridge in hardware\"\n";

/// The figure decides which answer it is, with its interval; what is missing is said beside it.
#[test]
fn an_answer_is_made_of_its_figures() {
    let of = |bridge: f64, spread: f64, more: &str| {
        let run = made(&[("veth", 1e9), ("bridge", bridge)], 10, spread);
        answered(&format!("{BRIDGE}{more}"), &of_runs(vec![run]))
    };
    let whole = of(1e9, 0.001, "");
    assert_eq!(whole.answered, Answered::Whole);
    insta::assert_snapshot!(whole.answer, @"It is as fast: goodput, bridge / veth is 1.00 (0.998 to 1.00).");
    let slower = of(0.8e9, 0.001, MISSING);
    assert_eq!(slower.answered, Answered::Partly);
    insta::assert_snapshot!(slower.answer, @"It is not as fast: goodput, bridge / veth is 0.800 (0.799 to 0.801). Missing: a bridge in hardware.");
    let unsure = of(0.95e9, 0.02, "");
    assert!(unsure.answer.starts_with("Nobody knows: "), "{unsure:?}");
    // Six blocks decide nothing, and the answer says so.
    let run = made(&[("veth", 1e9), ("bridge", 1e9)], 6, 0.001);
    let few = answered(BRIDGE, &of_runs(vec![run]));
    assert_eq!(few.answered, Answered::Partly, "{few:?}");
    assert!(few.answer.contains("Nobody knows: ") && few.answer.contains("fewer than 8 blocks"));
    let none = answered(&format!("{BRIDGE}{MISSING}"), &Evidence::default());
    assert_eq!(none.answered, Answered::Open);
    insta::assert_snapshot!(none.answer, @"Missing: plan plan was not run. Missing: a bridge in hardware.");
}

/// On a page each question is a row; a terminal is too narrow for that.
#[test]
fn answers_in_brief_are_rows() {
    let report = one_question(BRIDGE);
    let chosen = choose_questions(std::slice::from_ref(&report), &[]).unwrap();
    let run = made(&[("veth", 1e9), ("bridge", 0.8e9)], 10, 0.001);
    let document = answers(&chosen, &of_runs(vec![run]));
    let shown = |format: &str| (export(format).unwrap().claims.unwrap())(&document, Detail::Brief);
    insta::assert_snapshot!(shown("markdown"), @r"
    1 open question: 1 answered, 0 partly answered, 0 open. Linux 6 · cpu, 2 CPUs · hopyard 0, 2026-01-01.

    Measured by plan plan: 10 blocks × 0.2 s, 95 % confidence.

    ### Of mine (mine)

    | question | what is asked       | here     | what this machine says                                       |
    | -------- | ------------------- | -------- | ------------------------------------------------------------ |
    | X-Q1     | Is a bridge slower? | answered | It is not as fast: goodput, bridge / veth is 0.800 (0.799 to 0.801). |
    ");
    insta::assert_snapshot!(shown("text"), @"
    1 open question: 1 answered, 0 partly answered, 0 open. Linux 6 · cpu, 2 CPUs · hopyard 0,
    2026-01-01.

    Measured by plan plan: 10 blocks × 0.2 s, 95 % confidence.

    Of mine (mine)
    - X-Q1 Is a bridge slower? answered: It is not as fast: goodput, bridge / veth is 0.800 (0.799 to
      0.801).
    ");
}

/// Of two places one may lie outside by chance: what is shown of one alone is not shown of one of two.
#[test]
fn places_of_a_question_share_its_risk() {
    let of = |cells: &str| {
        let figure = BRIDGE.replace("path = \"bridge\"", cells);
        let paths = [("veth", 1e9), ("bridge", 0.919e9), ("direct", 1e9)];
        answered(&figure, &of_runs(vec![made(&paths, 10, 0.02)])).answer
    };
    let one = of("path = \"bridge\"");
    assert!(one.starts_with("It is not as fast: "), "{one}");
    let two = of("path = [\"bridge\", \"direct\"]");
    assert!(two.starts_with("Nobody knows: "), "{two}");
}

/// Cells that differ along every axis are places of their own, and of many the least and the greatest are said.
#[test]
fn places_are_told_apart() {
    let chosen = choose_questions(reports().unwrap(), &["ns-q1".to_owned()]).unwrap();
    let planned = super::oracle::planned("namespace-switching-2014");
    let mut run = hand_made(&["veth"]);
    run.header.plan.clone_from(&planned.plan.name);
    let first = run.header.cells.remove(0);
    for (place, cell) in planned.cells.iter().enumerate() {
        let mut own = first.clone();
        own.cell.clone_from(cell);
        run.header.cells.push(own);
        // Every cell has a rate of its own; without offloads the bridge is the slower the more threads there are.
        let offload = (crate::model::axis("offload").unwrap().show)(&cell.axes);
        let slower = match (cell.path.as_str(), offload.as_deref() == Some("off")) {
            ("bridge-nf", true) => 1.0 - f64::from(cell.axes.flows) / 32.0,
            ("bridge-nf", false) => 0.9,
            _ => 1.0,
        };
        let base = 1e8 * (1.0 + f64::from(cell.axes.flows));
        for block in 0..10 {
            let wobble = 1.0 + 0.0005 * f64::from((block * 3 + place as u32) % 5);
            let outcome = Outcome::Measured(Box::new(measured((base * slower * wobble) as u64)));
            push(&mut run, block, 0, place, outcome);
        }
    }
    run.header
        .cells
        .retain(|planned| !planned.cell.path.starts_with("ovs"));
    let left = run.header.cells.len();
    run.samples.retain(|sample| sample.cell < left);
    let document = answers(&chosen, &of_runs(vec![run]));
    let question = &document.reports[0].questions[0];
    assert_eq!(question.id, "NS-Q1");
    let words = [
        "A plain veth pair carries at least as much",
        "of 10",
        "offload off",
    ];
    for words in words {
        assert!(
            question.answer.contains(words),
            "{words}: {}",
            question.answer
        );
    }
}

/// Each question has a check of its own, and says what is missing where nothing was measured.
#[test]
fn every_question_says_something_of_nothing() {
    let chosen = choose_questions(reports().unwrap(), &[]).unwrap();
    assert_eq!(chosen.len(), 29);
    let document = answers(&chosen, &Evidence::default());
    for question in document.reports.iter().flat_map(|report| &report.questions) {
        assert_eq!(question.answered, Answered::Open, "{}", question.id);
        assert!(
            question.answer.starts_with("Missing: "),
            "{}",
            question.answer
        );
    }
    let error = choose_questions(reports().unwrap(), &["NM1".to_owned()]).unwrap_err();
    assert!(error.to_string().contains("NM-Q1 to NM-Q4"), "{error}");
    // A claim is none of them.
    assert!(choose(reports().unwrap(), &["NM-Q1".to_owned()]).is_err());
}

/// With all plans of the reports measured, so many are answered whole, partly and not at all.
#[test]
fn all_plans_of_the_reports_answer_most_of_them() {
    use super::oracle::Part;
    use super::synthetic::{Aim, Aimed, World};
    let mut world = World::default();
    for chosen in choose(reports().unwrap(), &[]).unwrap() {
        for part in &Part::all(chosen) {
            let aim = Aim::Inside;
            world.aim(Aimed { part, aim, from: 0 });
        }
    }
    let chosen = choose_questions(reports().unwrap(), &[]).unwrap();
    let document = answers(&chosen, &world.evidence());
    let all = document.reports.iter().flat_map(|report| &report.questions);
    let with = |state| -> Vec<&str> {
        let of = all.clone().filter(|one| one.answered == state);
        of.map(|one| one.id.as_str()).collect()
    };
    insta::assert_snapshot!(with(Answered::Whole).join(" "), @"NM-Q2 MQ-Q6 NS-Q1 NS-Q6 ND-Q3 ND-Q4 ND-Q5 ND-Q6 PL-Q1 PL-Q2");
    insta::assert_snapshot!(with(Answered::Open).join(" "), @"MQ-Q2 MQ-Q3 MQ-Q4 MQ-Q7 ND-Q1 PL-Q4 PL-Q5");
    assert_eq!(with(Answered::Partly).len(), 12);
}

/// Questions about more CPUs than there are say so with what else is missing, whether their plans were run or not.
#[test]
fn questions_about_more_cpus_say_so() {
    let names = ["NS-Q3".to_owned(), "NS-Q5".to_owned()];
    let chosen = choose_questions(reports().unwrap(), &names).unwrap();
    let of = |cpus: u32| {
        let mut run = made(&[("veth", 1e9), ("bridge-nf", 1e9)], 10, 0.001);
        run.header.plan = "namespace-switching-2014".to_owned();
        run.header.environment.cpus = cpus;
        run.header.left_out = vec![("ovs-internal".to_owned(), "no module".to_owned())];
        let mut document = answers(&chosen, &of_runs(vec![run]));
        document.reports.remove(0).questions
    };
    for question in of(2) {
        assert_eq!(question.answered, Answered::Open, "{question:?}");
        assert_eq!(
            question.answer,
            "Missing: it is about 4 CPUs or more, and this machine has 2; ovs-internal: no module.",
            "{}",
            question.id
        );
    }
    for question in of(4) {
        let words = "ovs-internal: no module. Missing: plan namespace-switching-2014-placement was not run.";
        assert!(question.answer.contains(words), "{}", question.answer);
    }
}

#[test]
fn questions_read_well() {
    let run = made(&[("veth", 1e9), ("bridge", 0.8e9)], 10, 0.001);
    let report = one_question(&format!("{BRIDGE}{MISSING}"));
    let chosen = choose_questions(std::slice::from_ref(&report), &[]).unwrap();
    let document = answers(&chosen, &of_runs(vec![run]));
    let text = (export("text").unwrap().claims.unwrap())(&document, Detail::Points);
    insta::assert_snapshot!(text, @"
    hopyard claims --questions · 1 open question: 0 answered, 1 partly answered, 0 open
    Linux 6 · cpu, 2 CPUs · hopyard 0
    plan plan: 10 blocks × 0.2 s, 95 % confidence

    Of mine (mine)
    - X-Q1 Is a bridge slower? partly answered: It is not as fast: goodput, bridge / veth is 0.800
      (0.799 to 0.801). Missing: a bridge in hardware.

    question  what is measured        where  published  measured
    ──────────────────────────────────────────────────────────────────────────
    X-Q1      goodput, bridge / veth         –          0.800 (0.799 to 0.801)

    Warnings
    - plan: 10 blocks of so few cells do not show whether neighbouring blocks are alike; if they are,
      intervals are narrower than they should be. 15 blocks show it (--blocks 15..20).
    ");
    let json = (export("json").unwrap().claims.unwrap())(&document, Detail::Parts);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let question = &json["reports"][0]["questions"][0];
    assert_eq!(question["answered"], "partly");
    assert!(question["figures"][0]["points"][0]["measured"]["low"].is_number());
}
