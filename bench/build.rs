//! Compiles the program of known cost with clang, and says what to install where it is missing.

use std::path::{Path, PathBuf};
use std::process::{Command, exit};

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=BPF_CLANG");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("burn.bpf.o");
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    // Debian keeps <asm/types.h> in a directory of the machine's name; others do without it.
    let headers = Path::new("/usr/include").join(format!("{arch}-linux-gnu"));
    let compiler = std::env::var("BPF_CLANG").unwrap_or_else(|_| "clang".into());
    let compiled = Command::new(&compiler)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g"])
        .args(["-Wall", "-Wextra", "-Werror"])
        .arg("-idirafter")
        .arg(headers)
        .args(["-c", "bpf/burn.bpf.c", "-o"])
        .arg(&out)
        .output();
    let trouble = match compiled {
        Ok(done) if done.status.success() => return,
        Ok(done) => String::from_utf8_lossy(&done.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    println!(
        "cargo::error=the eBPF program of known cost needs clang and libbpf's headers: apt-get install clang libbpf-dev"
    );
    for line in format!("{compiler}: {trouble}").lines() {
        println!("cargo::error={line}");
    }
    exit(1);
}
