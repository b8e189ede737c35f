//! Runs made by hand, from their samples to their reports.

use std::slice::from_ref;

use crate::assess::assess;
use crate::assess::diff::{Ask, diff};
use crate::assess::testing::{measured, push, run};
use crate::model::stored::Run;
use crate::model::{CellStatus, LoadKind, Outcome};
use crate::{TEXT, export};

#[test]
fn a_run_without_samples_is_still_a_document() {
    let report = assess(&Run {
        end: None,
        ..run(&["veth", "bridge"])
    });
    assert!(
        report
            .cells
            .iter()
            .all(|c| c.status == CellStatus::Failed && c.estimates.is_empty())
    );
    assert!(report.run.elsewhere.is_none());
    for format in ["text", "netperf"] {
        assert!(
            !export(format)
                .unwrap()
                .render(&report, &[])
                .unwrap()
                .is_empty()
        );
    }
}

/// Ten blocks of each path, all equally fast.
fn alike(id: &str, paths: &[&str]) -> Run {
    let mut run = run(paths);
    run.header.id = id.to_owned();
    for block in 0..10 {
        for cell in 0..paths.len() {
            let bytes = 400_000_000 + 100_000 * u64::from(block % 4);
            let outcome = Outcome::Measured(Box::new(measured(bytes)));
            push(&mut run, block, 0, cell, outcome);
        }
    }
    run
}

#[test]
fn cells_that_are_left_out_are_told_apart() {
    let mut a = alike("a", &["veth", "bridge", "macvlan"]);
    for (at, flows) in [(1, 2), (2, 4)] {
        let cell = &mut a.header.cells[at].cell;
        cell.path = "veth".to_owned();
        cell.load = LoadKind::UdpRr;
        cell.axes.flows = flows;
    }
    let b = alike("b", &["veth"]);
    let report = diff(from_ref(&a), from_ref(&b), &[], &Ask::default()).unwrap();
    let text = (TEXT.diff.unwrap())(&report);
    for flows in ["2 flows", "4 flows"] {
        assert!(text.contains(flows), "{flows} is missing: {text}");
    }
}
