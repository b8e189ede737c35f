//! The IPAM plugin: run as the specification says, with the configuration as it came.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;

use crate::error::{Error, Result, code};
use crate::record::Record;

/// One call of an IPAM plugin.
pub(crate) struct Ipam<'a> {
    /// Its type.
    pub(crate) kind: &'a str,
    /// Where plugins are, `CNI_PATH`.
    pub(crate) path: &'a str,
    /// The environment; empty values as well.
    pub(crate) container: &'a str,
    pub(crate) netns: &'a Path,
    pub(crate) ifname: &'a str,
    pub(crate) args: &'a str,
    /// The network configuration.
    pub(crate) conf: &'a str,
}

impl Ipam<'_> {
    /// The file of the plugin.
    pub(crate) fn program(&self) -> Result<PathBuf> {
        find(self.kind, self.path)
    }

    /// Runs the plugin, and gives what it says if it succeeds. It holds the lock of the record for as long as it runs.
    pub(crate) fn run(&self, command: &str, record: Option<&Record>) -> Result<Option<Value>> {
        let output = self.output(command, record)?;
        let said = output.stdout.trim_ascii();
        if output.status.success() {
            if said.is_empty() {
                return Ok(None);
            }
            let read = serde_json::from_slice(said);
            return read
                .map(Some)
                .map_err(|error| self.error(command, &format!("answered no JSON: {error}")));
        }
        // The plugin's own code says more to the runtime than ours would.
        let said_error = serde_json::from_slice::<Value>(said).ok();
        Err(
            match said_error
                .as_ref()
                .and_then(|e| e["msg"].as_str().map(|msg| (e, msg)))
            {
                Some((error, msg)) => Error {
                    code: error["code"]
                        .as_u64()
                        .and_then(|code| u32::try_from(code).ok())
                        .unwrap_or(code::IPAM),
                    msg: format!("IPAM plugin `{}`, {command}: {msg}", self.kind),
                    details: error["details"].as_str().unwrap_or_default().to_owned(),
                },
                None => self.error(
                    command,
                    &format!(
                        "ended with {}: {}",
                        output.status,
                        String::from_utf8_lossy(said)
                    ),
                ),
            },
        )
    }

    fn output(&self, command: &str, record: Option<&Record>) -> Result<Output> {
        let failed = |error: &std::io::Error| self.error(command, &error.to_string());
        let mut program = Command::new(self.program()?);
        program
            .env("CNI_COMMAND", command)
            .env("CNI_CONTAINERID", self.container)
            .env("CNI_NETNS", self.netns)
            .env("CNI_IFNAME", self.ifname)
            .env("CNI_ARGS", self.args)
            .env("CNI_PATH", self.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(record) = record {
            hopyard_net::inherit(&mut program, record.share()?);
        }
        let mut child = program.spawn().map_err(|error| failed(&error))?;
        let stdin = child.stdin.take();
        let output = thread::scope(|scope| {
            scope.spawn(|| {
                // A plugin that does not read it says so itself.
                let _ = stdin.map(|mut stdin| stdin.write_all(self.conf.as_bytes()));
            });
            child.wait_with_output()
        });
        output.map_err(|error| failed(&error))
    }

    fn error(&self, command: &str, why: &str) -> Error {
        let msg = format!("IPAM plugin `{}`, {command}: {why}", self.kind);
        Error::new(code::IPAM, msg)
    }
}

/// The file of a plugin in one of the directories.
fn find(kind: &str, path: &str) -> Result<PathBuf> {
    let mut directories = path.split(':').filter(|directory| !directory.is_empty());
    directories
        .find_map(|directory| {
            let file = Path::new(directory).join(kind);
            file.is_file().then_some(file)
        })
        .ok_or_else(|| {
            let msg = format!("there is no IPAM plugin `{kind}` in CNI_PATH ({path})");
            Error::new(code::IPAM, msg)
        })
}
