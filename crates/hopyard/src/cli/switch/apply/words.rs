//! The steps of a plan, as text.

use std::collections::BTreeSet;
use std::path::Path;

use hopyard_switch::apply::{Change, Difference, PortSpec, SETTINGS, SwitchSpec, Why};
use hopyard_switch::{Loss, Mac, Shortcut};

/// The kind of a step, its object, and the whole step as text.
pub(super) struct Words {
    pub(super) step: &'static str,
    /// The device; `None` for the switch itself.
    pub(super) device: Option<String>,
    pub(super) text: String,
}

pub(super) fn words(change: &Change) -> Words {
    let (step, device, text) = match change {
        Change::Create(spec) => ("create", None, format!("create the switch: {}", of(spec))),
        Change::Answers(true) => (
            "answer",
            None,
            "answer ARP and neighbour solicitations".to_owned(),
        ),
        Change::Answers(false) => (
            "answer",
            None,
            "answer ARP and neighbour solicitations no longer".to_owned(),
        ),
        Change::Uplink {
            device,
            host_macs,
            was,
            wrong,
        } => {
            let why = match (was, wrong) {
                (Some(was), _) if was != device => format!(" (was `{was}`)"),
                (Some(_), Some(wrong)) => format!(", since {wrong}"),
                _ => String::new(),
            };
            let text = format!("set uplink `{device}`{}{why}", others(host_macs));
            ("uplink", Some(device), text)
        }
        Change::NoUplink { was } => {
            let text = was.as_ref().map_or_else(
                || "finish taking the uplink away".to_owned(),
                |was| format!("take uplink `{was}` away"),
            );
            ("no_uplink", was.as_ref(), text)
        }
        Change::Mtu { device, mtu, was } => {
            let guest = was.guest.map(|guest| format!(", the guest's end {guest}"));
            let was = format!("was {}{}", was.host, guest.unwrap_or_default());
            let text = format!("set the MTU of `{device}` to {mtu} ({was})");
            ("mtu", Some(device), text)
        }
        Change::Remove { device, why } => {
            let text = format!("remove port `{device}`{}", because(why));
            ("remove", Some(device), text)
        }
        Change::Set {
            port,
            differences,
            adopt,
            shrunk,
        } => {
            let mut all: Vec<String> = differences.iter().map(difference).collect();
            if *adopt {
                all.push("it was not made from a file, and is from now on".to_owned());
            }
            if *shrunk {
                all.push("take over its smaller MTU".to_owned());
            }
            let text = format!("change port `{}`: {}", port.device, all.join(", "));
            ("change", Some(&port.device), text)
        }
        Change::Add(port) => {
            let text = format!("add port `{}`: {}", port.device, settings(port).join(", "));
            ("add", Some(&port.device), text)
        }
        Change::Shortcut { wanted, was } => (
            "shortcut",
            None,
            format!(
                "{}{}",
                shortcut(&wanted.cgroup, &wanted.accept),
                was.as_ref().map_or_else(String::new, since)
            ),
        ),
        Change::NoShortcut { was } => {
            let text = format!("end the shortcut for sockets of {}", was.cgroup.display());
            ("no_shortcut", None, text)
        }
        other => ("other", None, format!("{other:?}")),
    };
    Words {
        step,
        device: device.cloned(),
        text,
    }
}

fn of(spec: &SwitchSpec) -> String {
    let mut text = match &spec.uplink {
        Some(uplink) => format!("uplink `{uplink}`{}", others(&spec.host_macs)),
        None => "no uplink".to_owned(),
    };
    if spec.answers {
        text += ", answers ARP and neighbour solicitations";
    }
    if spec.behind_others {
        text += ", behind others' programs";
    }
    text
}

fn shortcut(cgroup: &Path, accept: &[Loss]) -> String {
    let losses = names(accept);
    let cgroup = cgroup.display();
    format!("make a shortcut for sockets of {cgroup}, accepting {losses}")
}

/// What a shortcut replaces.
fn since(was: &Shortcut) -> String {
    let cgroup = was.cgroup.display();
    let accepted = names(&was.accepted);
    match was.has_cgroup {
        true => format!(" (was {cgroup}, accepting {accepted})"),
        false => format!(", since the control group {cgroup} that it was for is gone"),
    }
}

fn names(losses: &[Loss]) -> String {
    if losses.is_empty() {
        return "nothing".to_owned();
    }
    let names: Vec<&str> = losses.iter().map(|loss| loss.name()).collect();
    names.join(", ")
}

/// As a file has it.
pub(super) fn shortcut_table(shortcut: &Shortcut) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let cgroup = quoted(&shortcut.cgroup.display().to_string());
    let accept: Vec<String> = shortcut
        .accepted
        .iter()
        .map(|loss| quoted(loss.name()))
        .collect();
    let accept = accept.join(", ");
    format!("\n[shortcut]\ncgroup = {cgroup}\naccept = [{accept}]\n")
}

fn others(macs: &[Mac]) -> String {
    if macs.is_empty() {
        return String::new();
    }
    let macs: BTreeSet<String> = macs.iter().map(ToString::to_string).collect();
    let macs: Vec<String> = macs.into_iter().collect();
    format!(" with the host's {}", macs.join(", "))
}

fn because(why: &Why) -> String {
    match why {
        Why::Undescribed => ": the file has it no longer".to_owned(),
        Why::Pruned => ": the file does not have it (--prune)".to_owned(),
        Why::Changed(differences) => {
            let all: Vec<String> = differences.iter().map(difference).collect();
            format!(", to add it again: {}", all.join(", "))
        }
        Why::Detached => ", to add it again: the switch's program is off its device".to_owned(),
        Why::NotFirst(other) => {
            format!(", to add it again: {other} comes before the switch's program at its device")
        }
        other => format!(": {other:?}"),
    }
}

fn difference(one: &Difference) -> String {
    format!("{} = {} (was {})", one.key, one.wanted, one.was)
}

/// The settings of a port that differ from the default, as in TOML.
pub(super) fn settings(port: &PortSpec) -> Vec<String> {
    let default = PortSpec::default();
    let each = SETTINGS
        .iter()
        .map(|setting| (setting, (setting.text)(port)));
    each.filter(|(setting, text)| *text != (setting.text)(&default))
        .map(|(setting, text)| format!("{} = {text}", setting.key))
        .collect()
}
