//! `hopyard diff`: two runs of the real program, and what is none.

use serde_json::Value;

use crate::support::cli::{Said, run};
use crate::support::host::unharmed;
use crate::support::plan::Room;
use crate::support::{alone, beside, schema};

/// Runs `veth` with one load; gives the directory.
fn measure(room: &Room, name: &str, load: &str, blocks: &str) -> String {
    let out = room.name(name);
    run(&[
        "run", "--paths", "veth", "--loads", load, "--blocks", blocks, "--window", "50ms", "--out",
        &out,
    ])
    .exits(0);
    out
}

fn diff(a: &str, b: &str, more: &[&str]) -> Said {
    let mut arguments = vec!["diff", a, b];
    arguments.extend(more);
    run(&arguments)
}

#[test]
fn two_runs_are_compared_and_a_slower_one_fails_the_gate() {
    let _alone = alone();
    unharmed(|| {
        let room = Room::new();
        let [a, b] = ["a", "b"].map(|name| measure(&room, name, "tcp_rr", "8..8"));
        let said = diff(&a, &b, &["--format", "json"]);
        let report: Value = said.exits(0).json();
        schema::check(&run(&["schema", "--diff"]).exits(0).json(), &report);
        assert_eq!(report["schema"], "hopyard/diff/1");
        assert_eq!(report["pairing"], "unpaired");
        assert_eq!(report["cells"].as_array().unwrap().len(), 1);
        let rate = &report["cells"][0]["comparisons"]["transactions_per_s"];
        assert!(rate["verdict"].is_string(), "{rate:#}");
        let ratio = rate["ratio"]["value"].as_f64().unwrap();
        assert!((0.3..3.0).contains(&ratio), "{ratio}");
        let text = diff(&a, &b, &[]);
        text.exits(0)
            .prints(&["B against A", "tcp_rr, local", "Unpaired", "comparisons"]);
        assert!(
            text.stdout.is_ascii() && text.stdout.lines().all(|l| l.len() <= 76),
            "{text}"
        );
        transacted(&room, "a", |nth| 800 + 10 * nth);
        transacted(&room, "b", |nth| 200 + 3 * nth);
        let gate = diff(&a, &b, &["--fail-on", "50%", "--format", "json"]);
        let report = gate.exits(1).json();
        assert_eq!(report["gate"]["failed"], true);
        schema::check(&run(&["schema", "--diff"]).exits(0).json(), &report);
        diff(&a, &b, &["--fail-on", "50%"])
            .exits(1)
            .prints(&["Gate: FAILED", "trips the gate"]);
        diff(&b, &a, &["--fail-on", "90%"])
            .exits(0)
            .prints(&["Gate: passed", "better"]);
        // A file instead of stdout; the status stays.
        let file = room.name("diff.md");
        let written = diff(
            &a,
            &b,
            &["--fail-on", "50%", "--format", "markdown", "-o", &file],
        );
        assert!(written.exits(1).stdout.is_empty(), "{written}");
        assert!(
            std::fs::read_to_string(&file)
                .unwrap()
                .starts_with("# hopyard diff")
        );
        diff(&a, &b, &["--relative"])
            .exits(2)
            .says(&["no base, or is one"]);
    });
}

/// Gives each sample of a run so many transactions: how far those of a busy machine are apart is not to decide.
fn transacted(room: &Room, name: &str, count: impl Fn(usize) -> usize) {
    let text = std::fs::read_to_string(room.at(name).join("samples.jsonl")).unwrap();
    let samples = text.lines().enumerate().map(|(nth, line)| {
        let mut sample: Value = serde_json::from_str(line).unwrap();
        sample["outcome"]["measured"]["received"]["transactions"] = count(nth).into();
        format!("{sample}\n")
    });
    room.file(
        &format!("{name}/samples.jsonl"),
        samples.collect::<String>(),
    );
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let a = measure(&room, "a", "tcp_rr", "2..2");
        let b = measure(&room, "b", "tcp_rr", "2..2");
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
            &["are the same directory", "name two different runs"],
        );
        refused(&a, &format!("{a}/."), &[], &["are the same directory"]);
        refused(&a, &room.name("none"), &[], &["none is no run directory"]);
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
            &["--fail-on", "3%"],
            &["--fail-on needs verdicts", "2 whole blocks", "at least 8"],
        );
        refused(
            &a,
            &b,
            &["--fail-on", "100%"],
            &["`100%` is not a loss", "below 100%"],
        );
        refused(&a, &b, &["--fail-on=-1%"], &["`-1%` is not a loss"]);
        refused(&a, &b, &["-o", "/nowhere/x"], &["cannot write /nowhere/x"]);
        diff(&a, &b, &[])
            .exits(0)
            .prints(&["Quick look", "no verdicts"]);
        // A copy is the same run.
        let copy = room.at("copy");
        std::fs::create_dir(&copy).unwrap();
        for file in ["run.json", "samples.jsonl"] {
            std::fs::copy(room.at("a").join(file), copy.join(file)).unwrap();
        }
        refused(&a, &room.name("copy"), &[], &["both directories hold run"]);
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
        &["no cell can be compared", "run B: it was never measured"],
    );
    std::fs::remove_file(room.at("b/samples.jsonl")).unwrap();
    refused(&a, &b, &[], &["no cell can be compared"]);
}
