//! `hopyard switch stats`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hopyard_switch::{Counters, PartyStats, Role, ShortcutCounters, Switch};
use serde::Serialize;

use super::super::counters::{Span, drops, fresh_drops};
use super::super::{Done, Failure, is_read, line, pretty, print, table};
use super::shortcut;

/// Interval of `stats --watch`.
const PERIOD: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct StatsDocument {
    schema: &'static str,
    switch: String,
    /// Length of the span since the last document; absent in the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    span_s: Option<f64>,
    parties: Vec<PartyDocument>,
}

#[derive(Serialize)]
struct PartyDocument {
    party: String,
    role: Role,
    rx_packets: u64,
    rx_bytes: u64,
    tx_packets: u64,
    tx_bytes: u64,
    answered: u64,
    over_rate: u64,
    too_big: u64,
    /// By reason, without zeros.
    drops: BTreeMap<&'static str, u64>,
    /// The other counters do not include these.
    #[serde(skip_serializing_if = "Option::is_none")]
    shortcut: Option<ShortcutCounters>,
}

impl From<&PartyStats> for PartyDocument {
    fn from(stats: &PartyStats) -> Self {
        let c = &stats.counters;
        Self {
            party: stats.party.clone(),
            role: stats.role,
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

/// All counters at an instant.
struct Reading {
    at: Instant,
    parties: Vec<PartyStats>,
}

impl Reading {
    /// Opens the switch each time, because ports come and go meanwhile.
    fn take(name: &str) -> Result<Self, hopyard_switch::Error> {
        let switch = Switch::open(name)?;
        Ok(Self {
            at: Instant::now(),
            parties: switch.stats()?,
        })
    }
}

pub(super) fn stats(name: &str, json: bool, watch: bool) -> Done {
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
) -> Result<String, Failure> {
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
        return line(&document);
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
    // A port may be called `host` or `wire`, like the parties that are none.
    let is_it = |p: &&PartyStats| p.party == party.party && p.role == party.role;
    let found = last.parties.iter().find(is_it)?;
    // The counter fell: the port was removed and added again in between.
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
    let span = Span(span_s);
    let earlier: BTreeMap<_, _> = before.dropped().collect();
    let fresh = fresh_drops(c.dropped(), |reason| earlier.get(reason).copied());
    vec![
        party.party.clone(),
        span.frames(c.rx_packets, before.rx_packets),
        span.mbit(c.rx_bytes, before.rx_bytes),
        span.frames(c.tx_packets, before.tx_packets),
        span.mbit(c.tx_bytes, before.tx_bytes),
        fresh + &not_given(c.over_rate.saturating_sub(before.over_rate)),
    ]
}

/// Frames to the party that its rate dropped. The senders' drops include them.
fn not_given(over_rate: u64) -> String {
    match over_rate {
        0 => String::new(),
        n => format!(" (to it: rate_in {n})"),
    }
}
