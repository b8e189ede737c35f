//! Tables of a tap switch.

use crate::cli::counters::{Span, drops, fresh_drops};
use crate::cli::table;
use crate::tapswitch::{Document, PortDocument, QueuesDocument};

/// A description of the switch.
pub(super) fn what(document: &Document) -> String {
    let queues = &document.queues;
    let mut text = format!(
        "tap switch {}: process {}, {} queue(s) attached ({}){}, steering {}, join {}, {} addresses\n",
        document.switch,
        document.pid,
        queues.attached,
        queues.asked,
        threads(queues),
        document.steering,
        document.join.as_deref().unwrap_or("off"),
        document.addresses
    );
    let mut table = table(&[
        "port",
        "rules",
        "learnt",
        "moved",
        "flooded",
        "frames joined",
        "waited",
        "queue changes",
        "drops",
    ]);
    for port in &document.ports {
        table.add_row([
            port.port.clone(),
            rules(port),
            port.learnt.to_string(),
            port.moved.to_string(),
            port.flooded.to_string(),
            port.joined.to_string(),
            port.waited.to_string(),
            port.queue_changes.to_string(),
            drops(dropped(port)),
        ]);
    }
    text += &format!("{table}\n");
    text
}

/// How many threads serve the queues, if the switch tells.
fn threads(queues: &QueuesDocument) -> String {
    let threads = queues.threads;
    threads.map_or_else(String::new, |threads| format!(", {threads} thread(s)"))
}

/// The rules of a port, a line for each.
fn rules(port: &PortDocument) -> String {
    let macs = port.macs.iter().map(|mac| format!("mac {mac}"));
    let isolated = port.isolated.then(|| "isolated".to_owned());
    // A port with given addresses needs no quota.
    let quota = port.address_quota.filter(|_| port.macs.is_empty());
    let quota = quota.map(|most| format!("{most} addresses"));
    let limit = port
        .broadcasts_per_s
        .map(|per_s| format!("{per_s} broadcasts/s"));
    let all: Vec<String> = macs.chain(isolated).chain(quota).chain(limit).collect();
    if all.is_empty() {
        "-".to_owned()
    } else {
        all.join("\n")
    }
}

/// Counters since the start.
pub(super) fn totals(document: &Document) -> String {
    let mut table = table(&[
        "port",
        "rx frames",
        "rx bytes",
        "tx frames",
        "tx bytes",
        "drops",
    ]);
    for port in &document.ports {
        let counts = [port.rx_frames, port.rx_bytes, port.tx_frames, port.tx_bytes];
        let mut row = vec![port.port.clone()];
        row.extend(counts.map(|count| count.to_string()));
        row.push(drops(dropped(port)));
        table.add_row(row);
    }
    format!("{table}\n")
}

/// Counters since the previous document, per second.
pub(super) fn rates(now: &Document, before: &Document) -> String {
    let span_s = now.span_s.unwrap_or(1.0);
    let heads = [
        "port",
        "rx frames/s",
        "rx Mbit/s",
        "tx frames/s",
        "tx Mbit/s",
        "drops",
    ];
    let mut table = table(&heads);
    for (port, before) in now.ports.iter().zip(&before.ports) {
        table.add_row(port_rates(port, before, span_s));
    }
    let attached = now.queues.attached;
    format!("{table}\nqueues {attached}, addresses {}\n", now.addresses)
}

fn port_rates(now: &PortDocument, before: &PortDocument, span_s: f64) -> Vec<String> {
    let span = Span(span_s);
    vec![
        now.port.clone(),
        span.frames(now.rx_frames, before.rx_frames),
        span.mbit(now.rx_bytes, before.rx_bytes),
        span.frames(now.tx_frames, before.tx_frames),
        span.mbit(now.tx_bytes, before.tx_bytes),
        fresh_drops(dropped(now), |reason| before.drops.get(*reason).copied()),
    ]
}

fn dropped(port: &PortDocument) -> impl Iterator<Item = (&String, u64)> {
    port.drops.iter().map(|(reason, count)| (reason, *count))
}
