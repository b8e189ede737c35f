//! Published figures stand beside the points that they are of.

use std::collections::BTreeSet;

use toml::Value;

use super::oracle::{self, Part, Planned, Properties};
use super::synthetic::{Aim, Aimed, World};
use super::*;
use crate::assess::PER_GHZ;
use crate::stats;
use crate::what::What;

/// The plan of all scenarios has a cell for each row of the tables of 2011, and no other.
#[test]
fn every_row_of_2011_is_a_cell_of_its_plan() {
    let text = include_str!("../../../../published/multiqueue-tap-2011.toml");
    let file: toml::Table = text.parse().unwrap();
    let plan = plan::find("multiqueue-tap-2011-scenarios").unwrap();
    let cells = cells_without_a_host(&plan);
    let own: Vec<Properties> = cells.iter().map(oracle::properties).collect();
    let (mut rows, mut met) = (0, BTreeSet::new());
    for table in file["table"].as_array().unwrap() {
        for row in table["rows"].as_array().unwrap() {
            let mut wanted = toml::Table::new();
            for of in [&table["cells"], &row["cells"]] {
                wanted.extend(of.as_table().unwrap().clone());
                wanted.extend(of["set"].as_table().unwrap().clone());
            }
            wanted.remove("set");
            let is_it = |at: &usize| oracle::is_meant(&wanted, &own[*at]);
            let found: Vec<usize> = (0..own.len()).filter(is_it).collect();
            assert_eq!(found.len(), 1, "{wanted}: {found:?}");
            met.extend(found);
            rows += 1;
        }
    }
    // A guest of one CPU has one queue in both modes.
    assert_eq!((rows, met.len(), own.len()), (256, 224, 224));
}

/// What was published of a point, by the text of the rule and the plan.
pub(super) fn of(part: &Part<'_>, members: &oracle::Point) -> Option<f64> {
    let cells = &part.planned?.cells;
    let own: Vec<Properties> = members
        .iter()
        .map(|m| oracle::properties(&cells[m[0]]))
        .collect();
    match part.text.get("published") {
        Some(Value::Array(figures)) => {
            let is_of = |figure: &&Value| {
                let of = figure["cells"].as_table().unwrap();
                own.iter().all(|cell| oracle::is_meant(of, cell))
            };
            let all: Vec<&Value> = figures.iter().filter(is_of).collect();
            assert_eq!(all.len(), 1, "of {own:?}: {all:?}");
            all[0]["value"].as_float()
        }
        Some(one) => one.as_float(),
        None => of_plan(part, members),
    }
}

/// The ratio, or share, of the figures of its cells; of a mean, that of all of them.
fn of_plan(part: &Part<'_>, members: &oracle::Point) -> Option<f64> {
    let (check, Planned { plan, cells }) = (&part.text, part.planned?);
    let what: What = check["quantity"].as_str().unwrap().parse().unwrap();
    let figure = |cell: &usize| {
        let cell = &cells[*cell];
        let own = what.name(cell.load);
        // Ratios of these are those of the other.
        let other = match own.as_str() {
            "cpu_ns_per_packet" | "cpu_ns_per_transaction" => "cpu_ns_per_byte",
            "efficiency_bps_per_core" => PER_GHZ,
            "packets_per_s" => "goodput_bps",
            own => own,
        };
        let is_of = |f: &&PublishedFigure| {
            let properties = oracle::properties(cell);
            let is = |name: &str, value: &str| properties[name] == value;
            is("path", &f.path)
                && is("load", f.load.name())
                && f.peer.is_none_or(|peer| is("peer", peer.name()))
                && f.set
                    .iter()
                    .all(|(name, value)| properties.get(name) == Some(value))
        };
        let of_quantity = |name: &str| {
            let tables = plan.published.iter().filter(|t| t.quantity == name);
            tables.flat_map(|t| &t.figures).find(is_of).map(|f| f.value)
        };
        of_quantity(&own).or_else(|| of_quantity(other))
    };
    let of_cells = |cells: &[usize]| -> Option<f64> {
        let all: Vec<f64> = cells.iter().map(figure).collect::<Option<_>>()?;
        match (check["judge"].as_str().unwrap(), all.as_slice()) {
            ("ratio", [a, b]) => Some(a / b),
            ("share", [with, without, base]) => Some((with - without) / (with - base)),
            _ => None,
        }
    };
    if check["judge"].as_str() == Some("peak") {
        // The evidence has it at 2 flows.
        let at = |flows: u32| {
            members
                .iter()
                .map(|m| m[0])
                .find(|c| cells[*c].axes.flows == flows)
        };
        let last = u32::try_from(check["last"].as_integer().unwrap()).unwrap();
        return Some(figure(&at(last)?)? / figure(&at(2)?)?);
    }
    let all: Option<Vec<f64>> = members.iter().map(|cells| of_cells(cells)).collect();
    match all?.as_slice() {
        [one] => Some(*one),
        several => stats::geometric_mean(several),
    }
}

/// The scenarios of the posting of 2011 with its geometric means of two and more queues over one, as the data file of the report
/// has them: throughput, and throughput per CPU.
const SCENARIOS: [(&str, f64, f64); 8] = [
    ("tcp_stream · far · message size 512 B", 0.71, 0.49),
    ("tcp_stream · far · message size 16 KiB", 1.03, 0.85),
    ("tcp_maerts · far · message size 16 KiB", 1.20, 1.06),
    ("tcp_maerts · far · message size 512 B", 1.21, 1.00),
    ("tcp_stream · host · message size 512 B", 0.50, 0.37),
    ("tcp_stream · host · message size 16 KiB", 1.00, 0.67),
    ("tcp_maerts · host · message size 512 B", 0.89, 0.75),
    ("tcp_maerts · host · message size 16 KiB", 1.32, 0.85),
];

#[test]
fn figures_of_2011_are_beside_their_scenarios() {
    for (id, part, column) in [
        ("MQ1", 0, 1),
        ("MQ3", 0, 1),
        ("MQ4", 0, 1),
        ("MQ5", 0, 1),
        ("MQ6", 0, 1),
        ("MQ7", 0, 1),
        ("MQ15", 0, 2),
    ] {
        let chosen = choose(reports().unwrap(), &[id.to_owned()]).unwrap()[0];
        let parts = Part::all(chosen);
        let mut world = World::default();
        for part in &parts {
            let (aim, from) = (Aim::Inside, 0);
            world.aim(Aimed { part, aim, from });
        }
        let cells = &parts[part].planned.unwrap().cells;
        let scenario = |members: &oracle::Point| {
            let cell = &cells[members[0][0]];
            let size = crate::units::show_bytes(cell.axes.message_size_bytes.unwrap());
            format!("{} · {} · message size {size}", cell.load, cell.peer)
        };
        let scenarios: Vec<String> = parts[part].points.iter().map(scenario).collect();
        let judged = judge(chosen, &world.evidence());
        let points = &judged.checks[part].points;
        assert_eq!(points.len(), scenarios.len(), "{id}: {points:?}");
        for (point, scenario) in points.iter().zip(scenarios) {
            let (_, rate, efficiency) = SCENARIOS.iter().find(|s| s.0 == scenario).unwrap();
            let right = if column == 1 { rate } else { efficiency };
            assert!(
                scenario.ends_with(&point.at) || id != "MQ15",
                "{scenario}, {}",
                point.at
            );
            assert_eq!(point.published, Some(*right), "{id}: {scenario}");
        }
    }
}

/// A peak's figures are those of its quantity, wherever the plan has others of the same cells.
#[test]
fn a_peak_takes_the_figures_of_its_quantity() {
    let check = "judge = \"peak\"\nquantity = \"rate\"\ncells = { path = \"veth\" }\naxis = \"flows\"\nlast = 16\nat_most = 0.8\n";
    let mut run = hand_made(&["veth"; 2]);
    run.header.environment.cpus = 4;
    for (cell, flows) in [2, 16].into_iter().enumerate() {
        run.header.cells[cell].cell.axes.flows = flows;
        for block in 0..10 {
            push(
                &mut run,
                block,
                0,
                cell,
                Outcome::Measured(Box::new(measured(1_000_000))),
            );
        }
    }
    let table = |quantity: &str, two: f64, sixteen: f64| {
        let figure = |flows: &str, value| PublishedFigure {
            path: "veth".to_owned(),
            load: LoadKind::TcpStream,
            peer: None,
            set: [("flows".to_owned(), flows.to_owned())].into(),
            called: "then".to_owned(),
            value,
            half_width: None,
        };
        crate::model::Published {
            source: "s".to_owned(),
            quantity: quantity.to_owned(),
            what: "w".to_owned(),
            remark: "r".to_owned(),
            figures: vec![figure("2", two), figure("16", sixteen)],
        }
    };
    run.header.published = vec![
        table("efficiency_bps_per_core", 10.0, 2.0),
        table("goodput_bps", 10.0, 7.0),
    ];
    let point = judged(check, run).checks.remove(0).points.remove(0);
    assert_eq!(point.published, Some(0.7));
}
