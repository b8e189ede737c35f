//! Guests under `--kernel` that say what they want: a program in the place of QEMU, which boots nothing.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::beside;
use crate::support::cli::{Running, Said, hopyard};
use crate::support::kernels::no_kernel;
use crate::support::plan::{plan, write_program};

/// A directory with a QEMU that boots nothing and says what the caller chooses, before the order and after it.
struct Impostor(tempfile::TempDir);

impl Impostor {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("bin")).unwrap();
        fs::create_dir_all(home.path().join("deep/work")).unwrap();
        fs::write(
            home.path().join("mine.toml"),
            plan(&[("blocks", "\"8..8\"")]),
        )
        .unwrap();
        fs::write(home.path().join("kernel"), no_kernel("6.1.0-none")).unwrap();
        Self(home)
    }

    /// Runs a plan of eight blocks with seed 7 in such a guest, with what the shell makes of a script.
    fn says(&self, script: &str) -> Said {
        let (home, bin) = (self.0.path(), self.0.path().join("bin"));
        let program = bin.join("qemu-system-x86_64");
        let hello = r#"echo '{"is":"hello","version":"x"}'; read -r order"#;
        write_program(
            &program,
            format!(
                "#!/bin/sh\ncd {}\n{hello}\n{script}\nexec sleep 300\n",
                home.display()
            ),
        );
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let plan = home.join("mine.toml");
        let mut command = hopyard(&["run", plan.to_str().unwrap(), "--seed", "7"]);
        command
            .args(["--accel", "tcg", "--kernel"])
            .arg(home.join("kernel"));
        command
            .env("PATH", path)
            .current_dir(home.join("deep/work"));
        Running::start(command).wait_for(Duration::from_secs(60))
    }

    /// Has a line at hand for the script, as `cat NAME`.
    fn line(&self, name: &str, is: &str, mut document: Value) {
        document["is"] = is.into();
        fs::write(self.0.path().join(name), format!("{document}\n")).unwrap();
    }

    /// A header of the run that is asked for, with an id.
    fn prepares(&self, id: &str) {
        let mut header: Value = serde_json::from_str(&seed("run.json")).unwrap();
        header["id"] = id.into();
        header["plan"] = "mine".into();
        header["seed"] = 7.into();
        header["profile"] = false.into();
        self.line("prepared", "prepared", header);
    }

    /// All files there are, but those of this value.
    fn files(&self) -> Vec<String> {
        let mut find = Command::new("find");
        find.arg(self.0.path()).args(["-newer"]);
        find.arg(self.0.path().join("mine.toml"))
            .args(["-type", "f"]);
        let found = String::from_utf8(find.output().unwrap().stdout).unwrap();
        let own = [
            "/kernel",
            "/bin/qemu-system-x86_64",
            "/prepared",
            "/sample",
            "/note",
        ];
        let mut files: Vec<String> = found.lines().map(str::to_owned).collect();
        files.retain(|file| !own.iter().any(|own| file.ends_with(own)));
        files
    }
}

/// A file of a stored run.
fn seed(name: &str) -> String {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/run");
    fs::read_to_string(seeds.join(name)).unwrap()
}

#[test]
fn a_guest_does_not_choose_where_the_host_writes() {
    let _beside = beside();
    let guest = Impostor::new();
    let absolute = guest.0.path().join("absolute");
    for id in [
        "../../evil",
        absolute.to_str().unwrap(),
        "..",
        "",
        ".x",
        "a\u{1b}[2Jb",
    ] {
        guest.prepares(id);
        let said = guest.says("cat prepared; cat sample");
        said.exits(3).says(&[
            "the guest sent an impossible answer",
            "is no name for a directory",
        ]);
        assert!(!said.stderr.contains('\u{1b}'), "{said}");
        assert_eq!(guest.files(), [""; 0], "{said}");
    }
    // Another run than asked for is none either.
    guest.prepares("id");
    let said = guest.says("sed 's/\"seed\":7/\"seed\":8/' prepared");
    said.exits(3).says(&["it prepared another run"]);
}

#[test]
fn what_a_guest_measures_is_checked_as_stored_runs_are() {
    let _beside = beside();
    let guest = Impostor::new();
    guest.prepares("id");
    let text = seed("samples.jsonl");
    let sample: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let with = |key: &str, value: Value| {
        let mut sample = sample.clone();
        sample[key] = value;
        sample
    };
    let mut absurd = sample.clone();
    absurd["cell"] = ((sample["cell"].as_u64().unwrap() + 1) % 4).into();
    absurd["outcome"]["measured"]["window_ns"] = 0.into();
    let header: Value = serde_json::from_str(&seed("run.json")).unwrap();
    let cell = &header["cells"][0]["cell"];
    let measuring = |block: u32, of: u64| serde_json::json!({"block": block, "done": 0, "of": of, "cell": cell});
    let mut foreign = measuring(0, 4);
    foreign["cell"]["path"] = "\u{1b}[2J".into();
    for (is, second, words) in [
        (
            "sample",
            with("block", 4_000_000_000_u32.into()),
            "in a run of at most 8",
        ),
        ("sample", with("cell", 99.into()), "cell 99 in a run of 4"),
        ("sample", sample.clone(), "for the second time in block 0"),
        ("sample", with("attempt", 1.into()), "attempt 1 at block 0"),
        ("sample", absurd, "nothing is measured in no time"),
        ("measuring", measuring(u32::MAX, 4), "in block 4294967295"),
        (
            "measuring",
            measuring(0, u64::MAX),
            "cell 0 of 18446744073709551615",
        ),
        ("measuring", foreign, "not part of the run"),
    ] {
        guest.line("sample", "sample", sample.clone());
        guest.line("note", is, second);
        let planned = r#"{"is":"planned","cells":18446744073709551615,"blocks":{"min":1,"max":1},"block_ms":18446744073709551615}"#;
        let said = guest.says(&format!("cat prepared; echo '{planned}'; cat sample note"));
        said.exits(1)
            .says(&["the guest sent an impossible answer", words]);
        assert!(!said.stderr.contains('\u{1b}'), "{said}");
        let out = guest.0.path().join("deep/work/hopyard-runs/id");
        let stored = fs::read_to_string(out.join("samples.jsonl")).unwrap();
        assert_eq!(stored.lines().count(), 1, "{said}");
        fs::remove_dir_all(out).unwrap();
    }
}

#[test]
fn a_guest_that_never_stops_talking_is_ended() {
    let _beside = beside();
    let guest = Impostor::new();
    guest.prepares("id");
    guest.line("note", "note", serde_json::json!({"text": "on and on"}));
    let on_and_on = "yes \"$(cat note)\"";
    let words = [
        "the guest sent an impossible answer",
        "more than 1000 messages",
    ];
    guest.says(on_and_on).exits(3).says(&words);
    let said = guest.says(&format!("cat prepared; {on_and_on}"));
    said.exits(1).says(&words);
}

#[test]
fn qemu_is_confined_and_its_console_too() {
    let _beside = beside();
    let guest = Impostor::new();
    guest.prepares("id");
    let console =
        "for word; do case $word in file,id=console,path=*) console=${word##*path=};; esac; done";
    let said = guest.says(&format!(
        "echo \"$@\" >note; {console}; head -c 200M /dev/zero >$console; stat -L -c %s $console >sample; exit 1"
    ));
    said.exits(2).says(&["the guest ended"]);
    let words = fs::read_to_string(guest.0.path().join("note")).unwrap();
    assert!(words.contains("-sandbox on,"), "{words}");
    let size = fs::read_to_string(guest.0.path().join("sample")).unwrap();
    assert!(size.trim().parse::<u64>().unwrap() <= 64 << 20, "{size}");
}
