//! The IPAM plugin: run as the specification says, with the configuration as it came, or the work of `host-local` done in this
//! process.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde_json::Value;

use crate::error::{Error, Result, code};
use crate::host_local::HostLocal;
use crate::host_local::reference::is_reference;
use crate::record::Record;
use crate::values::{invalid, optional_flag, parse, text};

/// The plugin whose work this process can do.
const HOST_LOCAL: &str = "host-local";
/// The key that asks for that, or forbids it.
const IN_PROCESS: &str = "ipamInProcess";
/// The plugin that asks over the network: the container has to be connected before, and until it has given its address back.
const ASKS_ON_THE_WIRE: &str = "dhcp";

/// Which IPAM plugin a configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) name: String,
    /// Does this process do its work?
    pub(crate) in_process: bool,
    /// Does the configuration ask for that? Then GC looks through the reservations, too.
    keeps_store: bool,
}

impl Kind {
    pub(crate) fn asks_on_the_wire(&self) -> bool {
        self.name == ASKS_ON_THE_WIRE
    }

    /// The one of a configuration, with the `CNI_ARGS` and `CNI_PATH` of its call; `None`: there is none.
    pub(crate) fn of(conf: &Value, args: &str, path: &str) -> Result<Option<Self>> {
        let (name, asked) = keys(conf)?;
        Ok(name.map(|name| Self {
            in_process: asked.unwrap_or_else(|| is_as_good(&name, conf, args, path)),
            keeps_store: asked == Some(true),
            name,
        }))
    }
}

/// The name of the plugin, and what `ipamInProcess` says.
fn keys(conf: &Value) -> Result<(Option<String>, Option<bool>)> {
    let name = name(&conf["ipam"])?;
    let asked = optional_flag(conf, IN_PROCESS)?;
    if asked == Some(true) && name.as_deref() != Some(HOST_LOCAL) {
        let why = format!(
            "is for `ipam.type` `{HOST_LOCAL}` alone, which is {} here: leave `{IN_PROCESS}` out",
            conf["ipam"]["type"]
        );
        return Err(invalid(IN_PROCESS, &conf[IN_PROCESS], &why));
    }
    Ok((name, asked))
}

/// Would this process do the same as the program that would otherwise run? It would for the reference program and a configuration that
/// both read alike. What is wrong with a configuration is left to the program to say.
fn is_as_good(name: &str, conf: &Value, args: &str, path: &str) -> bool {
    name == HOST_LOCAL
        && HostLocal::reads_alike(conf, args)
        && find(name, path).is_ok_and(|program| is_reference(&program))
}

fn name(ipam: &Value) -> Result<Option<String>> {
    match ipam {
        Value::Null => Ok(None),
        Value::Object(members) if members.is_empty() => Ok(None),
        ipam => match text(ipam, "type")? {
            None => Err(invalid("ipam", ipam, "has no `type`: name an IPAM plugin")),
            Some(kind) if kind.contains('/') || kind.starts_with('.') => Err(invalid(
                "ipam.type",
                &ipam["type"],
                "is no name of a plugin",
            )),
            Some(kind) => Ok(Some(kind)),
        },
    }
}

/// One call of an IPAM plugin.
pub(crate) struct Ipam<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) network: &'a str,
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
    /// The plugin where this process does its work; `None`: it is a program.
    fn in_process(&self) -> Result<Option<HostLocal<'_>>> {
        if !self.kind.in_process {
            return Ok(None);
        }
        Ok(Some(HostLocal {
            network: self.network,
            container: self.container,
            ifname: self.ifname,
            args: self.args,
            conf: parse(self.conf.as_bytes())?,
        }))
    }

    /// Can ADD be asked of it? A program has to be there; in process the configuration has to be one that it takes.
    pub(crate) fn ready(&self) -> Result<()> {
        match self.in_process()? {
            Some(own) => own.ready(),
            None => self.program().map(drop),
        }
    }

    /// Can it have reserved anything? A program that is missing cannot, nor can this process where the configuration names no store.
    pub(crate) fn can_have_reserved(&self) -> bool {
        match self.in_process() {
            Ok(Some(own)) => own.directory().is_ok(),
            Ok(None) => self.program().is_ok(),
            Err(_) => false,
        }
    }

    /// Gives the result of the plugin.
    pub(crate) fn add(&self, record: &Record) -> Result<Value> {
        match self.in_process()? {
            Some(own) => own.add(),
            None => Ok(self.run("ADD", Some(record))?.unwrap_or_default()),
        }
    }

    /// Starts a plugin that is a program.
    pub(crate) fn start_add(&self, record: &Record) -> Result<Running<'_>> {
        self.start("ADD", Some(record))
    }

    /// Has the plugin take back what it gave.
    pub(crate) fn del(&self, record: Option<&Record>) -> Result<()> {
        match self.in_process()? {
            Some(own) => own.del(record.map(Record::reserved)),
            None => self.run("DEL", record).map(drop),
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self.in_process()? {
            Some(own) => own.check(),
            None => self.run("CHECK", None).map(drop),
        }
    }

    pub(crate) fn status(&self) -> Result<()> {
        match self.in_process()? {
            // As `ready` of ADD: no lock, nothing of the store.
            Some(own) => own.ready(),
            None => self.run("STATUS", None).map(drop),
        }
    }

    /// GC. The pairs of container and device that are `valid` stay, which a program reads from the configuration; and what was reserved
    /// since GC `began`.
    pub(crate) fn collect(
        &self,
        valid: &BTreeSet<(String, String)>,
        began: SystemTime,
    ) -> Result<()> {
        match self.in_process()? {
            Some(own) if self.kind.keeps_store => own.collect(valid, began),
            // As the reference program, which does nothing. What this plugin has reserved went with its records.
            Some(_) => Ok(()),
            None => self.run("GC", None).map(drop),
        }
    }

    /// The file of the plugin.
    fn program(&self) -> Result<PathBuf> {
        find(&self.kind.name, self.path)
    }

    fn run(&self, command: &'static str, record: Option<&Record>) -> Result<Option<Value>> {
        self.start(command, record)?.answer()
    }

    /// Starts the plugin. It holds the lock of the record for as long as it runs.
    fn start(&self, command: &'static str, record: Option<&Record>) -> Result<Running<'_>> {
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
        let mut child = {
            // Whatever is started while a lock can be inherited would get it, too: GC has several plugins run.
            static STARTS: Mutex<()> = Mutex::new(());
            let _turn = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
            let _lock = record.map(Record::share).transpose()?;
            program
                .spawn()
                .map_err(|error| self.error(command, &error.to_string()))?
        };
        if let Some(mut stdin) = child.stdin.take() {
            // A plugin that does not read it says so itself.
            let _ = stdin.write_all(self.conf.as_bytes());
        }
        Ok(Running {
            ipam: self,
            command,
            child,
            said: Vec::new(),
        })
    }

    fn error(&self, command: &str, why: &str) -> Error {
        let msg = format!("IPAM plugin `{}`, {command}: {why}", self.kind.name);
        Error::new(code::IPAM, msg)
    }
}

/// A plugin that runs. To drop this waits until it has ended.
pub(crate) struct Running<'a> {
    ipam: &'a Ipam<'a>,
    command: &'static str,
    child: Child,
    /// What it has said so far.
    said: Vec<u8>,
}

impl Running<'_> {
    /// What an ADD gives, as soon as the plugin has said it. It may still fail ([`Self::answer`]).
    pub(crate) fn result(&mut self) -> Result<Value> {
        let mut part = [0; 4096];
        while let Some(stdout) = &mut self.child.stdout {
            let read = stdout.read(&mut part);
            match read.map_err(|error| self.ipam.error(self.command, &error.to_string()))? {
                0 => break,
                length => self.said.extend_from_slice(&part[..length]),
            }
            // An error is a document as well.
            if let Ok(result) = serde_json::from_slice::<Value>(&self.said)
                && result["ips"].is_array()
            {
                return Ok(result);
            }
        }
        Ok(self.answer()?.unwrap_or_default())
    }

    /// Waits until the plugin has ended, and gives what it said if it succeeded.
    pub(crate) fn answer(&mut self) -> Result<Option<Value>> {
        let (ipam, command) = (self.ipam, self.command);
        let ended = match &mut self.child.stdout {
            Some(stdout) => stdout.read_to_end(&mut self.said).map(drop),
            None => Ok(()),
        };
        let status = ended
            .and_then(|()| self.child.wait())
            .map_err(|error| ipam.error(command, &error.to_string()))?;
        let said = self.said.trim_ascii();
        if status.success() {
            if said.is_empty() {
                return Ok(None);
            }
            let read = serde_json::from_slice(said);
            return read
                .map(Some)
                .map_err(|error| ipam.error(command, &format!("answered no JSON: {error}")));
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
                    msg: format!("IPAM plugin `{}`, {command}: {msg}", ipam.kind.name),
                    details: error["details"].as_str().unwrap_or_default().to_owned(),
                    is_of_ipam: true,
                },
                None => ipam.error(
                    command,
                    &format!("ended with {}: {}", status, String::from_utf8_lossy(said)),
                ),
            },
        )
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Nobody reads what it still says.
        self.child.stdout = None;
        // Whoever takes back what it gave does so after its end.
        let _ = self.child.wait();
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
