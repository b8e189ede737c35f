//! Runs that were cut, edited by hand or mixed up, read by every command that reads one.

use std::path::Path;

use hopyard::assess::{assess, observations};
use hopyard::report::{EXPORTS, export};
use hopyard::store::load;
use serde_json::Value;

use crate::support::beside;
use crate::support::cli::{Said, run};
use crate::support::plan::{Room, stored};

/// The file, what becomes of its text, and what has to be said of it.
type Break = (&'static str, fn(String) -> String, &'static [&'static str]);

const BREAKS: [Break; 15] = [
    (
        "run.json",
        |_| String::new(),
        &["run.json line 1 is damaged"],
    ),
    (
        "run.json",
        |text| text[..text.len() / 2].to_owned(),
        &["run.json line ", "is damaged", "EOF"],
    ),
    (
        "run.json",
        |text| text.replace("hopyard/store/1", "hopyard/store/9"),
        &[
            "is of schema `hopyard/store/9`",
            "use the version that wrote it",
        ],
    ),
    (
        "run.json",
        |text| text.replace("\"blocks_max\": 8", "\"blocks_max\": 4000000000"),
        &[
            "run.json is damaged: blocks_min 8 and blocks_max 4000000000 are no range within 1 to 1000",
        ],
    ),
    (
        "run.json",
        |text| text.replacen("\"path\": \"bridge\"", "\"path\": \"veth\"", 1),
        &["run.json is damaged: cell veth/local/tcp_rr is there twice"],
    ),
    (
        "run.json",
        |text| text.replace("\"flows\": 4", "\"flows\": 4000000000"),
        &[
            "cell veth/local/udp_flood: flows: `4000000000` is out of bounds: flows goes from 1 to 1000",
        ],
    ),
    (
        "run.json",
        |text| text.replace("\"confidence\": 0.95", "\"confidence\": \"95%\""),
        &["run.json line ", "is damaged", "invalid type: string"],
    ),
    (
        "samples.jsonl",
        |text| text + "this is not a sample\n",
        &["samples.jsonl line 33 is damaged", "expected"],
    ),
    (
        "samples.jsonl",
        |text| text.replacen("\"block\":0", "\"block\":-1", 1),
        &["samples.jsonl line 1 is damaged", "-1"],
    ),
    (
        "samples.jsonl",
        |text| text.replacen("\"cell\":3", "\"cell\":4", 1),
        &["samples.jsonl line 4 is damaged", "cell 4 in a run of 4"],
    ),
    (
        "samples.jsonl",
        |text| text.split_inclusive('\n').take(1).collect::<String>() + &text,
        &[
            "samples.jsonl line 2 is damaged",
            "cell 0 for the second time in block 0",
        ],
    ),
    (
        "samples.jsonl",
        |text| text.replacen("\"cpus\":2", "\"cpus\":0", 1),
        &["samples.jsonl line 1 is damaged", "cpu: 0 CPUs"],
    ),
    (
        "samples.jsonl",
        |text| {
            text.replacen(
                "\"rx_packets\":",
                "\"rx_packets\":18446744073709551614, \"was\":",
                1,
            )
        },
        &[
            "samples.jsonl line 1 is damaged",
            "devices: 18446744073709551614 is more than any window holds",
        ],
    ),
    (
        "profiles.jsonl",
        |text| text.replacen("\"cell\":", "\"cell\":1", 1),
        &["profiles.jsonl line 1 is damaged", "in a run of 4"],
    ),
    (
        "end.json",
        |_| "\"forever\"".to_owned(),
        &["end.json line 1 is damaged", "forever"],
    ),
];

#[test]
fn every_command_says_what_is_damaged_and_guesses_nothing() {
    let _beside = beside();
    let room = Room::new();
    let (whole, edited) = (stored(&room, "whole"), stored(&room, "run"));
    for (file, change, words) in BREAKS {
        let path = room.at("run").join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let broken = change(text.clone());
        assert_ne!(broken, text, "{words:?}");
        std::fs::write(&path, &broken).unwrap();
        for arguments in [
            &["report", &edited][..],
            &["diff", &whole, &edited],
            &["claims", "--from", &edited],
            &["run", "--resume", &edited],
        ] {
            let said = run(arguments);
            said.exits(2).says(words);
            assert!(said.stdout.is_empty(), "{said}");
        }
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            broken,
            "it stays as it is"
        );
        std::fs::write(&path, &text).unwrap();
    }
    run(&["report", &edited]).exits(0);
}

#[test]
fn a_last_line_that_was_cut_is_passed_over() {
    let _beside = beside();
    let room = Room::new();
    let name = stored(&room, "run");
    let path = room.at("run/samples.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 200]).unwrap();
    let report = run(&["report", &name, "--format", "json"]).exits(0).json();
    assert_eq!(report["run"]["blocks"], 7);
    std::fs::write(&path, "").unwrap();
    let report = run(&["report", &name, "--format", "json"]).exits(0).json();
    assert_eq!(report["run"]["blocks"], 0);
    assert_eq!(report["cells"][0]["status"], "failed");
    let estimates = report["cells"][0]["estimates"].as_object().unwrap();
    assert!(estimates.is_empty(), "never a zero");
}

/// Every format of a report of a run whose path has another name.
fn named(room: &Room, name: &str) -> Vec<(&'static str, Said)> {
    let path = room.at("run/run.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let name = serde_json::to_string(name).unwrap();
    std::fs::write(
        &path,
        text.replace("\"path\": \"bridge\"", &format!("\"path\": {name}")),
    )
    .unwrap();
    let edited = room.name("run");
    let of = |format| (format, run(&["report", &edited, "--format", format]));
    let texts = EXPORTS.iter().filter(|export| !export.is_binary());
    texts.map(|export| of(export.name)).collect()
}

#[test]
fn a_name_breaks_no_table() {
    let _beside = beside();
    let room = Room::new();
    stored(&room, "run");
    for (format, said) in named(&room, "a,\"b\"|\n\u{1b}c") {
        said.exits(0);
        match format {
            "csv" => said.prints(&[",\"a,\"\"b\"\"| c\",local,"]),
            "json" => said.prints(&[r#""path": "a,\"b\"|\n\u001bc""#]),
            "openmetrics" => said.prints(&[r#"path="a,\"b\"|\n"#]),
            "markdown" | "comment" => said.prints(&["| a,\"b\"\\| c |"]),
            "html" => said.prints(&["a,&quot;b&quot;| c"]),
            "text" | "netperf" => said.prints(&["a,\"b\"| c"]),
            // How any other format writes such a name is said in its own tests.
            _ => {
                assert!(!said.stdout.contains("|\n"), "{format}: {said}");
                &said
            }
        };
    }
}

/// The stored run as one of a plan that claims are about, on a machine of this name.
fn of_plan(room: &Room, plan: &str, host: &str) -> String {
    let name = stored(room, plan);
    let path = room.at(plan).join("run.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text
        .replace("\"plan\": \"paths\"", &format!("\"plan\": \"{plan}\""))
        .replace("-seed\"", &format!("-{plan}\""))
        .replace(
            "\"hostname\": \"host\"",
            &format!("\"hostname\": \"{host}\""),
        );
    std::fs::write(&path, text).unwrap();
    name
}

#[test]
fn runs_of_two_machines_are_judged_by_themselves_and_told_apart() {
    let _beside = beside();
    let room = Room::new();
    let a = of_plan(&room, "netns-macvlan-2007", "one");
    let b = of_plan(&room, "netback-direct-2006", "another");
    run(&["claims", "--from", &a]).exits(0);
    let words = [
        "were made on two machines (host `",
        "`one`",
        "`another`",
        "each by themselves",
    ];
    for arguments in [
        &["claims", "--from", &a, "--from", &b][..],
        &["claims", "--from", room.path().to_str().unwrap()],
    ] {
        let said = run(arguments);
        said.exits(2).says(&words);
        assert!(said.stdout.is_empty(), "{said}");
    }
    run(&["diff", &a, &b])
        .exits(0)
        .prints(&["one", "another", "host"]);
    // What is to be gone on with was begun elsewhere.
    let asked = r#"{"schema": "hopyard/claims-store/1", "names": ["NM8"], "quick": true}"#;
    room.file("claims.json", asked);
    let resumed = run(&["claims", "--resume", room.path().to_str().unwrap()]);
    resumed
        .exits(2)
        .says(&["cannot resume", "it was started on host `one`"]);
}

#[test]
fn claims_of_another_version_are_left_alone() {
    let _beside = beside();
    let room = Room::new();
    let home = room.path().to_str().unwrap();
    for (text, words) in [
        (
            r#"{"schema": "hopyard/claims-store/9"}"#,
            "is of schema `hopyard/claims-store/9`, this hopyard reads",
        ),
        (
            r#"{"names": [], "quick": true}"#,
            "claims.json is damaged: missing field `schema`",
        ),
        (
            r#"{"schema": "hopyard/claims-store/1", "names": "NM8", "quick": true}"#,
            "claims.json is damaged: invalid type",
        ),
    ] {
        room.file("claims.json", text);
        for way in ["--from", "--resume"] {
            run(&["claims", way, home]).exits(2).says(&[words]);
        }
        assert_eq!(
            std::fs::read_to_string(room.at("claims.json")).unwrap(),
            text
        );
    }
    room.file(
        "claims.json",
        r#"{"schema": "hopyard/claims-store/1", "names": ["NM99"], "quick": true}"#,
    );
    run(&["claims", "--resume", home])
        .exits(2)
        .says(&["there is no claim or report `NM99`"]);
}

/// Every number of a stored run, one after another, replaced by an extreme one: a report or an error, and no panic.
#[test]
fn numbers_that_make_no_sense_are_no_panic() {
    let _beside = beside();
    let room = Room::new();
    stored(&room, "run");
    let mut panics = Vec::new();
    for name in ["run.json", "samples.jsonl", "profiles.jsonl"] {
        let file = room.at("run").join(name);
        let text = std::fs::read_to_string(&file).unwrap();
        // The whole of run.json, the first line of the others.
        let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
        let first = documents.next().unwrap().unwrap();
        let rest = &text[documents.byte_offset()..];
        let mut pointers = Vec::new();
        numbers(&first, String::new(), &mut pointers);
        assert!(pointers.len() > 5, "{}", pointers.len());
        for extreme in [0, u64::from(u32::MAX), 1 << 53, u64::MAX] {
            for pointer in &pointers {
                let mut changed = first.clone();
                *changed.pointer_mut(pointer).unwrap() = extreme.into();
                std::fs::write(&file, format!("{changed}{rest}")).unwrap();
                if std::panic::catch_unwind(|| report(&room.at("run"))).is_err() {
                    panics.push(format!("{name}{pointer} = {extreme}"));
                }
            }
        }
        std::fs::write(&file, &text).unwrap();
    }
    assert!(panics.is_empty(), "{}", panics.join("\n"));
}

/// What `hopyard report` does.
fn report(directory: &Path) {
    if let Ok(stored) = load(directory) {
        let text = export("text").unwrap();
        text.render(&assess(&stored), &observations(&stored))
            .unwrap();
    }
}

/// Pointers to the numbers of a document; of a list, only the first.
fn numbers(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(at),
        Value::Array(items) => items
            .iter()
            .take(1)
            .enumerate()
            .for_each(|(n, v)| numbers(v, format!("{at}/{n}"), found)),
        Value::Object(fields) => fields
            .iter()
            .for_each(|(k, v)| numbers(v, format!("{at}/{k}"), found)),
        _ => {}
    }
}
