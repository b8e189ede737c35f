//! `hopyard switch`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use hopyard_switch::{
    Counters, NewPort, NewSwitch, NewUplink, PartyStats, PortChange, Shortcut, ShortcutCounters,
    Shown, ShownPort, ShownUplink, Switch, Warning,
};
use serde::Serialize;

use super::args::{PortCommand, SwitchArgs, SwitchCommand};
use super::{Done, Failure, is_read, pretty, print, table};
use crate::lab::LabId;

mod apply;
mod headers;
mod metrics;
mod shortcut;
mod trace;
mod words;

pub(super) use words::advice;

/// How often `stats --watch` looks.
const PERIOD: Duration = Duration::from_secs(1);

pub(super) fn switch(args: SwitchArgs) -> Done {
    match args.command {
        SwitchCommand::Create {
            name,
            uplink,
            answer,
            host_mac,
            behind_others,
            shortcut,
            accept,
        } => {
            need_a_free_name(&name)?;
            let new = NewSwitch {
                name: &name,
                uplink: uplink.as_deref(),
                host_macs: host_mac,
                answers: answer,
                behind_others,
                ..NewSwitch::default()
            };
            let switch = match shortcut {
                Some(cgroup) => shortcut::create(&new, &cgroup, &accept)?,
                None => Switch::create(&new)?,
            };
            warn(&switch.show()?);
            Ok(ExitCode::SUCCESS)
        }
        SwitchCommand::Uplink {
            name,
            device,
            host_mac,
        } => {
            let mut switch = Switch::open(&name)?;
            switch.set_uplink(&NewUplink {
                device: &device,
                host_macs: (!host_mac.is_empty()).then_some(&host_mac),
            })?;
            warn(&switch.show()?);
            Ok(ExitCode::SUCCESS)
        }
        SwitchCommand::Shortcut {
            name,
            cgroup,
            accept,
            off: _,
        } => shortcut::set(&name, cgroup.as_deref(), &accept),
        SwitchCommand::Port(args) => port(args.command),
        SwitchCommand::Apply(args) => apply::apply(&args),
        SwitchCommand::Export { name } => apply::export(&name),
        SwitchCommand::Show { name, json } => show(name, json),
        SwitchCommand::Stats { name, json, watch } => stats(&name, json, watch),
        SwitchCommand::Trace(args) => trace::trace(&args),
        SwitchCommand::Metrics { name, output } => metrics::metrics(name, output.as_deref()),
        SwitchCommand::Upgrade { name: Some(name) } => {
            Switch::open(&name)?.upgrade()?;
            Ok(ExitCode::SUCCESS)
        }
        SwitchCommand::Upgrade { name: None } => upgrade_all(),
        SwitchCommand::Delete { name, unused: true } => {
            Switch::remove_unused(&name)?;
            Ok(ExitCode::SUCCESS)
        }
        SwitchCommand::Delete {
            name,
            unused: false,
        } => {
            Switch::remove(&name)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Goes on past switches that cannot be upgraded, and names each.
fn upgrade_all() -> Done {
    let mut failures = Vec::new();
    for name in Switch::list()? {
        match Switch::open(&name).and_then(|mut switch| switch.upgrade()) {
            // Somebody deleted it meanwhile.
            Ok(()) | Err(hopyard_switch::Error::NoSwitch { .. }) => {}
            Err(error) => failures.push(Failure::from(error)),
        }
    }
    let Some(status) = failures.iter().map(|failure| failure.status).max() else {
        return Ok(ExitCode::SUCCESS);
    };
    let messages: Vec<String> = failures.into_iter().map(|one| one.message).collect();
    Err(Failure {
        status,
        message: messages.join("\n"),
    })
}

/// Refuses the names that switches of labs have.
fn need_a_free_name(name: &str) -> Result<(), Failure> {
    if LabId::of_switch(name).is_none() {
        return Ok(());
    }
    let why = format!("`{name}` is reserved for switches of labs: choose another name");
    Err(Failure::request(why))
}

fn port(command: PortCommand) -> Done {
    match command {
        PortCommand::Add {
            name,
            device,
            mac,
            ip,
            ip_prefix,
            vlan,
            isolated,
            allow_spoof,
            queued,
            router,
            dhcp_server,
            broadcasts,
            rate_in,
            rate_out,
        } => Switch::open(&name)?.add_port(&NewPort {
            device: &device,
            macs: mac,
            ips: ip,
            prefixes: ip_prefix,
            vlan,
            isolated,
            allow_spoof,
            queued,
            router,
            dhcp_server,
            broadcasts,
            rate_in,
            rate_out,
            ..NewPort::default()
        })?,
        PortCommand::Set {
            name,
            device,
            isolated,
            allow_spoof,
            router,
            dhcp_server,
            broadcasts,
            rate_in,
            rate_out,
        } => Switch::open(&name)?.set_port(&PortChange {
            device: &device,
            isolated: isolated.map(bool::from),
            router: router.map(bool::from),
            dhcp_server: dhcp_server.map(bool::from),
            broadcasts,
            allow_spoof: allow_spoof.map(bool::from),
            rate_in,
            rate_out,
            ..PortChange::default()
        })?,
        PortCommand::Del { name, device } => Switch::open(&name)?.remove_port(&device)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What is not as it should be, in the words of the command line.
fn warnings(shown: &Shown) -> Vec<String> {
    let say = |warning: &Warning| warning.reword(|way_out| words::command(&shown.name, way_out));
    shown.warnings.iter().map(say).collect()
}

#[derive(Serialize)]
struct ShownDocument<'a> {
    schema: &'static str,
    switches: Vec<ShownSwitch<'a>>,
}

/// [`Shown`] with the warnings in the words of the command line.
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

fn show(name: Option<String>, json: bool) -> Done {
    let names = name.map_or_else(Switch::list, |name| Ok(vec![name]))?;
    let switches = names
        .iter()
        .map(|name| Switch::open(name)?.show())
        .collect::<Result<Vec<_>, _>>()?;
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

fn warn(shown: &Shown) {
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
    let mut table = table(&["port", "MAC", "IP", "VLAN", "MTU", "way in", "rules"]);
    for port in &shown.ports {
        table.add_row([
            port.device.clone(),
            lines(&port.macs),
            addresses(port),
            port.vlan
                .map_or_else(|| "-".to_owned(), |vlan| vlan.to_string()),
            port.mtu_bytes.to_string(),
            if port.direct { "direct" } else { "queue" }.to_owned(),
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

#[derive(Serialize)]
struct StatsDocument {
    schema: &'static str,
    switch: String,
    /// Of the span since the last document; absent in the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    span_s: Option<f64>,
    parties: Vec<PartyDocument>,
}

#[derive(Serialize)]
struct PartyDocument {
    party: String,
    rx_packets: u64,
    rx_bytes: u64,
    tx_packets: u64,
    tx_bytes: u64,
    answered: u64,
    over_rate: u64,
    too_big: u64,
    /// By reason, those that happened.
    drops: std::collections::BTreeMap<&'static str, u64>,
    /// None of it is in the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    shortcut: Option<ShortcutCounters>,
}

impl From<&PartyStats> for PartyDocument {
    fn from(stats: &PartyStats) -> Self {
        let c = &stats.counters;
        Self {
            party: stats.party.clone(),
            rx_packets: c.rx_packets,
            rx_bytes: c.rx_bytes,
            tx_packets: c.tx_packets,
            tx_bytes: c.tx_bytes,
            answered: c.answered,
            over_rate: c.over_rate,
            too_big: c.too_big,
            drops: c.dropped().collect(),
            shortcut: stats.shortcut,
        }
    }
}

/// The state of all counters at an instant.
struct Reading {
    at: Instant,
    parties: Vec<PartyStats>,
}

impl Reading {
    /// Opens the switch each time: ports come and go while somebody watches.
    fn take(name: &str) -> Result<Self, hopyard_switch::Error> {
        let switch = Switch::open(name)?;
        Ok(Self {
            at: Instant::now(),
            parties: switch.stats()?,
        })
    }
}

fn stats(name: &str, json: bool, watch: bool) -> Done {
    let mut last = Reading::take(name)?;
    print(&stats_text(name, json, watch, &last, None)?)?;
    if !watch {
        return Ok(ExitCode::SUCCESS);
    }
    loop {
        std::thread::sleep(PERIOD);
        let now = Reading::take(name)?;
        if !is_read(&stats_text(name, json, watch, &now, Some(&last))?)? {
            return Ok(ExitCode::SUCCESS);
        }
        last = now;
    }
}

fn stats_text(
    name: &str,
    json: bool,
    watch: bool,
    now: &Reading,
    last: Option<&Reading>,
) -> Result<String, super::Failure> {
    let span_s = last.map(|last| (now.at - last.at).as_secs_f64());
    if json {
        let document = StatsDocument {
            schema: "hopyard/switch-stats/1",
            switch: name.to_owned(),
            span_s,
            parties: now.parties.iter().map(PartyDocument::from).collect(),
        };
        if !watch {
            return pretty(&document);
        }
        // A document per line, for programs that follow.
        return serde_json::to_string(&document)
            .map(|line| crate::plain::json(&line).into_owned() + "\n")
            .map_err(|e| super::Failure {
                status: 3,
                message: format!("cannot write JSON: {e}"),
            });
    }
    let heads: &[&str] = if span_s.is_some() {
        &[
            "party",
            "rx packets/s",
            "rx Mbit/s",
            "tx packets/s",
            "tx Mbit/s",
            "drops",
        ]
    } else {
        &[
            "party",
            "rx packets",
            "rx bytes",
            "tx packets",
            "tx bytes",
            "answered",
            "drops",
        ]
    };
    let mut table = table(heads);
    for party in &now.parties {
        match (span_s, last.and_then(|last| before(last, party))) {
            (Some(span), Some(before)) => table.add_row(rates(party, before, span)),
            (Some(_), None) => table.add_row([&party.party, "-", "-", "-", "-", "-"]),
            (None, _) => table.add_row(totals(party)),
        };
    }
    Ok(format!("{table}\n{}", shortcut::counted(&now.parties)))
}

fn before<'a>(last: &'a Reading, party: &PartyStats) -> Option<&'a Counters> {
    let found = last.parties.iter().find(|p| p.party == party.party)?;
    // Fewer than before: the port was removed and added again in between.
    (found.counters.rx_packets <= party.counters.rx_packets).then_some(&found.counters)
}

fn totals(party: &PartyStats) -> Vec<String> {
    let c = &party.counters;
    let mut row = vec![party.party.clone()];
    row.extend(
        [
            c.rx_packets,
            c.rx_bytes,
            c.tx_packets,
            c.tx_bytes,
            c.answered,
        ]
        .map(|n| n.to_string()),
    );
    row.push(drops(c.dropped()) + &not_given(c.over_rate));
    row
}

fn rates(party: &PartyStats, before: &Counters, span_s: f64) -> Vec<String> {
    let c = &party.counters;
    let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / span_s;
    let mbit = |now, then| format!("{:.1}", rate(now, then) * 8.0 / 1e6);
    let earlier: std::collections::BTreeMap<_, _> = before.dropped().collect();
    let fresh = c.dropped().filter_map(|(reason, count)| {
        let count = count.saturating_sub(earlier.get(reason).copied().unwrap_or(0));
        (count > 0).then_some((reason, count))
    });
    vec![
        party.party.clone(),
        format!("{:.0}", rate(c.rx_packets, before.rx_packets)),
        mbit(c.rx_bytes, before.rx_bytes),
        format!("{:.0}", rate(c.tx_packets, before.tx_packets)),
        mbit(c.tx_bytes, before.tx_bytes),
        drops(fresh) + &not_given(c.over_rate.saturating_sub(before.over_rate)),
    ]
}

fn drops(counts: impl Iterator<Item = (&'static str, u64)>) -> String {
    let all: Vec<String> = counts.map(|(reason, n)| format!("{reason} {n}")).collect();
    if all.is_empty() {
        "-".to_owned()
    } else {
        all.join(", ")
    }
}

/// What others sent to the party and its rate had no room for, which is among their drops.
fn not_given(over_rate: u64) -> String {
    match over_rate {
        0 => String::new(),
        n => format!(" (to it: rate_in {n})"),
    }
}
