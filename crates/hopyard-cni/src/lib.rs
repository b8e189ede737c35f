//! CNI plugin `hopyard`: containers become ports of the direct switch (`hopyard-switch`).
//!
//! Specification 1.1.0, 1.0.0 and 0.4.0. A call is read and checked as a whole (`conf`, `call`), then one of the
//! operations acts. Before anything is made, a record of the attachment is written (`record`): DEL, GC and an ADD that
//! fails take away what it names, also what the IPAM plugin gave. `ipam` runs that plugin as a program, or does the work of
//! `host-local` in this process (`host_local`).
//!
//! podman 5 has netavark in place of CNI. Its driver (`netavark`) makes the same calls of what netavark says.

mod add;
mod bandwidth;
mod call;
mod check;
mod conf;
mod container;
mod del;
mod error;
mod gc;
mod host_local;
mod ipam;
mod names;
mod netavark;
mod outcome;
mod record;
mod refused;
mod status;
mod switch;
mod values;
mod version;

use std::io::{Read, Write};
use std::process::ExitCode;

use serde_json::Value;

use call::{Call, Command};
use error::{Error, Result};
use version::{SUPPORTED, Version};

pub use netavark::main as netavark;

/// Answers one call as the environment and stdin say, on stdout.
#[must_use]
pub fn main() -> ExitCode {
    let Some(command) = std::env::var("CNI_COMMAND").ok().filter(|c| !c.is_empty()) else {
        let versions: Vec<&str> = SUPPORTED.iter().map(|v| v.name()).collect();
        let text = format!(
            "CNI plugin hopyard {}\nCNI protocol versions supported: {}\nA container runtime calls it, with CNI_COMMAND \
             in the environment.\n",
            env!("CARGO_PKG_VERSION"),
            versions.join(", ")
        );
        // A closed output is no failure.
        let _ = std::io::stderr().write_all(text.as_bytes());
        return ExitCode::SUCCESS;
    };
    let mut text = Vec::new();
    let read = std::io::stdin().read_to_end(&mut text);
    let answered = read
        .map_err(|source| Error::io("read the network configuration from stdin", &source))
        .and_then(|_| answer(&command, &text));
    let (document, status) = match answered {
        Ok(None) => return ExitCode::SUCCESS,
        Ok(Some(document)) => (document, ExitCode::SUCCESS),
        Err(error) => (error.document(&version_asked(&text)), ExitCode::FAILURE),
    };
    // In one call of the kernel.
    match std::io::stdout().write_all(format!("{document:#}\n").as_bytes()) {
        Ok(()) => status,
        Err(_) => ExitCode::FAILURE,
    }
}

fn answer(command: &str, text: &[u8]) -> Result<Option<Value>> {
    let command = Command::from_name(command)?;
    if command == Command::Version {
        return version::answer(text).map(Some);
    }
    let conf = values::parse(text)?;
    let version = Version::of(&conf)?;
    command.must_be_of(version)?;
    let call = Call::from_environment(command, version, text, conf)?;
    match command {
        Command::Add => add::add(&call, None).map(Some),
        Command::Del => del::del(&call).map(|()| None),
        Command::Check => check::check(&call).map(|()| None),
        Command::Gc => gc::gc(&call).map(|()| None),
        Command::Status => status::status(&call).map(|()| None),
        Command::Version => Ok(None),
    }
}

/// The version that an error is to be written in: the caller's, if it can be read at all.
fn version_asked(text: &[u8]) -> String {
    let conf: Option<Value> = serde_json::from_slice(text).ok();
    let asked = conf.as_ref().and_then(|conf| conf["cniVersion"].as_str());
    asked.unwrap_or(Version::NEWEST.name()).to_owned()
}
