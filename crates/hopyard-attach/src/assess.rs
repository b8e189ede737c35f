//! From visits to figures and verdicts.

use std::collections::{BTreeMap, BTreeSet};

use hopyard_model::FOR_A_VERDICT;
use hopyard_model::stored::End;
use hopyard_model::units::{counted, float};
use hopyard_stats::{self as stats, Comparison, Estimate, Samples, median};

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
    pub(crate) compared: bool,
    /// The mean of a block rather than its median.
    is_cost: bool,
}

pub(crate) const QUANTITIES: [Quantity; 5] = [
    Quantity {
        name: "add_p50_ns",
        value: |visit| median_of(&visit.add_ns),
        tail: Some(("add_p99_ns", |visit| visit.add_ns.as_slice())),
        compared: true,
        is_cost: false,
    },
    Quantity {
        name: "answer_p50_ns",
        value: |visit| median_of(&visit.answer_ns),
        tail: Some(("answer_p99_ns", |visit| visit.answer_ns.as_slice())),
        compared: true,
        is_cost: false,
    },
    Quantity {
        name: "del_p50_ns",
        value: |visit| median_of(&visit.del_ns),
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
        false => median(values),
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
    let kinds: BTreeSet<(u32, u32)> = cells.iter().map(|c| (c.ports, c.beside)).collect();
    let compared = QUANTITIES.iter().filter(|quantity| quantity.compared);
    for (quantity, kind) in
        compared.flat_map(|quantity| kinds.iter().map(move |kind| (quantity, kind)))
    {
        let mut group = Vec::new();
        for (at, cell) in cells.iter().enumerate() {
            if cell.network == plan.base || (cell.ports, cell.beside) != *kind {
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
        // Comparisons of one quantity in visits of one kind know together how they scatter.
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
    warnings.extend(cut_short(run));
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
    if blocks_begun(run) < FOR_A_VERDICT {
        warnings.push(format!(
            "a quick look: figures need two blocks, verdicts {FOR_A_VERDICT}"
        ));
    }
    if run.unsettled > 0 {
        warnings.push(format!(
            "visits began {} while the kernel still removed network namespaces: some of their times may be longer for that",
            counted(run.unsettled as usize, "time")
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

fn blocks_begun(run: &Run) -> u32 {
    run.visits.last().map_or(0, |visit| visit.block + 1)
}

/// Says that not all was measured that the plan asks for.
fn cut_short(run: &Run) -> Option<String> {
    let why = match (&run.broken, run.end) {
        (Some(why), _) => why,
        (None, End::Complete) => return None,
        (None, End::TimeLimit) => "the time limit came",
        (None, End::Interrupted) => "it was interrupted",
    };
    Some(format!(
        "{why} in block {} of {}: figures come from what there is",
        blocks_begun(run),
        run.plan.blocks
    ))
}

fn median_of(values: &[u64]) -> Option<f64> {
    median(values.iter().copied().map(float).collect())
}

#[cfg(test)]
pub(crate) mod tests;
