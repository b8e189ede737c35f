//! GC.

use std::collections::BTreeSet;
use std::time::SystemTime;

use hopyard_net::Handle;
use serde_json::Value;

use crate::call::Call;
use crate::del::{Leaving, detach_many, finish};
use crate::error::{Error, Result, code};
use crate::record::{Attachment, Record, attachments};
use crate::values::invalid;

/// So many are taken away together: each holds the file of its record.
const AT_ONCE: usize = 64;

/// The keys of what is still valid. The specification had the second name for a while, and runtimes give both.
const VALID: [&str; 2] = ["cni.dev/valid-attachments", "cni.dev/attachments"];

/// Takes away every attachment of the network that is not valid any more, with its addresses. Goes on after errors.
pub(crate) fn gc(call: &Call) -> Result<()> {
    let began = SystemTime::now();
    let valid = valid(call)?;
    let kind = call.ipam_kind()?;
    let here = Handle::here()?;
    let mut problems = Vec::new();
    let is_valid = |one: &Attachment| valid.contains(&(one.container.clone(), one.ifname.clone()));
    let mut leaving = attachments(&call.network)?;
    leaving.retain(|one| !is_valid(one));
    for some in leaving.chunks(AT_ONCE) {
        problems.extend(collect(call, &here, some, began));
    }
    if let Some(kind) = &kind
        && let Err(error) = call.ipam(kind).collect(&valid, began)
    {
        problems.push(error);
    }
    Error::all(problems).map_or(Ok(()), Err)
}

fn collect(call: &Call, here: &Handle, of: &[Attachment], began: SystemTime) -> Vec<Error> {
    let mut problems = Vec::new();
    let mut fail = |of: &Attachment, mut error: Error| {
        let (container, ifname) = (&of.container, &of.ifname);
        error.msg = format!("container `{container}`, `{ifname}`: {}", error.msg);
        problems.push(error);
    };
    let mut leaving = Vec::new();
    for one in of {
        match left(call, one, began) {
            Ok(left) => leaving.extend(left),
            Err(error) => fail(one, error),
        }
    }
    let detached = detach_many(here, &leaving);
    for ((leaving, record), problems) in leaving.into_iter().zip(detached) {
        if let Err(error) = finish(problems, Some(record)) {
            fail(&leaving.attachment, error);
        }
    }
    problems
}

/// What there is of an attachment that is not valid, under its lock.
fn left(call: &Call, of: &Attachment, began: SystemTime) -> Result<Option<(Leaving, Record)>> {
    // An ADD that was under way: the runtime did not know of it when it listed what is valid.
    let Some(record) = Record::of(of)?.filter(|record| !record.is_since(began)) else {
        return Ok(None);
    };
    let leaving = Leaving::of_record(call, of, Some(&record))?;
    Ok(Some((leaving, record)))
}

/// The attachments that are to stay. A runtime that names none has none (`cnitool gc`).
fn valid(call: &Call) -> Result<BTreeSet<(String, String)>> {
    let mut valid = BTreeSet::new();
    for key in VALID {
        let list = &call.conf[key];
        if !list.is_array() && !list.is_null() {
            return Err(invalid(key, list, "is no list of attachments"));
        }
        for one in list.as_array().into_iter().flatten() {
            let text = |key: &str| one[key].as_str().map(str::to_owned);
            let Some(pair) = text("containerID").zip(text("ifname")) else {
                return Err(no_attachment(key, one));
            };
            valid.insert(pair);
        }
    }
    Ok(valid)
}

/// Nothing is removed by a list that is not understood.
fn no_attachment(key: &str, one: &Value) -> Error {
    let msg = format!("key `{key}` has {one}, which is no attachment: `containerID` and `ifname`");
    Error::new(code::BAD_CONFIG, msg)
}
