//! `hopyard attach`: CNI plugins beside each other.

mod page;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::cli::{PROGRAM, Running, Said, hopyard, run};
use crate::support::plan::Room;
use crate::support::{apart, beside, procs, skip, skip_part, unless_disturbed, until};

/// Debian's directory of the reference plugins.
const REFERENCE: &str = "/usr/lib/cni";

/// Are the reference plugins there?
fn has_reference() -> bool {
    let is_there = Path::new(REFERENCE).join("bridge").is_file();
    if !is_there {
        let found = Command::new("dpkg")
            .args(["-L", "containernetworking-plugins"])
            .output();
        let present = found.is_ok_and(|found| found.status.success());
        skip("reference CNI plugins", present, "no /usr/lib/cni/bridge");
    }
    is_there
}

/// A network's file.
fn conflist(room: &Room, name: &str, kind: &str, keys: &str) -> String {
    let text = format!(
        r#"{{"cniVersion": "1.0.0", "name": "{name}", "plugins": [{{"type": "{kind}", {keys}
            "ipam": {{"type": "host-local", "subnet": "198.18.0.0/16"}}}}]}}"#
    );
    room.file(&format!("{name}.conflist"), text)
}

/// A plugin that is a script; `CNI_COMMAND` tells what it is asked.
fn plugin(room: &Room, name: &str, script: &str) {
    room.program(name, format!("#!/bin/sh\n{script}\n"));
}

/// The program with networks and small numbers.
fn arguments<'a>(room: &'a str, conflists: &'a [String], more: &'a [&'a str]) -> Vec<&'a str> {
    let mut all = vec![
        "attach",
        "--cni-path",
        room,
        "--cni-path",
        REFERENCE,
        "--seed",
        "1",
    ];
    for conflist in conflists {
        all.extend(["--conflist", conflist]);
    }
    all.extend(more);
    all
}

fn attach(room: &Room, conflists: &[String], more: &[&str]) -> Said {
    run(&arguments(&room.name(""), conflists, more))
}

fn cell<'a>(document: &'a Value, network: &str) -> &'a Value {
    let cells = document["cells"].as_array().unwrap().iter();
    cells
        .clone()
        .find(|cell| cell["network"] == network)
        .unwrap()
}

fn value(document: &Value, network: &str, figure: &str) -> f64 {
    let found = &cell(document, network)["figures"][figure]["estimate"]["value"];
    found
        .as_f64()
        .unwrap_or_else(|| panic!("{network}: no {figure}: {document}"))
}

/// Is a device here that plugins were to make, or find, on hosts of their own?
fn has_devices() -> bool {
    let is_there = |name: &str| Path::new("/sys/class/net").join(name).exists();
    ["up0", "cni0"].into_iter().any(is_there)
}

#[test]
fn the_reference_plugins_and_ours_beside_each_other() {
    if !has_reference() {
        return;
    }
    apart(|| {
        let room = Room::new();
        let mut networks = vec![
            conflist(
                &room,
                "bridge",
                "bridge",
                r#""bridge": "cni0", "isGateway": true,"#,
            ),
            conflist(&room, "macvlan", "macvlan", r#""master": "up0","#),
            conflist(&room, "ptp", "ptp", ""),
        ];
        let ours = Path::new(PROGRAM).with_file_name("hopyard-cni");
        if ours.is_file() {
            symlink(ours, room.at("hopyard")).unwrap();
            networks.push(conflist(&room, "hopyard", "hopyard", r#""master": "up0","#));
        } else {
            skip_part(
                "plugin hopyard",
                false,
                "not built: cargo build -p hopyard-cni",
            );
        }
        let few = [
            "--ports",
            "1,3",
            "--beside",
            "1,4",
            "--blocks",
            "2",
            "--attachments",
            "4",
        ];
        let said = attach(&room, &networks, &[&few[..], &["--json"]].concat());
        let document = said.exits(0).json();
        assert_eq!(document["schema"], "hopyard/attach/1");
        let cells = document["cells"].as_array().unwrap();
        assert_eq!(cells.len(), networks.len() * 4);
        for cell in cells {
            assert_eq!(cell["failed"], Value::Null, "{cell}");
            let least = if cell["beside"] == 1 { 8 } else { 24 };
            assert_eq!(cell["attachments"], least, "{cell}");
            let of = |figure: &str| {
                cell["figures"][figure]["estimate"]["value"]
                    .as_f64()
                    .unwrap()
            };
            assert!(
                of("add_p50_ns") > 1e5 && of("del_p50_ns") > 1e5 && of("cpu_ns") > 1e5,
                "{cell}"
            );
            assert!(of("answer_p50_ns") > of("add_p50_ns"), "{cell}");
            let versus = &cell["figures"]["add_p50_ns"]["versus"];
            assert_eq!(versus.is_null(), cell["network"] == "bridge", "{cell}");
            assert_eq!(versus["verdict"], Value::Null, "two blocks give no verdict");
        }
        assert!(!has_devices());
        assert!(!Path::new("/var/lib/cni/networks/ptp").exists());
        // From the document the same is computed again.
        let kept = room.file("attach.json", &said.stdout);
        let again = run(&["attach", "--from", &kept, "--json"]);
        assert_eq!(again.exits(0).stdout, said.stdout);
        let text = run(&["attach", "--from", &kept]);
        text.exits(0).prints(&[
            "Nothing is decided yet",
            "3 containers there, 4 at once",
            "p50 against bridge",
            "quick look",
        ]);
        page::is_shown(&room, document);
    });
}

#[test]
fn a_plugin_that_sleeps_50_ms_in_add_is_50_ms_slower_there_and_nowhere_else() {
    if !has_reference() {
        return;
    }
    let _beside = beside();
    let room = Room::new();
    // Both start `sleep` once in ADD, so that its own cost is that of both.
    for (name, seconds) in [("prompt", "0"), ("slow", "0.05")] {
        let script =
            format!("[ \"$CNI_COMMAND\" != ADD ] || sleep {seconds}\nexec {REFERENCE}/ptp");
        plugin(&room, name, &script);
    }
    let networks = ["prompt", "slow"].map(|name| conflist(&room, name, name, ""));
    let numbers = [
        "--ports",
        "1",
        "--beside",
        "1",
        "--blocks",
        "8",
        "--attachments",
        "6",
        "--json",
    ];
    unless_disturbed(|| {
        let said = attach(&room, &networks, &numbers);
        let document = said.exits(0).json();
        let [slow, prompt] = ["slow", "prompt"].map(|network| {
            ["add_p50_ns", "answer_p50_ns", "del_p50_ns"]
                .map(|figure| value(&document, network, figure) / 1e6)
        });
        let [add, answer, del] = [0, 1, 2].map(|at| slow[at] - prompt[at]);
        let is_late = |ms: f64| (45.0..55.0).contains(&ms);
        if !is_late(add) || !is_late(answer) || del.abs() > 6.0 {
            return Err(format!("later by {add}, {answer} and {del} ms: {said}"));
        }
        for figure in ["add_p50_ns", "answer_p50_ns"] {
            let versus = &cell(&document, "slow")["figures"][figure]["versus"];
            assert_eq!(versus["verdict"], "different", "{said}");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_is_no_network_or_does_not_work_is_a_request_that_cannot_be_met() {
    let _beside = beside();
    let room = Room::new();
    let no = r#"echo '{"code": 11, "msg": "no room", "details": "try later"}'; exit 1"#;
    plugin(&room, "refuses", no);
    plugin(&room, "crashes", "echo oops >&2; exit 7");
    plugin(&room, "babbles", "echo hello");
    plugin(&room, "mute", r#"echo '{"cniVersion": "1.0.0"}'"#);
    plugin(
        &room,
        "lies",
        r#"echo '{"cniVersion": "1.0.0", "ips": [{"address": "198.18.0.9/16"}]}'"#,
    );
    for (kind, why) in [
        ("refuses", "ADD of plugin `refuses`: no room; try later"),
        ("crashes", "it ended with exit status: 7: oops"),
        ("babbles", "it gave no result"),
        ("mute", "no address"),
        ("lies", "did not answer within 10 s"),
    ] {
        let file = room.file(
            "x.conf",
            format!(r#"{{"cniVersion": "1.0.0", "name": "x", "type": "{kind}"}}"#),
        );
        attach(&room, &[file], &[])
            .exits(2)
            .says(&["network `x`", why]);
    }
    let garbage = room.file("g.conf", "{\"name\": ");
    attach(&room, std::slice::from_ref(&garbage), &[])
        .exits(2)
        .says(&[&garbage, "no JSON"]);
    let absent = room.file(
        "a.conf",
        r#"{"cniVersion": "1.0.0", "name": "a", "type": "absent"}"#,
    );
    attach(&room, &[absent], &[])
        .exits(2)
        .says(&["no plugin `absent`", "--cni-path"]);
    let nowhere = room.name("nowhere.conf");
    attach(&room, std::slice::from_ref(&nowhere), &[])
        .exits(2)
        .says(&["cannot read", &nowhere]);
    run(&["attach", "--from", &garbage])
        .exits(2)
        .says(&[&garbage]);
    run(&["attach", "--format", "csv"])
        .exits(2)
        .says(&["text, json, html"]);
    run(&["attach", "--format", "html", "--json"])
        .exits(2)
        .says(&["cannot be used with"]);
    run(&["attach", "--ports", "0"])
        .exits(2)
        .says(&["ports: numbers from 1"]);
}

#[test]
fn one_that_fails_later_is_told_and_the_others_go_on() {
    if !has_reference() {
        return;
    }
    let _beside = beside();
    let room = Room::new();
    // It has no room for a fifth ADD in each host: one stays, two are tried.
    let script = format!(
        "if [ \"$CNI_COMMAND\" = ADD ]; then\n\
         echo >>/run/adds; [ $(wc -l </run/adds) -lt 5 ] || {{ echo '{{\"code\": 11, \"msg\": \"full\"}}'; exit 1; }}\n\
         fi\nexec {REFERENCE}/ptp"
    );
    plugin(&room, "fills", &script);
    let networks = [
        conflist(&room, "ptp", "ptp", ""),
        conflist(&room, "fills", "fills", ""),
    ];
    let numbers = [
        "--ports",
        "1",
        "--beside",
        "1",
        "--blocks",
        "1",
        "--attachments",
        "4",
    ];
    let said = attach(&room, &networks, &[&numbers[..], &["--json"]].concat());
    let document = said.exits(1).json();
    assert_eq!(cell(&document, "ptp")["attachments"], 4);
    assert_eq!(cell(&document, "fills")["attachments"], 1);
    let failed = &cell(&document, "fills")["failed"];
    assert_eq!(failed[0], 3, "{said}");
    assert!(
        failed[1].as_str().unwrap().contains("`fills`: full"),
        "{said}"
    );
}

/// A measurement that takes long, one container at a time.
const LONG: [&str; 8] = [
    "--ports",
    "1",
    "--beside",
    "1",
    "--blocks",
    "1000",
    "--attachments",
    "4",
];

/// A plugin that notes its calls in a file, and the network of it.
fn counting(room: &Room, calls: &str) -> [String; 1] {
    plugin(
        room,
        "counts",
        &format!("echo >>{calls}\nexec {REFERENCE}/ptp"),
    );
    [conflist(room, "ptp", "counts", "")]
}

/// The calls of a host's first containers and of some visits.
fn has_measured(calls: &str) -> bool {
    fs::read_to_string(calls).is_ok_and(|calls| calls.lines().count() > 24)
}

#[test]
fn one_that_is_stopped_tells_what_it_measured() {
    if !has_reference() {
        return;
    }
    apart(|| {
        let room = Room::new();
        let calls = room.name("calls");
        let networks = counting(&room, &calls);
        let limited = [&LONG[..], &["--time-limit", "4s", "--json"]].concat();
        let document = attach(&room, &networks, &limited).exits(0).json();
        assert_eq!(document["run"]["end"], "time_limit");
        assert!(
            cell(&document, "ptp")["attachments"].as_u64() >= Some(4),
            "{document}"
        );
        assert!(value(&document, "ptp", "add_p50_ns") > 1e5);
        let warning = document["warnings"][0].as_str().unwrap();
        assert!(
            warning.starts_with("the time limit came in block "),
            "{warning}"
        );

        let directory = room.name("");
        fs::remove_file(&calls).unwrap();
        let running = Running::start(hopyard(&arguments(&directory, &networks, &LONG)));
        let measured = || has_measured(&calls);
        until("it has measured", Duration::from_secs(60), measured);
        let processes = procs::below(running.pid());
        running.signal(Signal::SIGINT);
        running.wait().exits(130).prints(&[
            "1 container there, 1 at once",
            "it was interrupted in block ",
        ]);
        let gone = || processes.iter().all(|p| !lives(p.pid));
        until("all of it ends", Duration::from_secs(10), gone);

        // Its first attachment takes longer than there is time.
        plugin(&room, "slow", &format!("sleep 2\nexec {REFERENCE}/ptp"));
        let slow = [conflist(&room, "slow", "slow", "")];
        let at_once = [&LONG[..], &["--time-limit", "1s"]].concat();
        attach(&room, &slow, &at_once)
            .exits(2)
            .says(&["nothing was measured: the time limit came"]);
    });
}

#[test]
fn what_was_measured_stays_when_the_process_that_measures_is_killed() {
    if !has_reference() {
        return;
    }
    apart(|| {
        let room = Room::new();
        let calls = room.name("calls");
        let networks = counting(&room, &calls);
        let directory = room.name("");
        let running = Running::start(hopyard(&arguments(&directory, &networks, &LONG)));
        let measured = || has_measured(&calls);
        until("it has measured", Duration::from_secs(60), measured);
        let below = procs::below(running.pid());
        let host = below.iter().find(|p| is_named(p.pid, "hopyard")).unwrap();
        kill(Pid::from_raw(host.pid.cast_signed()), Signal::SIGKILL).unwrap();
        let ended = "the process that calls the plugins ended early (signal: 9 (SIGKILL))";
        running
            .wait()
            .exits(3)
            .prints(&[
                "1 container there, 1 at once",
                &format!("{ended} in block "),
            ])
            .says(&[ended]);
        let gone = || below.iter().all(|p| !lives(p.pid));
        until("all of it ends", Duration::from_secs(10), gone);
    });
}

#[test]
fn nothing_stays_of_one_that_was_killed() {
    if !has_reference() {
        return;
    }
    apart(|| {
        let room = Room::new();
        plugin(
            &room,
            "hangs",
            &format!(
                "[ \"$CNI_COMMAND\" != ADD ] || [ ! -e /run/one ] || sleep 100\ntouch /run/one\nexec {REFERENCE}/ptp"
            ),
        );
        let networks = [conflist(&room, "hangs", "hangs", "")];
        let directory = room.name("");
        let arguments = arguments(&directory, &networks, &[]);
        let running = Running::start(hopyard(&arguments));
        // The second ADD hangs: a host with a container is there.
        // Plugins have an environment of their own, without the test's mark.
        let sleeps = || procs::below(running.pid()).iter().any(|p| is_sleep(p.pid));
        until("a plugin hangs", Duration::from_secs(20), sleeps);
        let processes = procs::below(running.pid());
        running.signal(Signal::SIGKILL);
        let gone = || processes.iter().all(|p| !lives(p.pid));
        until("all of it ends", Duration::from_secs(10), gone);
        run(&["clean"]).exits(0);
        assert!(!has_devices());
    });
}

fn is_sleep(pid: u32) -> bool {
    is_named(pid, "sleep")
}

fn is_named(pid: u32, name: &str) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/comm"));
    text.is_ok_and(|comm| comm.trim() == name)
}

/// One that has ended stays in the list until somebody waits for it.
fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
