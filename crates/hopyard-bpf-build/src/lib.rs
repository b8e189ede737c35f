//! eBPF programs that travel as compiled objects: for build scripts, and for whoever changes the programs.
//!
//! Beside a source `NAME.bpf.c` are its object `NAME.bpf.o` and a record `NAME.bpf.txt`, which says what the object was
//! compiled from and with. A build script calls [`objects`] and needs no compiler as long as the three belong together.
//! After a change of the source it compiles anew, which takes clang, llvm and libbpf's headers, so that a developer
//! always runs what the source says. [`Program::renew`] writes object and record anew (`make bpf`), and
//! [`Program::check`] says whether the object is what the source gives.
//!
//! # Examples
//!
//! A crate's `build.rs`, with `bpf/switch.bpf.c`, `bpf/switch.bpf.o` and `bpf/switch.bpf.txt` in the crate:
//!
//! ```no_run
//! hopyard_bpf_build::objects("the direct switch", &["bpf/switch.bpf.c"]);
//! ```
//!
//! The crate then includes `concat!(env!("OUT_DIR"), "/switch.bpf.o")`.
#![warn(missing_docs)]
#![allow(clippy::print_stdout, reason = "cargo reads it")]

mod compiler;
mod digest;
mod error;
mod program;

use std::path::Path;
use std::process::exit;

pub use compiler::Endian;
pub use error::Error;
pub use program::{Check, Program};

/// Asks build scripts to compile every program, whatever there is of objects: `HOPYARD_BPF=compile`.
const WISH: &str = "HOPYARD_BPF";

/// For build scripts: puts the object of each source into `OUT_DIR`; ends the build where there is none. `what` needs them, as
/// in "the direct switch".
///
/// The object beside the source is taken where its record fits, and the source is compiled otherwise; also for big-endian
/// machines, and with `HOPYARD_BPF=compile` in the environment. `BPF_CLANG` names another compiler than `clang`.
///
/// A packaged crate may come without its tests: a source that is not there is left out, and whoever includes its object is
/// told so by the compiler.
pub fn objects(what: &str, sources: &[&str]) {
    println!("cargo::rerun-if-env-changed=BPF_CLANG");
    println!("cargo::rerun-if-env-changed={WISH}");
    for source in sources.iter().map(Path::new) {
        // The directory, for what a program includes.
        if let Some(directory) = source.parent().filter(|directory| directory.exists()) {
            println!("cargo::rerun-if-changed={}", directory.display());
        }
        if source.exists()
            && let Err(error) = provide(what, &Program::new(source))
        {
            for line in error.to_string().lines() {
                println!("cargo::error={line}");
            }
            exit(1);
        }
    }
}

/// Puts one object into `OUT_DIR`.
fn provide(what: &str, program: &Program) -> Result<(), Error> {
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    let object = Path::new(&out).join(program.object().file_name().unwrap_or_default());
    let endian = match std::env::var("CARGO_CFG_TARGET_ENDIAN").as_deref() {
        Ok("big") => Endian::Big,
        _ => Endian::Little,
    };
    let wished = std::env::var_os(WISH).is_some_and(|wish| wish == "compile");
    let why = if wished {
        format!("{WISH}=compile asks for it")
    } else if endian == Endian::Big {
        "the objects that travel are for little-endian machines".to_owned()
    } else if let Some(stale) = program.stale()? {
        println!("cargo::warning={stale}: compiled here; `make bpf` renews the object");
        stale
    } else {
        return program.copy(&object);
    };
    program
        .compile(endian, &object)
        .map_err(|error| error.needed_for(what, &why))
}
