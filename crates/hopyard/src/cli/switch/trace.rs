//! `hopyard switch trace`: which frames of a port are dropped, and why.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use hopyard_switch::{Dropped, Error, Party, Role, Switch, Traced};
use serde::Serialize;

use super::headers::headers;
use crate::cli::args::TraceArgs;
use crate::cli::{Done, Failure, is_read};
use crate::signals;

/// Interval of checks whether it must end.
const PERIOD: Duration = Duration::from_millis(200);

pub(super) fn trace(args: &TraceArgs) -> Done {
    signals::listen().map_err(|e| Failure::internal(&e))?;
    let end = args.timeout.map(|time| Instant::now() + time);
    let party = match args.port.as_str() {
        "wire" => Traced::Wire,
        "host" => Traced::Host,
        device => Traced::Port(device.to_owned()),
    };
    let switch = find(args.switch.as_deref(), &party)?;
    let name = switch.name().to_owned();
    let mut trace = switch.trace(party)?;
    crate::note(format_args!(
        "{name}: waiting for frames from or to `{}` that are dropped",
        args.port
    ));
    let mut told = 0;
    while told < args.count && !signals::interrupted() {
        let left = end.map_or(PERIOD, |end| end.saturating_duration_since(Instant::now()));
        let dropped = trace.next(left.min(PERIOD))?;
        if dropped.is_none() && left.is_zero() {
            break;
        }
        if let Some(dropped) = dropped {
            told += 1;
            if !is_read(&line(&dropped, args.json)?)? {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }
    let missed = trace.missed()?;
    if missed > 0 {
        crate::note(format_args!(
            "{name}: {missed} dropped frames are not shown: they came faster than they could be read"
        ));
    } else if told == 0 {
        crate::note(format_args!("{name}: no frame was dropped"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The named switch, or the one that has the port.
fn find(name: Option<&str>, party: &Traced) -> Result<Switch, Failure> {
    if let Some(name) = name {
        return Ok(Switch::open(name)?);
    }
    let names = Switch::list()?;
    if let (Traced::Port(device), true) = (party, names.len() > 1) {
        for name in &names {
            let switch = match Switch::open(name) {
                // Of another version, or deleted just now.
                Err(Error::OtherLayout { .. } | Error::NoSwitch { .. }) => continue,
                opened => opened?,
            };
            match switch.port(device) {
                Ok(Some(_)) => return Ok(switch),
                Ok(None) | Err(Error::OtherNamespace { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let why = format!("`{device}` is no port of any switch here");
        return Err(Failure::request(why));
    }
    match names.as_slice() {
        [name] => Ok(Switch::open(name)?),
        [] => Err(Failure::request("there is no switch".to_owned())),
        all => {
            let why = format!(
                "there are several switches, name one with --switch: {}",
                all.join(", ")
            );
            Err(Failure::request(why))
        }
    }
}

/// One frame, as `--json` prints it.
#[derive(Serialize)]
struct Document<'a> {
    time: String,
    from: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    reason: &'a str,
    meaning: &'a str,
    length_bytes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    gso_size_bytes: Option<u32>,
    headers: String,
    /// The beginning of the frame, in hexadecimal digits.
    octets: String,
}

fn named(party: &Party) -> &str {
    match party.role {
        Role::Wire => "wire",
        Role::Host => "host",
        _ => party.device.as_deref().unwrap_or("a port that is gone"),
    }
}

fn line(dropped: &Dropped, json: bool) -> Result<String, Failure> {
    let time = jiff::Timestamp::try_from(dropped.at).map_err(|e| Failure::internal(&e))?;
    let time = format!("{time:.6}");
    let from = named(&dropped.from);
    let to = dropped.to.as_ref().map(named);
    let headers = headers(&dropped.octets, dropped.tag);
    if json {
        let octets = dropped.octets.iter().map(|octet| format!("{octet:02x}"));
        let document = Document {
            time,
            from,
            to,
            reason: dropped.reason,
            meaning: dropped.meaning,
            length_bytes: dropped.len,
            gso_size_bytes: dropped.gso_size,
            headers,
            octets: octets.collect(),
        };
        let text = serde_json::to_string(&document).map_err(|e| Failure::internal(&e))?;
        return Ok(crate::plain::json(&text).into_owned() + "\n");
    }
    let to = to.map_or_else(String::new, |to| format!(" to {to}"));
    let gso = dropped.gso_size.map(|size| format!(" (GSO, {size} each)"));
    Ok(format!(
        "{time} {} ({}), from {from}{to}, {} bytes{}: {headers}\n",
        dropped.reason,
        dropped.meaning,
        dropped.len,
        gso.unwrap_or_default()
    ))
}
