//! DEL, and taking away what an attachment has: also for GC and for an ADD that fails.

use std::path::{Path, PathBuf};

use hopyard_net::{Error as NetError, Handle};
use serde_json::Value;

use crate::call::{Call, Command};
use crate::conf::ipam_type;
use crate::error::{Error, Result};
use crate::ipam::Ipam;
use crate::names::{self, SwitchName};
use crate::record::{Attachment, Record};
use crate::switch;
use crate::values::parse;

/// What is to go.
pub(crate) struct Leaving {
    attachment: Attachment,
    netns: PathBuf,
    device: String,
    switch: SwitchName,
    /// The type of the IPAM plugin, and the configuration and `CNI_ARGS` that it gets.
    ipam: Option<String>,
    conf: String,
    args: String,
    path: String,
}

/// Takes the container of a call off the switch. What is gone already is fine.
pub(crate) fn del(call: &Call) -> Result<()> {
    let attachment = call.attachment();
    let record = Record::of(&attachment)?;
    let leaving = Leaving::of_record(call, &attachment, record.as_ref())?;
    let problems = detach(&Handle::here()?, &leaving, record.as_ref());
    finish(problems, record)
}

/// Removes the record where nothing is left that it names.
pub(crate) fn finish(mut problems: Vec<Error>, record: Option<Record>) -> Result<()> {
    if problems.is_empty()
        && let Some(record) = record
        && let Err(error) = record.remove()
    {
        problems.push(error);
    }
    Error::all(problems).map_or(Ok(()), Err)
}

impl Leaving {
    /// What the record names; without one, or without one that can be read, what the configuration of the call gives.
    pub(crate) fn of_record(
        call: &Call,
        attachment: &Attachment,
        record: Option<&Record>,
    ) -> Result<Self> {
        let entry = record.and_then(|record| record.entry.as_ref());
        let recorded: Option<Value> = entry.and_then(|entry| parse(entry.conf.as_bytes()).ok());
        // What the runtime gives for this attachment is better, as it has `prevResult`, unless somebody changed it since.
        let prefer =
            |recorded: &Value| call.command == Command::Gc || recorded["ipam"] != call.conf["ipam"];
        let (conf, text) = match (recorded, entry) {
            (Some(recorded), Some(entry)) if prefer(&recorded) => (recorded, entry.conf.clone()),
            _ => (call.conf.clone(), call.text.clone()),
        };
        let (device, switch) = match entry {
            Some(entry) => {
                let switch = SwitchName {
                    name: entry.switch.clone(),
                    is_own: entry.own_switch,
                };
                (entry.device.clone(), switch)
            }
            None => (
                names::device(
                    &attachment.network,
                    &attachment.container,
                    &attachment.ifname,
                ),
                SwitchName::of(&call.conf, &attachment.network)?,
            ),
        };
        Ok(Self {
            attachment: attachment.clone(),
            netns: call.netns.clone(),
            device,
            switch,
            ipam: ipam_type(&conf)?,
            conf: text,
            args: entry.map_or_else(|| call.args.clone(), |entry| entry.args.clone()),
            path: call.path.clone(),
        })
    }

    fn ipam<'a>(&'a self, kind: &'a str) -> Ipam<'a> {
        Ipam {
            kind,
            path: &self.path,
            container: &self.attachment.container,
            netns: &self.netns,
            ifname: &self.attachment.ifname,
            args: &self.args,
            conf: &self.conf,
        }
    }
}

/// Takes away port, addresses, device and, after its last port, the switch. Goes on after errors, and gives all of them.
pub(crate) fn detach(here: &Handle, leaving: &Leaving, record: Option<&Record>) -> Vec<Error> {
    let mut problems = Vec::new();
    let mut did = |done: Result<()>| problems.extend(done.err());
    // Before the device, whose number the kernel may give to another one.
    did(switch::remove_port(&leaving.switch.name, &leaving.device));
    // The container cannot use them any more. Meanwhile the kernel detaches the program of the port, which the removal of
    // the device would wait for.
    if let Some(kind) = &leaving.ipam {
        did(leaving.ipam(kind).run("DEL", record).map(drop));
    }
    did(delete_device(here, &leaving.device));
    did(switch::remove_unused(&leaving.switch));
    problems
}

fn delete_device(here: &Handle, device: &str) -> Result<()> {
    match here.delete_link(device) {
        Err(NetError::Missing { .. }) => Ok(()),
        deleted => Ok(deleted?),
    }
}

impl Call {
    pub(crate) fn attachment(&self) -> Attachment {
        Attachment {
            network: self.network.clone(),
            container: self.container.clone(),
            ifname: self.ifname.clone(),
        }
    }

    /// The IPAM plugin as this call runs it.
    pub(crate) fn ipam<'a>(&'a self, kind: &'a str) -> Ipam<'a> {
        Ipam {
            kind,
            path: &self.path,
            container: &self.container,
            netns: Path::new(&self.netns),
            ifname: &self.ifname,
            args: &self.args,
            conf: &self.text,
        }
    }
}
