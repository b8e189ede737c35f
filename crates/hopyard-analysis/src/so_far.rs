//! The comparisons of a run in progress.

use super::cells::measured;
use super::{base, cells, complete_blocks, cost, cpu_is_given_up, main_figure, offloads, verdicts};
use crate::model::stored::Header;
use crate::model::{FOR_A_VERDICT, GIVEN_UP_AFTER, Outcome, Sample, VerdictReport};

/// A cell compared with its base: main figure and CPU cost.
#[derive(Debug, Clone)]
pub struct SoFar {
    /// The cell's index in the run's list.
    pub cell: usize,
    /// The index of its base.
    pub base: usize,
    /// `None` if no block has the figure of both.
    pub main: Option<VerdictReport>,
    /// The comparison of the cost.
    pub cost: Option<VerdictReport>,
    /// Is the main figure waited for? Not where searches of both cells find no limit.
    pub main_is_due: bool,
    /// Is the cost waited for? Not where the CPU time of one of the cells is given up.
    pub cost_is_due: bool,
    /// Those of all other quantities that the run's gate guards; none in a run without a gate.
    pub guarded: Vec<VerdictReport>,
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
        [&self.main, &self.cost].map(smallest)
    }

    /// Those of all that a run waits for; infinite where there are too few blocks for a verdict.
    pub(super) fn decided(&self) -> Vec<f64> {
        let has_verdict = |verdict: &&VerdictReport| verdict.ratio.n >= FOR_A_VERDICT as usize;
        let guarded = self.guarded.iter().map(Some);
        let main = self.main_is_due.then_some(self.main.as_ref());
        let cost = self.cost_is_due.then_some(self.cost.as_ref());
        main.into_iter()
            .chain(cost)
            .chain(guarded)
            .map(|verdict| smallest(verdict.filter(has_verdict)))
            .collect()
    }
}

fn smallest<'a>(verdict: impl Into<Option<&'a VerdictReport>>) -> f64 {
    let smallest = verdict
        .into()
        .and_then(|verdict| verdict.smallest_detectable);
    smallest.unwrap_or(f64::INFINITY)
}

/// Every comparison of a run so far, in the order of its cells, but for those with a cell that was given up.
#[must_use]
pub fn so_far(header: &Header, samples: &[&Sample]) -> Vec<SoFar> {
    let mut cells = cells::assess(header, samples);
    let contrasts = offloads::contrasts(header);
    let quick_look = complete_blocks(header, samples) < FOR_A_VERDICT;
    verdicts::fill(header, samples, &mut cells, &contrasts, quick_look);
    let bases = base::bases(header).into_iter().enumerate();
    let compared = bases.filter_map(|(index, base)| {
        let (planned, (_, base)) = (&header.cells[index], base?);
        let is_measured = |cell| !has_failed(samples, cell);
        let is_compared = planned.unsupported.is_none() && is_measured(index) && is_measured(base);
        is_compared.then_some((index, base, planned))
    });
    let said = compared.map(|(index, base, planned)| {
        let (verdicts, cell) = (&mut cells[index].verdicts, &planned.cell);
        let main = verdicts.remove(main_figure(cell.load, &cell.axes));
        let cost = verdicts.remove(cost(cell.load));
        let others = std::mem::take(verdicts).into_values();
        let is_due = |cell| !cpu_is_given_up(&measured(samples, cell));
        SoFar {
            cell: index,
            base,
            main,
            cost,
            main_is_due: ![index, base]
                .iter()
                .all(|&cell| verdicts::is_unbounded(samples, cell)),
            cost_is_due: is_due(index) && is_due(base),
            guarded: others.filter(|it| it.trips_gate.is_some()).collect(),
        }
    });
    said.collect()
}

/// Whether the comparison of two cells may still get a verdict. It gets none once a path proof of either has failed, or where one had an
/// emulated guest and the other did not, and hardly one while either fails again and again.
pub(super) fn is_waited_for(samples: &[&Sample], cells: [usize; 2]) -> bool {
    let may_have_one = |cell| {
        let own = || samples.iter().filter(move |sample| sample.cell == cell);
        let is_unproved = |sample: &&Sample| match &sample.outcome {
            Outcome::Measured(measured) => !measured.way.proved,
            Outcome::Failed { .. } => false,
        };
        let failed = |sample: &&Sample| matches!(sample.outcome, Outcome::Failed { .. });
        let failures = own().rev().take_while(|sample| failed(sample)).count();
        failures < GIVEN_UP_AFTER as usize && !own().any(is_unproved)
    };
    let is_emulated = |cell| {
        let mut own = samples.iter().filter(move |sample| sample.cell == cell);
        let measured = own.find_map(|sample| sample.measurement());
        measured.map(|m| m.guest.as_ref().is_some_and(|guest| guest.emulated))
    };
    let [one, other] = cells.map(is_emulated);
    let are_alike = one.zip(other).is_none_or(|(one, other)| one == other);
    are_alike && cells.into_iter().all(may_have_one)
}

/// Whether a cell is given up: nothing will be known of it.
fn has_failed(samples: &[&Sample], cell: usize) -> bool {
    let own = || samples.iter().filter(|sample| sample.cell == cell);
    let failed = |sample: &&&Sample| matches!(sample.outcome, Outcome::Failed { .. });
    own().count() >= GIVEN_UP_AFTER as usize && own().filter(failed).count() == own().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::last_attempts;
    use crate::model::stored::Run;
    use crate::model::{Latency, LoadKind};
    use crate::testing::{compared, measured, push, run};

    /// Blocks of a bridge as fast as its base, of which some lack the cost.
    fn alike(blocks: u32, without_cost: std::ops::Range<u32>, fail_on: Option<f64>) -> Run {
        let mut run = run(&["veth", "bridge"]);
        run.header.fail_on = fail_on;
        for (block, cell) in (0..blocks).flat_map(|block| [(block, 0), (block, 1)]) {
            let bytes = 25_000_000 + 1000 * ((u64::from(block) + cell as u64) % 3);
            let mut m = measured(bytes);
            if without_cost.contains(&block) {
                m.cpu.is_partial = true;
            }
            push(&mut run, block, 0, cell, Outcome::Measured(Box::new(m)));
        }
        run
    }

    fn is_decided(run: &Run) -> bool {
        let all = crate::decided(&run.header, &last_attempts(&run.samples));
        all.iter().all(|smallest| *smallest < 0.03)
    }

    /// A comparison of few blocks has no verdict, however narrow its interval is.
    #[test]
    fn what_has_no_verdict_is_not_decided() {
        assert!(is_decided(&alike(8, 0..0, None)));
        assert!(!is_decided(&alike(7, 0..0, None)));
        assert!(!is_decided(&alike(10, 0..4, None)));
        assert!(is_decided(&alike(12, 0..4, None)));
        // No block will have a cost.
        assert!(is_decided(&alike(8, 0..8, None)));
    }

    #[test]
    fn what_can_get_no_verdict_any_more_is_not_waited_for() {
        let unproved = |cell: usize| {
            let mut run = alike(8, 0..0, None);
            let mut own = run.samples.iter_mut().filter(|s| s.cell == cell);
            if let Some(Outcome::Measured(m)) = own.nth(2).map(|s| &mut s.outcome) {
                m.way.proved = false;
            }
            run
        };
        assert!(is_decided(&unproved(0)) && is_decided(&unproved(1)));
        let failing = |last: u32| {
            let mut run = alike(7, 0..0, None);
            let late = run
                .samples
                .iter_mut()
                .filter(|s| s.cell == 1 && s.block >= 7 - last);
            for sample in late {
                let cause = "it broke".to_owned();
                sample.outcome = Outcome::Failed { cause };
            }
            run
        };
        assert!(!is_decided(&failing(GIVEN_UP_AFTER - 1)));
        assert!(is_decided(&failing(GIVEN_UP_AFTER)));
    }

    #[test]
    fn what_failed_throughout_is_not_waited_for() {
        let mut run = alike(8, 0..0, None);
        let failed = |run: &mut Run, cells: &[usize]| {
            for sample in run.samples.iter_mut().filter(|s| cells.contains(&s.cell)) {
                let cause = "it broke".to_owned();
                sample.outcome = Outcome::Failed { cause };
            }
        };
        // Once is not throughout.
        run.samples[1].outcome = Outcome::Failed {
            cause: "it broke".to_owned(),
        };
        assert!(!is_decided(&run));
        failed(&mut run, &[1]);
        assert!(is_decided(&run));
        let mut base = alike(8, 0..0, None);
        failed(&mut base, &[0]);
        assert!(is_decided(&base));
    }

    /// A gate looks at latency too, so a run with both goes on until that is known.
    #[test]
    fn what_a_gate_guards_is_waited_for() {
        let with_latency = |fail_on| {
            let mut run = alike(8, 0..0, fail_on);
            for planned in &mut run.header.cells {
                planned.cell.load = LoadKind::TcpRr;
            }
            for sample in &mut run.samples {
                let Outcome::Measured(m) = &mut sample.outcome else {
                    panic!("it was measured");
                };
                m.received.transactions = 10_000;
                let median = if (sample.block + sample.cell as u32).is_multiple_of(2) {
                    20_000
                } else {
                    30_000
                };
                m.latency = Some(Latency {
                    count: 10_000,
                    min_ns: 10_000,
                    mean_ns: 25_000.0,
                    max_ns: 50_000,
                    quantiles: vec![(0.5, median), (0.99, 50_000)],
                    histogram: Vec::new(),
                });
            }
            run
        };
        assert!(is_decided(&with_latency(None)));
        assert!(!is_decided(&with_latency(Some(0.03))));
    }

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
