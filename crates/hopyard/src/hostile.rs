//! A run directory whose texts all attack a terminal, a table or a page.

use std::path::{Path, PathBuf};
use std::slice::from_ref;

use serde_json::{Value, json};

use crate::assess::diff::{Ask, diff};
use crate::assess::{assess, observations};
use crate::plain;
use crate::report::{self, EXPORTS};
use crate::store::{Run, load};

/// Colours and titles of terminals (7-bit and 8-bit), reversed or invisible text, line breaks, and special characters
/// of Markdown, HTML, CSV and spreadsheets.
const HOSTILE: &str = "=x\u{1b}]0;owned\u{7}\u{1b}[31m\u{9b}2J\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}\u{ad}\u{85}\u{2028}\r\n\
                       # INJECTED,\"q\"|<script>alert(1)</script>[a](javascript:1)@someone https://example.org #1`*\\\t\u{7f}\u{8}\u{0}";

/// A run that contains every kind of text.
fn full(home: &Path) -> PathBuf {
    let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/run");
    for file in ["samples.jsonl", "profiles.jsonl", "end.json"] {
        std::fs::copy(seed.join(file), home.join(file)).unwrap();
    }
    let text = std::fs::read_to_string(seed.join("run.json")).unwrap();
    let mut header: Value = serde_json::from_str(&text).unwrap();
    let mut missing = header["cells"][0].clone();
    missing["cell"]["path"] = "ovs".into();
    missing["unsupported"] = "no datapath".into();
    header["cells"].as_array_mut().unwrap().push(missing);
    header["published"] = json!([{
        "source": "A paper", "quantity": "transactions_per_s", "what": "per second", "remark": "Old.",
        "figures": [
            {"path": "veth", "load": "tcp_rr", "called": "pair", "value": 1.0, "set": {"flows": "1"}},
            {"path": "bridge", "load": "tcp_rr", "called": "switch", "value": 2.0},
        ],
    }]);
    header["environment"]["frequency_governor"] = "powersave".into();
    header["environment"]["debug_features"] = json!(["KASAN"]);
    std::fs::write(home.join("run.json"), header.to_string()).unwrap();
    let file = home.join("samples.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut lines: Vec<Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let measured = &mut lines[0]["outcome"]["measured"];
    measured["way"] = json!({"proved": false, "problems": ["eth0 carried nothing"]});
    measured["datapath"] = json!({"switch": "Open vSwitch", "version": "3", "kind": "userspace"});
    measured["guest"] = json!({"kernel": "6.1", "cpus": 1, "emulated": true});
    lines[1]["outcome"] = json!({"failed": {"cause": "no route"}});
    write_lines(&file, &lines);
    home.to_owned()
}

fn write_lines(file: &Path, lines: &[Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(file, text).unwrap();
}

/// The places of texts in a document.
fn texts(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                texts(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                texts(field, &format!("{at}/{key}"), found);
            }
        }
        _ => {}
    }
}

/// Maps in the header whose keys are free text.
const MAPS: [&str; 3] = ["mitigations", "kernel_options", "sysctls"];

/// Makes every free text hostile, and collects the errors about those that may not be. Returns the places that were
/// changed.
fn poison(home: &Path, said: &mut Vec<String>) -> Vec<String> {
    let mut changed = Vec::new();
    for (name, documents) in [("run.json", 1), ("samples.jsonl", 2), ("profiles.jsonl", 1)] {
        let file = home.join(name);
        let text = std::fs::read_to_string(&file).unwrap();
        let mut lines: Vec<Value> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        for line in 0..documents {
            let mut places = Vec::new();
            texts(&lines[line], "", &mut places);
            for place in places {
                let old = lines[line].pointer(&place).unwrap().clone();
                // Names of cells must stay different.
                let new = format!("{HOSTILE}{}", changed.len());
                *lines[line].pointer_mut(&place).unwrap() = new.into();
                write_lines(&file, &lines);
                match load(home) {
                    Ok(_) => changed.push(format!("{name}{place}")),
                    Err(error) => {
                        said.push(crate::chain(&error));
                        *lines[line].pointer_mut(&place).unwrap() = old;
                    }
                }
            }
        }
        for map in MAPS {
            if let Some(fields) = lines[0].pointer_mut(&format!("/environment/{map}")) {
                let fields = fields.as_object_mut().unwrap();
                fields.insert(HOSTILE.to_owned(), HOSTILE.into());
            }
        }
        write_lines(&file, &lines);
    }
    changed
}

fn is_harmful(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The problem in an output, if any.
fn harm(name: &str, text: &str) -> Option<String> {
    let found = text.char_indices().find(|(_, c)| is_harmful(*c));
    found.map(|(at, c)| {
        let line = text[..at].lines().last().unwrap_or_default();
        let line: String = line.chars().filter(|c| !is_harmful(*c)).take(120).collect();
        format!("{name}: {c:?} after `{line}`")
    })
}

/// Every output that people or programs read as text.
fn outputs(run: &Run, other: &Run) -> Vec<(String, String)> {
    let document = assess(run);
    let texts = EXPORTS.iter().filter(|export| !export.is_binary());
    let mut all: Vec<(String, String)> = texts
        .map(|export| {
            let text = export.render(&document, &observations(run)).unwrap();
            let name = format!("report {}", export.name);
            (name, String::from_utf8(text).unwrap())
        })
        .collect();
    for (a, b) in [(run, other), (other, run), (run, run)] {
        match diff(from_ref(a), from_ref(b), &[], &Ask::default()) {
            Ok(report) => all.extend(EXPORTS.iter().filter_map(|export| {
                let text = export.diff?(&report);
                Some((format!("diff {}", export.name), text))
            })),
            Err(refused) => all.push(("diff".to_owned(), plain::message(&refused.to_string()))),
        }
    }
    all
}

#[test]
fn no_text_of_a_run_directory_commands_whoever_reads_it() {
    let (home, clean) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (hostile, clean) = (full(home.path()), full(clean.path()));
    let mut said = Vec::new();
    let changed = poison(&hostile, &mut said);
    // Free texts: names, causes, notes, facts of the machine.
    for wanted in [
        "run.json/id",
        "run.json/plan",
        "run.json/started",
        "run.json/left_out/0/0",
        "run.json/left_out/0/1",
        "run.json/cells/0/cell/path",
        "run.json/cells/0/cell/axes/congestion",
        "run.json/cells/4/unsupported",
        "run.json/published/0/source",
        "run.json/published/0/figures/0/called",
        "run.json/environment/hostname",
        "run.json/environment/kernel_command_line",
        "samples.jsonl/outcome/measured/devices/0/name",
        "samples.jsonl/outcome/measured/way/problems/0",
        "samples.jsonl/outcome/measured/datapath/version",
        "samples.jsonl/outcome/measured/guest/kernel",
        "samples.jsonl/outcome/failed/cause",
        "profiles.jsonl/frames/0",
    ] {
        assert!(
            changed.iter().any(|c| c == wanted),
            "{wanted}: {changed:#?}"
        );
    }
    assert!(said.len() > 5, "{said:#?}");
    let (run, other) = (load(&hostile).unwrap(), load(&clean).unwrap());
    let mut problems: Vec<String> = outputs(&run, &other)
        .iter()
        .filter_map(|(name, text)| harm(name, text))
        .collect();
    let flames = home.path().join("flames");
    for picture in report::flame::draw(&run, &flames).unwrap() {
        let text = std::fs::read_to_string(&picture).unwrap();
        problems.extend(harm("flame graph", &text));
        problems.extend(harm(
            "name of a flame graph",
            &picture.display().to_string(),
        ));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn no_text_of_a_run_directory_breaks_a_layout() {
    let home = tempfile::tempdir().unwrap();
    let hostile = full(home.path());
    poison(&hostile, &mut Vec::new());
    let run = load(&hostile).unwrap();
    for (name, text) in outputs(&run, &run) {
        let own = text.lines().position(|line| line.starts_with("# INJECTED"));
        let before = own.and_then(|at| text.lines().nth(at.saturating_sub(1)));
        assert_eq!(before, None, "{name}: a line of its own");
        if ["html", "markdown", "comment"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            assert!(!text.contains("<script>alert(1)"), "{name}: a script");
        }
        if ["markdown", "comment"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            let open = text.replace("\\[", "");
            assert!(!open.contains("[a]("), "{name}: a link");
            for wanted in ["@someone", "://example", "#1"] {
                assert!(!text.contains(wanted), "{name}: {wanted}");
            }
        }
        if name == "report csv" {
            let columns = |line: &str| {
                let outside = line.split('"').step_by(2);
                outside.map(|part| part.matches(',').count()).sum::<usize>()
            };
            let head = columns(text.lines().next().unwrap());
            for line in text.lines() {
                assert_eq!(columns(line), head, "{line}");
                // A spreadsheet would compute a text that begins like this.
                assert!(
                    !line.starts_with('=') && !line.contains(",=") && !line.contains("\"="),
                    "{line}"
                );
            }
        }
    }
}
