//! The action for GitHub and the template for GitLab in `contrib`: their files read as YAML, their steps run as these would run
//! them, with real runs, and an interface on loopback that keeps comments.

mod comments;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use self::comments::Site;
use crate::support::beside;
use crate::support::cli::{PROGRAM, Running, Said};
use crate::support::plan::Room;
use crate::support::skip::skip;

/// What stands for the values of a service: expressions of an action, or variables of a job.
type Values<'a> = BTreeMap<&'a str, String>;

fn contrib(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../contrib")
        .join(name)
}

/// A YAML file as JSON, read by a library that is not ours; `None` where there is none.
fn yaml(name: &str) -> Option<Value> {
    const TO_JSON: &str =
        "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let python = |code: &str| {
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-c", code]);
        command
    };
    let known = python("import yaml")
        .output()
        .is_ok_and(|said| said.status.success());
    if !known {
        let there = Path::new("/usr/lib/python3/dist-packages/yaml").exists();
        skip("python3-yaml", there, "nothing reads YAML files");
        return None;
    }
    let said = python(TO_JSON).arg(contrib(name)).output().unwrap();
    assert!(said.status.success(), "{name}: {said:?}");
    Some(serde_json::from_slice(&said.stdout).unwrap())
}

/// Runs a shell step with nothing in its environment but these variables.
fn step(script: &str, variables: &Values<'_>, directory: &Path) -> Said {
    let mut command = Command::new("bash");
    command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
    command.env_clear().current_dir(directory);
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command.envs(variables);
    Running::start(command).wait()
}

/// `before` and `after` in the order in which they were switched to.
fn switched(room: &Room) -> String {
    let text = std::fs::read_to_string(room.at("switched")).unwrap();
    text.lines().collect::<Vec<_>>().join(" ")
}

const SHORT_RUN: &str =
    "--paths veth --loads tcp_rr --blocks 2..2 --turns off --window 60ms --warm-up 20ms";
const IN_TURN: &str = "old new new old old new";

/// What is measured: nothing that differs, so that whether the gate passes, fails or cannot tell is all the same.
fn check_outcome(room: &Room, gate: &Said) {
    assert_eq!(switched(room), IN_TURN);
    let status = std::fs::read_to_string(room.at("out/status")).unwrap();
    assert!(["0\n", "1\n", "4\n"].contains(&status.as_str()), "{status}");
    gate.exits(status.trim().parse().unwrap());
    let text = std::fs::read_to_string(room.at("out/comment.md")).unwrap();
    assert!(text.starts_with("**") && text.contains("Gate: "), "{text}");
}

/// Replaces expressions by their stand-ins; one that nothing stands for fails the test.
fn filled(text: &str, values: &Values<'_>) -> String {
    let mut parts = text.split("${{");
    let mut filled = parts.next().unwrap().to_owned();
    for part in parts {
        let (expression, rest) = part.split_once("}}").unwrap();
        let expression = expression.trim();
        let value = values.get(expression);
        filled += value.unwrap_or_else(|| panic!("nothing stands for {expression}"));
        filled += rest;
    }
    filled
}

/// The steps of the action, by their name.
fn steps(action: &Value) -> Vec<(&str, &Value)> {
    let steps = action["runs"]["steps"].as_array().unwrap();
    steps
        .iter()
        .map(|step| (step["name"].as_str().unwrap(), step))
        .collect()
}

/// A repository with branches `main` and `new`, and tag `old` where they parted. Both went on since.
fn branch_off(room: &Room) {
    for line in [
        "init -q -b main",
        "commit -q --allow-empty -m both",
        "tag old",
        "commit -q --allow-empty -m main",
        "checkout -q -b new old",
        "commit -q --allow-empty -m new",
    ] {
        let mut git = Command::new("git");
        git.current_dir(room.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
            .args(line.split(' '));
        assert!(git.status().unwrap().success(), "{line}");
    }
}

#[test]
fn the_action_measures_comments_and_judges() {
    let _beside = beside();
    let Some(action) = yaml("github-action/action.yml") else {
        return;
    };
    assert_eq!(action["runs"]["using"], "composite");
    let (room, site) = (Room::new(), Site::github());
    let mut values: Values<'_> = BTreeMap::new();
    let inputs = action["inputs"].as_object().unwrap();
    for (name, input) in inputs {
        assert!(input["description"].is_string(), "{name}");
        if let Some(default) = input["default"]
            .as_str()
            .filter(|text| !text.contains("${{"))
        {
            values.insert(
                Box::leak(format!("inputs.{name}").into_boxed_str()),
                default.to_owned(),
            );
        }
    }
    let log = room.name("switched");
    branch_off(&room);
    values.extend([
        (
            "github.action_path",
            contrib("github-action").display().to_string(),
        ),
        ("github.event.pull_request.number", "7".to_owned()),
        ("github.event.pull_request.base.sha", "main".to_owned()),
        (
            "inputs.switch",
            format!("if [ $1 = new ]; then echo new; else git tag --points-at $1; fi >> {log}"),
        ),
        ("inputs.after", "new".to_owned()),
        ("inputs.run", SHORT_RUN.to_owned()),
        ("inputs.repeats", "3".to_owned()),
        ("inputs.fail-on", "50%".to_owned()),
        ("inputs.program", PROGRAM.to_owned()),
        ("inputs.token", "secret".to_owned()),
        (
            "inputs.out || format('{0}/hopyard', runner.temp)",
            room.name("out"),
        ),
        ("steps.measure.outputs.out", room.name("out")),
    ]);
    let of_runner: Values<'_> = [
        ("GITHUB_OUTPUT", room.name("outputs")),
        ("GITHUB_STEP_SUMMARY", room.name("summary")),
        ("GITHUB_API_URL", site.address()),
        ("GITHUB_REPOSITORY", "someone/something".to_owned()),
    ]
    .into();
    let mut said = Vec::new();
    for (name, one) in steps(&action) {
        assert_eq!(one["shell"], "bash", "{name}");
        let script = one["run"].as_str().unwrap();
        // What stands in a script as an expression is code of whoever gives its value.
        assert!(!script.contains("${{"), "{name}: {script}");
        let mut variables = of_runner.clone();
        for (variable, value) in one["env"].as_object().unwrap() {
            variables.insert(variable, filled(value.as_str().unwrap(), &values));
        }
        said.push(step(script, &variables, room.path()));
    }
    let [measured, commented, gate] = &said[..] else {
        panic!("{} steps", said.len())
    };
    measured.exits(0);
    commented.exits(0);
    check_outcome(&room, gate);
    let outputs = std::fs::read_to_string(room.at("outputs")).unwrap();
    assert_eq!(outputs, format!("out={}\n", room.name("out")));
    let summary = std::fs::read_to_string(room.at("summary")).unwrap();
    assert!(summary.contains("Gate: "), "{summary}");
    let [comment] = &site.comments()[..] else {
        panic!("{:?}", site.comments())
    };
    let text = std::fs::read_to_string(room.at("out/comment.md")).unwrap();
    assert_eq!(*comment, format!("<!-- hopyard: network -->\n{text}"));
    assert!(comment.chars().count() < 65_536);
    assert!(
        site.tokens().iter().all(|token| token == "Bearer secret"),
        "{:?}",
        site.tokens()
    );
}

/// What the step that comments has in its environment.
fn commenting<'a>(room: &Room, site: &Site) -> Values<'a> {
    [
        ("HOPYARD_OUT", room.name("out")),
        ("HOPYARD_NAME", "network".to_owned()),
        ("HOPYARD_TOKEN", "secret".to_owned()),
        ("HOPYARD_AUTHOR", "github-actions[bot]".to_owned()),
        ("HOPYARD_PULL_REQUEST", "7".to_owned()),
        ("GITHUB_API_URL", site.address()),
        ("GITHUB_REPOSITORY", "someone/something".to_owned()),
        ("CI_API_V4_URL", site.address()),
        ("CI_PROJECT_ID", "3".to_owned()),
        ("CI_MERGE_REQUEST_IID", "7".to_owned()),
    ]
    .into()
}

/// A push after another writes into the same comment, of this name and this author alone.
#[test]
fn a_comment_is_kept_up_to_date() {
    let _beside = beside();
    for (site, script) in [
        (Site::github(), "github-action/comment"),
        (Site::gitlab(), "gitlab/comment"),
    ] {
        let room = Room::new();
        std::fs::create_dir(room.at("out")).unwrap();
        // More than a page of others, one of which looks like ours.
        for nth in 0..101 {
            site.say("stranger", &format!("<!-- hopyard: network -->\n{nth}"));
        }
        let script = contrib(script).display().to_string();
        let mut variables = commenting(&room, &site);
        for (text, name) in [
            ("one \"quoted\"\n", "network"),
            ("two\n", "network"),
            ("other\n", "other"),
        ] {
            room.file("out/comment.md", text);
            variables.insert("HOPYARD_NAME", name.to_owned());
            step(&script, &variables, room.path()).exits(0);
        }
        let own = &site.comments()[101..];
        assert_eq!(
            own,
            [
                "<!-- hopyard: network -->\ntwo\n",
                "<!-- hopyard: other -->\nother\n"
            ],
            "{script}"
        );
    }
}

#[test]
fn who_may_not_comment_is_told_and_what_fails_is_named() {
    let _beside = beside();
    let room = Room::new();
    std::fs::create_dir(room.at("out")).unwrap();
    room.file("out/comment.md", "text\n");
    let github = contrib("github-action/comment").display().to_string();
    let gitlab = contrib("gitlab/comment").display().to_string();
    let refusing = Site::refusing(403);
    step(&github, &commenting(&room, &refusing), room.path())
        .exits(0)
        .says(&["may not comment", "fork"]);
    let broken = Site::refusing(500);
    for script in [&github, &gitlab] {
        let said = step(script, &commenting(&room, &broken), room.path());
        said.exits(2)
            .says(&["HTTP status 500", "cannot comment on"]);
        assert!(!said.stderr.contains("secret"), "{said}");
    }
    let nothing: [(&str, &str, &str, i32); 4] = [
        (&github, "HOPYARD_PULL_REQUEST", "", 0),
        (&gitlab, "CI_MERGE_REQUEST_IID", "", 0),
        (&gitlab, "HOPYARD_TOKEN", "", 0),
        (&github, "HOPYARD_NAME", "a --> b", 2),
    ];
    for (script, variable, value, status) in nothing {
        let site = Site::github();
        let mut variables = commenting(&room, &site);
        variables.insert(variable, value.to_owned());
        step(script, &variables, room.path()).exits(status);
        assert!(site.comments().is_empty());
    }
}

#[test]
fn the_template_measures_comments_and_judges() {
    let _beside = beside();
    let Some(template) = yaml("gitlab/hopyard.gitlab-ci.yml") else {
        return;
    };
    let (room, site) = (Room::new(), Site::gitlab());
    let job = &template[".hopyard"];
    let log = room.name("switched");
    let mut variables = commenting(&room, &site);
    let defaults = job["variables"].as_object().unwrap();
    for (name, value) in defaults
        .iter()
        .filter(|(name, _)| name.starts_with("HOPYARD"))
    {
        let value = value
            .as_str()
            .unwrap_or_else(|| panic!("{name} is no text"));
        variables.entry(name).or_insert_with(|| value.to_owned());
    }
    variables.extend([
        ("HOPYARD_SOURCE", contrib("..").display().to_string()),
        ("HOPYARD_SWITCH", format!("echo \"$1\" >> {log}")),
        ("HOPYARD_BEFORE", "old".to_owned()),
        // Of merged results.
        ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "new".to_owned()),
        ("CI_COMMIT_SHA", "merge".to_owned()),
        ("HOPYARD_RUN", SHORT_RUN.to_owned()),
        ("HOPYARD_REPEATS", "3".to_owned()),
        ("HOPYARD_FAIL_ON", "50%".to_owned()),
        ("HOPYARD_PROGRAM", PROGRAM.to_owned()),
    ]);
    let lines = job["script"].as_array().unwrap();
    let lines: Vec<&str> = lines.iter().map(|line| line.as_str().unwrap()).collect();
    let (gate, lines) = lines.split_last().unwrap();
    step(&lines.join("\n"), &variables, room.path()).exits(0);
    check_outcome(&room, &step(gate, &variables, room.path()));
    assert_eq!(site.comments().len(), 1);
}

/// Bad values are refused before anything is measured, and leave nothing behind.
#[test]
fn bad_values_are_refused() {
    let _beside = beside();
    let room = Room::new();
    let good: Values<'_> = [
        ("HOPYARD_BEFORE", "old".to_owned()),
        ("HOPYARD_AFTER", "new".to_owned()),
        ("HOPYARD_SWITCH", "test \"$1\"".to_owned()),
        ("HOPYARD_RUN", SHORT_RUN.to_owned()),
        ("HOPYARD_REPEATS", "3".to_owned()),
        ("HOPYARD_PROGRAM", PROGRAM.to_owned()),
        ("HOPYARD_OUT", room.name("out")),
    ]
    .into();
    let script = contrib("ci/measure").display().to_string();
    for (name, value) in [
        ("HOPYARD_BEFORE", ""),
        ("HOPYARD_SWITCH", ""),
        // As GitLab hands on what was written with one dollar.
        ("HOPYARD_SWITCH", "./install \"\""),
        ("HOPYARD_REPEATS", "0"),
        ("HOPYARD_REPEATS", "99"),
        ("HOPYARD_REPEATS", "a[$(touch x)]"),
        ("HOPYARD_FAIL_ON", "three"),
        ("HOPYARD_OUT", room.path().to_str().unwrap()),
    ] {
        let mut variables = good.clone();
        variables.insert(name, value.to_owned());
        step(&script, &variables, room.path())
            .exits(2)
            .says(&["hopyard: "]);
        assert!(
            !room.at("out").exists() && !room.at("x").exists(),
            "{name}={value}"
        );
    }
}

/// A gate that cannot tell passes where the user says so, and one that failed does not.
#[test]
fn an_undecided_gate_passes_on_request() {
    let _beside = beside();
    let room = Room::new();
    std::fs::create_dir(room.at("out")).unwrap();
    let script = contrib("ci/gate").display().to_string();
    for (status, pass, exits) in [
        (0, "false", 0),
        (1, "true", 1),
        (4, "false", 4),
        (4, "true", 0),
    ] {
        room.file("out/status", format!("{status}\n"));
        let variables: Values<'_> = [
            ("HOPYARD_OUT", room.name("out")),
            ("HOPYARD_PASS_UNDECIDED", pass.to_owned()),
        ]
        .into();
        step(&script, &variables, room.path()).exits(exits);
    }
}
