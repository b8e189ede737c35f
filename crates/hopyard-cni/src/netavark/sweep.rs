//! Taking away what containers left that went without `teardown`: of a podman that was killed, or after its state was lost.

use std::io::Write;

use hopyard_net::Handle;
use hopyard_switch::{Error as SwitchError, Switch};
use serde_json::json;

use super::network::Network;
use crate::call::Call;
use crate::del::{Leaving, detach, finish};
use crate::error::Result;
use crate::names;
use crate::record::{Attachment, Record, attachments, networks_of_podman};

/// Does so for all networks. What cannot be taken away does not keep the command from what it was called for: stderr, which
/// podman passes on, tells of it, and the next command tries again.
pub(super) fn sweep(here: &Handle) {
    if let Err(error) = try_sweep(here) {
        let said =
            format!("hopyard: what a container left that is gone cannot be removed: {error}\n");
        // A closed stderr is no failure.
        let _ = std::io::stderr().write_all(said.as_bytes());
    }
}

fn try_sweep(here: &Handle) -> Result<()> {
    let mut problems = Vec::new();
    for network in networks_of_podman()? {
        let call = Call {
            network: network.clone(),
            ..Network::default().call(json!({}))
        };
        for attachment in attachments(&network)? {
            problems.extend(collect(here, &call, &attachment).err());
        }
    }
    crate::error::Error::all(problems).map_or(Ok(()), Err)
}

/// The device of a container goes with its namespace, and the port with the device.
fn collect(here: &Handle, call: &Call, of: &Attachment) -> Result<()> {
    let device = names::device(&of.network, &of.container, &of.ifname);
    if here.index(&device).is_ok() {
        return Ok(());
    }
    // Whoever makes or removes it holds the record meanwhile.
    let Some(record) = Record::idle(of)? else {
        return Ok(());
    };
    let entry = record.entry.as_ref();
    let glance = match entry {
        Some(entry) => match Switch::glance(&entry.switch) {
            // Of another version: where it is cannot be said, and its port went with the device.
            Err(SwitchError::OtherLayout { .. }) => None,
            glance => glance?,
        },
        None => None,
    };
    let elsewhere = match glance {
        Some(glance) => glance.netns != here.ns().inode()?,
        None => false,
    };
    // It may have come in between. In another namespace it is not ours to look for.
    if here.index(&device).is_ok() || elsewhere {
        return Ok(());
    }
    let leaving = Leaving::of_record(call, of, Some(&record))?;
    let problems = detach(here, &leaving, Some(&record));
    finish(problems, Some(record))
}
