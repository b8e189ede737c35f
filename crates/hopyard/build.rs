//! Notes the source revision, so that every report can name it, and compiles what counts copies of packets.

use std::process::Command;

fn main() {
    hopyard_bpf_build::compile("counting copies of packets", &["bpf/copies.bpf.c"]);
    println!("cargo::rerun-if-changed=../../.git/HEAD");
    println!("cargo::rerun-if-changed=../../.git/index");
    let described = Command::new("git")
        .args(["describe", "--always", "--dirty"])
        .output();
    // Outside a checkout there is no revision, and reports have none.
    if let Ok(output) = described
        && output.status.success()
    {
        let revision = String::from_utf8_lossy(&output.stdout);
        println!("cargo::rustc-env=HOPYARD_REVISION={}", revision.trim());
    }
}
