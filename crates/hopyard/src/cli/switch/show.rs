//! `hopyard switch show`, and the warnings of a switch.

use std::process::ExitCode;

use hopyard_switch::{Shortcut, Shown, ShownPort, ShownUplink, Switch, Warning};
use serde::Serialize;

use super::super::{Done, pretty, print, table};
use super::{of_all, shortcut, words};

/// Problems, in terms of the command line.
fn warnings(shown: &Shown) -> Vec<String> {
    let say = |warning: &Warning| warning.reword(|way_out| words::command(&shown.name, way_out));
    shown.warnings.iter().map(say).collect()
}

#[derive(Serialize)]
struct ShownDocument<'a> {
    schema: &'static str,
    switches: Vec<ShownSwitch<'a>>,
}

/// [`Shown`] with the warnings in terms of the command line.
#[derive(Serialize)]
struct ShownSwitch<'a> {
    name: &'a str,
    netns: u64,
    uplink: Option<&'a ShownUplink>,
    answers: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    shortcut: Option<&'a Shortcut>,
    ports: &'a [ShownPort],
    warnings: Vec<String>,
}

impl<'a> From<&'a Shown> for ShownSwitch<'a> {
    fn from(shown: &'a Shown) -> Self {
        Self {
            name: &shown.name,
            netns: shown.netns,
            uplink: shown.uplink.as_ref(),
            answers: shown.answers,
            shortcut: shown.shortcut.as_ref(),
            ports: &shown.ports,
            warnings: warnings(shown),
        }
    }
}

pub(super) fn show(name: Option<String>, json: bool) -> Done {
    let show = |name: &str| Switch::open(name)?.show();
    let switches = match name {
        Some(name) => vec![show(&name)?],
        None => of_all(show)?,
    };
    if json {
        return print(&pretty(&ShownDocument {
            schema: "hopyard/switch/1",
            switches: switches.iter().map(ShownSwitch::from).collect(),
        })?);
    }
    if switches.is_empty() {
        return print("there is no switch\n");
    }
    for shown in &switches {
        print(&show_text(shown))?;
        warn(shown);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints problems to standard error.
pub(super) fn warn(shown: &Shown) {
    for warning in warnings(shown) {
        crate::note(format_args!("{}: {warning}", shown.name));
    }
}

fn show_text(shown: &Shown) -> String {
    let uplink = shown.uplink.as_ref().map_or_else(
        || "no uplink".to_owned(),
        |up| {
            let others: String = up.host_macs.iter().map(|mac| format!(" {mac}")).collect();
            format!(
                "uplink {} (host {}{others}, MTU {})",
                up.device, up.mac, up.mtu_bytes
            )
        },
    );
    let answers = if shown.answers {
        ", answers ARP and neighbour solicitations"
    } else {
        ""
    };
    let shortcut = shortcut::shown(shown.shortcut.as_ref());
    let mut text = format!("switch {}: {uplink}{answers}{shortcut}\n", shown.name);
    if shown.ports.is_empty() {
        text += "  no ports\n";
        return text;
    }
    let way = |direct| if direct { "direct" } else { "queue" }.to_owned();
    let mut table = table(&[
        "port", "MAC", "IP", "VLAN", "MTU", "way in", "way out", "rules",
    ]);
    for port in &shown.ports {
        table.add_row([
            port.device.clone(),
            lines(&port.macs),
            addresses(port),
            port.vlan
                .map_or_else(|| "-".to_owned(), |vlan| vlan.to_string()),
            port.mtu_bytes.to_string(),
            way(port.direct),
            way(port.direct_out),
            rules(port),
        ]);
    }
    text += &format!("{table}\n");
    text
}

fn lines<T: ToString>(items: &[T]) -> String {
    items
        .iter()
        .map(T::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

fn addresses(port: &ShownPort) -> String {
    let ips = port.ips.iter().map(ToString::to_string);
    let prefixes = port.prefixes.iter().map(ToString::to_string);
    let all: Vec<String> = ips.chain(prefixes).collect();
    if all.is_empty() {
        "any".to_owned()
    } else {
        all.join("\n")
    }
}

fn rules(port: &ShownPort) -> String {
    let words = [
        (port.isolated, "isolated"),
        (port.allow_spoof, "may spoof"),
        (port.router, "router"),
        (port.dhcp_server, "DHCP server"),
    ];
    let mut words: Vec<String> = words
        .iter()
        .filter(|(set, _)| *set)
        .map(|(_, word)| (*word).to_owned())
        .collect();
    words.push(port.broadcasts_per_second.map_or_else(
        || "any number of broadcasts".to_owned(),
        |limit| format!("{limit} broadcasts/s"),
    ));
    for (way, rate) in [("in", port.rate_in), ("out", port.rate_out)] {
        words.extend(rate.map(|limit| format!("{way} {limit}")));
    }
    words.join(", ")
}
