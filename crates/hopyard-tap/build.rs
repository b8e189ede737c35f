//! Compiles the steering programs with clang, and says what to install where it is missing.

use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// The programs; the last one only tests use.
const SOURCES: [&str; 2] = ["bpf/steering.bpf.c", "tests/bpf/drops.bpf.c"];

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed=tests/bpf");
    println!("cargo::rerun-if-env-changed=BPF_CLANG");
    // A packaged crate may come without its tests.
    let sources = SOURCES.map(Path::new);
    for source in sources.iter().filter(|source| source.exists()) {
        if let Err(trouble) = compile(source) {
            println!(
                "cargo::error=the steering programs of taps need clang and libbpf's headers: apt-get install clang libbpf-dev"
            );
            for line in trouble.lines() {
                println!("cargo::error={line}");
            }
            exit(1);
        }
    }
}

fn compile(source: &Path) -> Result<(), String> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let object = Path::new(source.file_name().unwrap_or_default()).with_extension("o");
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    // Debian keeps <asm/types.h> in a directory of the machine's name; others do without it.
    let headers = Path::new("/usr/include").join(format!("{arch}-linux-gnu"));
    let compiler = std::env::var("BPF_CLANG").unwrap_or_else(|_| "clang".into());
    let compiled = Command::new(&compiler)
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g"])
        .args(["-Wall", "-Wextra", "-Werror"])
        .arg("-idirafter")
        .arg(headers)
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(out.join(object))
        .output();
    let trouble = match compiled {
        Ok(done) if done.status.success() => return Ok(()),
        Ok(done) => String::from_utf8_lossy(&done.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    Err(format!("{compiler}: {trouble}"))
}
