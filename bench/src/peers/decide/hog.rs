//! The real-time hog of V18, a subcommand of `verify`: it takes a CPU in random bursts, half of the time.

use std::path::Path;
use std::process::Command;

use hopyard_bench::Helper;
use hopyard_net::cpu;

use crate::error::{Error, Result};

/// Bursts and pauses of V18.
const BURSTS: [&str; 5] = ["--real-time", "--least-ms", "200", "--most-ms", "3000"];

/// Starts one on the last CPU, where every table has at least one end, and waits until it is ready.
pub(super) fn start(verify: &Path, seed: u64) -> Result<Helper> {
    let cpus = cpu::current_affinity()?;
    let last = cpus.last().copied().unwrap_or_default();
    let mut command = Command::new(verify);
    command
        .args(["hog", "--cpus", &last.to_string()])
        .args(BURSTS)
        .args(["--seed", &seed.to_string()]);
    let started = Helper::start(&mut command).map_err(|source| Error::Start {
        program: verify.display().to_string(),
        source,
    })?;
    started.ok_or_else(|| Error::Program {
        program: format!("{} hog", verify.display()),
        what: "did not start".to_owned(),
    })
}
