//! The legend of the marks in tables.

use super::document::Block;
use super::group::Layout;
use super::number::chosen_percent;
use super::quantity::symbol;
use super::sweep;
use crate::model::RunReport;
use crate::stats::Verdict;

/// The meaning of the marks; only those that occur.
pub(super) fn legend(report: &RunReport, layout: &Layout<'_>) -> Vec<Block> {
    // Grids have no room for the size.
    let in_grid = |group| report.offloads.is_none() && sweep::fits(group);
    let sized = !layout.groups.iter().all(in_grid);
    let occurs = |wanted: Verdict| {
        let mut all = report.cells.iter().flat_map(|cell| cell.verdicts.values());
        all.any(|verdict| verdict.verdict == Some(wanted))
    };
    let margin = chosen_percent(report.run.margin);
    let meanings = [
        (Verdict::Different, "different".to_owned()),
        (Verdict::Equivalent, format!("equivalent within ±{margin}")),
        (Verdict::Inconclusive, inconclusive(sized)),
    ];
    let mut said: Vec<String> = Vec::new();
    if report
        .cells
        .iter()
        .flat_map(|cell| cell.estimates.values())
        .any(|e| e.n > 1)
    {
        let confidence = chosen_percent(report.run.confidence);
        said.push(format!("± half-width at {confidence} confidence"));
    }
    let present = meanings.into_iter().filter(|(verdict, _)| occurs(*verdict));
    said.extend(present.map(|(verdict, meaning)| format!("{} {meaning}", symbol(Some(verdict)))));
    if said.is_empty() {
        return Vec::new();
    }
    vec![Block::Facts(said)]
}

fn inconclusive(sized: bool) -> String {
    let size = " (x%: the smallest difference detectable with 80 % power)";
    format!("inconclusive{}", if sized { size } else { "" })
}
