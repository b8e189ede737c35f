//! What others wrote commands no terminal, whichever command prints it; a run that is to outlive its terminal does.

use std::process::Command;
use std::time::Duration;

use hopyard::report::EXPORTS;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::cli::{PROGRAM, Running, Said, run};
use crate::support::plan::{Room, plan, stored};
use crate::support::{beside, until};

/// The title of a window, a colour (7-bit and 8-bit), text that runs backwards, and a line that looks like hopyard's own.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[31m\u{9b}31m\u{202e}\r\nhopyard: all is well";

#[track_caller]
fn is_harmless(said: &Said) {
    for (name, text) in [("stdout", &said.stdout), ("stderr", &said.stderr)] {
        let harm = |c: &char| {
            (c.is_control() && *c != '\n')
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        };
        let found = text.chars().find(harm);
        assert!(found.is_none(), "{found:?} on {name}: {said}");
        assert!(
            !text
                .lines()
                .any(|line| line.starts_with("hopyard: all is well")),
            "a line of its own on {name}: {said}"
        );
    }
}

/// Changes a JSON document, or each line of several.
fn change(room: &Room, file: &str, change: impl Fn(&mut Value)) {
    let path = room.at(file);
    let text = std::fs::read_to_string(&path).unwrap();
    let documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let changed = documents.map(|document| {
        let mut document = document.unwrap();
        change(&mut document);
        format!("{document}\n")
    });
    let changed: String = changed.collect();
    std::fs::write(path, changed).unwrap();
}

#[test]
fn a_run_of_somebody_else_is_printed_harmlessly() {
    let _beside = beside();
    let room = Room::new();
    let (run_a, run_b) = (stored(&room, "a"), stored(&room, "b"));
    change(&room, "b/run.json", |header| {
        for field in ["id", "plan", "started"] {
            header[field] = format!("{field}{HOSTILE}").into();
        }
        header["environment"]["hostname"] = HOSTILE.into();
        header["environment"]["sysctls"][HOSTILE] = HOSTILE.into();
        header["left_out"][0][1] = HOSTILE.into();
        header["cells"][1]["cell"]["path"] = format!("bridge{HOSTILE}").into();
    });
    change(&room, "b/samples.jsonl", |sample| {
        if sample["cell"] == 1 {
            sample["outcome"] = serde_json::json!({"failed": {"cause": HOSTILE}});
        }
    });
    for export in EXPORTS.iter().filter(|export| !export.is_binary()) {
        let format = ["--format", export.name];
        is_harmless(run(&[&["report", &run_b][..], &format].concat()).exits(0));
        if export.diff.is_some() {
            is_harmless(&run(&[&["diff", &run_a, &run_b][..], &format].concat()));
            is_harmless(&run(&[&["diff", &run_b, &run_a][..], &format].concat()));
        }
        if export.claims.is_some() {
            is_harmless(&run(&[&["claims", "--from", &run_b][..], &format].concat()));
        }
    }
    let resumed = run(&["run", "--resume", &run_b]);
    is_harmless(resumed.exits(2));
    change(&room, "b/run.json", |header| {
        header["schema"] = HOSTILE.into();
    });
    let schema = run(&["report", &run_b]);
    is_harmless(schema.exits(2).says(&["is of schema `\\u{1b}]0;owned"]));
    change(&room, "a/run.json", |header| {
        header["cells"][0]["cell"]["load"] = HOSTILE.into();
    });
    is_harmless(
        run(&["report", &run_a])
            .exits(2)
            .says(&["run.json", "is damaged"]),
    );
}

#[test]
fn names_of_files_and_plans_are_printed_harmlessly() {
    let _beside = beside();
    let room = Room::new();
    let name = room.name(&format!("{}.toml", HOSTILE.replace('/', "")));
    let bad = plan(&[("paths", &format!("[{}]", Value::from(HOSTILE)))]);
    std::fs::write(&name, bad).unwrap();
    for arguments in [
        &["report", &name][..],
        &["diff", &name, "/nowhere"],
        &["claims", "--from", &name],
        &["claims", "show", HOSTILE],
        &["run", &name],
        &["run", HOSTILE],
        &["run", "--paths", HOSTILE],
        &["run", "--base", HOSTILE],
        &["run", "--kernel", &name],
        &["run", "--resume", &name],
        &["lab", "up", HOSTILE],
        &["lab", "down", HOSTILE],
        &["lab", "exec", HOSTILE, "a", "--", "true"],
        &["switch", "show", HOSTILE],
        &["tapswitch", "show", HOSTILE],
        &["report", "one", &name],
        &[HOSTILE],
    ] {
        let said = run(arguments);
        assert!(!said.status.success(), "{said}");
        is_harmless(&said);
    }
}

/// What `nohup` starts goes on when the terminal is closed.
#[test]
fn a_run_that_is_to_outlive_its_terminal_does() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("run");
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", PROGRAM]);
    command.args(["run", "--paths", "veth", "--loads", "tcp_rr"]);
    command.args(["--blocks", "2", "--window", "1s", "--out", &out]);
    let running = Running::start(command);
    until("traffic flows", Duration::from_secs(20), || {
        running.in_traffic().is_some()
    });
    running.signal(Signal::SIGHUP);
    running.wait().exits(0);
}
