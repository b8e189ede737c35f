//! Path `as-is` between two containers, by `podman exec`.

use std::path::Path;
use std::process::Command;

use crate::support::cli::PROGRAM;
use crate::support::plan::Room;
use crate::support::{beside, skip};

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/endpoints/podman.sh"
);

/// Removes the control groups that podman made, deepest first.
fn remove_groups(name: &str) {
    let find = format!(
        "find /sys/fs/cgroup -depth -type d -path '*/{name}*' -exec rmdir {{}} + 2>/dev/null; true"
    );
    let done = Command::new("sh").args(["-c", &find]).status().unwrap();
    assert!(done.success());
}

#[test]
fn containers_are_reached_by_podman_exec() {
    let _beside = beside();
    for program in ["/usr/bin/podman", "/usr/bin/busybox"] {
        if !Path::new(program).exists() {
            skip("podman", false, &format!("there is no {program}"));
            return;
        }
    }
    let room = Room::new();
    let group = format!("hopyard-podman-{}", std::process::id());
    let programs = Path::new(PROGRAM).parent().unwrap();
    let output = Command::new("unshare")
        .args([
            "-m",
            "-n",
            "-p",
            "-f",
            "--kill-child",
            "--mount-proc",
            "bash",
            SCRIPT,
        ])
        .arg(programs)
        .args([&group, &room.name("run")])
        .output()
        .unwrap();
    remove_groups(&group);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        assert_eq!(cell["way"]["proved"], true, "{cell:#}");
        assert_eq!(cell["endpoints"]["client"]["device"], "eth0");
    }
}
