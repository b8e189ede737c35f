//! The comparisons of a run in progress as a table that fits a terminal.

use crate::assess::SoFar;
use crate::model::{Cell, VerdictReport};
use crate::plain;
use crate::report::{percent, ratio};
use crate::stats::Verdict;
use crate::units::counted;

/// Fewest rows that are worth showing.
const FEWEST: usize = 2;
/// Lines besides the rows: a sentence, the head, the number of rows left out, and the progress line.
const AROUND: usize = 5;
/// Width of a comparison.
const COLUMN: usize = 24;

/// A table of at most this many lines and columns; nothing if there is no room, or nothing to show. If not all rows
/// fit, the least precise ones are shown.
pub(super) fn table(
    all: &[(&Cell, SoFar)],
    block: u32,
    (height, width): (usize, usize),
) -> Option<String> {
    let room = height.saturating_sub(AROUND);
    let has_any = all.iter().any(|(_, one)| one.main.is_some());
    if !has_any || room < FEWEST.min(all.len()) {
        return None;
    }
    let mut order: Vec<usize> = (0..all.len()).collect();
    let widest = |index: &usize| {
        let [main, cost] = all[*index].1.detectable();
        main.max(cost)
    };
    order.sort_by(|one, other| widest(other).total_cmp(&widest(one)));
    order.truncate(room);
    order.sort_unstable();
    let names: Vec<String> = order
        .iter()
        .map(|index| plain::line(&all[*index].0.to_string()))
        .collect();
    let longest = names.iter().map(|name| name.chars().count()).max();
    let left = longest.unwrap_or(0) + 2;
    let mut lines = vec![
        format!(
            "after {}: ≠ different from the base, = equivalent, ? a difference so large would show",
            counted(block as usize, "block")
        ),
        format!("{:left$}{:COLUMN$}CPU cost", "", "main figure"),
    ];
    for (index, name) in order.iter().zip(names) {
        let SoFar { main, cost, .. } = &all[*index].1;
        let (main, cost) = (comparison(main.as_ref()), comparison(cost.as_ref()));
        lines.push(format!("{name:left$}{main:COLUMN$}{cost}"));
    }
    if order.len() < all.len() {
        let others = all.len() - order.len();
        lines.push(format!("and {others} more, which are known better"));
    }
    let cut = |line: String| line.chars().take(width).collect::<String>();
    let lines: Vec<String> = lines.into_iter().map(cut).collect();
    Some(lines.join("\n"))
}

/// `0.924× ±3.1%  ≠`.
fn comparison(verdict: Option<&VerdictReport>) -> String {
    let Some(verdict) = verdict else {
        return "–".to_owned();
    };
    let said = match (verdict.verdict, verdict.smallest_detectable) {
        (Some(Verdict::Different), _) => "≠".to_owned(),
        (Some(Verdict::Equivalent), _) => "=".to_owned(),
        (_, Some(smallest)) => format!("? {}", percent(smallest)),
        (_, None) => "?".to_owned(),
    };
    let size = ratio(verdict.ratio.value);
    let half_width = format!("±{}", percent(verdict.ratio.half_width_ratio()));
    format!("{size:<7}{half_width:<7}{said}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axes, LoadKind, Peer};
    use crate::stats::Estimate;

    fn verdict(value: f64, half: f64, said: Option<Verdict>) -> VerdictReport {
        VerdictReport {
            base: "veth".to_owned(),
            ratio: Estimate {
                value,
                low: value * (1.0 - half),
                high: value * (1.0 + half),
                confidence: 0.95,
                n: 8,
            },
            verdict: said,
            smallest_detectable: Some(half * 1.5),
            trips_gate: None,
            gate_catches_ratio: None,
        }
    }

    fn cells(paths: &[&str]) -> Vec<Cell> {
        let cell = |path: &&str| Cell {
            path: (*path).to_owned(),
            peer: Peer::Local,
            load: LoadKind::TcpRr,
            axes: Axes::default().for_cell(LoadKind::TcpRr, Peer::Local, &[]),
        };
        paths.iter().map(cell).collect()
    }

    fn rows(cells: &[Cell]) -> Vec<(&Cell, SoFar)> {
        let row = |(index, cell)| {
            let half = 0.01 * f64::from(u32::try_from(index).unwrap() + 1);
            let so_far = SoFar {
                main_is_due: true,
                cost_is_due: true,
                cell: index,
                base: 0,
                main: Some(verdict(0.924, half, Some(Verdict::Different))),
                cost: (index != 1).then(|| verdict(1.08, half, None)),
                guarded: Vec::new(),
            };
            (cell, so_far)
        };
        cells.iter().enumerate().map(row).collect()
    }

    #[test]
    fn each_comparison_has_its_ratio_interval_and_verdict() {
        let cells = cells(&["bridge", "vxlan"]);
        let text = table(&rows(&cells), 9, (24, 120)).unwrap();
        insta::assert_snapshot!(text, @"
        after 9 blocks: ≠ different from the base, = equivalent, ? a difference so large would show
                             main figure             CPU cost
        bridge/local/tcp_rr  0.924× ±1.0%  ≠         1.08×  ±1.0%  ? 1.5%
        vxlan/local/tcp_rr   0.924× ±2.0%  ≠         –
        ");
    }

    #[test]
    fn what_is_known_least_stays_where_there_is_little_room() {
        let cells = cells(&["one", "two", "three", "four", "five"]);
        let text = table(&rows(&cells), 9, (8, 40)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + 3 + 1, "{text}");
        assert!(
            lines.iter().all(|line| line.chars().count() <= 40),
            "{text}"
        );
        assert!(!text.contains("one/") && !text.contains("three/"), "{text}");
        assert!(text.contains("and 2 more"), "{text}");
        assert_eq!(table(&rows(&cells), 9, (6, 40)), None);
        assert_eq!(table(&[], 9, (24, 80)), None);
    }
}
