//! Plans and directories for runs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::cli::run;

/// A directory of a test's own, open to everybody, gone when dropped.
pub(crate) struct Room(TempDir);

impl Room {
    pub(crate) fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(directory.path(), open).unwrap();
        Self(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file or directory in it, by name.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// The same as text.
    pub(crate) fn name(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    /// Writes a file and gives its name.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        std::fs::write(self.at(name), text).unwrap();
        self.name(name)
    }

    /// Writes a program, such as a script, and gives its name.
    pub(crate) fn program(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        write_program(self.at(name), text);
        self.name(name)
    }
}

/// Writes a program, by `install`. If this process opened the file, another thread could start a process meanwhile, which would have it open
/// too for a moment; and a program that somebody has open for writing cannot be run ("Text file busy").
pub(crate) fn write_program(file: impl AsRef<Path>, text: impl AsRef<[u8]>) {
    let mut install = Command::new("install");
    let mut child = install
        .args(["-m", "755", "/dev/stdin"])
        .arg(file.as_ref())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_ref()).unwrap();
    drop(stdin);
    assert!(
        child.wait().unwrap().success(),
        "{}",
        file.as_ref().display()
    );
}

/// Measures TCP_RR over two paths into a room's `run`, and gives its name.
pub(crate) fn measured(room: &Room, blocks: &str, more: &[&str]) -> String {
    let out = room.name("run");
    let what = ["run", "--paths", "veth,bridge", "--loads", "tcp_rr"];
    let how = [
        "--blocks",
        blocks,
        "--turns",
        "off",
        "--window",
        "100ms",
        "--warm-up",
        "20ms",
        "--out",
        &out,
    ];
    run(&[&what[..], &how, more].concat()).exits(0);
    out
}

/// How many samples a room's `run` has: one of each cell and block, and more where the hypervisor took time.
pub(crate) fn samples(room: &Room) -> usize {
    let text = std::fs::read_to_string(room.at("run/samples.jsonl")).unwrap();
    text.lines().count()
}

/// What was measured in each sample of a room's `run`.
pub(crate) fn measurements(room: &Room) -> Vec<Value> {
    let text = std::fs::read_to_string(room.at("run/samples.jsonl")).unwrap();
    let sample = |line| serde_json::from_str::<Value>(line).unwrap();
    let measured = |line| sample(line)["outcome"]["measured"].take();
    text.lines().map(measured).collect()
}

/// Has a room's `run` say that the hypervisor took no time, for tests of how figures look: with steal there may be no figure of CPU time.
pub(crate) fn without_steal(room: &Room) {
    let file = room.at("run/samples.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let calm = text.lines().map(|line| {
        let mut sample: Value = serde_json::from_str(line).unwrap();
        if let Some(cpu) = sample.pointer_mut("/outcome/measured/cpu") {
            let [busy, steal] = ["busy_ns", "steal_ns"].map(|key| cpu[key].as_f64().unwrap());
            cpu["busy_ns"] = (busy + steal).into();
            cpu["steal_ns"] = 0.0.into();
            cpu.as_object_mut().unwrap().remove("baseline_most_ns");
        }
        format!("{sample}\n")
    });
    std::fs::write(&file, calm.collect::<String>()).unwrap();
}

/// Puts a finished run of four cells and eight blocks, with profiles, into a directory of a room; gives its name.
pub(crate) fn stored(room: &Room, name: &str) -> String {
    let seed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/run");
    std::fs::create_dir(room.at(name)).unwrap();
    for file in ["run.json", "samples.jsonl", "profiles.jsonl", "end.json"] {
        std::fs::copy(seed.join(file), room.at(name).join(file)).unwrap();
    }
    room.name(name)
}

/// A plan of which tests change what they are about.
pub(crate) const PLAN: &str = r#"name = "mine"
summary = "for a test"
paths = ["veth"]
peers = ["local"]
loads = ["tcp_rr"]
base = "veth"
window = "100ms"
warm_up = "20ms"
blocks = "1..1"
half_width = "2.5%"
confidence = "95%"
margin = "2%"
"#;

/// The plan with lines replaced: (key, the value in TOML).
pub(crate) fn plan(changes: &[(&str, &str)]) -> String {
    let mut lines: Vec<String> = PLAN.lines().map(str::to_owned).collect();
    for (key, value) in changes {
        let line = format!("{key} = {value}");
        match lines
            .iter_mut()
            .find(|l| l.starts_with(&format!("{key} =")))
        {
            Some(old) => *old = line,
            None => lines.push(line),
        }
    }
    lines.join("\n") + "\n"
}
