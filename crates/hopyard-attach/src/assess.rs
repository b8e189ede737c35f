//! From visits to figures and verdicts.

use std::collections::BTreeMap;

use hopyard_model::FOR_A_VERDICT;
use hopyard_stats::{self as stats, Comparison, Estimate, Samples};

use crate::document::{Cell, Document, Figure, Run, SCHEMA, Versus, Visit};

/// The times of a visit, one of each attachment.
type Times = fn(&Visit) -> &[u64];

/// What is told of a cell.
pub(crate) struct Quantity {
    /// Its name in the document.
    pub(crate) name: &'static str,
    /// The value of a visit; for times of attachments their median.
    value: fn(&Visit) -> Option<f64>,
    /// The times of which there is a p99, and its name.
    pub(crate) tail: Option<(&'static str, Times)>,
    /// Is it compared with the base?
    compared: bool,
    /// The mean of a block rather than its median.
    is_cost: bool,
}

pub(crate) const QUANTITIES: [Quantity; 5] = [
    Quantity {
        name: "add_p50_ns",
        value: |visit| median(&visit.add_ns),
        tail: Some(("add_p99_ns", |visit| visit.add_ns.as_slice())),
        compared: true,
        is_cost: false,
    },
    Quantity {
        name: "answer_p50_ns",
        value: |visit| median(&visit.answer_ns),
        tail: Some(("answer_p99_ns", |visit| visit.answer_ns.as_slice())),
        compared: true,
        is_cost: false,
    },
    Quantity {
        name: "del_p50_ns",
        value: |visit| median(&visit.del_ns),
        tail: Some(("del_p99_ns", |visit| visit.del_ns.as_slice())),
        compared: true,
        is_cost: false,
    },
    Quantity {
        name: "cpu_ns",
        value: |visit| Some(float(visit.cpu_ns) / f64::from(visit.beside)),
        tail: None,
        compared: true,
        is_cost: true,
    },
    Quantity {
        name: "rest_ns",
        value: |visit| Some(float(visit.rest_ns)),
        tail: None,
        compared: false,
        is_cost: false,
    },
];

/// The quantile beside the median.
const TAIL: f64 = 0.99;

/// Steal that is worth a warning, as for other loads.
const MUCH_STEAL: f64 = 0.01;

/// Computes everything that is told of a run.
#[must_use]
pub fn assess(run: Run) -> Document {
    let mut cells = cells(&run);
    judge(&run, &mut cells);
    let warnings = warnings(&run, &cells);
    Document {
        schema: SCHEMA.to_owned(),
        run,
        cells,
        warnings,
    }
}

fn cells(run: &Run) -> Vec<Cell> {
    let plan = &run.plan;
    let mut cells = Vec::new();
    for &ports in &plan.ports {
        for &beside in &plan.beside {
            for network in &plan.networks {
                cells.push(cell(run, &network.name, ports, beside));
            }
        }
    }
    cells
}

fn visits<'a>(
    run: &'a Run,
    (network, ports, beside): (&'a str, u32, u32),
) -> impl Iterator<Item = &'a Visit> {
    run.visits
        .iter()
        .filter(move |v| v.network == network && v.ports == ports && v.beside == beside)
}

fn cell(run: &Run, network: &str, ports: u32, beside: u32) -> Cell {
    let at = (network, ports, beside);
    let all: Vec<&Visit> = visits(run, at).collect();
    let whole: Vec<&Visit> = all.iter().copied().filter(|v| v.failed.is_none()).collect();
    let causes: Vec<&String> = all.iter().filter_map(|v| v.failed.as_ref()).collect();
    let mut figures = BTreeMap::new();
    for quantity in &QUANTITIES {
        let blocks = blocks(&whole, quantity);
        let values = Samples::try_from(blocks.into_values().collect::<Vec<f64>>());
        let estimate = values
            .ok()
            .and_then(|v| stats::mean_interval(&v, run.plan.confidence));
        if let Some(estimate) = estimate {
            figures.insert(
                quantity.name.to_owned(),
                Figure {
                    estimate,
                    versus: None,
                },
            );
        }
        let Some((name, times)) = quantity.tail else {
            continue;
        };
        let times: Vec<u64> = whole
            .iter()
            .flat_map(|visit| times(visit))
            .copied()
            .collect();
        if let Some(estimate) = quantile(times, run.plan.confidence) {
            figures.insert(
                name.to_owned(),
                Figure {
                    estimate,
                    versus: None,
                },
            );
        }
    }
    Cell {
        network: network.to_owned(),
        ports,
        beside,
        attachments: whole.iter().map(|visit| visit.add_ns.len()).sum(),
        failed: causes.first().map(|cause| (causes.len(), (*cause).clone())),
        figures,
    }
}

/// The value of each block.
fn blocks(visits: &[&Visit], quantity: &Quantity) -> BTreeMap<u32, f64> {
    let mut by_block: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for visit in visits {
        by_block
            .entry(visit.block)
            .or_default()
            .extend((quantity.value)(visit));
    }
    let value = |values: Vec<f64>| match quantity.is_cost {
        true => stats::mean(&values),
        false => middle(values),
    };
    by_block
        .into_iter()
        .filter_map(|(block, values)| Some((block, value(values)?)))
        .collect()
}

/// The 99th percentile with a distribution-free interval: between the order statistics whose shares of all values have intervals
/// (Clopper and Pearson 1934) that end below 0.99 and begin above it. `None` where there are too few values for one of the two.
fn quantile(mut values: Vec<u64>, confidence: f64) -> Option<Estimate> {
    values.sort_unstable();
    let n = values.len() as u64;
    let share = |rank: u64| stats::binomial_interval(rank, n, confidence);
    let low = (1..=n)
        .rev()
        .find(|rank| share(*rank).is_some_and(|s| s.high < TAIL))?;
    let high = (low..=n).find(|rank| share(*rank).is_some_and(|s| s.low > TAIL))?;
    // The smallest whole number that is not below 0.99 n.
    let rank = n - n / 100;
    let at = |rank: u64| {
        values
            .get(usize::try_from(rank.checked_sub(1)?).ok()?)
            .copied()
            .map(float)
    };
    Some(Estimate {
        value: at(rank)?,
        low: at(low)?,
        high: at(high)?,
        confidence,
        n: values.len(),
    })
}

/// Compares every cell with that of the base. As for other loads, the rounds of a block are paired, and the blocks are the
/// independent samples (docs/method.md).
fn judge(run: &Run, cells: &mut [Cell]) {
    let plan = &run.plan;
    let mut places = Vec::new();
    let mut table: Vec<Comparison> = Vec::new();
    for quantity in QUANTITIES.iter().filter(|quantity| quantity.compared) {
        let mut group = Vec::new();
        for (at, cell) in cells.iter().enumerate() {
            if cell.network == plan.base {
                continue;
            }
            let logs = log_ratios(run, cell, quantity);
            let ratios: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
            let ones = vec![1.0; ratios.len()];
            if let Some(comparison) = stats::compare(&ratios, &ones, plan.confidence) {
                places.push((at, quantity.name));
                group.push(comparison);
            }
        }
        // Comparisons of one quantity know together how they scatter.
        table.extend(stats::moderated(&group));
    }
    let judged = stats::judge(&table, plan.margin, plan.confidence);
    for ((at, name), judged) in places.into_iter().zip(judged) {
        let enough = judged.ratio.n >= FOR_A_VERDICT as usize;
        let versus = Versus {
            base: plan.base.clone(),
            verdict: enough.then_some(judged.verdict),
            smallest_detectable: judged.detectable(),
            ratio: judged.ratio,
        };
        if let Some(figure) = cells[at].figures.get_mut(name) {
            figure.versus = Some(versus);
        }
    }
}

/// Where ln(cell/base) lies among the rounds of each block.
fn log_ratios(run: &Run, cell: &Cell, quantity: &Quantity) -> Vec<f64> {
    let of = |network: &str| -> BTreeMap<(u32, u32), f64> {
        visits(run, (network, cell.ports, cell.beside))
            .filter(|visit| visit.failed.is_none())
            .filter_map(|visit| Some(((visit.block, visit.round), (quantity.value)(visit)?)))
            .collect()
    };
    let (own, base) = (of(&cell.network), of(&run.plan.base));
    let mut by_block: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for ((block, round), value) in own {
        if let Some(other) = base.get(&(block, round)) {
            by_block
                .entry(block)
                .or_default()
                .push((value / other).ln());
        }
    }
    let logs = by_block
        .into_values()
        .filter_map(|logs| stats::hodges_lehmann(&logs));
    logs.filter(|log| log.is_finite()).collect()
}

fn warnings(run: &Run, cells: &[Cell]) -> Vec<String> {
    let mut warnings = run.plan.left_out.clone();
    for cell in cells {
        if let Some((count, cause)) = &cell.failed {
            warnings.push(format!(
                "{}, {} ports, {} at once: {count} of {} visits failed: {cause}",
                cell.network,
                cell.ports,
                cell.beside,
                count + cell.attachments / cell.beside.max(1) as usize
            ));
        }
    }
    if run.plan.blocks < FOR_A_VERDICT {
        warnings.push(format!(
            "a quick look: figures need two blocks, verdicts {FOR_A_VERDICT} (--blocks {FOR_A_VERDICT})"
        ));
    }
    if run.steal > MUCH_STEAL {
        warnings.push(format!(
            "the hypervisor kept {:.1} % of the CPU time: times are longer than on an undisturbed machine",
            run.steal * 100.0
        ));
    }
    warnings
}

fn median(values: &[u64]) -> Option<f64> {
    middle(values.iter().copied().map(float).collect())
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    let upper = *values.get(half)?;
    let lower = if values.len().is_multiple_of(2) {
        values[half - 1]
    } else {
        upper
    };
    Some(f64::midpoint(lower, upper))
}

#[expect(clippy::cast_precision_loss, reason = "times, far below 2^53 ns")]
fn float(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::conflist::Network;
    use crate::plan::Plan;
    use hopyard_stats::Verdict;

    pub(crate) fn run(blocks: u32, times: impl Fn(&str, u32, u32) -> u64) -> Run {
        let network = |name: &str| Network {
            name: name.to_owned(),
            cni_version: "1.0.0".to_owned(),
            plugins: Vec::new(),
        };
        let plan = Plan {
            name: "made".to_owned(),
            networks: ["one", "two", "same"].map(network).into(),
            base: "one".to_owned(),
            ports: vec![1],
            beside: vec![2],
            blocks,
            attachments: 20,
            margin: 0.02,
            confidence: 0.95,
            cni_path: Vec::new(),
            uplink: "up0".to_owned(),
            left_out: Vec::new(),
        };
        let mut visits = Vec::new();
        for block in 0..blocks {
            for round in 0..10 {
                for network in &plan.networks {
                    let time = times(&network.name, block, round);
                    visits.push(Visit {
                        block,
                        ports: 1,
                        beside: 2,
                        round,
                        network: network.name.clone(),
                        add_ns: vec![time, time + 2000],
                        answer_ns: vec![time + 1_000_000; 2],
                        del_ns: vec![time * 2; 2],
                        cpu_ns: time,
                        rest_ns: 0,
                        failed: None,
                    });
                }
            }
        }
        Run {
            plan,
            seed: 1,
            started: "2026-01-01T00:00:00+00:00".to_owned(),
            kernel: "6.18".to_owned(),
            cpus: 2,
            plugins: BTreeMap::new(),
            steal: 0.0,
            visits,
            cleared: Vec::new(),
        }
    }

    /// Drift from round to round that all share, and noise of 1 % of their own.
    pub(crate) fn drifting(network: &str, block: u32, round: u32) -> u64 {
        let drift = 10_000_000 + u64::from(block * 10 + round) * 500_000;
        let own = u64::from((block * 7 + round * 3 + u32::from(network == "same")) % 5);
        let noisy = drift / 1000 * (998 + own);
        if network == "two" { noisy / 2 } else { noisy }
    }

    fn versus<'a>(document: &'a Document, network: &str, quantity: &str) -> &'a Versus {
        let cell = document.cells.iter().find(|cell| cell.network == network);
        cell.unwrap().figures[quantity].versus.as_ref().unwrap()
    }

    #[test]
    fn half_is_half_though_everything_drifts_and_the_same_is_equivalent() {
        let document = assess(run(8, drifting));
        let half = versus(&document, "two", "del_p50_ns");
        assert!((half.ratio.value - 0.5).abs() < 1e-3, "{half:?}");
        assert!(half.ratio.low <= 0.5 && half.ratio.high < 0.51);
        assert_eq!(half.verdict, Some(Verdict::Different));
        let same = versus(&document, "same", "del_p50_ns");
        assert_eq!(same.verdict, Some(Verdict::Equivalent), "{same:?}");
        assert!(document.warnings.is_empty(), "{:?}", document.warnings);
        let base = document
            .cells
            .iter()
            .find(|cell| cell.network == "one")
            .unwrap();
        assert!(base.figures.values().all(|figure| figure.versus.is_none()));
        assert_eq!(base.attachments, 160);
    }

    #[test]
    fn few_blocks_give_no_verdict() {
        let document = assess(run(3, drifting));
        assert_eq!(versus(&document, "two", "add_p50_ns").verdict, None);
        assert!(
            document.warnings[0].contains("quick look"),
            "{:?}",
            document.warnings
        );
    }

    #[test]
    fn what_failed_is_told_and_the_rest_counts() {
        let mut made = run(8, drifting);
        for visit in made
            .visits
            .iter_mut()
            .filter(|v| v.network == "two" && v.block == 0)
        {
            visit.failed = Some("ADD of plugin `x`: no".to_owned());
            visit.add_ns.clear();
        }
        let document = assess(made);
        let cell = document
            .cells
            .iter()
            .find(|cell| cell.network == "two")
            .unwrap();
        assert_eq!(cell.failed, Some((10, "ADD of plugin `x`: no".to_owned())));
        assert_eq!(cell.attachments, 140);
        assert_eq!(versus(&document, "two", "add_p50_ns").ratio.n, 7);
        assert!(
            document.warnings[0].contains("10 of 80 visits failed"),
            "{:?}",
            document.warnings
        );
    }

    /// Of 1,000 values the ranks are some 990 ± 1.96 √9.9.
    #[test]
    fn a_quantile_has_the_interval_of_its_order_statistics_or_none() {
        let found = quantile((1..=1000).rev().collect(), 0.95).unwrap();
        assert_eq!((found.value, found.n), (990.0, 1000));
        assert!((981.0..=984.0).contains(&found.low), "{found:?}");
        assert!((995.0..=998.0).contains(&found.high), "{found:?}");
        assert_eq!(quantile((1..=100).collect(), 0.95), None);
        assert_eq!(quantile(Vec::new(), 0.95), None);
    }

    #[test]
    fn a_middle() {
        assert_eq!(middle(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(middle(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(middle(Vec::new()), None);
    }
}
