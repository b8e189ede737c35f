//! For build scripts: compiles eBPF programs with clang, and says what to install where it is missing.
//!
//! The output is for cargo, which reads a build script's.
#![allow(clippy::print_stdout, reason = "cargo reads it")]

use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// Compiles each source to `NAME.bpf.o` in `OUT_DIR`; ends the build where that cannot be done. `what` needs
/// them, as in "the direct switch". A packaged crate may come without its tests: a source that is not there
/// is left out, and whoever includes its object is told so by the compiler.
pub fn compile(what: &str, sources: &[&str]) {
    println!("cargo::rerun-if-env-changed=BPF_CLANG");
    for source in sources.iter().map(Path::new) {
        // The directory, for what a program includes.
        if let Some(directory) = source.parent().filter(|directory| directory.exists()) {
            println!("cargo::rerun-if-changed={}", directory.display());
        }
        if source.exists()
            && let Err(trouble) = clang(source)
        {
            println!(
                "cargo::error={what} needs clang and libbpf's headers: apt-get install clang libbpf-dev"
            );
            for line in trouble.lines() {
                println!("cargo::error={line}");
            }
            exit(1);
        }
    }
}

fn clang(source: &Path) -> Result<(), String> {
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
