//! podman with its CNI backend, as Debian 12 has it.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::host::{PLUGIN, output};
use crate::skip::skip;

/// What has to hold, in the order in which `podman.sh` says it.
const HOLDS: [&str; 7] = [
    "static address",
    "containers reach each other, host and wire",
    "isolation",
    "spoofing",
    "disconnect and connect",
    "ports of the host are not mapped",
    "nothing is left",
];

/// What is missing for it; `None`: nothing.
fn missing() -> Option<String> {
    for program in ["podman", "runc", "conmon", "busybox"] {
        let mut look = Command::new("sh");
        look.args(["-c", &format!("command -v {program}")]);
        let found = output(&mut look);
        if !found.is_ok_and(|output| output.status.success()) {
            return Some(format!("{program} is not installed"));
        }
    }
    let plugins = Path::new("/usr/lib/cni/host-local").exists();
    (!plugins)
        .then(|| "/usr/lib/cni/host-local is not there (containernetworking-plugins)".to_owned())
}

/// Removes the control groups that podman made, deepest first.
fn remove_groups(name: &str) {
    fn remove(directory: &Path) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                remove(&entry.path());
            }
        }
        // The kernel takes a moment to see that a process has ended.
        for _ in 0..100 {
            if fs::remove_dir(directory).is_ok() || !directory.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
    for entry in fs::read_dir("/sys/fs/cgroup")
        .into_iter()
        .flatten()
        .flatten()
    {
        remove(&entry.path().join(name));
    }
    remove(&Path::new("/sys/fs/cgroup").join(name));
}

#[test]
fn podman_runs_containers_on_it() {
    if let Some(why) = missing() {
        skip("podman with CNI", false, &why);
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cni/podman.sh");
    let group = format!("hopyard-cni-test-{}", std::process::id());
    let mut podman = Command::new("unshare");
    podman
        .args([
            "-m",
            "-n",
            "-p",
            "-f",
            "--kill-child",
            "--mount-proc",
            "bash",
        ])
        .arg(script)
        .args([PLUGIN, &group]);
    let output = output(&mut podman).unwrap();
    remove_groups(&group);
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        skip("podman with CNI", false, &errors);
        return;
    }
    assert!(output.status.success(), "{said}\n{errors}");
    assert_eq!(said.lines().collect::<Vec<_>>(), HOLDS, "{errors}");
}
