//! What cells are compared with.

use super::*;
use crate::base::missing;
use crate::model::{LoadKind, SearchFor, VerdictReport};
use crate::testing::searched;

/// Cells of `bridge-nf` and `bridge` with rules, and of paths whose traffic no rule of the hub sees.
fn with_rules(base: &str, rules: &[u32]) -> Run {
    let mut run = run(&["native", "veth", "bridge", "bridge-nf"]);
    run.header.base = Some(base.to_owned());
    let plain = std::mem::take(&mut run.header.cells);
    for planned in plain {
        let has = planned.cell.path.starts_with("bridge");
        for value in if has { rules } else { &rules[..1] } {
            let mut one = planned.clone();
            one.cell.axes.rules = has.then_some(*value);
            run.header.cells.push(one);
        }
    }
    for block in 0..8 {
        for cell in 0..run.header.cells.len() {
            let bytes = 400_000_000 + 1_000_000 * (cell as u64) + 100_000 * u64::from(block % 4);
            push(
                &mut run,
                block,
                0,
                cell,
                Outcome::Measured(Box::new(measured(bytes))),
            );
        }
    }
    run
}

/// Path and base of each comparison of a run.
fn bases(run: &Run) -> Vec<(String, Option<u32>, Vec<String>)> {
    let of = |cell: &crate::model::CellReport| {
        let mut bases: Vec<String> = cell.verdicts.values().map(|v| v.base.clone()).collect();
        bases.dedup();
        (cell.path.clone(), cell.axes.rules, bases)
    };
    assess(run).cells.iter().map(of).collect()
}

#[test]
fn the_base_asked_for_is_that_of_paths_without_its_axis_too() {
    let told = bases(&with_rules("bridge-nf", &[20]));
    let base = || vec!["bridge-nf".to_owned()];
    let wanted = [
        ("native".to_owned(), None, base()),
        ("veth".to_owned(), None, base()),
        ("bridge".to_owned(), Some(20), base()),
        ("bridge-nf".to_owned(), Some(20), vec![]),
    ];
    assert_eq!(told, wanted);
}

#[test]
fn no_other_base_stands_in_where_the_one_asked_for_is_not_one_cell() {
    let run = with_rules("bridge-nf", &[0, 20]);
    let base = || vec!["bridge-nf".to_owned()];
    let wanted = [
        ("native".to_owned(), None, vec![]),
        ("veth".to_owned(), None, vec![]),
        ("bridge".to_owned(), Some(0), base()),
        ("bridge".to_owned(), Some(20), base()),
        ("bridge-nf".to_owned(), Some(0), vec![]),
        ("bridge-nf".to_owned(), Some(20), vec![]),
    ];
    assert_eq!(bases(&run), wanted);
}

/// The base of all cells is one, also where another would fit some of them better.
#[test]
fn a_base_that_was_not_measured_is_replaced_by_one_for_all() {
    let mut run = with_rules("macvlan", &[0, 20]);
    run.header.base_asked = false;
    let of = |run: &Run| {
        let told = bases(run).into_iter();
        told.map(|(path, rules, bases)| (path, rules, bases.join(" ")))
            .collect::<Vec<_>>()
    };
    assert!(
        of(&run).iter().all(|(path, _, base)| match path.as_str() {
            "native" => base.is_empty(),
            _ => base == "native",
        }),
        "{:?}",
        of(&run)
    );
    // `bridge` has two cells, of which neither is the base of `veth`.
    for planned in &mut run.header.cells {
        if planned.cell.path == "native" {
            planned.cell.path = "ipvlan".to_owned();
        }
    }
    run.header.cells.rotate_left(2);
    for sample in &mut run.samples {
        sample.cell = (sample.cell + 4) % 6;
    }
    let told = of(&run);
    assert_eq!(told[0].0, "bridge");
    assert!(
        told.iter().all(|(path, _, base)| match path.as_str() {
            "ipvlan" => base.is_empty(),
            _ => base == "ipvlan",
        }),
        "{told:?}"
    );
}

/// A plan's base may be a value that whoever ran it left out.
#[test]
fn a_value_that_no_cell_has_is_told() {
    let mut run = with_rules("rules=100", &[0, 20]);
    run.header.base_asked = false;
    let said = missing(&run.header).unwrap();
    assert!(said.starts_with("not compared with rules=100: "), "{said}");
    assert!(said.contains("the run has no cell of it"), "{said}");
    run.header.base = Some("rules=0".to_owned());
    assert_eq!(missing(&run.header), None);
}

/// What both paths carry is all that the generator can send: their own rates are higher, each by nobody knows how much.
#[test]
fn searches_that_found_no_limit_on_both_sides_are_not_compared() {
    let verdict = |limits: [Option<f64>; 2]| {
        let mut run = compared(1.0);
        for planned in &mut run.header.cells {
            planned.cell.load = LoadKind::UdpPaced;
            planned.cell.axes.search = Some(SearchFor::NDR);
        }
        for sample in &mut run.samples {
            let Outcome::Measured(measured) = &mut sample.outcome else {
                panic!("all are measured");
            };
            let rate = 1e5 + f64::from(sample.block);
            measured.search = Some(searched(rate, limits[sample.cell]));
        }
        let report = assess(&run);
        let is_said = |verdicts: &std::collections::BTreeMap<String, VerdictReport>| {
            verdicts.contains_key("throughput_packets_per_s")
        };
        let choice = &report.recommendation.as_ref().unwrap().choices[0];
        let versus = choice.best.iter().chain(&choice.others);
        let is_recommended = versus.map(|one| &one.versus).any(is_said);
        let is_compared = is_said(&report.cells[1].verdicts);
        assert_eq!(is_recommended, is_compared);
        is_compared
    };
    assert!(!verdict([None, None]));
    assert!(verdict([Some(1.01e5), Some(1.01e5)]));
    // One that is limited is compared with what the other carries at least.
    assert!(verdict([None, Some(1.01e5)]));
}
