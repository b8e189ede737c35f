//! Judged twice: the judge in `tests/judge`, written in Python from the docs and the rules alone, reads the same files and says the
//! same of all claims, with the same figures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

#[expect(dead_code, reason = "tests of the program skip parts as well")]
#[path = "../../../../tests/support/skip.rs"]
mod skip;

use super::chance;
use super::*;
use crate::model::{ClaimReport, PointReport};

/// What `judge.py` prints.
#[derive(Deserialize)]
pub(super) struct Judged {
    claims: Vec<JudgedClaim>,
    questions: Vec<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    id: String,
    figures: Vec<Vec<Known>>,
    said: Vec<Option<String>>,
}

/// A figure in answer to a question.
#[derive(Deserialize)]
struct Known {
    value: f64,
    low: f64,
    high: f64,
    n: usize,
}

#[derive(Deserialize)]
struct JudgedClaim {
    id: String,
    verdict: ClaimVerdict,
    checks: Vec<JudgedCheck>,
}

#[derive(Deserialize)]
struct JudgedCheck {
    verdict: ClaimVerdict,
    grade: Option<ClaimVerdict>,
    points: Vec<JudgedPoint>,
}

#[derive(Deserialize)]
struct JudgedPoint {
    lies: BoundPosition,
    value: f64,
    low: f64,
    high: f64,
    n: usize,
}

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where the files of the second judge are.
pub(super) fn judges() -> PathBuf {
    root().join("tests/judge")
}

/// Is there a program to run it? Without it the test is counted as skipped, by name.
pub(super) fn has_python() -> bool {
    let Err(error) = Command::new("python3").arg("--version").output() else {
        return true;
    };
    let places = std::env::var_os("PATH").unwrap_or_default();
    let present = std::env::split_paths(&places).any(|place| place.join("python3").exists());
    skip::skip(
        "python3",
        present,
        &format!("cannot run python3, which judges once more: {error}"),
    );
    false
}

/// What the judge whose files are in `home` says of these reports by what is in a directory.
pub(super) fn by_python(home: &Path, files: &[&str], from: &Path) -> Judged {
    let mut command = Command::new("python3");
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(home.join("judge.py"));
    command.args(files.iter().map(|file| root().join("claims").join(file)));
    command.arg("--plans").arg(root().join("plans"));
    let output = command.arg("--from").arg(from).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What hopyard says of them.
pub(super) fn by_hopyard(files: &[&str], from: &Path) -> Vec<ClaimReport> {
    let evidence = kept::evidence_from(&[from.to_owned()]).unwrap();
    let reports = reports().unwrap();
    let meant = reports
        .iter()
        .filter(|report| files.contains(&format!("{}.toml", report.report).as_str()));
    let claims = meant.flat_map(|report| report.claims.iter().map(move |claim| (report, claim)));
    claims
        .map(|(report, claim)| {
            let chosen = Chosen {
                report,
                claim,
                by_id: true,
            };
            judge(chosen, &evidence)
        })
        .collect()
}

/// Where two judges differ; empty where they agree.
pub(super) fn differences(own: &[ClaimReport], other: &Judged) -> Vec<String> {
    let ids: Vec<&str> = own.iter().map(|claim| claim.id.as_str()).collect();
    let theirs: Vec<&str> = other.claims.iter().map(|claim| claim.id.as_str()).collect();
    assert_eq!(ids, theirs);
    let mut all = Vec::new();
    for (one, two) in own.iter().zip(&other.claims) {
        let mut differs = |place: String, own: String, other: String| {
            all.push(format!(
                "{} {place}: hopyard has {own}, judge.py {other}",
                one.id
            ));
        };
        if one.verdict != two.verdict {
            differs(
                "verdict".to_owned(),
                format!("{:?}", one.verdict),
                format!("{:?}", two.verdict),
            );
        }
        if one.checks.len() != two.checks.len() {
            let counted = |count: usize| format!("{count} parts");
            differs(
                "parts".to_owned(),
                counted(one.checks.len()),
                counted(two.checks.len()),
            );
        }
        for (part, (one, two)) in one.checks.iter().zip(&two.checks).enumerate() {
            let grade = one.grade.as_ref().map(|grade| grade.verdict);
            if grade != two.grade {
                differs(
                    format!("grade of part {part}"),
                    format!("{grade:?}"),
                    format!("{:?}", two.grade),
                );
            }
            if one.verdict != two.verdict || one.points.len() != two.points.len() {
                let say = |verdict, points| format!("{verdict:?} of {points} figures");
                differs(
                    format!("part {part}"),
                    say(one.verdict, one.points.len()),
                    say(two.verdict, two.points.len()),
                );
            }
            for (one, two) in one.points.iter().zip(&two.points) {
                if !same(one, two) {
                    let two = (two.lies, two.value, two.low, two.high, two.n);
                    differs(
                        format!("part {part} at `{}`", one.at),
                        format!("{:?} {:?}", one.lies, one.measured),
                        format!("{two:?}"),
                    );
                }
            }
        }
    }
    all
}

fn same(one: &PointReport, two: &JudgedPoint) -> bool {
    let own = &one.measured;
    // What is 0 but for rounding is so beside the ends of its interval.
    let rounding = 1e-9 * own.low.abs().max(own.high.abs());
    let near = |one: f64, two: f64| (one - two).abs() <= 1e-6 * one.abs() + rounding;
    one.lies == two.lies
        && own.n == two.n
        && near(own.value, two.value)
        && near(own.low, two.low)
        && near(own.high, two.high)
}

/// Where the figures of two answers to the same questions differ.
fn different_answers(from: &Path, other: &Judged) -> Vec<String> {
    let evidence = kept::evidence_from(&[from.to_owned()]).unwrap();
    let chosen = choose_questions(reports().unwrap(), &[]).unwrap();
    let document = answers(&chosen, &evidence);
    let own = document.reports.iter().flat_map(|report| &report.questions);
    let own: Vec<_> = own.collect();
    assert_eq!((own.len(), other.questions.len()), (29, 29));
    let mut all = Vec::new();
    for (one, two) in own.into_iter().zip(&other.questions) {
        assert_eq!((&one.id, one.figures.len()), (&two.id, two.figures.len()));
        let said: Vec<_> = one
            .figures
            .iter()
            .map(|figure| figure.says.clone())
            .collect();
        if said != two.said {
            let theirs = &two.said;
            all.push(format!("{}: {said:?}, judge.py says {theirs:?}", one.id));
        }
        for (one_figure, two_points) in one.figures.iter().zip(&two.figures) {
            let alike = |(one, two): (&crate::model::AnswerPoint, &Known)| {
                let own = &one.measured;
                let rounding = 1e-9 * own.low.abs().max(own.high.abs());
                let near = |one: f64, two: f64| (one - two).abs() <= 1e-6 * one.abs() + rounding;
                own.n == two.n
                    && near(own.value, two.value)
                    && near(own.low, two.low)
                    && near(own.high, two.high)
            };
            let points = &one_figure.points;
            if points.len() != two_points.len() || !points.iter().zip(two_points).all(alike) {
                let theirs: Vec<f64> = two_points.iter().map(|known| known.value).collect();
                all.push(format!("{}: {one_figure:?}, judge.py {theirs:?}", one.id));
            }
        }
    }
    all
}

fn all_files() -> Vec<&'static str> {
    FILES.iter().map(|(name, _)| *name).collect()
}

/// Made-up worlds of evidence.
const WORLDS: u64 = 12;
/// As many are looked at side by side.
const SIDE_BY_SIDE: u64 = 2;

/// Does things for numbers below some number side by side.
pub(super) fn side_by_side<T: Send>(below: u64, of: impl Fn(u64) -> T + Sync) -> Vec<T> {
    let of = &of;
    std::thread::scope(|scope| {
        let one = |first| {
            scope.spawn(move || {
                (first..below)
                    .step_by(SIDE_BY_SIDE as usize)
                    .map(of)
                    .collect::<Vec<T>>()
            })
        };
        let all: Vec<_> = (0..SIDE_BY_SIDE).map(one).collect();
        all.into_iter()
            .flat_map(|share| share.join().unwrap())
            .collect()
    })
}

/// What both say of a world: hopyard's verdicts, and where they differ.
fn judged_twice(seed: u64) -> (Vec<ClaimReport>, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    chance::write(seed, directory.path());
    let other = by_python(&judges(), &all_files(), directory.path());
    let own = by_hopyard(&all_files(), directory.path());
    let mut wrong = differences(&own, &other);
    wrong.extend(different_answers(directory.path(), &other));
    (
        own,
        wrong
            .into_iter()
            .map(|one| format!("world {seed}: {one}"))
            .collect(),
    )
}

#[test]
fn two_judges_agree_on_evidence_by_chance() {
    if !has_python() {
        return;
    }
    let all = side_by_side(WORLDS, judged_twice);
    let wrong: Vec<&str> = all
        .iter()
        .flat_map(|(_, wrong)| wrong.iter().map(String::as_str))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut verdicts: BTreeMap<&str, Vec<ClaimVerdict>> = BTreeMap::new();
    for claim in all.iter().flat_map(|(claims, _)| claims) {
        verdicts.entry(&claim.id).or_default().push(claim.verdict);
    }
    assert_eq!(verdicts.len(), 69);
    assert!(chance::have_every_axis(WORLDS));
    let with = |verdict| {
        verdicts
            .values()
            .filter(|all| all.contains(&verdict))
            .count()
    };
    // One has no part that could be judged, and those that miss something for good never hold; what is done or not is never undecided.
    let seen = [
        ClaimVerdict::Holds,
        ClaimVerdict::Fails,
        ClaimVerdict::Undecided,
    ]
    .map(with);
    assert!(seen[0] >= 40 && seen[1] >= 55 && seen[2] >= 40, "{seen:?}");
}
