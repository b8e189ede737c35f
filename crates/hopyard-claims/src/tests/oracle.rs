//! What a rule is about, worked out once more from its text and the cells of its plan by comparing all properties: slower than the
//! judges and by other means, so that a mistake of theirs shows.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use toml::{Table, Value};

use super::*;
use crate::model::{AXES, Axes, Cell, axis};

/// Everything that a cell is: path, load, peer, and each axis that it has.
pub(super) type Properties = BTreeMap<String, String>;

/// Where a rule has one figure: places of cells, each member's own first. A mean has several members, as have a peak and a
/// curve.
pub(super) type Point = Vec<Vec<usize>>;

/// A plan with its cells, each once, whatever this host can build.
pub(super) struct Planned {
    pub(super) plan: plan::Plan,
    pub(super) cells: Vec<Cell>,
}

/// The plan of that name, read once.
pub(super) fn planned(name: &str) -> &'static Planned {
    static ALL: LazyLock<BTreeMap<String, Planned>> = LazyLock::new(|| {
        let reports = reports().unwrap().iter();
        let of_checks = reports.flat_map(|report| {
            let checks = report.claims.iter().flat_map(|claim| &claim.checks);
            checks.map(|check| check.plan.as_ref().unwrap_or(&report.plan))
        });
        let read = |name: &String| {
            let plan = plan::find(name).unwrap();
            let mut cells: Vec<Cell> = Vec::new();
            for cell in cells_without_a_host(&plan) {
                if !cells.contains(&cell) {
                    cells.push(cell);
                }
            }
            Planned { plan, cells }
        };
        let names: std::collections::BTreeSet<&String> = of_checks.collect();
        names
            .into_iter()
            .map(|name| (name.clone(), read(name)))
            .collect()
    });
    &ALL[name]
}

/// The parts of a claim's rule as its file has them.
pub(super) fn parts_of(id: &str) -> Vec<Table> {
    let claims = FILES.iter().flat_map(|(_, text)| {
        let file: Table = text.parse().unwrap();
        file["claim"].as_array().unwrap().clone()
    });
    let mut own = claims.filter(|claim| claim["id"].as_str() == Some(id));
    let checks = own.next().unwrap().get("check").cloned();
    let tables = checks.map_or_else(Vec::new, |checks| checks.as_array().unwrap().clone());
    tables
        .into_iter()
        .map(|check| check.as_table().unwrap().clone())
        .collect()
}

/// A part of a rule.
pub(super) struct Part<'a> {
    pub(super) check: &'a Check,
    /// As its file has it.
    pub(super) text: Table,
    /// The plan that it is about, if it is about cells.
    pub(super) planned: Option<&'static Planned>,
    pub(super) points: Vec<Point>,
}

impl<'a> Part<'a> {
    pub(super) fn of(chosen: Chosen<'a>, check: &'a Check, text: Table) -> Self {
        let is_of_cells = check.of_cells().is_some();
        let planned = is_of_cells.then(|| planned(chosen.plan_of(check)));
        Self {
            points: planned.map_or_else(Vec::new, |p| points(&text, &p.cells)),
            check,
            text,
            planned,
        }
    }

    /// Its premise, as a part of its own.
    pub(super) fn premise(&self) -> Option<Self> {
        let check = &*self.check.given.as_ref()?.check;
        let planned = self.planned?;
        let mut text = self.text["given"].as_table()?.clone();
        let judge = if text.contains_key("to") {
            "ratio"
        } else {
            "level"
        };
        text.insert("judge".to_owned(), judge.into());
        Some(Self {
            points: points(&text, &planned.cells),
            check,
            text,
            planned: Some(planned),
        })
    }

    /// All parts of a claim.
    pub(super) fn all(chosen: Chosen<'a>) -> Vec<Self> {
        let texts = parts_of(&chosen.claim.id);
        let checks = chosen.claim.checks.iter().zip(texts);
        checks
            .map(|(check, text)| Self::of(chosen, check, text))
            .collect()
    }
}

pub(super) fn properties(cell: &Cell) -> Properties {
    let axes = AXES
        .iter()
        .filter_map(|axis| Some((axis.name.to_owned(), (axis.show)(&cell.axes)?)));
    let own = [
        ("path", cell.path.clone()),
        ("load", cell.load.to_string()),
        ("peer", cell.peer.to_string()),
    ];
    axes.chain(own.map(|(name, value)| (name.to_owned(), value)))
        .collect()
}

/// The words of a key: one or several.
fn words(check: &Table, key: &str) -> Vec<String> {
    let one = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match check.get(key) {
        None => Vec::new(),
        Some(Value::Array(list)) => list.iter().map(one).collect(),
        Some(value) => vec![one(value)],
    }
}

/// A value as the axis of that name shows it.
fn shown(name: &str, value: &str) -> String {
    let Ok(axis) = axis(name) else {
        return value.to_owned();
    };
    let mut axes = Axes::default();
    (axis.set)(&mut axes, value).unwrap();
    (axis.show)(&axes).unwrap()
}

/// Is a cell one of those that a table names?
pub(super) fn is_meant(cells: &Table, of: &Properties) -> bool {
    cells.keys().all(|name| {
        let values = words(cells, name);
        match of.get(name) {
            None => values.contains(&"default".to_owned()),
            Some(value) => values.iter().any(|named| match named.as_str() {
                "default" => value == "default",
                named => *value == shown(name, named),
            }),
        }
    })
}

/// Is `other` the cell with that path, or that value of an axis, and all else alike? A path need not have all axes of
/// another's.
fn is_partner(own: &Properties, other: &Properties, to: &str) -> bool {
    let (name, value) = match to.split_once('=') {
        Some((name, value)) => (name, shown(name, value)),
        None => ("path", to.to_owned()),
    };
    let mut wanted = own.clone();
    // Path `native` has no containers: what is compared with it are its processes.
    if to == "native" && other.get("containers").is_some_and(|of| of == "native") {
        wanted
            .get_mut("containers")
            .into_iter()
            .for_each(|of| "native".clone_into(of));
    }
    if wanted.insert(name.to_owned(), value).is_none() || wanted == *own {
        return false;
    }
    wanted.retain(|key, _| {
        let is_lost = name == "path" && !other.contains_key(key);
        !(is_lost && axis(key).is_ok_and(|axis| axis.of_path))
    });
    wanted == *other
}

/// Every figure of a part that is about cells, in the plan's order.
pub(super) fn points(check: &Table, cells: &[Cell]) -> Vec<Point> {
    let all: Vec<Properties> = cells.iter().map(properties).collect();
    let judge = check["judge"].as_str().unwrap();
    let bases: Vec<String> = ["to", "without", "base", "less"]
        .iter()
        .flat_map(|key| words(check, key))
        .collect();
    let meant =
        (0..cells.len()).filter(|at| is_meant(check["cells"].as_table().unwrap(), &all[*at]));
    let members = meant.flat_map(|own| {
        let partner =
            |to: &String| (0..cells.len()).find(|at| is_partner(&all[own], &all[*at], to));
        let partners: Vec<usize> = bases.iter().filter_map(partner).collect();
        match judge {
            "share" if partners.len() == 2 => vec![vec![own, partners[0], partners[1]]],
            "share" => Vec::new(),
            "corrected" => {
                let base_less = partners.get(1).and_then(|less| {
                    (0..cells.len()).find(|at| is_partner(&all[*less], &all[*at], &bases[0]))
                });
                let whole = [vec![own], partners, base_less.into_iter().collect()].concat();
                (whole.len() == 4).then_some(whole).into_iter().collect()
            }
            "ratio" => partners.iter().map(|other| vec![own, *other]).collect(),
            "curve" if !bases.is_empty() => {
                partners.iter().map(|other| vec![own, *other]).collect()
            }
            _ => vec![vec![own]],
        }
    });
    // What the members of one figure differ in.
    let within = match judge {
        "curve" => vec!["flows".to_owned()],
        "peak" => words(check, "axis"),
        _ => words(check, "mean_over"),
    };
    let place = |member: &Vec<usize>| -> Vec<Properties> {
        let without = |at: &usize| {
            let mut properties = all[*at].clone();
            properties.retain(|name, _| !within.contains(name));
            properties
        };
        member.iter().map(without).collect()
    };
    let mut points: Vec<(Vec<Properties>, Point)> = Vec::new();
    for member in members {
        let place = place(&member);
        match points.iter_mut().find(|(known, _)| *known == place) {
            Some((_, point)) => point.push(member),
            None => points.push((place, vec![member])),
        }
    }
    points.into_iter().map(|(_, point)| point).collect()
}

/// The words that have to be in what each point is called: all that not every point has, but for what a mean is over.
pub(super) fn called(check: &Table, points: &[Point], cells: &[Cell]) -> Vec<Vec<String>> {
    let within = [words(check, "mean_over"), vec!["rate".to_owned()]].concat();
    let of = |at: usize| {
        let mut own = properties(&cells[at]);
        own.retain(|name, _| !within.contains(name));
        own
    };
    let own: Vec<Properties> = points.iter().map(|point| of(point[0][0])).collect();
    let loads: Vec<_> = points.iter().map(|point| cells[point[0][0]].load).collect();
    let one = |(point, mine): (&Point, &Properties)| {
        let load = cells[point[0][0]].load;
        // Other loads have other axes.
        let beside = |other: usize| loads[other] == load;
        let differs = |name: &String, value: &String| {
            let among = (0..own.len()).filter(|at| axis(name).is_err() || beside(*at));
            among
                .map(|at| &own[at])
                .any(|other| other.get(name) != Some(value))
        };
        let mut words: Vec<String> = mine
            .iter()
            .filter(|(name, value)| differs(name, value))
            .map(|(name, value)| match axis(name) {
                Ok(axis) => format!("{} {value}", axis.name.replace('_', " ")),
                Err(_) => value.clone(),
            })
            .collect();
        if self::words(check, "to").len() > 1 {
            words.push(format!("against {}", cells[point[0][1]].path));
        }
        words
    };
    points.iter().zip(&own).map(one).collect()
}
