//! SIGKILL between every two kernel calls of the commands that change a switch.
//!
//! strace kills the program as it enters a call, before the call does anything. So to be killed at each
//! call that changes something is to leave every state that can be left.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::cli::{PROGRAM, Said};
use crate::support::site::{NAME, Site, nothing_stands};
use crate::support::{apart, tell};

mod apply;

/// A removed program is off its hook by then.
const DETACHING: Duration = Duration::from_secs(5);
/// How often a command is killed that does not come to the call meant: it may have to ask the kernel once more.
const TRIES: u32 = 5;
/// Calls that may change what others see. The older ones exist on some machines only.
const CALLS: &str = "bpf,mount,umount2,?mkdir,mkdirat,?rmdir,?unlink,unlinkat,?rename,?renameat,renameat2,\
                     ?open,openat";
/// What of `bpf` only reads, or makes what nobody sees yet.
const HARMLESS: [&str; 10] = [
    "BPF_MAP_CREATE",
    "BPF_MAP_LOOKUP_ELEM",
    "BPF_MAP_GET_NEXT_KEY",
    "BPF_PROG_LOAD",
    "BPF_OBJ_GET,",
    "BPF_OBJ_GET_INFO_BY_FD",
    "BPF_PROG_QUERY",
    "BPF_PROG_GET_FD_BY_ID",
    "BPF_BTF_LOAD",
    "BPF_BTF_GET",
];

/// A call of a command, as strace counts: among the calls of its name.
struct Point {
    name: String,
    number: usize,
    /// How many changes come before it.
    before: usize,
    /// With its arguments.
    call: String,
}

/// strace holds the command up behind a call.
#[derive(Clone, Copy)]
struct Pause<'a> {
    behind: &'a Point,
    time: Duration,
}

/// A command under trial.
struct Trial<'a> {
    /// Makes what the command finds.
    prepare: &'a dyn Fn(&Site),
    command: &'a [&'a str],
    /// What it says when it is run again after it was done; nothing: it can be done again.
    done_already: Option<&'a str>,
    /// Undoes both, from whatever there is.
    restore: &'a dyn Fn(&Site),
    /// Do guests talk throughout?
    talks: bool,
}

/// What somebody may do first after the kill.
#[derive(Debug, Clone, Copy)]
enum Next {
    Show,
    Again,
}

impl Trial<'_> {
    /// Kills the command at each call that changes something, and gives them.
    fn run(&self, site: &Site) -> Vec<String> {
        (self.prepare)(site);
        let before = site.shown();
        let points = changes(&traced(site, self.command, None, None));
        let after = site.shown();
        (self.restore)(site);
        for point in &points {
            for next in [Next::Show, Next::Again] {
                self.kill(site, point, next, [&before, &after]);
            }
        }
        points.into_iter().map(|point| point.call).collect()
    }

    /// Kills the command at a call, and checks what is left.
    fn kill(&self, site: &Site, point: &Point, next: Next, states: [&Value; 2]) {
        let is_hit = (0..TRIES).any(|_| self.try_to_kill(site, point, None, next, states));
        assert!(is_hit, "never killed at {}", point.call);
    }

    /// Kills the command at the number of a call, and says whether it was that call. What a kill at another call leaves is
    /// checked as well.
    fn try_to_kill(
        &self,
        site: &Site,
        point: &Point,
        pause: Option<Pause<'_>>,
        next: Next,
        states: [&Value; 2],
    ) -> bool {
        (self.prepare)(site);
        let (said, trace) = traced(site, self.command, Some(point), pause);
        let at = calls(&trace).last().unwrap_or_default();
        let told = format!("killed at {at}, then {next:?}");
        assert_eq!(said.status.signal(), Some(9), "{told}: {said}");
        self.check(site, next, &told, states);
        (self.restore)(site);
        kind(at) == kind(&point.call) && changes_in(&trace).len() == point.before + 1
    }

    fn check(&self, site: &Site, next: Next, at: &str, [before, after]: [&Value; 2]) {
        for (hook, programs) in site.programs() {
            assert!(programs.len() <= 1, "{at}: {programs:?} at {hook}");
        }
        if self.talks {
            site.talks();
        }
        let mut was_done = None;
        if let Next::Show = next {
            let now = site.shown();
            assert!(now == *before || now == *after, "{at}: {now:#}");
            consistent(site, &now, at);
            was_done = Some(before != after && now == *after);
        }
        let again = site.switch(self.command);
        match self.done_already {
            Some(says) if again.status.code() == Some(2) => {
                again.says(&[says]);
                assert_ne!(was_done, Some(false), "{at}: {again}");
            }
            _ => {
                assert!(again.status.success(), "{at}: {again}");
                let can_be_again = self.done_already.is_none();
                assert!(can_be_again || was_done != Some(true), "{at}: {again}");
            }
        }
        let now = site.shown();
        assert_eq!(now, *after, "{at}: {now:#}");
        consistent(site, &now, at);
        if self.talks {
            site.talks();
        }
    }
}

/// One program at each hook of what is in the switch, none elsewhere.
#[track_caller]
fn consistent(site: &Site, shown: &Value, at: &str) {
    let mut wanted = Vec::new();
    for switch in shown.as_array().unwrap() {
        if let Some(device) = switch["uplink"]["device"].as_str() {
            wanted.extend([format!("{device} in"), format!("{device} out")]);
        }
        for port in switch["ports"].as_array().unwrap() {
            wanted.push(format!("{} in", port["device"].as_str().unwrap()));
        }
    }
    // The kernel detaches what was removed a moment later.
    let odd = || {
        let mut all = site.programs();
        all.retain(|(hook, programs)| programs.len() != usize::from(wanted.contains(hook)));
        all
    };
    let deadline = Instant::now() + DETACHING;
    loop {
        let odd = odd();
        if odd.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "{at}: {odd:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs a command under strace, to its end or to the call of this number, and gives its calls.
fn traced(
    site: &Site,
    command: &[&str],
    kill_at: Option<&Point>,
    pause: Option<Pause<'_>>,
) -> (Said, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-s", "200", "-e"]);
    strace.arg(format!("trace={CALLS}"));
    strace.args(["-e", "signal=none", "-o"]).arg(file.path());
    // strace keeps the last injection for a name, which has to be the kill.
    if let Some(Pause { behind, time }) = pause {
        let Point { name, number, .. } = behind;
        let time = time.as_micros();
        strace.arg("-e");
        strace.arg(format!("inject={name}:delay_exit={time}:when={number}"));
    }
    if let Some(Point { name, number, .. }) = kill_at {
        strace.arg("-e");
        strace.arg(format!("inject={name}:signal=SIGKILL:when={number}"));
    }
    // The test runner's, where the loader would look first.
    strace.env_remove("LD_LIBRARY_PATH");
    strace.args(["--", PROGRAM, "switch"]).args(command);
    let said = site.run(strace);
    (said, std::fs::read_to_string(file.path()).unwrap())
}

/// The calls of a trace's first thread.
fn calls(trace: &str) -> impl Iterator<Item = &str> {
    let first = trace.split_whitespace().next().unwrap_or_default();
    trace
        .lines()
        .filter_map(move |line| line.strip_prefix(first))
        .map(str::trim_start)
        .filter(|call| call.contains('(') && !call.starts_with('<'))
}

/// What a call is: its name, and the command that `bpf` is given.
fn kind(call: &str) -> &str {
    let end = if call.starts_with("bpf(") { ',' } else { '(' };
    call.split(end).next().unwrap_or_default()
}

/// The calls of the first thread of a command that changed something.
fn changes((said, trace): &(Said, String)) -> Vec<Point> {
    said.exits(0);
    changes_in(trace)
}

fn changes_in(trace: &str) -> Vec<Point> {
    let mut counts = BTreeMap::new();
    let mut points = Vec::new();
    for call in calls(trace) {
        let Some((name, _)) = call.split_once('(') else {
            continue;
        };
        let number = counts.entry(name.to_owned()).or_insert(0);
        *number += 1;
        if is_change(call) {
            points.push(Point {
                name: name.to_owned(),
                number: *number,
                before: points.len(),
                call: call.to_owned(),
            });
        }
    }
    points
}

fn is_change(call: &str) -> bool {
    if call.contains(" = -1 ") {
        return false;
    }
    if call.starts_with("open") {
        return call.contains("O_CREAT");
    }
    !call.starts_with("bpf(")
        || !HARMLESS
            .iter()
            .any(|word| call.starts_with(&format!("bpf({word}")))
}

/// The sets of points of one command have these calls among them.
#[track_caller]
fn covers(what: &str, points: &[String], calls: &[&str]) {
    for call in calls {
        assert!(
            points.iter().any(|p| p.contains(call)),
            "{call}: {points:#?}"
        );
    }
    tell(&format!("{what}: killed at each of {} calls", points.len()));
}

fn nothing(_: &Site) {}

/// Adds port `p2` and takes it out: the first of a switch to have its place is added in fewer calls than those after it.
fn was_there(site: &Site, add: &[&str]) {
    site.switch(add).exits(0);
    take_out(site);
}

/// Takes port `p2` out. Only when its programs are off their hooks is it added again in as many calls.
fn take_out(site: &Site) {
    site.switch(&["port", "del", NAME, "p2"]).exits(0);
    consistent(site, &site.shown(), "after port del");
}

/// Deletes the switch, and does not ask what is shown then.
fn undo(site: &Site) {
    site.switch(&["delete", NAME]).exits(0);
    consistent(site, &json!([]), "after delete");
    nothing_stands();
}

fn delete(site: &Site) {
    site.switch(&["delete", NAME]).exits(0);
    assert_eq!(site.shown(), json!([]));
    consistent(site, &json!([]), "after delete");
    nothing_stands();
}

#[test]
fn create_killed_at_any_call() {
    apart(|| {
        let points = {
            Trial {
                prepare: &nothing,
                command: &["create", NAME, "--uplink", "up0", "--answer"],
                done_already: Some("there is one of that name"),
                restore: &undo,
                talks: false,
            }
            .run(&Site::new())
        };
        let calls = [
            "mount(",
            "mkdir",
            "BPF_OBJ_PIN",
            "BPF_MAP_UPDATE_ELEM",
            "BPF_LINK_CREATE",
            "O_CREAT",
        ];
        covers("create", &points, &calls);
    });
}

#[test]
fn port_add_killed_at_any_call() {
    apart(|| {
        let points = {
            let site = Site::new();
            site.furnish(2);
            let add = [
                "port",
                "add",
                NAME,
                "p2",
                "--ip",
                "192.0.2.3",
                "--mac",
                "02:00:00:00:07:01",
                "--mac",
                "02:00:00:00:07:02",
            ];
            was_there(&site, &add);
            let points = Trial {
                prepare: &nothing,
                command: &add,
                done_already: Some("is a port of switch"),
                restore: &take_out,
                talks: true,
            }
            .run(&site);
            delete(&site);
            points
        };
        let calls = ["BPF_OBJ_PIN", "BPF_MAP_UPDATE_ELEM", "BPF_LINK_CREATE"];
        covers("port add", &points, &calls);
    });
}

#[test]
fn port_del_killed_at_any_call() {
    apart(|| {
        let points = {
            let site = Site::new();
            site.furnish(2);
            let points = Trial {
                prepare: &|site| {
                    // One prefix is within the other.
                    let add = ["port", "add", NAME, "p2", "--ip", "192.0.2.3"];
                    let prefixes = [
                        "--ip-prefix",
                        "2001:db8:1::/64",
                        "--ip-prefix",
                        "2001:db8::/32",
                    ];
                    site.switch(&[&add[..], &prefixes].concat()).exits(0);
                },
                command: &["port", "del", NAME, "p2"],
                done_already: Some("none of its ports"),
                restore: &nothing,
                talks: true,
            }
            .run(&site);
            delete(&site);
            points
        };
        covers(
            "port del",
            &points,
            &["unlink", "BPF_MAP_UPDATE_ELEM", "BPF_MAP_DELETE_ELEM"],
        );
    });
}

#[test]
fn upgrade_killed_at_any_call() {
    apart(|| {
        let points = {
            let site = Site::new();
            site.furnish(2);
            let points = Trial {
                prepare: &nothing,
                command: &["upgrade", NAME],
                done_already: None,
                restore: &nothing,
                talks: true,
            }
            .run(&site);
            delete(&site);
            points
        };
        covers(
            "upgrade",
            &points,
            &["BPF_OBJ_PIN", "rename", "BPF_LINK_UPDATE"],
        );
    });
}

#[test]
fn uplink_killed_at_any_call() {
    apart(|| {
        let points = {
            let site = Site::new();
            let _other = site.second_uplink();
            site.furnish(2);
            let points = Trial {
                prepare: &nothing,
                command: &["uplink", NAME, "up1"],
                done_already: None,
                restore: &|site| {
                    site.switch(&["uplink", NAME, "up0"]).exits(0);
                    consistent(site, &site.shown(), "after the uplink is back");
                },
                talks: true,
            }
            .run(&site);
            delete(&site);
            points
        };
        covers(
            "uplink",
            &points,
            &[
                "BPF_LINK_CREATE",
                "BPF_OBJ_PIN",
                "BPF_MAP_UPDATE_ELEM",
                "rename",
            ],
        );
    });
}

#[test]
fn delete_killed_at_any_call() {
    apart(|| {
        let points = {
            Trial {
                prepare: &|site| site.furnish(2),
                command: &["delete", NAME],
                done_already: Some("there is no switch"),
                restore: &|_| nothing_stands(),
                talks: false,
            }
            .run(&Site::new())
        };
        covers("delete", &points, &["unlink", "AT_REMOVEDIR", "umount2"]);
    });
}

/// What undoes an interrupted command may be interrupted as well.
#[test]
fn repair_killed_at_any_call() {
    apart(|| {
        let points = {
            let site = Site::new();
            site.furnish(2);
            let add = ["port", "add", NAME, "p2", "--ip", "192.0.2.3"];
            was_there(&site, &add);
            let mut points = changes(&traced(&site, &add, None, None));
            take_out(&site);
            // All is there but the mark that says so.
            points.retain(|point| point.call.contains("BPF_MAP_UPDATE_ELEM"));
            let mark = points.last().unwrap();
            let points = Trial {
                prepare: &|site| {
                    let (_, trace) = traced(site, &add, Some(mark), None);
                    let at = calls(&trace).last().unwrap_or_default();
                    assert_eq!(kind(at), kind(&mark.call), "{trace}");
                },
                command: &["show", NAME],
                done_already: None,
                restore: &nothing,
                talks: true,
            };
            let points = points.run_repair(&site);
            delete(&site);
            points
        };
        covers(
            "repair",
            &points,
            &["unlink", "BPF_MAP_UPDATE_ELEM", "BPF_MAP_DELETE_ELEM"],
        );
    });
}

impl Trial<'_> {
    /// As [`Trial::run`], where looking at the state before would already change it.
    fn run_repair(&self, site: &Site) -> Vec<String> {
        let state = site.shown();
        (self.prepare)(site);
        let points = changes(&traced(site, self.command, None, None));
        consistent(site, &site.shown(), "after a repair");
        for point in &points {
            self.kill(site, point, Next::Show, [&state, &state]);
        }
        points.into_iter().map(|point| point.call).collect()
    }
}
