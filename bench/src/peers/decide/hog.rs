//! The real-time hog of V18, a subcommand of `verify`: it takes a CPU in random bursts, half of the time.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hopyard_net::cpu;

use crate::error::{Error, Result};

/// Bursts and pauses of V18.
const BURSTS: [&str; 5] = ["--real-time", "--least-ms", "200", "--most-ms", "3000"];

/// A running hog. Dropping it ends the process.
#[derive(Debug)]
pub(super) struct Hog {
    child: Child,
}

impl Hog {
    /// Starts one on the last CPU, where every table has at least one end, and waits until it is ready.
    pub(super) fn start(verify: &Path, seed: u64) -> Result<Self> {
        let failed = |source| Error::Start {
            program: verify.display().to_string(),
            source,
        };
        let cpus = cpu::current_affinity()?;
        let last = cpus.last().copied().unwrap_or_default();
        let child = Command::new(verify)
            .args(["hog", "--cpus", &last.to_string()])
            .args(BURSTS)
            .args(["--seed", &seed.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C at the terminal is for the controller, which ends its hogs.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let mut hog = Self { child };
        let mut line = String::new();
        if let Some(stdout) = hog.child.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut line)
                .map_err(failed)?;
        }
        if line.is_empty() {
            return Err(Error::Program {
                program: format!("{} hog", verify.display()),
                what: "did not start".to_owned(),
            });
        }
        Ok(hog)
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        // Fails only if it ended meanwhile; it is reaped in either case.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
