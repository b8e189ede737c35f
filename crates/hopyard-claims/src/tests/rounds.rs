//! Two cells that took turns are compared round by round, as `hopyard report` compares them.

use super::*;
use crate::model::{Counted, Disturbance, Measurement, Turn};

/// Turns of a window, each of another round: bytes, and whether it was undisturbed. The window has what the undisturbed ones have.
fn in_turns(turns: &[(u64, bool)]) -> Measurement {
    const TURN_NS: u64 = 25_000_000;
    let quiet: Vec<u64> = turns
        .iter()
        .filter(|turn| turn.1)
        .map(|turn| turn.0)
        .collect();
    let mut whole = measured(quiet.iter().sum());
    whole.window_ns = TURN_NS * quiet.len() as u64;
    let cpu = whole.cpu;
    let turn = |(round, (bytes, is_quiet)): (u32, &(u64, bool))| Turn {
        round,
        window_ns: TURN_NS,
        received: Counted {
            bytes: *bytes,
            ..Counted::default()
        },
        sent: Counted::default(),
        cpu,
        disturbance: (!is_quiet).then_some(Disturbance::Steal),
    };
    whole.turns = (0..).zip(turns).map(turn).collect();
    whole
}

/// Path `bridge` at nine tenths of `veth` in each of four rounds, whose pace differs by a factor of eight. The fastest one of `bridge`
/// was disturbed.
fn rounds(blocks: u32) -> Run {
    let mut run = hand_made(&["veth", "bridge"]);
    for block in 0..blocks {
        let wobble = 1.0 + 0.001 * f64::from(block % 3);
        let paces = [1e6, 4e6, 5e5, 2e6];
        let turns = |factor: f64, disturbed: f64| -> Vec<(u64, bool)> {
            let turn = |pace: &f64| ((pace * factor) as u64, *pace != disturbed);
            paces.iter().map(turn).collect()
        };
        for (cell, turns) in [turns(1.0, 0.0), turns(0.9 * wobble, 4e6)]
            .iter()
            .enumerate()
        {
            let outcome = Outcome::Measured(Box::new(in_turns(turns)));
            push(&mut run, block, 0, cell, outcome);
        }
    }
    run
}

const BRIDGE: &str =
    "cells = { path = \"bridge\" }\nto = [\"veth\"]\nat_least = 0.89\nat_most = 0.91\n";

#[test]
fn cells_that_took_turns_are_compared_round_by_round() {
    for quantity in ["rate", "goodput_bps"] {
        let check = format!("judge = \"ratio\"\nquantity = \"{quantity}\"\n{BRIDGE}");
        let claim = judged(&check, rounds(10));
        assert_eq!(claim.verdict, ClaimVerdict::Holds, "{claim:#?}");
        // Without turns it is the ratio of what each window has: (1 + 0.5 + 2) / 3 over (1 + 4 + 0.5 + 2) / 4 of nine tenths.
        let mut windows = rounds(10);
        for sample in &mut windows.samples {
            if let Outcome::Measured(m) = &mut sample.outcome {
                m.turns.clear();
            }
        }
        let claim = judged(&check, windows);
        assert_eq!(claim.verdict, ClaimVerdict::Fails, "{claim:#?}");
        let value = claim.checks[0].points[0].measured.value;
        assert!((value - 0.56).abs() < 0.001, "{value}");
    }
}

/// A mean of ratios is one of ratios by rounds.
#[test]
fn a_mean_of_cells_that_took_turns_is_one_of_rounds() {
    let mut run = rounds(10);
    let cells = run.header.cells.clone();
    let samples = run.samples.clone();
    for planned in &cells {
        let mut more = planned.clone();
        more.cell.axes.flows = 4;
        run.header.cells.push(more);
    }
    for mut sample in samples {
        sample.cell += 2;
        run.samples.push(sample);
    }
    let check =
        format!("judge = \"ratio\"\nquantity = \"rate\"\n{BRIDGE}mean_over = [\"flows\"]\n");
    let claim = judged(&check, run);
    assert_eq!(claim.verdict, ClaimVerdict::Holds, "{claim:#?}");
    assert_eq!(claim.checks[0].points.len(), 1);
}

/// A peak is compared with the others round by round too.
#[test]
fn a_peak_of_cells_that_took_turns_is_one_of_rounds() {
    let mut run = rounds(10);
    run.header.environment.cpus = 4;
    for (planned, flows) in run.header.cells.iter_mut().zip([2, 16]) {
        planned.cell.path = "veth".to_owned();
        planned.cell.axes.flows = flows;
    }
    let check = "judge = \"peak\"\nquantity = \"rate\"\ncells = {}\naxis = \"flows\"\nlast = 16\nat_least = 0.89\nat_most = 0.91\n";
    let claim = judged(check, run);
    assert_eq!(claim.verdict, ClaimVerdict::Holds, "{claim:#?}");
}

/// The report of the run has the same ratio.
#[test]
fn a_claim_has_the_ratio_of_the_report() {
    let run = rounds(10);
    let report = crate::assess::assess(&run);
    let check = format!("judge = \"ratio\"\nquantity = \"rate\"\n{BRIDGE}");
    let claim = judged(&check, run);
    let own = claim.checks[0].points[0].measured.value;
    let theirs = report.cells[1].verdicts["goodput_bps"].ratio.value;
    assert!((own / theirs - 1.0).abs() < 1e-9, "{own} {theirs}");
}
