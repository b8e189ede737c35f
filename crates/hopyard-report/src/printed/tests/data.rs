//! Checks of the data files: printed figures are consistent with each other, and plans have the same figures.

use std::cell::Cell;
use std::path::Path;

use super::super::cells::{Cells, shown};
use super::super::file::{File, Layout, Row, Table, parse};
use super::super::print::Print;
use super::super::spec::Here;
use super::{all, file};
use crate::model::PublishedFigure;

fn number(print: &Print) -> f64 {
    match print {
        Print::Figure { value, .. } => *value,
        other => panic!("{other:?}"),
    }
}

fn table<'a>(file: &'a File, title: &str) -> &'a Table {
    file.tables.iter().find(|t| t.title == title).unwrap()
}

#[test]
fn there_are_as_many_figures_as_were_printed() {
    let figures = |file: &File| {
        let rows = file.tables.iter().flat_map(|table| &table.rows);
        let prints = rows.flat_map(|row| &row.print);
        prints
            .filter(|print| matches!(print, Print::Figure { .. }))
            .count()
    };
    let counts: Vec<_> = all()
        .iter()
        .map(|f| (f.report.clone(), f.tables.len(), figures(f)))
        .collect();
    let expected = [
        // 9 in each stream; `etun` has no remote side, so two columns less; 12 in each test of transactions, and 14 in
        // those of datagrams.
        (
            "netns-macvlan-2007",
            15,
            3 * (2 * 9 + 2 * 12 + 14) - 2 * 2 - 2 * 2 - 2,
        ),
        ("multiqueue-tap-2011", 16, 256 * 3),
        ("namespace-switching-2014", 2, 20 * 3 + 20 * 2),
        // Six means in two units; 34 functions and three sums.
        ("netback-direct-2006", 4, 6 * 2 + 37 * 2),
        ("planetlab-containers-2007", 2, 15),
    ];
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(name, tables, n)| (name.to_owned(), tables, n))
        .collect();
    assert_eq!(counts, expected);
}

#[test]
fn normalized_is_throughput_over_cpu_cut() {
    for table in &file("multiqueue-tap-2011").tables {
        for row in &table.rows {
            let [throughput, cpu, normalized] = [0, 1, 2].map(|at| number(&row.print[at]));
            assert_eq!(
                (throughput / cpu).floor(),
                normalized,
                "{} {:?}",
                table.title,
                row.key
            );
        }
    }
}

#[test]
fn every_scenario_has_every_number_of_cpus_and_sessions() {
    for table in &file("multiqueue-tap-2011").tables {
        let keys: Vec<String> = table.rows.iter().map(|row| row.key.join(" ")).collect();
        let all = ["1", "2", "4", "8"]
            .iter()
            .flat_map(|smp| ["1", "2", "4", "8"].map(|n| format!("{smp} {n}")));
        assert_eq!(keys, all.collect::<Vec<_>>(), "{}", table.title);
    }
}

#[test]
fn profiles_sum_to_their_printed_totals() {
    let file = file("netback-direct-2006");
    let is_profile = |t: &&Table| file.forms[&t.form].layout == Layout::Functions;
    let profiles: Vec<&Table> = file.tables.iter().filter(is_profile).collect();
    assert!(!profiles.is_empty());
    for table in profiles {
        let (total, functions) = table.rows.split_last().unwrap();
        assert_eq!(total.key, ["TOTAL"]);
        let sum = |at: usize| {
            functions
                .iter()
                .map(|row| number(&row.print[at]))
                .sum::<f64>()
        };
        assert_eq!(sum(0), number(&total.print[0]), "{}", table.title);
        assert!(
            (sum(1) - number(&total.print[1])).abs() < 0.001,
            "{}",
            table.title
        );
        for row in &table.rows {
            let all = number(&total.print[0]) / number(&total.print[1]);
            let share = number(&row.print[0]) / all;
            assert!(
                (share - number(&row.print[1])).abs() < 0.0005,
                "{:?}",
                row.key
            );
        }
    }
}

/// Service demand is the CPU share of four CPUs over the work done.
#[test]
fn service_demand_follows_from_cpu_and_rate() {
    let file = file("netns-macvlan-2007");
    let compared = Cell::new(0);
    let near = |table: &Table, demand: &Print, cpu: &Print, per_s: f64| {
        let (Print::Figure { .. }, Print::Figure { .. }) = (demand, cpu) else {
            return;
        };
        let expected = 4.0 * number(cpu) / 100.0 * 1e6 / per_s;
        let off = expected / number(demand) - 1.0;
        // The printed CPU share has three digits.
        assert!(off.abs() < 0.005, "{}: {expected} {demand:?}", table.title);
        compared.set(compared.get() + 1);
    };
    for table in &file.tables {
        let [first, others @ ..] = &table.rows[..] else {
            panic!("{}", table.title);
        };
        let kb = |mbit: &Print| number(mbit) * 1e6 / 8.0 / 1024.0;
        match table.form.as_str() {
            "stream" => {
                near(table, &first.print[7], &first.print[5], kb(&first.print[4]));
                near(table, &first.print[8], &first.print[6], kb(&first.print[4]));
            }
            "requests" => {
                near(
                    table,
                    &first.print[8],
                    &first.print[6],
                    number(&first.print[5]),
                );
                near(
                    table,
                    &first.print[9],
                    &first.print[7],
                    number(&first.print[5]),
                );
            }
            _ => {
                let arrived = kb(&others[0].print[5]);
                near(table, &first.print[7], &first.print[6], arrived);
                near(table, &others[0].print[7], &others[0].print[6], arrived);
                // Messages of 1400 B give the printed throughput.
                for row in &table.rows {
                    let mbit = number(&row.print[3]) * 1400.0 * 8.0 / row.seconds.unwrap() / 1e6;
                    assert!(
                        (mbit / number(&row.print[5]) - 1.0).abs() < 0.001,
                        "{}",
                        table.title
                    );
                }
            }
        }
    }
    assert_eq!(compared.get(), 25);
}

#[test]
fn the_derived_column_of_table_1_is_derived() {
    for row in &table(
        &file("netback-direct-2006"),
        "CPU of dom0, mean and half-width of the 99 % interval",
    )
    .rows
    {
        let ns = number(&row.print[0]) / 100.0 / (940e6 / 8.0) * 1e9;
        assert!((ns - number(&row.print[1])).abs() < 0.001, "{:?}", row.key);
    }
}

/// The figures of a plan are at the places of the same cells here, in the unit of the report or of the plan.
#[test]
fn plans_have_the_same_figures() {
    let mut compared = 0;
    for file in all() {
        for stand in &file.plans {
            let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
            let text = std::fs::read_to_string(home.join(format!("{}.toml", stand.name))).unwrap();
            let plan: toml::Table = text.parse().unwrap();
            let Some(tables) = plan.get("published").and_then(|tables| tables.as_array()) else {
                continue;
            };
            for published in tables {
                let quantity = published["quantity"].as_str().unwrap();
                for figure in published["figures"].as_array().unwrap() {
                    let figure = of_plan(figure);
                    let found = printed(&file, quantity, &figure);
                    let factor = if quantity == "cpu_ns_per_byte" && stand.name.starts_with("netns")
                    {
                        1000.0 / 1024.0
                    } else {
                        1.0
                    };
                    let is_it = |print: &f64| (print * factor / figure.value - 1.0).abs() < 1e-4;
                    assert!(found.iter().any(is_it), "{quantity} {figure:?}: {found:?}");
                    compared += 1;
                }
            }
        }
    }
    assert_eq!(compared, 64 * 3 + 40 + 20 + 6 + 30);
}

/// A plan writes numbers as numbers.
fn of_plan(figure: &toml::Value) -> PublishedFigure {
    let mut figure = figure.clone();
    if let Some(set) = figure.get_mut("set").and_then(|set| set.as_table_mut()) {
        for (_, value) in set.iter_mut() {
            if let Some(number) = value.as_integer() {
                *value = number.to_string().into();
            }
        }
    }
    figure.try_into().unwrap()
}

/// The printed values at the places of a cell. Rows with more axes than the plan are those of the two CPUs that it
/// represents.
fn printed(file: &File, quantity: &str, figure: &PublishedFigure) -> Vec<f64> {
    let mut found = Vec::new();
    for stand in &file.plans {
        for table in file.tables.iter().filter(|table| table.group != "3.8") {
            let form = &file.forms[&table.form];
            for row in &table.rows {
                for (at, column) in form.columns.iter().enumerate() {
                    let Here::Figure(own) = form.here(row, at) else {
                        continue;
                    };
                    let wanted = stand.wanted(&[&table.cells, &column.cells, &row.cells]);
                    // Table 1 of 2006 is in percent.
                    let is_it =
                        own.of == quantity || (file.report.starts_with("netback") && at == 0);
                    if is_it
                        && is_of(figure, &wanted)
                        && matches!(row.print[at], Print::Figure { .. })
                    {
                        found.push(number(&row.print[at]));
                    }
                }
            }
        }
    }
    found
}

fn is_of(figure: &PublishedFigure, wanted: &Cells) -> bool {
    let has = |(name, value): (&String, &String)| {
        wanted.set.get(name) == Some(&shown(name, value).unwrap())
    };
    wanted.path.as_ref() == Some(&figure.path)
        && wanted.load == Some(figure.load)
        && (figure.peer.is_none() || figure.peer == wanted.peer)
        && figure.set.iter().all(has)
        && wanted.set.get("guest_cpus").is_none_or(|cpus| cpus == "2")
}

#[test]
fn a_damaged_file_names_the_place() {
    let good = "report = \"r\"\ntitle = \"t\"\nsource = \"s\"\nsetting = \"m\"\nbase = { cells = { path = \"veth\" } }\n\
                [[plan]]\nname = \"p\"\n[forms.f]\nlayout = \"columns\"\nkeys = [\"k\"]\ncolumns = [{ head = [\"h\"], here = \"window\" }]\n\
                [[table]]\nform = \"f\"\ntitle = \"T\"\nplace = \"1\"\nrows = [{ key = [\"a\"], print = [\"1\"] }]\n";
    parse("r", good).unwrap();
    for (from, to, says) in [
        (
            "print = [\"1\"]",
            "print = [\"1\", \"2\"]",
            "published/r.toml: T: row `a` does not fit",
        ),
        ("form = \"f\"", "form = \"g\"", "T: no form `g`"),
        (
            "key = [\"a\"]",
            "key = [\"a\"], cells = { set = { colour = 1 } }",
            "colour",
        ),
        ("key = [\"a\"]", "keys = [\"a\"]", "keys"),
    ] {
        let error = parse("r", &good.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn every_report_with_claims_has_its_figures() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let names = |folder: &str| {
        let files = std::fs::read_dir(home.join(folder)).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names("published"), names("claims"));
    assert_eq!(all().len(), names("claims").len());
    // Each row has a unique name in its table.
    for file in all() {
        for table in &file.tables {
            let key = |row: &Row| row.key.clone();
            let keys = crate::model::distinct(table.rows.iter().map(key));
            assert_eq!(keys.len(), table.rows.len(), "{}", table.title);
        }
    }
}
