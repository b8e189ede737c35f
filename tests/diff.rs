//! `hopyard diff`: runs of the real program, and what is none.

use std::slice::from_ref;

use hopyard::assess::diff::{Ask, diff as compare};
use hopyard::model::{Change, DiffReport, QuantityDiff};
use hopyard::store::{self, Run};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::support::cli::{Said, run};
use crate::support::host::unharmed;
use crate::support::plan::Room;
use crate::support::{alone, beside, schema, tell};

/// Runs `veth` with one load; gives the directory.
fn measure(room: &Room, name: &str, load: &str, blocks: &str) -> String {
    let out = room.name(name);
    run(&[
        "run",
        "--paths",
        "veth",
        "--loads",
        load,
        "--blocks",
        blocks,
        "--window",
        "100ms",
        "--warm-up",
        "20ms",
        "--turns",
        "off",
        "--out",
        &out,
    ])
    .exits(0);
    out
}

/// The same run as another one, whose samples are to be replaced; gives the directory.
fn another(room: &Room, from: &str, to: &str) -> String {
    std::fs::create_dir_all(room.at(to)).unwrap();
    let of = |name: &str| std::fs::read_to_string(room.at(from).join(name)).unwrap();
    let mut header: Value = serde_json::from_str(&of("run.json")).unwrap();
    header["id"] = to.replace('/', "-").into();
    for (name, text) in [
        ("run.json", header.to_string()),
        ("samples.jsonl", of("samples.jsonl")),
        ("end.json", of("end.json")),
    ] {
        room.file(&format!("{to}/{name}"), text);
    }
    room.name(to)
}

fn diff(a: &str, b: &str, more: &[&str]) -> Said {
    let mut arguments = vec!["diff", a, b];
    arguments.extend(more);
    run(&arguments)
}

/// The JSON of a comparison, held against its schema.
fn checked(said: &Said) -> Value {
    let report = said.json();
    schema::check(&run(&["schema", "--diff"]).exits(0).json(), &report);
    assert_eq!(report["schema"], "hopyard/diff/2");
    report
}

/// Two single runs: the ratio with its interval within them, and neither a verdict nor a gate that knows.
#[test]
fn two_single_runs_are_shown_and_a_gate_stays_undecided() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let [a, b] = ["a", "b"].map(|name| measure(&room, name, "tcp_rr", "8..8"));
        let said = diff(&a, &b, &["--format", "json"]);
        let report = checked(said.exits(0));
        assert_eq!(report["cells"].as_array().unwrap().len(), 1);
        let rate = &report["cells"][0]["comparisons"]["transactions_per_s"];
        assert!(rate["verdict"].is_null(), "{rate:#}");
        assert_eq!(rate["interval_from"], "blocks");
        // Of the two figures, however far apart a busy machine has them: one is a mean of blocks, the other of their logarithms.
        let figure = |key: &str| rate[key]["value"].as_f64().unwrap();
        let of_figures = figure("b") / figure("a");
        assert!(
            (0.5..2.0).contains(&(figure("ratio") / of_figures)),
            "{rate:#}"
        );
        let text = diff(&a, &b, &[]);
        text.exits(0)
            .prints(&["B against A", "tcp_rr, local", "is not known", "none"]);
        assert!(
            text.stdout.is_ascii() && text.stdout.lines().all(|l| l.len() <= 76),
            "{text}"
        );
        // However much slower one of them is: that may be this run alone.
        transacted(&room, "a", "a", |nth| 800 + 10 * nth);
        transacted(&room, "a", "b", |nth| 200 + 3 * nth);
        for (one, other) in [(&a, &b), (&b, &a)] {
            let gate = diff(one, other, &["--fail-on", "5%"]);
            gate.exits(4).prints(&["Gate: UNDECIDED", "it takes at"]);
        }
        let gate = diff(&a, &b, &["--fail-on", "5%", "--format", "json"]);
        let report = checked(gate.exits(4));
        assert_eq!(report["gate"]["undecided"], true);
        assert!(report["gate"]["runs_needed"].as_u64().unwrap() >= 3);
        diff(&a, &b, &["--relative"])
            .exits(2)
            .says(&["no base, or is one"]);
    });
}

#[test]
fn repeated_runs_are_compared_and_a_slower_side_fails_the_gate() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        measure(&room, "a/1", "tcp_rr", "2..2");
        for to in ["a/2", "a/3", "b/1", "b/2", "b/3"] {
            another(&room, "a/1", to);
        }
        for nth in 1..=3 {
            transacted(&room, "a/1", &format!("a/{nth}"), |_| 800 + 10 * nth);
            transacted(&room, "a/1", &format!("b/{nth}"), |_| 200 + 3 * nth);
        }
        let (a, b) = (room.name("a"), room.name("b"));
        let gate = diff(&a, &b, &["--fail-on", "50%", "--format", "json"]);
        let report = checked(gate.exits(1));
        assert_eq!(report["gate"]["failed"], true);
        assert_eq!(report["a"].as_array().unwrap().len(), 3);
        let rate = &report["cells"][0]["comparisons"]["transactions_per_s"];
        assert_eq!(
            (&rate["verdict"], &rate["change"]),
            (&"different".into(), &"worse".into())
        );
        assert_eq!(
            (&rate["runs_b"], &rate["interval_from"]),
            (&3.into(), &"runs".into())
        );
        diff(&a, &b, &["--fail-on", "50%"])
            .exits(1)
            .prints(&["Gate: FAILED", "trips the gate"]);
        diff(&b, &a, &["--fail-on", "50%"])
            .exits(0)
            .prints(&["Gate: passed", "better"]);
        // The same, run by run; and one run of a side with the others for the scatter alone.
        let each = |side: &str| [1, 2, 3].map(|nth| format!("{side}/{nth}")).join(",");
        diff(&each(&a), &each(&b), &["--fail-on", "50%"]).exits(1);
        let first = format!("{b}/1");
        diff(&a, &first, &["--fail-on", "50%"])
            .exits(4)
            .prints(&["Gate: UNDECIDED"]);
        let rest = format!("{b}/2,{b}/3");
        let borrowed = diff(&a, &first, &["--repeats", &rest, "--fail-on", "50%"]);
        borrowed.exits(4).prints(&["for the scatter: 2 runs"]);
        let one_of_a = format!("{a}/1");
        let more = format!("{a}/2,{a}/3");
        let (fourth, fifth) = (room.name("c"), room.name("d"));
        for name in ["c", "d"] {
            another(&room, "a/1", name);
            transacted(&room, "a/1", name, |_| if name == "c" { 805 } else { 812 });
        }
        let repeats = format!("{more},{fourth},{fifth}");
        let lent = [
            "--repeats",
            &repeats,
            "--repeats",
            &rest,
            "--fail-on",
            "50%",
        ];
        diff(&one_of_a, &first, &lent)
            .exits(1)
            .prints(&["Gate: FAILED"]);
        diff(&one_of_a, &first, &["--repeats", &fourth])
            .exits(2)
            .says(&["--repeats with run", "at least two runs"]);
        // A file instead of stdout; the status stays.
        let file = room.name("diff.md");
        let how = ["--fail-on", "50%", "--format", "markdown", "-o", &file];
        let written = diff(&a, &b, &how);
        assert!(written.exits(1).stdout.is_empty(), "{written}");
        let text = std::fs::read_to_string(&file).unwrap();
        let (how_many, which) = text.split_once(" comparisons; ").unwrap();
        // How many a cell has depends on how many round trips there were for a quantile.
        let compared = report["cells"][0]["comparisons"].as_object().unwrap();
        let judged = compared.values().filter(|one| !one["verdict"].is_null());
        let expected = format!("**B is worse in 1 of {}", judged.count());
        assert_eq!(how_many, expected, "{text}");
        assert!(
            which.starts_with("the greatest loss: transactions of veth, tcp_rr, local, -75 %"),
            "{text}"
        );
    });
}

/// Gives a run the samples of another, each with so many transactions and without CPU time: how far those of a busy machine
/// are apart is not to decide.
fn transacted(room: &Room, from: &str, to: &str, count: impl Fn(usize) -> usize) {
    let text = std::fs::read_to_string(room.at(from).join("samples.jsonl")).unwrap();
    let samples = text.lines().enumerate().map(|(nth, line)| {
        let mut sample: Value = serde_json::from_str(line).unwrap();
        let measured = &mut sample["outcome"]["measured"];
        measured["received"]["transactions"] = count(nth).into();
        measured["cpu"]["is_partial"] = true.into();
        format!("{sample}\n")
    });
    room.file(&format!("{to}/samples.jsonl"), samples.collect::<String>());
}

/// Rules that each packet over the slower bridge is held against.
const RULES: &str = "1000";

/// A short real run of TCP_RR over a bridge with so many rules, all on one CPU: a machine that wakes its other CPU late would
/// hide the rules. It says of itself that it had none.
fn over_rules(room: &Room, name: &str, rules: &str) -> Run {
    let out = room.name(name);
    let rules = format!("rules={rules}");
    run(&[
        "run",
        "--paths",
        "bridge-nf",
        "--loads",
        "tcp_rr",
        "--set",
        &rules,
        "--set",
        "placement=same",
        "--blocks",
        "2..2",
        "--window",
        "50ms",
        "--out",
        &out,
    ])
    .exits(0);
    let mut run = store::load(out.as_ref()).unwrap();
    run.header.cells[0].cell.axes.rules = Some(0);
    // No alarm is to hide behind *equivalent*.
    run.header.margin = 0.0;
    run
}

fn gate(a: &[Run], b: &[Run], loss: f64) -> DiffReport {
    let ask = Ask {
        relative: false,
        fail_on: Some(loss),
    };
    compare(a, b, &[], &ask).unwrap()
}

fn quantities(report: &DiffReport) -> impl Iterator<Item = &QuantityDiff> {
    report
        .cells
        .iter()
        .flat_map(|cell| cell.comparisons.values())
}

/// Real runs of one thing and of a slower one, made in turn: splits of the former rarely alarm, the latter is found.
#[test]
fn real_runs_of_one_thing_pass_and_slower_ones_are_found() {
    const ROUNDS: usize = 6;
    const SPLITS: usize = 100;
    let _alone = alone();
    unharmed(|| {
        let room = Room::new();
        let (mut same, mut slow) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            same.push(over_rules(&room, &format!("a{round}"), "0"));
            slow.push(over_rules(&room, &format!("b{round}"), RULES));
            same.push(over_rules(&room, &format!("c{round}"), "0"));
        }
        let [a, c] = [0, 1].map(|first| {
            let own = same.iter().skip(first).step_by(2);
            own.cloned().collect::<Vec<_>>()
        });
        let found = gate(&a, &slow, 0.05);
        let rate = &found.cells[0].comparisons["transactions_per_s"];
        tell(&format!(
            "{RULES} rules: {:.3} ({:.3} to {:.3}), runs scatter by {:.1} %",
            rate.ratio.value,
            rate.ratio.low,
            rate.ratio.high,
            100.0 * rate.run_scatter.unwrap()
        ));
        assert_eq!(rate.change, Some(Change::Worse), "{rate:?}");
        assert!(found.gate.unwrap().failed);
        assert!(
            !gate(&a, &c, 0.05).gate.unwrap().failed,
            "runs of one thing, in turn"
        );
        // Halves of the runs of one thing, as chance has it.
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let (mut different, mut failed) = (0, 0);
        for _ in 0..SPLITS {
            same.shuffle(&mut random);
            let (one, other) = same.split_at(ROUNDS);
            let report = gate(one, other, 0.0);
            different += usize::from(quantities(&report).any(|q| q.change.is_some()));
            failed += usize::from(report.gate.unwrap().failed);
        }
        tell(&format!(
            "{different} tables and {failed} gates of {SPLITS} splits alarm"
        ));
        assert!(different <= SPLITS / 10 && failed <= SPLITS / 10);
        // Pairs of single runs are never decided.
        for pair in same.windows(2) {
            let report = gate(from_ref(&pair[0]), from_ref(&pair[1]), 0.05);
            assert!(quantities(&report).all(|q| q.verdict.is_none()));
            assert!(report.gate.unwrap().undecided);
        }
    });
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let a = measure(&room, "a", "tcp_rr", "2..2");
        let b = another(&room, "a", "b");
        let other = measure(&room, "other", "udp_rr", "2..2");
        let refused = |a: &str, b: &str, more: &[&str], words: &[&str]| {
            let said = diff(a, b, more);
            said.exits(2).says(words);
            assert!(said.stdout.is_empty(), "{said}");
        };
        refused(
            &a,
            &a,
            &[],
            &["are the same directory", "name each run once"],
        );
        refused(&a, &format!("{a}/."), &[], &["are the same directory"]);
        refused(&format!("{a},{a}"), &b, &[], &["are the same directory"]);
        refused(&format!("{a},"), &b, &[], &["has no name", "its commas"]);
        refused(
            &a,
            &b,
            &["--repeats", &format!("{a},{other}")],
            &["are the same directory"],
        );
        refused(&a, &room.name("none"), &[], &["none is no run directory"]);
        std::fs::create_dir(room.at("empty")).unwrap();
        refused(&a, &room.name("empty"), &[], &["empty is no run directory"]);
        refused(
            &a,
            &other,
            &[],
            &[
                "no cell in common",
                "veth/local/tcp_rr",
                "veth/local/udp_rr",
                "measure both runs with the same --loads",
            ],
        );
        refused(
            &a,
            &b,
            &["--fail-on", "100%"],
            &["`100%` is not a loss", "below 100%"],
        );
        refused(&a, &b, &["--fail-on=-1%"], &["`-1%` is not a loss"]);
        refused(&a, &b, &["-o", "/nowhere/x"], &["cannot write /nowhere/x"]);
        diff(&a, &b, &[]).exits(0).prints(&["no verdicts"]);
        // A copy is the same run.
        let copy = room.at("copy");
        std::fs::create_dir(&copy).unwrap();
        for file in ["run.json", "samples.jsonl"] {
            std::fs::copy(room.at("a").join(file), copy.join(file)).unwrap();
        }
        refused(&a, &room.name("copy"), &[], &["is named twice"]);
        damaged(&room, &refused);
    });
}

/// Run `b` truncated, of another version, without samples.
fn damaged(room: &Room, refused: &impl Fn(&str, &str, &[&str], &[&str])) {
    let (a, b) = (room.name("a"), room.name("b"));
    let header = room.at("b/run.json");
    let whole = std::fs::read_to_string(&header).unwrap();
    for (text, words) in [
        (&whole[..whole.len() / 2], ["run.json line", "is damaged"]),
        ("", ["run.json line 1", "is damaged"]),
        (
            &whole.replace("hopyard/store/1", "hopyard/store/9"),
            ["hopyard/store/9", "use the version"],
        ),
    ] {
        std::fs::write(&header, text).unwrap();
        refused(&a, &b, &[], &words);
        refused(&b, &a, &[], &words);
    }
    std::fs::write(&header, &whole).unwrap();
    std::fs::write(room.at("b/samples.jsonl"), "{\"block\":0,").unwrap();
    refused(
        &a,
        &b,
        &[],
        &["no cell can be compared", "B: it was never measured"],
    );
    std::fs::remove_file(room.at("b/samples.jsonl")).unwrap();
    refused(&a, &b, &[], &["no cell can be compared"]);
}
