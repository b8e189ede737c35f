//! The claims that come along, and verdicts of runs made by hand.

mod answers;
mod chance;
mod counts;
mod directories;
mod every;
mod files;
mod further;
mod looks;
mod means;
mod missing;
mod oracle;
mod peaks;
mod premises;
mod profiled;
mod properties;
mod published;
mod reports;
mod rounds;
mod sample;
mod shapes;
mod slips;
mod spoiled;
mod synthetic;
mod twice;
mod verdicts;

use super::*;
use crate::assess::testing::{measured, push, run as hand_made};
use crate::model::{BoundPosition, ClaimVerdict, LoadKind, Outcome, Peer, PublishedFigure};
use crate::plan::{self, Paths};
use crate::report::claims::Detail;
use crate::store::Run;

/// The cells of a plan, whatever this host can build.
fn cells_without_a_host(plan: &plan::Plan) -> Vec<crate::model::Cell> {
    let mut cells = Vec::new();
    for part in &plan.parts {
        let Paths::Named(names) = &part.paths else {
            panic!("claims are about named paths");
        };
        let mut combinations = vec![crate::model::Axes::default()];
        for (name, values) in &part.set {
            let axis = crate::model::axis(name).unwrap();
            combinations = combinations
                .iter()
                .flat_map(|axes| {
                    values.iter().map(|value| {
                        let mut axes = axes.clone();
                        (axis.set)(&mut axes, value).unwrap();
                        axes
                    })
                })
                .collect();
        }
        for name in names {
            let path = crate::lab::path(name).unwrap();
            for (load, peer) in part
                .loads
                .iter()
                .flat_map(|l| part.peers.iter().map(move |p| (*l, *p)))
            {
                cells.extend(combinations.iter().map(|axes| crate::model::Cell {
                    path: name.clone(),
                    peer,
                    load,
                    axes: path.axes_of(axes, load, peer),
                }));
            }
        }
    }
    cells
}

/// A report of one claim with one check.
fn one_claim(check: &str) -> Report {
    parse("mine.toml", &text_of("plan", &[("X1", check)])).unwrap()
}

/// The text of a report about a plan: claims by id, each with one check.
fn text_of(plan: &str, claims: &[(&str, &str)]) -> String {
    let mut text =
        format!("report = \"mine\"\ntitle = \"Of mine\"\nsource = \"nobody\"\nplan = \"{plan}\"\n");
    for (id, check) in claims {
        text += &format!(
            r#"
[[claim]]
id = "{id}"
statement = "bridge is fast"
measure = "m"
rule = "as the check has it"
published = "none"
where = ["HOST"]
[[claim.check]]
{check}
"#
        );
    }
    text
}

/// Paths with what each moves in a block; `spread` is what blocks differ by, as a share.
fn made(paths: &[(&str, f64)], blocks: u32, spread: f64) -> Run {
    let names: Vec<&str> = paths.iter().map(|(name, _)| *name).collect();
    let mut run = hand_made(&names);
    for block in 0..blocks {
        for (cell, (_, bytes)) in paths.iter().enumerate() {
            // Neighbouring paths go different ways, so that ratios have a spread too.
            let side = if (block as usize + cell).is_multiple_of(2) {
                1.0
            } else {
                -1.0
            };
            let bytes = bytes * (1.0 + side * spread);
            push(
                &mut run,
                block,
                0,
                cell,
                Outcome::Measured(Box::new(measured(bytes as u64))),
            );
        }
    }
    run
}

fn judged(check: &str, run: Run) -> crate::model::ClaimReport {
    let report = one_claim(check);
    let evidence = Evidence {
        runs: vec![run],
        ..Evidence::default()
    };
    judge(
        Chosen {
            report: &report,
            claim: &report.claims[0],
            by_id: true,
        },
        &evidence,
    )
}

const RATIO: &str = "judge = \"ratio\"\nquantity = \"rate\"\ncells = { path = [\"bridge\", \"direct\"] }\nto = [\"veth\"]\nat_least = 0.95\nat_most = 1.05\n";
