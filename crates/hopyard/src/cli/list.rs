//! `hopyard list`.

use serde_json::{Value, json};

use super::args::{ListArgs, Listed};
use super::{Done, Failure, pretty, print};
use crate::lab::PATHS;
use crate::model::{AXES, LoadKind};
use crate::plan::{self, PLANS};

/// A thing to choose from: its name, what it is, and one more column for people.
struct Row {
    name: &'static str,
    summary: String,
    more: String,
    json: Value,
}

pub(super) fn list(args: &ListArgs) -> Done {
    let (heads, rows) = match args.what {
        Listed::Paths => (["path", "peers", "what it is"], paths()?),
        Listed::Loads => (["load", "counted in", "what it does"], loads()),
        Listed::Axes => (["axis", "values", "what it is"], axes()),
        Listed::Plans => (["plan", "loads", "what it measures"], plans()?),
    };
    if args.json {
        return print(&pretty(
            &rows.into_iter().map(|row| row.json).collect::<Vec<_>>(),
        )?);
    }
    let mut table = super::table(&heads);
    for row in rows {
        table.add_row([row.name, &row.more, &row.summary]);
    }
    print(&format!("{table}\n"))
}

fn paths() -> Result<Vec<Row>, Failure> {
    PATHS
        .iter()
        .map(|path| {
            let available = match path.available() {
                Ok(()) => None,
                Err(e) if e.is_unsupported() => Some(crate::chain(&e)),
                Err(e) => return Err(e.into()),
            };
            let peers: Vec<&str> = path.peers().iter().map(|p| p.name()).collect();
            let summary = match &available {
                None => path.summary().to_owned(),
                Some(why) => format!("{} — not here: {why}", path.summary()),
            };
            Ok(Row {
                name: path.name(),
                more: peers.join(", "),
                json: json!({
                    "name": path.name(),
                    "summary": path.summary(),
                    "peers": peers,
                    "available": available.is_none(),
                    "reason": available,
                }),
                summary,
            })
        })
        .collect()
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
                more: unit.to_owned(),
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
            more: axis.values.to_owned(),
            json: json!({"name": axis.name, "summary": axis.summary, "values": axis.values}),
        })
        .collect()
}

fn plans() -> Result<Vec<Row>, Failure> {
    PLANS
        .iter()
        .map(|(file, text)| {
            let plan = plan::parse(file, text)?;
            let loads: Vec<&str> = plan.loads.iter().map(|l| l.name()).collect();
            Ok(Row {
                name: file.strip_suffix(".toml").unwrap_or(file),
                more: loads.join(", "),
                json: json!({"name": plan.name, "summary": plan.summary, "loads": loads}),
                summary: plan.summary,
            })
        })
        .collect()
}
