//! `hopyard list`.

use serde_json::{Value, json};

use super::args::{ListArgs, Listed};
use super::{Done, Failure, pretty, print};
use crate::lab::{PATHS, Path};
use crate::model::{AXES, Axes, LoadKind};
use crate::plan::{self, PLANS};

/// An entry: its name, a line about it, and more columns for people.
struct Row {
    name: &'static str,
    summary: String,
    more: Vec<String>,
    json: Value,
}

pub(super) fn list(args: &ListArgs) -> Done {
    let (heads, rows) = match args.what {
        Listed::Paths => (
            &["path", "peers", "host's filter sees", "what it is"][..],
            paths(),
        ),
        Listed::Loads => (&["load", "counted in", "what it does"][..], loads()),
        Listed::Axes => (&["axis", "values", "what it is"][..], axes()),
        Listed::Plans => (&["plan", "loads", "what it measures"][..], plans()?),
        Listed::Claims => return super::claims::list(args.json),
    };
    if args.json {
        return print(&pretty(
            &rows.into_iter().map(|row| row.json).collect::<Vec<_>>(),
        )?);
    }
    let mut table = super::table(heads);
    for row in rows {
        let more = row.more.iter().map(String::as_str);
        let columns = std::iter::once(row.name).chain(more);
        table.add_row(columns.chain([row.summary.as_str()]));
    }
    print(&format!("{table}\n"))
}

fn paths() -> Vec<Row> {
    PATHS
        .iter()
        .map(|path| {
            let reason = path.available().err().map(|e| crate::chain(&e));
            let peers: Vec<&str> = path.peers.iter().map(|p| p.name()).collect();
            let seen = path
                .peers
                .iter()
                .filter(|peer| path.filter_sees.contains(peer));
            let seen: Vec<&str> = seen.map(|p| p.name()).collect();
            Row {
                name: path.name,
                more: vec![peers.join(", "), seen.join(", ")],
                summary: summary(path, reason.is_none()),
                json: json!({
                    "name": path.name,
                    "summary": path.summary,
                    "peers": peers,
                    "filter_sees": seen,
                    "rules_instead": instead(path),
                    "offers": offers(path),
                    "since": path.since(),
                    "needs": path.needs.iter().map(|need| need.name).collect::<Vec<_>>(),
                    "mtu_owner": path.mtu_owner,
                    "by_name_only": path.by_name_only,
                    "available": reason.is_none(),
                    "reason": reason,
                }),
            }
        })
        .collect()
}

fn summary(path: &'static Path, is_available: bool) -> String {
    let mut text = path.summary.to_owned();
    if path.by_name_only {
        text += "; by name only";
    }
    if !is_available {
        text += " (not here: see `hopyard doctor`)";
    }
    text
}

/// Who filters where rules of the hub see nothing, by peer.
fn instead(path: &'static Path) -> Value {
    let unseen = path
        .peers
        .iter()
        .filter(|peer| !path.filter_sees.contains(peer));
    let by_peer = unseen.map(|peer| (peer.name().to_owned(), json!((path.rules_instead)(*peer))));
    Value::Object(by_peer.collect())
}

/// What can be needed of a path, by peer.
fn offers(path: &'static Path) -> Value {
    let by_peer = path.peers.iter().map(|peer| {
        let offers = path.offers(*peer, &Axes::default());
        (peer.name().to_owned(), json!(offers))
    });
    Value::Object(by_peer.collect())
}

fn loads() -> Vec<Row> {
    LoadKind::ALL
        .into_iter()
        .map(|load| {
            let unit = if load.is_stream() {
                "bytes"
            } else {
                "transactions"
            };
            Row {
                name: load.name(),
                summary: load.summary().to_owned(),
                more: vec![unit.to_owned()],
                json: json!({"name": load.name(), "summary": load.summary(), "unit": unit}),
            }
        })
        .collect()
}

fn axes() -> Vec<Row> {
    AXES.iter()
        .map(|axis| Row {
            name: axis.name,
            summary: axis.summary.to_owned(),
            more: vec![axis.values.to_owned()],
            json: json!({"name": axis.name, "summary": axis.summary, "values": axis.values}),
        })
        .collect()
}

fn plans() -> Result<Vec<Row>, Failure> {
    PLANS
        .iter()
        .map(|(file, text)| {
            let plan = plan::parse(file, text)?;
            let has = |load: &LoadKind| plan.parts.iter().any(|part| part.loads.contains(load));
            let loads: Vec<&str> = LoadKind::ALL
                .iter()
                .filter(|load| has(load))
                .map(|l| l.name())
                .collect();
            Ok(Row {
                name: file.strip_suffix(".toml").unwrap_or(file),
                more: vec![loads.join(", ")],
                json: json!({"name": plan.name, "summary": plan.summary, "loads": loads}),
                summary: plan.summary,
            })
        })
        .collect()
}
