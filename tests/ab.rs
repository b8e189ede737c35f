//! `hopyard run --a --b`: two settings of the host in one run; `--fail-on` in a run.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::support::cli::{Running, Said, hopyard, run};
use crate::support::host::unharmed;
use crate::support::plan::Room;
use crate::support::{alone, apart, beside, until};

const LONG: Duration = Duration::from_secs(60);

/// A command that writes down its setting and how many labs stand, then does something more.
fn logged(room: &Room, more: &str) -> String {
    let [log, held] = ["log", "held"].map(|name| room.name(name));
    format!(
        "echo \"$HOPYARD_SETTING $(printf %s \"$HOPYARD_LABS\" | grep -c .)\" >> {log}; \
         ls -l /proc/$PPID/fd | grep -c 'net:\\[' >> {held}; {more}"
    )
}

/// What the commands wrote down.
fn log(room: &Room) -> Vec<String> {
    let text = std::fs::read_to_string(room.at("log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn restored(room: &Room) -> usize {
    std::fs::read_to_string(room.at("restored")).map_or(0, |text| text.lines().count())
}

/// A run of one path that compares two settings, in a room's `run`.
fn compare<'a>(room: &Room, a: &'a str, b: &'a str, more: &[&str]) -> Vec<String> {
    let restore = format!("echo >> {}", room.name("restored"));
    let what = ["run", "--paths", "veth", "--window", "50ms", "--json"];
    let out = room.name("run");
    let commands = ["--out", &out, "--a", a, "--b", b, "--restore", &restore];
    [&what[..], &commands, more]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

fn start(arguments: &[String]) -> Running {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Running::start(hopyard(&arguments))
}

fn cell<'a>(report: &'a Value, setting: &str) -> &'a Value {
    let cells = report["cells"].as_array().unwrap();
    let of = |cell: &&Value| cell["axes"]["setting"] == setting;
    cells
        .iter()
        .find(of)
        .unwrap_or_else(|| panic!("{report:#}"))
}

/// Limits the sender's device in each of the labs that are measured next.
const SLOW: &str = "echo \"$HOPYARD_LABS\" | while read -r path peer load spaces; do \
     for space in $spaces; do case $space in a=*) nsenter --net=${space#a=} \
     tc qdisc replace dev eth0 root tbf rate 20mbit burst 32k latency 50ms || exit;; esac; done; done";

/// B limits the senders of its own labs to 20 Mbit/s, of the hundreds that A has: found, and the gate fails.
#[test]
fn a_setting_that_slows_its_labs_is_found_and_fails_the_gate() {
    let _alone = alone();
    unharmed(|| {
        let (room, said) = (0..4)
            .find_map(|_| switched_between_turns())
            .expect("these two commands take more than 10 ms each time, with the machine alone");
        said.exits(1);
        let report = said.json();
        let settings = &report["run"]["settings"];
        assert_eq!(report["run"]["base"], "setting=a");
        assert!(
            settings["b"].as_str().unwrap().contains("tbf"),
            "{settings}"
        );
        let (a, b) = (cell(&report, "a"), cell(&report, "b"));
        assert!(a["verdicts"].as_object().unwrap().is_empty(), "{a:#}");
        let verdict = &b["verdicts"]["goodput_bps"];
        assert_eq!(verdict["verdict"], "different", "{b:#}");
        assert!(
            verdict["ratio"]["high"].as_f64().unwrap() < 0.9,
            "{verdict}"
        );
        assert_eq!(verdict["trips_gate"], true, "{verdict}");
        assert_eq!(report["gate"]["failed"], true, "{report:#}");
        assert!(
            log(&room).iter().any(|line| line == "b 1"),
            "{:?}",
            log(&room)
        );
        assert_eq!(restored(&room), 1);
        run(&["report", &room.name("run")]).exits(0).prints(&[
            "setting",
            "A: `",
            "B: `",
            "Gate: FAILED",
            "vs setting=a",
        ]);
        assert_eq!(restored(&room), 1, "a report runs nothing");
    });
}

/// One run of A and [`SLOW`] with its room. None where a busy machine made the commands so slow that they were run between
/// generations, when no lab stands that B could limit.
fn switched_between_turns() -> Option<(Room, Said)> {
    let room = Room::new();
    let loads = ["--loads", "udp_stream", "--blocks", "8", "--fail-on", "3%"];
    let (a, b) = (logged(&room, "true"), logged(&room, SLOW));
    let said = start(&compare(&room, &a, &b, &loads)).wait();
    let between = &said.json()["run"]["settings"]["switched_between"];
    (between == "turns").then_some((room, said))
}

/// A switch that takes long is made once for each half of a block, while no lab stands.
#[test]
fn slow_switches_are_made_between_generations() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let (a, b) = (logged(&room, "true"), logged(&room, "sleep 0.05"));
        let few = ["--loads", "udp_rr", "--blocks", "2"];
        let said = start(&compare(&room, &a, &b, &few)).wait();
        said.exits(0);
        let report = said.json();
        assert_eq!(report["run"]["settings"]["switched_between"], "generations");
        assert!(report["run"]["settings"]["switch_s"].as_f64().unwrap() >= 0.05);
        let log = log(&room);
        assert!(log.iter().all(|line| line.ends_with(" 0")), "{log:?}");
        // What it is told of is one thing, and what stands another: hopyard holds the namespaces of labs that stand.
        let held = std::fs::read_to_string(room.at("held")).unwrap();
        let mut held = held.lines();
        let first = held.next().unwrap();
        assert!(
            held.clone().count() > 4 && held.all(|line| line == first),
            "{first}"
        );
        // One to five times each in the pilot; then each of the two for every attempt at a block, and A where the quiet machine is
        // read: at least in the first.
        assert!((2 + 1 + 2 * 2..=10 + 4 * 3).contains(&log.len()), "{log:?}");
        assert_eq!(restored(&room), 1);
    });
}

/// The commands end the run with their words; the host is restored and nothing is left.
#[test]
fn a_command_that_fails_ends_the_run() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let said = start(&compare(
            &room,
            "true",
            "echo no such knob >&2; exit 3",
            &[],
        ))
        .wait();
        said.exits(2)
            .says(&["the command of --b failed (exit status: 3)", "no such knob"]);
        assert!(!room.at("run").exists(), "{said}");
        assert_eq!(restored(&room), 1);

        // Half-way: it works until traffic has been measured.
        let room = Room::new();
        let samples = room.name("run/samples.jsonl");
        let b = format!("test ! -s {samples} || {{ echo worn out >&2; exit 4; }}");
        let few = ["--loads", "tcp_rr", "--blocks", "3"];
        let running = start(&compare(&room, "true", &b, &few));
        let said = running.wait_for_nothing_left(&Default::default());
        said.exits(2).says(&["--b failed", "worn out"]);
        assert_eq!(restored(&room), 1);

        // The one that restores.
        let room = Room::new();
        let out = room.name("run");
        let what = [
            "run", "--paths", "veth", "--loads", "tcp_rr", "--window", "50ms", "--blocks", "1",
        ];
        let [free, done] = ["free", "restored"].map(|name| room.name(name));
        let restore = format!("if test -e {free}; then echo >> {done}; else echo stuck; false; fi");
        let commands = ["--a", "true", "--b", "true", "--restore", &restore];
        run(&[&what[..], &["--out", &out], &commands].concat())
            .exits(2)
            .says(&[
                "--restore failed",
                "stuck",
                // With all that is to be given again.
                &format!(
                    "run --resume {out} --a true --b true --restore '{restore}'` continues it"
                ),
            ]);
        // It is not complete, so that it can be restored.
        assert_eq!(restored(&room), 0);
        std::fs::write(room.at("free"), "").unwrap();
        let resume = [&["run", "--resume", &out][..], &commands].concat();
        run(&resume).exits(0);
        assert_eq!(restored(&room), 1);
    });
}

/// A command that hangs costs the run no more than its time limit and some seconds.
#[test]
fn a_command_that_hangs_is_ended() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let limit = ["--loads", "tcp_rr", "--time-limit", "1s"];
        let running = start(&compare(&room, "true", "exec sleep 1000", &limit));
        let said = running.wait_for_nothing_left(&Default::default());
        said.exits(2).says(&[
            "the command of --b is still running after 5s",
            "the command of --b took longer than 10s: `exec sleep 1000`",
        ]);
        assert_eq!(restored(&room), 1);
    });
}

fn until_measured(room: &Room, running: &Running) {
    until("a block was measured", LONG, || {
        std::fs::read_to_string(room.at("run/samples.jsonl")).is_ok_and(|text| !text.is_empty())
    });
    assert!(!running.processes().is_empty());
}

/// Ctrl-C restores the host, also while a command runs. SIGKILL cannot; the run goes on with the same commands, and they restore it.
#[test]
fn interrupted_runs_restore_the_host() {
    apart(|| {
        unharmed(|| {
            let room = Room::new();
            let many = ["--loads", "tcp_rr", "--blocks", "100..100"];
            let running = start(&compare(&room, "true", "true", &many));
            until_measured(&room, &running);
            let namespaces = running.namespaces();
            running.signal_group(Signal::SIGINT);
            running.wait_for_nothing_left(&namespaces).exits(130);
            assert_eq!(restored(&room), 1);

            let room = Room::new();
            let running = start(&compare(
                &room,
                "true",
                &logged(&room, "exec sleep 1000"),
                &many,
            ));
            until("the command runs", LONG, || !log(&room).is_empty());
            running.signal_group(Signal::SIGINT);
            running
                .wait_for_nothing_left(&Default::default())
                .exits(130);
            assert_eq!(restored(&room), 1);

            let room = Room::new();
            let running = start(&compare(&room, "true", "true", &many));
            until_measured(&room, &running);
            let namespaces = running.namespaces();
            running.signal(Signal::SIGKILL);
            running.wait_for_no_process(&namespaces);
            run(&["clean"]).exits(0);
            assert_eq!(restored(&room), 0);
            resumed(&room);
        });
    });
}

/// `hopyard clean` knows nothing of what commands of the user changed.
#[test]
fn a_second_ctrl_c_during_restore_says_that_it_did_not_end() {
    apart(|| {
        unharmed(|| {
            let room = Room::new();
            let begun = room.name("begun");
            let restore = format!("echo $$ > {begun}; exec sleep 1000");
            let out = room.name("run");
            let commands = ["--a", "true", "--b", "true", "--restore", &restore];
            let what = ["run", "--paths", "veth", "--loads", "tcp_rr", "--out", &out];
            let many = ["--window", "50ms", "--blocks", "100"];
            let running = Running::start(hopyard(&[&what[..], &many, &commands].concat()));
            until_measured(&room, &running);
            running.signal(Signal::SIGINT);
            let command = || -> Option<i32> {
                let text = std::fs::read_to_string(&begun).ok()?;
                text.trim().parse().ok()
            };
            until("the host is restored", LONG, || command().is_some());
            // Signals in short succession are one request.
            std::thread::sleep(Duration::from_millis(400));
            running.signal(Signal::SIGINT);
            running
                .wait()
                .exits(130)
                .says(&["before the command of --restore had succeeded"]);
            let restoring = nix::unistd::Pid::from_raw(command().unwrap());
            nix::sys::signal::kill(restoring, Signal::SIGKILL).unwrap();
            run(&["clean"]).exits(0);
        });
    });
}

/// A run that is killed while it restores the host is not complete: the next process restores it, though it switches nothing.
#[test]
fn a_run_killed_while_it_restores_goes_on_and_restores() {
    apart(|| {
        unharmed(|| {
            let room = Room::new();
            let [begun, free] = ["begun", "free"].map(|name| room.name(name));
            let restore = format!(
                "echo $$ > {begun}; test -e {free} || exec sleep 1000; echo >> {}",
                room.name("restored")
            );
            let out = room.name("run");
            let commands = ["--a", "true", "--b", "true", "--restore", &restore];
            let what = ["run", "--paths", "veth", "--loads", "tcp_rr", "--out", &out];
            let few = ["--window", "50ms", "--blocks", "1..1"];
            let running = Running::start(hopyard(&[&what[..], &few, &commands].concat()));
            let pid = || {
                std::fs::read_to_string(room.at("begun"))
                    .ok()?
                    .trim()
                    .parse()
                    .ok()
            };
            until("the host is being restored", LONG, || pid().is_some());
            assert!(!room.at("run/end.json").exists());
            running.signal(Signal::SIGKILL);
            let restoring = nix::unistd::Pid::from_raw(pid().unwrap());
            nix::sys::signal::kill(restoring, Signal::SIGKILL).unwrap();
            running.wait_for_no_process(&Default::default());
            run(&["clean"]).exits(0);
            assert_eq!(restored(&room), 0);

            std::fs::write(room.at("free"), "").unwrap();
            let resume = [&["run", "--resume", &out][..], &commands].concat();
            run(&resume).exits(0);
            assert_eq!(restored(&room), 1);
            run(&resume).exits(2).says(&["it is complete"]);
            assert_eq!(restored(&room), 1, "a refused call runs nothing");
        });
    });
}

/// Commands are not taken from a directory: they are given again, and have to be the same.
fn resumed(room: &Room) {
    let directory = room.name("run");
    let resume = |more: &[&str]| -> Said {
        run(&[
            &["run", "--resume", &directory, "--time-limit", "1s"][..],
            more,
        ]
        .concat())
    };
    let restore = format!("echo >> {}", room.name("restored"));
    resume(&[]).exits(2).says(&[
        "no command that it only finds in a run's directory",
        &format!("--a true --b true --restore '{restore}'"),
    ]);
    resume(&["--a", "true", "--b", "false", "--restore", &restore])
        .exits(2)
        .says(&["the commands that the run was started with"]);
    assert_eq!(restored(room), 0);
    // Before its labs are tried, and when it ends.
    resume(&["--a", "true", "--b", "true", "--restore", &restore]).exits(0);
    assert_eq!(restored(room), 2);
}

#[test]
fn wrong_use_is_refused() {
    let _beside = beside();
    let room = Room::new();
    let out = room.name("run");
    let refused = |arguments: &[&str], words: &[&str]| {
        run(&[&["run", "--out", &out][..], arguments].concat())
            .exits(2)
            .says(words);
        assert!(!room.at("run").exists());
    };
    refused(&["--a", "true"], &["--b <CMD>"]);
    refused(&["--b", "true"], &["--a <CMD>"]);
    refused(&["--restore", "true"], &["--a <CMD>"]);
    refused(&["--a", "", "--b", "true"], &["the command is empty"]);
    let both = ["--a", "true", "--b", "true"];
    refused(
        &[&both[..], &["--kernel", "/boot/vmlinuz"]].concat(),
        &["--kernel"],
    );
    refused(
        &[&both[..], &["--set", "setting=a"]].concat(),
        &["--a and --b change this axis"],
    );
    refused(&["--set", "setting=a,b"], &["give both, or leave it out"]);
    // Each lab and load is tried before.
    let few = ["--paths", "veth,bridge", "--loads", "tcp_rr"];
    let one = ["--paths", "veth", "--loads", "tcp_rr"];
    refused(
        &[&["--fail-on", "3%", "--blocks", "4"][..], &few].concat(),
        &["--fail-on needs verdicts", "at least 8 blocks"],
    );
    refused(
        &[&["--fail-on", "3%"][..], &one].concat(),
        &["comparisons with a base, and the run has none"],
    );
    refused(
        &[&["--decide", "3%", "--blocks", "4..6"][..], &few].concat(),
        &["--decide needs verdicts", "at least 8 blocks"],
    );
    refused(
        &["--decide", "3%", "--half-width", "1%"],
        &["--decide", "--half-width"],
    );
    refused(
        &[&["--decide", "3%"][..], &one].concat(),
        &["--decide looks at comparisons with a base"],
    );
}

/// Equal settings never fail a gate that lets half be lost; on a machine that sees less than that it is undecided. A base may be
/// a path or the value of an axis.
#[test]
fn a_gate_in_a_run() {
    let _beside = beside();
    unharmed(|| {
        let room = Room::new();
        let how = ["--loads", "tcp_rr", "--blocks", "8", "--fail-on", "50%"];
        let said = start(&compare(&room, "true", "true", &how)).wait();
        let gate = said.json()["gate"].clone();
        let status = if gate["undecided"] == true { 4 } else { 0 };
        said.exits(status);
        assert_eq!(gate["failed"], false, "{said}");
        assert_eq!(gate["fail_on_ratio"], 0.5);

        // The value of an axis is the base: small messages carry far less.
        let out = room.name("sizes");
        let what = [
            "run",
            "--paths",
            "veth",
            "--loads",
            "tcp_stream",
            "--set",
            "message_size=16KiB,64",
        ];
        let how = [
            "--base",
            "message_size=16KiB",
            "--window",
            "100ms",
            "--blocks",
            "8",
        ];
        let said = run(&[&what[..], &how, &["--fail-on", "3%", "--out", &out]].concat());
        said.exits(1).prints(&["Gate: FAILED"]);

        // Too short for a verdict.
        let what = [
            "run",
            "--paths",
            "veth,bridge",
            "--base",
            "veth",
            "--loads",
            "tcp_rr",
        ];
        let how = ["--window", "100ms", "--time-limit", "2s", "--fail-on", "3%"];
        // A busy machine may not measure anything in so little time, which is another failure.
        let measured = (0..5).map(|nth| {
            let out = room.name(&format!("short-{nth}"));
            run(&[&what[..], &how, &["--out", &out]].concat())
        });
        let mut measured =
            measured.skip_while(|said| said.stdout.contains("Nothing could be measured"));
        let said = measured.next().expect("a run of five measures something");
        said.exits(4).prints(&["Gate: UNDECIDED"]);
    });
}
