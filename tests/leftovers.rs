//! What `hopyard clean` takes for a leftover, and what it leaves alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hopyard::lab::{Lab, LabId, keep};
use hopyard::model::{Axes, Peer};

use crate::support::cli::{PROGRAM, Running, hopyard, run};
use crate::support::plan::{Room, plan};
use crate::support::site::Site;
use crate::support::traces::Traces;
use crate::support::{alone, apart, procs, until};

/// Takes a lab down when a test ends, also by a panic.
struct Ends(&'static str);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = hopyard(&["lab", "down", self.0, "--force"]).output();
    }
}

/// Ends a process of the test.
struct Bystander(std::process::Child);

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn state_of(lab: &str) -> PathBuf {
    Path::new(keep::HOME).join(lab).join("lab.json")
}

/// The program in namespaces of its own, by the options of unshare(1).
fn unshared(namespaces: &[&str], arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(namespaces).arg(PROGRAM).args(arguments);
    command
}

/// The program in a PID namespace of its own, where it sees its own processes alone.
fn in_pid_namespace(arguments: &[&str]) -> Command {
    let pid = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    unshared(&pid, arguments)
}

#[test]
fn a_kept_lab_of_another_version_is_named_and_left_alone() {
    apart(|| {
        let before = Traces::now();
        let _ends = Ends("test-foreign");
        run(&["lab", "up", "tap-mq", "--name", "test-foreign"]).exits(0);
        let file = state_of("test-foreign");
        let written = fs::read_to_string(&file).unwrap();
        let unknown_axis = written.replacen("\"axes\": {", "\"axes\": {\n \"colour\": \"red\",", 1);
        let unknown_owner = written
            .replacen("\"owner\": \"", "\"owner\": \"somebody-", 1)
            .replacen("\"complete\": true", "\"complete\": false", 1);
        let unknown_switch = written.replacen("\"tap switch\"", "\"tap-dance\"", 1);
        let unknown_part =
            written.replacen("\"spaces\": [", "\"tunnel\": \"t0\",\n \"spaces\": [", 1);
        for other in [
            &unknown_axis,
            &unknown_owner,
            &unknown_switch,
            &unknown_part,
            "no JSON at all",
        ] {
            assert_ne!(*other, written);
            fs::write(&file, other).unwrap();
            let cleaned = run(&["clean"]);
            assert!(file.exists(), "the lab is gone: {cleaned}");
            cleaned
                .exits(0)
                .says(&["lab `test-foreign`", "left alone", "clean --force"]);
            run(&["lab", "list"]).exits(0).says(&["lab `test-foreign`"]);
        }
        // A FIFO would keep who reads it waiting for a writer, and a device never ends.
        fs::remove_file(&file).unwrap();
        let made = Command::new("mkfifo").arg(&file).status().unwrap();
        assert!(made.success());
        for is_fifo in [true, false] {
            if !is_fifo {
                fs::remove_file(&file).unwrap();
                std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
            }
            for command in [["clean"].as_slice(), &["lab", "list"]] {
                run(command)
                    .exits(0)
                    .says(&["lab `test-foreign`", "no regular file"]);
            }
        }
        fs::remove_file(&file).unwrap();
        // All that belongs to it is as it was, its switch too.
        fs::write(&file, &written).unwrap();
        let labs = run(&["lab", "list", "--json"]).json();
        let switch = labs[0]["service"]["id"].as_str().unwrap();
        run(&["tapswitch", "show", switch]).exits(0);
        fs::write(&file, &unknown_axis).unwrap();
        run(&["lab", "down", "test-foreign"])
            .exits(2)
            .says(&["colour", "hopyard clean --force"]);
        run(&["clean", "--force"])
            .exits(0)
            .prints(&["removed lab `test-foreign`", "removed tap switch of lab "]);
        run(&["clean"]).exits(0).prints(&["nothing to clean"]);
        before.unchanged().unwrap();
    });
}

#[test]
fn a_directory_that_is_no_lab_is_left_alone() {
    apart(|| {
        for name in ["somebodys", "not.a-name"] {
            let directory = Path::new(keep::HOME).join(name);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("data"), "dear").unwrap();
            let cleaned = run(&["clean"]);
            assert!(directory.join("data").exists(), "{cleaned}");
            cleaned.exits(0).says(&[name, "left alone"]);
            fs::remove_dir_all(&directory).unwrap();
        }
        let _ = fs::remove_dir(keep::HOME);
    });
}

#[test]
fn labs_of_other_pid_namespaces_are_left_alone() {
    let _alone = alone();
    // Runs that other tests killed leave control groups.
    run(&["clean"]).exits(0);
    let before = Traces::now();
    // This lab is alive; whoever cannot see its process is told so.
    let path = hopyard::lab::path("tap-mq").unwrap();
    let lab = Lab::build(path, Peer::Local, &Axes::default()).unwrap();
    let said = Running::start(in_pid_namespace(&["clean"])).wait();
    assert!(lab.death().is_none(), "its switch was killed: {said}");
    assert!(lab.cgroup().is_none_or(|group| group.path().exists()));
    said.exits(0)
        .prints(&["nothing to clean"])
        .says(&["another PID namespace", "left alone"]);
    drop(lab);
    // A run in a PID namespace, and a look from here.
    let room = Room::new();
    let file = room.file(
        "mine.toml",
        plan(&[
            ("paths", "[\"tap-mq\"]"),
            ("window", "\"1s\""),
            ("blocks", "\"1..1\""),
        ]),
    );
    let out = room.name("run");
    let inside = Running::start(in_pid_namespace(&["run", &file, "--out", &out]));
    until("two workers run", Duration::from_secs(30), || {
        inside.lab_workers().len() == 2
    });
    let cleaned = run(&["clean"]);
    let said = inside.wait();
    assert!(said.status.success(), "{cleaned}{said}");
    cleaned.exits(0).prints(&["nothing to clean"]);
    before.unchanged().unwrap();
}

/// The program in a time namespace of its own, whose boot was so many seconds earlier, or later where negative.
fn in_time_namespace(boot_s: &str, arguments: &[&str]) -> Command {
    unshared(&["--time", "--boottime", boot_s], arguments)
}

#[test]
fn labs_of_other_time_namespaces_are_known_to_live() {
    apart(|| {
        let before = Traces::now();
        let path = hopyard::lab::path("tap-mq").unwrap();
        let lab = Lab::build(path, Peer::Local, &Axes::default()).unwrap();
        for boot_s in ["1000", "-10"] {
            let said = Running::start(in_time_namespace(boot_s, &["clean"])).wait();
            assert!(lab.death().is_none(), "its switch was killed: {said}");
            said.exits(0).prints(&["nothing to clean"]);
        }
        drop(lab);
        // The other way round: a run in a time namespace, and a look from here.
        let room = Room::new();
        let set = [
            ("paths", "[\"tap-mq\"]"),
            ("window", "\"1s\""),
            ("blocks", "\"1..1\""),
        ];
        let file = room.file("mine.toml", plan(&set));
        let out = room.name("run");
        let inside = Running::start(in_time_namespace("1000", &["run", &file, "--out", &out]));
        until("two workers run", Duration::from_secs(30), || {
            inside.lab_workers().len() == 2
        });
        let cleaned = run(&["clean"]);
        let said = inside.wait();
        assert!(said.status.success(), "{cleaned}{said}");
        cleaned.exits(0).prints(&["nothing to clean"]);
        before.unchanged().unwrap();
    });
}

#[test]
fn what_a_dead_pid_namespace_leaves_is_cleaned_from_outside() {
    let _alone = alone();
    // Control groups of tests that were apart, whose PID namespaces have ended.
    run(&["clean"]).exits(0);
    let before = Traces::now();
    let room = Room::new();
    let file = room.file("mine.toml", plan(&[("window", "\"5s\"")]));
    let out = room.name("run");
    let inside = Running::start(in_pid_namespace(&["run", &file, "--out", &out]));
    until("two workers run", Duration::from_secs(30), || {
        inside.lab_workers().len() == 2
    });
    inside.signal(nix::sys::signal::Signal::SIGKILL);
    inside.wait();
    run(&["clean"])
        .exits(0)
        .prints(&["removed control group of lab "]);
    before.unchanged().unwrap();
}

/// The id of a lab whose builder is dead: nobody has process id 0.
pub(crate) fn dead_id() -> String {
    let mine = LabId::next().to_string();
    let (_, rest) = mine.split_once('.').unwrap();
    format!("0.{rest}")
}

#[test]
fn a_word_among_arguments_makes_no_daemon() {
    apart(|| {
        let before = Traces::now();
        let id = dead_id();
        for home in [
            "/run/hopyard-tapswitch",
            "/run/hopyard-vde",
            "/run/hopyard-ovs",
        ] {
            let directory = Path::new(home).join(&id);
            fs::create_dir_all(&directory).unwrap();
            let file = directory.join("ctl");
            let words = format!(
                "exec -a sleep sh -c 'read line' run {id} {}",
                file.display()
            );
            let mut command = Command::new("bash");
            command.args(["-c", &words]).stdin(Stdio::piped());
            let bystander = Bystander(command.spawn().unwrap());
            let is_ready = || {
                let process = procs::find(bystander.0.id()).unwrap();
                process.arguments.contains(&id) && process.state == 'S'
            };
            until("it has its arguments", Duration::from_secs(5), is_ready);
            let cleaned = run(&["clean"]);
            cleaned.exits(0).prints(&["removed ", &id]);
            let after = procs::find(bystander.0.id()).unwrap();
            assert_ne!(after.state, 'Z', "a bystander was killed: {cleaned}");
            assert!(!directory.exists());
        }
        before.unchanged().unwrap();
    });
}

#[test]
fn names_of_users_are_no_leftovers() {
    apart(|| {
        let site = Site::new();
        // What an older version took for a lab of process 1.
        site.switch(&["create", "lab-1-2-3", "--uplink", "up0"])
            .exits(0);
        let tapswitch = ["tapswitch", "run", "1.2.3", "--tap", "x0", "--tap", "x1"];
        let running = site
            .hub
            .run(|| Running::start(hopyard(&tapswitch)))
            .unwrap();
        let socket = Path::new("/run/hopyard-tapswitch/1.2.3/ctl");
        until("the switch runs", Duration::from_secs(10), || {
            std::os::unix::net::UnixStream::connect(socket).is_ok()
        });
        let cleaned = site.run(hopyard(&["clean"]));
        assert!(
            procs::find(running.pid()).is_some_and(|p| p.state != 'Z'),
            "killed: {cleaned}"
        );
        site.switch(&["show", "lab-1-2-3"]).exits(0);
        cleaned.exits(0).prints(&["nothing to clean"]);
        running.signal(nix::sys::signal::Signal::SIGTERM);
        running.wait().exits(0);
        site.switch(&["delete", "lab-1-2-3"]).exits(0);
        // Names of labs are for labs.
        let id = dead_id();
        let taken = ["tapswitch", "run", &id, "--tap", "x0", "--tap", "x1"];
        site.run(hopyard(&taken))
            .exits(2)
            .says(&["is reserved for switches of labs"]);
        let name = LabId::next().switch_name();
        site.switch(&["create", &name, "--uplink", "up0"])
            .exits(2)
            .says(&["is reserved for switches of labs"]);
    });
}
