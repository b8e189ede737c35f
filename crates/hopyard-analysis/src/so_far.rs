//! The comparisons of a run in progress.

use super::{base, cells, complete_blocks, cost, main_figure, offloads, verdicts};
use crate::model::stored::Header;
use crate::model::{FOR_A_VERDICT, Sample, VerdictReport};

/// A cell compared with its base: main figure and CPU cost.
#[derive(Debug, Clone)]
pub struct SoFar {
    /// The cell's index in the run's list.
    pub cell: usize,
    /// `None` if no block has the figure of both.
    pub main: Option<VerdictReport>,
    /// The comparison of the cost.
    pub cost: Option<VerdictReport>,
}

impl SoFar {
    /// Whether the main figure is so far from that of the base that even an interval twice as wide would show it.
    #[must_use]
    pub fn is_far(&self) -> bool {
        const FEWEST_BLOCKS: usize = 3;
        self.main.as_ref().is_some_and(|verdict| {
            let ratio = &verdict.ratio;
            let half_way = ratio.value.sqrt();
            ratio.n >= FEWEST_BLOCKS
                && if ratio.value < 1.0 {
                    ratio.high < half_way
                } else {
                    ratio.low > half_way
                }
        })
    }

    /// Smallest differences that the two comparisons could show; infinite if none.
    pub fn detectable(&self) -> [f64; 2] {
        [&self.main, &self.cost].map(|verdict| {
            let smallest = verdict.as_ref().and_then(|v| v.smallest_detectable);
            smallest.unwrap_or(f64::INFINITY)
        })
    }
}

/// Every comparison of a run so far, in the order of its cells.
#[must_use]
pub fn so_far(header: &Header, samples: &[&Sample]) -> Vec<SoFar> {
    let mut cells = cells::assess(header, samples);
    let contrasts = offloads::contrasts(header);
    let quick_look = complete_blocks(header, samples) < FOR_A_VERDICT;
    verdicts::fill(header, samples, &mut cells, &contrasts, quick_look);
    let planned = header.cells.iter().enumerate();
    let compared = planned.filter(|(index, planned)| {
        planned.unsupported.is_none() && base::base_of(header, *index).is_some()
    });
    let said = compared.map(|(index, planned)| {
        let (verdicts, cell) = (&mut cells[index].verdicts, &planned.cell);
        SoFar {
            cell: index,
            main: verdicts.remove(main_figure(cell.load, &cell.axes)),
            cost: verdicts.remove(cost(cell.load)),
        }
    });
    said.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::last_attempts;
    use crate::model::Outcome;
    use crate::testing::compared;

    #[test]
    fn what_is_far_from_the_base_is_told_from_what_is_near() {
        // Blocks alternate between a tenth higher and a tenth lower.
        let is_far = |factor| {
            let mut run = compared(factor);
            for sample in run.samples.iter_mut().filter(|sample| sample.cell == 1) {
                let Outcome::Measured(m) = &mut sample.outcome else {
                    panic!("it was measured");
                };
                let tenth = m.received.bytes / 10;
                m.received.bytes = match sample.block % 2 {
                    0 => m.received.bytes + tenth,
                    _ => m.received.bytes - tenth,
                };
            }
            let all = so_far(&run.header, &last_attempts(&run.samples));
            assert_eq!(all.len(), 1, "the base is compared with nothing");
            all[0].is_far()
        };
        assert!(is_far(0.5) && is_far(2.0));
        assert!(!is_far(1.0) && !is_far(0.95));
    }
}
