//! The result of a gate, for one run or two sides.

use super::document::Block;
use super::number::{chosen_percent, rough};
use crate::model::{Gate, RunReport};

/// The gate of a run, if it has one.
pub(super) fn of_run(report: &RunReport) -> Option<Block> {
    let all = report.cells.iter().flat_map(|c| c.verdicts.values());
    let caught: Vec<f64> = all.filter_map(|v| v.gate_catches_ratio).collect();
    let gate = report.gate.as_ref()?;
    let way_out = gate.blocks_needed.map_or_else(String::new, |blocks| {
        format!(" Some {blocks} blocks would be enough.")
    });
    Some(block(gate, &way_out, &caught))
}

/// How many of the blind comparisons more time alone would not decide.
fn incomplete(gate: &Gate) -> String {
    match gate.incomplete {
        0 => String::new(),
        all if all == gate.blind => ", since samples failed or figures are missing".to_owned(),
        some => format!(", {some} of them since samples failed or figures are missing"),
    }
}

/// The result of the gate, and the losses it could detect. `way_out`: what would decide an undecided gate; `caught`:
/// the smallest loss that each comparison catches.
pub(super) fn block(gate: &Gate, way_out: &str, caught: &[f64]) -> Block {
    let loss = chosen_percent(gate.fail_on_ratio);
    let outcome = if gate.failed {
        format!(
            "Gate: FAILED. {} of {} comparisons are shown to be worse by more than {loss}.",
            gate.tripped, gate.comparisons
        )
    } else if gate.undecided {
        format!(
            "Gate: UNDECIDED. None of {} comparisons is shown to be worse by more than {loss}, but {} leave that \
             open{}.{way_out}",
            gate.comparisons,
            gate.blind,
            incomplete(gate)
        )
    } else {
        format!(
            "Gate: passed. None of {} comparisons is shown to be worse by more than {loss}.",
            gate.comparisons
        )
    };
    let percent = |share: f64| format!("{} %", rough(100.0 * share));
    let least = caught.iter().copied().reduce(f64::min);
    let reach = least.zip(caught.iter().copied().reduce(f64::max)).map_or_else(
        || match gate.failed {
            true => String::new(),
            false => " It could have caught none.".to_owned(),
        },
        |(least, most)| {
            format!(
                " Four times out of five it catches a loss of {} where it sees best, of {} where worst.",
                percent(least),
                percent(most)
            )
        },
    );
    Block::Paragraph(format!("{outcome}{reach}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A failed gate does not say that it could have caught none.
    #[test]
    fn a_gate_that_failed_did_catch_something() {
        let gate = Gate {
            fail_on_ratio: 0.03,
            failed: true,
            comparisons: 2,
            tripped: 2,
            blind: 0,
            incomplete: 0,
            undecided: false,
            blocks_needed: None,
            runs_needed: None,
        };
        let said = format!("{:?}", block(&gate, "", &[]));
        assert!(
            said.contains("FAILED. 2 of 2") && !said.contains("none"),
            "{said}"
        );
    }

    #[test]
    fn what_no_time_decides_is_told_from_noise() {
        let said = |incomplete| {
            let gate = Gate {
                fail_on_ratio: 0.05,
                failed: false,
                comparisons: 12,
                tripped: 0,
                blind: 3,
                incomplete,
                undecided: true,
                blocks_needed: None,
                runs_needed: None,
            };
            match block(&gate, "", &[0.04, 0.2]) {
                Block::Paragraph(text) => text,
                _ => panic!("a gate is a paragraph"),
            }
        };
        assert!(said(0).contains("but 3 leave that open. Four"));
        let some =
            "but 3 leave that open, 1 of them since samples failed or figures are missing. Four";
        assert!(said(1).contains(some), "{}", said(1));
        let all = "but 3 leave that open, since samples failed or figures are missing. Four";
        assert!(said(3).contains(all), "{}", said(3));
    }
}
