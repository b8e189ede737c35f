//! `contrib/bisect/kernel`, with stand-ins for hopyard and the build: which exit status each outcome becomes, and what `git bisect run` makes
//! of them. The real thing was tried by hand on two builds of one kernel (docs/bisect.md).

use std::path::Path;
use std::process::{Command, Output};

use crate::support::beside;
use crate::support::plan::Room;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/bisect/kernel");

/// A stand-in for hopyard. A kernel is a file with the words that say what becomes of it.
///
/// `run` fails with the status after `run`, if there is one, or measures with that after `samples`. `diff` has the status after `diff`; with
/// `late=N` it is undecided as long as there are fewer than N runs.
const HOPYARD: &str = r#"#!/bin/bash
word() { grep -o "$1=[0-9]*" "$2" | cut -d= -f2; }
case $1 in
run)
	kernel=$3
	while [ $# -gt 0 ]; do [ "$1" = --out ] && out=$2; shift; done
	status=$(word run "$kernel")
	[ -n "$status" ] && { echo "the guest said nothing" >&2; exit "$status"; }
	mkdir -p "$out" && cp "$kernel" "$out/kernel" && touch "$out/run.json"
	exit "$(word samples "$kernel" | grep . || echo 0)"
	;;
diff)
	first=$(ls "$3" | head -n 1)
	runs=$(ls "$3" | wc -l)
	late=$(word late "$3/$first/kernel")
	[ -n "$late" ] && [ "$runs" -lt "$late" ] && exit 4
	exit "$(word diff "$3/$first/kernel")"
	;;
esac
"#;

struct Tree {
    room: Room,
}

impl Tree {
    /// A git tree with a commit for each kernel, the good one first.
    fn of(kernels: &[&str]) -> Self {
        let room = Room::new();
        std::fs::create_dir(room.at("linux")).unwrap();
        room.program("hopyard", HOPYARD);
        room.file("good", "diff=0");
        let tree = Self { room };
        tree.git(&["init", "-q"]);
        for (number, kernel) in kernels.iter().enumerate() {
            tree.room
                .file("linux/source", format!("{kernel} nr={number}"));
            tree.git(&["add", "source"]);
            tree.git(&["commit", "-q", "-m", &number.to_string()]);
        }
        tree
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.room.at("linux"));
        for (name, value) in [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_AUTHOR_NAME", "a"),
            ("GIT_AUTHOR_EMAIL", "a@example.org"),
            ("GIT_COMMITTER_NAME", "a"),
            ("GIT_COMMITTER_EMAIL", "a@example.org"),
            // What builds nothing where it says so.
            (
                "HOPYARD_BUILD",
                "! grep -q broken source && cp source image",
            ),
            ("HOPYARD_IMAGE", "image"),
            ("HOPYARD_FAIL_ON", "10%"),
            ("HOPYARD_RUN", "--paths veth"),
        ] {
            command.env(name, value);
        }
        command.env("HOPYARD_PROGRAM", self.room.at("hopyard"));
        command.env("HOPYARD_GOOD_KERNEL", self.room.at("good"));
        command
    }

    fn git(&self, arguments: &[&str]) -> Output {
        let said = self.command("git").args(arguments).output().unwrap();
        assert!(said.status.success(), "{arguments:?}: {said:?}");
        said
    }

    /// The script's exit status, with further settings, and how many runs of the revision there are.
    fn status(&self, set: &[(&str, &str)]) -> (Option<i32>, usize, String) {
        let said = self
            .command(SCRIPT)
            .envs(set.iter().copied())
            .output()
            .unwrap();
        let out = self.room.at("hopyard-bisect");
        let runs = |revision: std::fs::DirEntry| {
            std::fs::read_dir(revision.path().join("after")).map_or(0, Iterator::count)
        };
        let revisions = std::fs::read_dir(&out)
            .into_iter()
            .flatten()
            .map(Result::unwrap);
        let count = revisions.map(runs).sum();
        let _ = std::fs::remove_dir_all(&out);
        (
            said.status.code(),
            count,
            String::from_utf8(said.stderr).unwrap(),
        )
    }
}

#[test]
fn each_outcome_has_its_exit_status() {
    let _beside = beside();
    for (kernel, status, runs, word) in [
        ("diff=0", 0, 4, "good after 4 runs"),
        ("diff=1", 1, 4, "bad after 4 runs"),
        ("diff=4", 125, 12, "undecided, skipped"),
        ("diff=1 late=6", 1, 8, "bad after 8 runs"),
        ("diff=0 late=9", 0, 12, "good after 12 runs"),
        ("broken", 125, 0, "does not build, skipped"),
        ("run=1", 125, 0, "does not measure (status 1), skipped"),
        // A sample failed, which is for `diff` to weigh.
        ("samples=1 diff=1", 1, 4, "bad after 4 runs"),
        ("run=2", 125, 0, "does not measure (status 2), skipped"),
        ("run=130", 130, 0, ""),
        ("diff=2", 255, 4, "hopyard diff ended with status 2"),
        ("diff=3", 255, 4, "hopyard diff ended with status 3"),
    ] {
        let tree = Tree::of(&[kernel]);
        let (code, count, said) = tree.status(&[]);
        assert_eq!((code, count), (Some(status), runs), "{kernel}: {said}");
        assert!(said.contains(word), "{kernel}: {said}");
    }
    let tree = Tree::of(&["diff=4"]);
    let fewer = [("HOPYARD_REPEATS", "3"), ("HOPYARD_MOST", "5")];
    assert_eq!(tree.status(&fewer).1, 5);
}

#[test]
fn what_another_revision_would_not_mend_ends_the_bisection() {
    let _beside = beside();
    let tree = Tree::of(&["diff=0"]);
    let bad = tree.room.file("bad", "run=2");
    for (set, word) in [
        (("HOPYARD_GOOD_KERNEL", ""), "HOPYARD_GOOD_KERNEL is empty"),
        (("HOPYARD_GOOD_KERNEL", "/nowhere"), "there is no /nowhere"),
        (
            ("HOPYARD_GOOD_KERNEL", &*bad),
            "the good kernel does not measure (status 2)",
        ),
        (("HOPYARD_FAIL_ON", ""), "HOPYARD_FAIL_ON is empty"),
        (("HOPYARD_FAIL_ON", "much"), "a share such as 10%"),
        (("HOPYARD_REPEATS", "2"), "a number from 3 to 20"),
        (("HOPYARD_MOST", "1"), "a number of at least 4"),
        (
            ("HOPYARD_PROGRAM", "/nowhere"),
            "there is no program /nowhere",
        ),
        (("HOPYARD_IMAGE", "nothing"), "the build made no nothing"),
    ] {
        let (code, _, said) = tree.status(&[set]);
        assert_eq!(code, Some(255), "{set:?}: {said}");
        assert!(said.contains(word), "{set:?}: {said}");
    }
}

#[test]
fn runs_that_are_there_are_not_mixed_with_others() {
    let _beside = beside();
    let tree = Tree::of(&["diff=0"]);
    let twice = || tree.command(SCRIPT).output().unwrap();
    assert_eq!(twice().status.code(), Some(0));
    let again = twice();
    assert_eq!(again.status.code(), Some(255));
    assert!(String::from_utf8_lossy(&again.stderr).contains("is there already"));
}

/// The revision that made it slower is found, past some that do not build, do not boot or cannot be told.
#[test]
fn git_finds_the_revision() {
    let _beside = beside();
    let kernels = [
        "diff=0",
        "diff=0",
        "diff=0",
        "broken",
        "diff=0",
        "diff=4",
        "diff=0",
        "diff=1",
        "run=2",
        "diff=1",
        "diff=1 late=6",
        "diff=1",
    ];
    let tree = Tree::of(&kernels);
    let first = tree.git(&["rev-list", "--max-parents=0", "HEAD"]);
    let first = String::from_utf8(first.stdout).unwrap();
    tree.git(&["bisect", "start", "HEAD", first.trim()]);
    let said = tree.git(&["bisect", "run", SCRIPT]);
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(text.contains("is the first bad commit"), "{text}");
    assert!(text.contains("\n    7\n"), "{text}");
    assert!(Path::new(&tree.room.at("hopyard-bisect")).exists());
    // And ends at once where the settings are wrong.
    tree.git(&["bisect", "reset"]);
    tree.git(&["bisect", "start", "HEAD", first.trim()]);
    let mut wrong = tree.command("git");
    wrong
        .env("HOPYARD_FAIL_ON", "")
        .args(["bisect", "run", SCRIPT]);
    let said = wrong.output().unwrap();
    assert!(!said.status.success(), "{said:?}");
}
