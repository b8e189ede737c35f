//! What a reader must know before trusting a ratio.

use crate::model::{DiffWarning, DiffWarningCode, Gate, LeftOut, MeasuredIn, RunReport, Warning};
use crate::plan::FOR_A_VERDICT;

pub(super) fn all(
    reports: &[RunReport; 2],
    quick_look: bool,
    gate: Option<&Gate>,
    left_out: &[LeftOut],
) -> Vec<DiffWarning> {
    let mut warnings = Vec::new();
    let mut warn = |code, message| warnings.push(DiffWarning { code, message });
    if quick_look {
        let [a, b] = reports.each_ref().map(|r| r.run.blocks);
        warn(
            DiffWarningCode::QuickLook,
            format!(
                "Quick look: {a} blocks in A and {b} in B, no verdicts; at least {FOR_A_VERDICT} are needed."
            ),
        );
    }
    if let Some(gate) = gate {
        for (code, message) in about_the_gate(gate, left_out) {
            warn(code, message);
        }
    }
    let [a, b] = reports;
    for own in only(a, b) {
        warn(
            DiffWarningCode::OnlyA(own.code),
            format!("In A only: {}", own.message),
        );
    }
    for own in only(b, a) {
        warn(
            DiffWarningCode::OnlyB(own.code),
            format!("In B only: {}", own.message),
        );
    }
    warnings
}

fn about_the_gate(gate: &Gate, left_out: &[LeftOut]) -> Vec<(DiffWarningCode, String)> {
    let mut said = Vec::new();
    let percent = crate::units::show_share(gate.fail_on_ratio);
    if gate.blind > 0 {
        let (blind, all) = (gate.blind, gate.comparisons);
        said.push((
            DiffWarningCode::GateBlind,
            format!(
                "{blind} of {all} comparisons are too noisy to tell a loss of {percent} from none: the gate has not \
                 passed; more blocks decide it."
            ),
        ));
    }
    let missing = left_out
        .iter()
        .filter(|l| matches!(l.measured_in, MeasuredIn::A | MeasuredIn::Both))
        .count();
    if missing > 0 {
        said.push((
            DiffWarningCode::GateMissing,
            format!("The gate did not look at {missing} of what A has figures of: see what is not compared."),
        ));
    }
    said
}

/// Warnings of a kind that the other has not. Quick looks are told of already.
fn only<'a>(one: &'a RunReport, other: &'a RunReport) -> impl Iterator<Item = &'a Warning> {
    let has = |w: &Warning| other.warnings.iter().any(|o| o.code == w.code);
    let told = |w: &Warning| w.code == crate::model::WarningCode::QuickLook;
    one.warnings.iter().filter(move |w| !has(w) && !told(w))
}
