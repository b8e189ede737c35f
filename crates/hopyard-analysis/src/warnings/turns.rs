//! Warnings about turns.

use super::{measurements, named, percent};
use crate::model::{CellReport, Sample, Turn, has_quiet_turns};

/// A cell gets a warning if more than this share of its samples rest on disturbed turns.
const DISTURBED: f64 = 0.5;

/// Cells that rest on disturbed turns, because too few others were left.
pub(super) fn disturbed(cells: &[CellReport], samples: &[&Sample]) -> Option<String> {
    let mut found = Vec::new();
    let (mut all, mut disturbed) = (0_u32, 0_u32);
    for (index, cell) in cells.iter().enumerate() {
        let own: Vec<&Sample> = samples
            .iter()
            .filter(|sample| sample.cell == index)
            .copied()
            .collect();
        let turns: Vec<&[Turn]> = measurements(&own).map(|m| &*m.turns).collect();
        let turns: Vec<&[Turn]> = turns.into_iter().filter(|t| !t.is_empty()).collect();
        // One turn is too few to choose from, but may be a quiet one.
        let rest = turns
            .iter()
            .filter(|turns| !has_quiet_turns(turns) && !turns.iter().all(Turn::is_quiet));
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        if f64::from(count(rest.count())) <= DISTURBED * f64::from(count(turns.len())) {
            continue;
        }
        let is_disturbed = |turn: &&Turn| !turn.is_quiet();
        all += count(turns.iter().map(|turns| turns.len()).sum());
        disturbed += count(
            turns
                .iter()
                .flat_map(|t| t.iter())
                .filter(is_disturbed)
                .count(),
        );
        found.push(cell);
    }
    (!found.is_empty()).then(|| {
        format!(
            "{} of {} cells rest on disturbed turns, since {} of their turns were: {}. What took the CPUs is part of their \
             figures: measure on a quieter machine, or for longer.",
            found.len(),
            cells.len(),
            percent(f64::from(disturbed) / f64::from(all)),
            named(&found)
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::assess;
    use crate::model::stored::Run;
    use crate::model::{Disturbance, Outcome, Turn, WarningCode};
    use crate::testing::compared;

    /// Each sample of the second cell has 8 turns, `quiet` of them undisturbed.
    fn with_quiet(quiet: u32) -> Run {
        let mut run = compared(1.0);
        for sample in run.samples.iter_mut().filter(|sample| sample.cell == 1) {
            let Outcome::Measured(m) = &mut sample.outcome else {
                panic!("it was measured");
            };
            let turn = |round| Turn {
                round,
                window_ns: m.window_ns,
                received: m.received,
                sent: m.sent,
                cpu: m.cpu,
                disturbance: (round >= quiet).then_some(Disturbance::Steal),
            };
            m.turns = (0..8).map(turn).collect();
        }
        run
    }

    #[test]
    fn figures_made_of_disturbed_turns_are_doubted() {
        let warning = |quiet| {
            let warnings = assess(&with_quiet(quiet)).warnings.into_iter();
            let mut own = warnings.filter(|w| w.code == WarningCode::DisturbedTurns);
            own.next().map(|warning| warning.message)
        };
        let message = warning(1).unwrap();
        assert!(
            message.starts_with(
                "1 of 2 cells rest on disturbed turns, since 87.5 % of their turns were: "
            ),
            "{message}"
        );
        assert_eq!(warning(2), None);
        assert_eq!(warning(8), None);
    }

    #[test]
    fn a_single_quiet_turn_is_not_doubted() {
        let mut run = with_quiet(1);
        for sample in &mut run.samples {
            if let Outcome::Measured(m) = &mut sample.outcome {
                m.turns.truncate(1);
            }
        }
        let warnings = assess(&run).warnings;
        assert!(
            warnings
                .iter()
                .all(|w| w.code != WarningCode::DisturbedTurns),
            "{warnings:?}"
        );
    }
}
