//! Records the source revision, so that every report can name it.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=../../.git/HEAD");
    println!("cargo::rerun-if-changed=../../.git/index");
    // Outside a checkout there is no revision, and reports have none.
    if let Some(revision) = git(&["describe", "--always"]) {
        let changes = git(&["status", "--porcelain", "--untracked-files=no"]);
        let dirty = changes.is_none_or(|list| !list.is_empty());
        let dirty = if dirty { "-dirty" } else { "" };
        println!("cargo::rustc-env=HOPYARD_REVISION={revision}{dirty}");
    }
}

/// Output of git, which must not write the index: cargo watches it, and would build everything again next time.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .args(arguments)
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
