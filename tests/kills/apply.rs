//! `switch apply` takes one step after another. After each of them it may be killed, and only `apply` itself takes the rest.

use std::time::Duration;

use super::{Next, Pause, Point, Trial, changes, consistent, covers, delete, nothing, traced};
use crate::support::apart;
use crate::support::site::{NAME, Site};

/// A switch of two ports that talk, and a third one.
const FILE: &str = r#"
uplink = "up0"
[[ports]]
device = "p0"
[[ports]]
device = "p1"
[[ports]]
device = "p2"
ip = "192.0.2.3"
"#;

/// A port that is added again asks until the kernel has detached the program of the one removed, so the calls behind have other
/// numbers each time. A pause behind the removal has the kernel done before the first question. The first kill at a call
/// has none, so that kills come while the program is still attached too.
const PAUSES: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    LONGEST,
];
/// However busy the machine is, the kernel has detached a program by then.
const LONGEST: Duration = Duration::from_secs(2);

/// The uplink is another, the switch answers, and a port may send fewer broadcasts.
fn changed_in_place() -> String {
    let changed = FILE.replace("up0\"", "up1\"\nanswer = true");
    changed.replace("\"p0\"", "\"p0\"\nbroadcasts = 50")
}

fn without_the_third() -> String {
    let (two, _) = FILE.split_once("[[ports]]\ndevice = \"p2\"").unwrap();
    two.to_owned()
}

/// Kills the apply of the second file at every call that changes something, where the first was applied.
fn kill(what: &str, first: &str, second: &str, calls: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = directory.path().join(name);
        std::fs::write(&file, format!("name = \"{NAME}\"\n{text}")).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let first = write("first.toml", first);
    let second = write("second.toml", second);
    let site = Site::new();
    let _other = site.second_uplink();
    let go_back = |site: &Site| {
        site.switch(&["apply", &first]).exits(0);
        consistent(site, &site.shown(), "after the first file");
    };
    let trial = Trial {
        prepare: &nothing,
        command: &["apply", &second],
        done_already: None,
        restore: &go_back,
        talks: true,
    };
    go_back(&site);
    // The first port of a switch to have its place is added in fewer calls than those after it.
    site.switch(trial.command).exits(0);
    go_back(&site);
    let points = trial.run_steps(&site);
    delete(&site);
    covers(what, &points, calls);
}

#[test]
fn in_place_killed_at_any_call() {
    apart(|| {
        kill(
            "apply of changes in place",
            FILE,
            &changed_in_place(),
            &["BPF_LINK_CREATE", "BPF_MAP_UPDATE_ELEM", "rename"],
        );
    });
}

#[test]
fn with_a_new_port_killed_at_any_call() {
    apart(|| {
        kill(
            "apply with a new port",
            &without_the_third(),
            FILE,
            &["BPF_LINK_CREATE", "BPF_OBJ_PIN", "BPF_MAP_UPDATE_ELEM"],
        );
    });
}

#[test]
fn without_a_port_killed_at_any_call() {
    apart(|| {
        kill(
            "apply without a port",
            FILE,
            &without_the_third(),
            &["link-port-", "BPF_MAP_DELETE_ELEM"],
        );
    });
}

/// With a step of another kind before.
#[test]
fn with_a_port_replaced_killed_at_any_call() {
    apart(|| {
        kill(
            "apply with a port replaced",
            FILE,
            &FILE
                .replace("192.0.2.3", "192.0.2.4")
                .replace("\"p0\"", "\"p0\"\nbroadcasts = 50"),
            &[
                "BPF_LINK_UPDATE",
                "BPF_OBJ_PIN",
                "BPF_MAP_UPDATE_ELEM",
                "BPF_MAP_DELETE_ELEM",
                "link-port-",
            ],
        );
    });
}

impl Trial<'_> {
    /// As [`Trial::run`], where what is left of an interrupted command is neither the state before nor the one after.
    fn run_steps(&self, site: &Site) -> Vec<String> {
        let run = |pause| {
            let points = changes(&traced(site, self.command, None, pause));
            let after = site.shown();
            (self.restore)(site);
            (points, after)
        };
        let is_removal =
            |point: &&Point| point.name == "unlinkat" && point.call.contains("link-port-");
        let (points, _) = run(None);
        let removal = points.iter().find(is_removal);
        let pause = |time| removal.map(|behind| Pause { behind, time });
        let (points, after) = run(pause(LONGEST));
        let mut pauses = PAUSES.into_iter().peekable();
        for point in &points {
            // The calls behind one that took a pause take it too.
            let hits =
                |time| self.try_to_kill(site, point, pause(time), Next::Again, [&after, &after]);
            while let Some(time) = pauses.peek()
                && !hits(*time)
            {
                pauses.next();
            }
            let time = pauses.peek();
            assert!(time.is_some(), "never killed at {}", point.call);
        }
        points.into_iter().map(|point| point.call).collect()
    }
}
