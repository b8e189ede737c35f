//! Comparisons with the base path, paired within blocks, judged as one table.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::base::{bases, without_base};
use super::cells::measured;
use super::gate::{Guarded, Ruling};
use super::offloads::Contrast;
use super::quantities::{QUANTITIES, Quantity, decides_width, is_said_twice};
use super::rounds;
use crate::model::stored::Header;
use crate::model::{
    Cell, CellReport, CellStatus, FOR_A_VERDICT, Gate, LoadKind, Sample, VerdictReport,
};
use crate::stats::{self, Comparison, Judged, Verdict};

/// Where a comparison of the table belongs.
#[derive(Clone, Copy)]
enum Place {
    Cell(usize),
    Contrast(usize),
}

/// The rate that a search found.
const FOUND_RATE: &str = "throughput_packets_per_s";

/// Whether no search of a cell found a rate that is too high: what they found is what the generator can send.
pub(super) fn is_unbounded(samples: &[&Sample], cell: usize) -> bool {
    let measured = measured(samples, cell);
    let mut searches = measured.iter().filter_map(|m| m.search.as_ref()).peekable();
    searches.peek().is_some() && searches.all(|search| search.result.upper_per_s.is_none())
}

/// Whether both cells carried all that the generator can send, so that this quantity says nothing of either.
pub(super) fn is_generator_limited(
    samples: &[&Sample],
    cells: [usize; 2],
    quantity: &Quantity,
) -> bool {
    quantity.name == FOUND_RATE && cells.iter().all(|&cell| is_unbounded(samples, cell))
}

/// Results of the comparisons besides the verdicts of cells.
pub(super) struct Table {
    /// The verdicts of the contrasts, in their order.
    pub(super) answers: Vec<BTreeMap<String, VerdictReport>>,
    /// The gate over the comparisons with a base, if the run is a gate.
    pub(super) gate: Option<Gate>,
}

/// Fills in the verdicts of every cell that has a base.
pub(super) fn fill(
    header: &Header,
    samples: &[&Sample],
    cells: &mut [CellReport],
    contrasts: &[Contrast],
    quick_look: bool,
) -> Table {
    let with_base = bases(header).into_iter().enumerate();
    let with_base = with_base.filter_map(|(index, base)| {
        let (name, base) = base?;
        Some((Place::Cell(index), name, (index, base)))
    });
    let beside = contrasts
        .iter()
        .enumerate()
        .map(|(at, contrast)| (Place::Contrast(at), contrast.base.clone(), contrast.cells));
    let mut places = Vec::new();
    let mut table = Vec::new();
    // Whether one of the cells failed in some blocks: those that are left may be its better ones.
    let mut doubtful = Vec::new();
    // Comparisons that a gate cannot rule on: the figure is known in too few blocks, the cell failed, could not be built, had no turn
    // before the end, or has no base.
    let mut missing = uncompared(header);
    let mut compared = BTreeSet::new();
    for (place, name, (one, other)) in with_base.chain(beside) {
        let Cell { load, axes, .. } = &header.cells[one].cell;
        compared.extend([one, other]);
        for quantity in QUANTITIES.iter().filter(|q| q.compared && q.applies(*load)) {
            let (own, others) = paired(header, samples, [one, other], quantity);
            // Figures of traffic that went another way are not compared, nor those of an emulated guest with others.
            let are_proved = [one, other].iter().all(|&cell| cells[cell].way.proved);
            let [is_emulated, is_other] = [one, other].map(|cell| cells[cell].has_emulated_guest());
            let are_alike =
                is_emulated == is_other && !is_generator_limited(samples, [one, other], quantity);
            let comparison = stats::compare(&own, &others, header.confidence);
            if let Some(comparison) = comparison.filter(|_| are_proved && are_alike) {
                places.push((place, name.clone(), quantity, *load));
                table.push(comparison);
                doubtful.push(
                    [one, other]
                        .iter()
                        .any(|&cell| cells[cell].failed_samples > 0),
                );
            } else if is_guarded(place, quantity, *load) {
                let both = [one, other];
                let is_due = decides_width(quantity.name, *load, axes)
                    || both
                        .iter()
                        .any(|&cell| is_known(header, samples, cell, quantity));
                missing += usize::from(is_due);
            }
        }
    }
    // A cell that failed and is in no comparison counts as well.
    let failed = cells.iter().enumerate();
    let failed = failed
        .filter(|(_, cell)| cell.status == CellStatus::Failed || cell.failed_samples > 0)
        .filter(|(at, _)| !compared.contains(at));
    // `missing` already has the cells without the requested base.
    let without: BTreeSet<usize> = without_base(header)
        .into_iter()
        .map(|(cell, _)| cell)
        .collect();
    let counted = |at: &usize| header.base_asked && without.contains(at);
    missing += failed.filter(|(at, _)| !counted(at)).count();
    let alike = places.iter().map(|(place, _, quantity, load)| {
        matches!(place, Place::Cell(_)).then_some((quantity.name, *load))
    });
    let table = moderated(alike, table);
    let judged = stats::judge(&table, header.margin, header.confidence);
    let all_guarded = places.iter().enumerate();
    let all_guarded = all_guarded.filter(|(_, (place, _, q, load))| is_guarded(*place, q, *load));
    let all_guarded: Vec<usize> = all_guarded.map(|(at, _)| at).collect();
    let mut guarded = all_guarded.clone();
    guarded.retain(|at| verdict_of(&judged[*at], quick_look).is_some());
    let too_few = all_guarded.len() - guarded.len();
    let ruling = header.fail_on.map(|loss| {
        let all: Vec<Guarded<'_>> = guarded
            .iter()
            .map(|&at| Guarded {
                quantity: places[at].2,
                comparison: &table[at],
            })
            .collect();
        let detectable: Vec<f64> = guarded
            .iter()
            .map(|&at| judged[at].smallest_detectable)
            .collect();
        let mut ruling = Ruling::of(&all, &detectable, loss, header.confidence);
        for (entry, &at) in guarded.iter().enumerate() {
            if doubtful[at] {
                ruling.doubt(entry);
            }
        }
        ruling
    });
    let mut answers = vec![BTreeMap::new(); contrasts.len()];
    for (at, ((place, base, quantity, _), judged)) in places.into_iter().zip(judged).enumerate() {
        let verdicts = match place {
            Place::Cell(index) => &mut cells[index].verdicts,
            Place::Contrast(at) => &mut answers[at],
        };
        let ruled = ruling.as_ref().zip(guarded.binary_search(&at).ok());
        let is_guarded = ruling.is_some() && all_guarded.binary_search(&at).is_ok();
        verdicts.insert(
            quantity.name.to_owned(),
            VerdictReport {
                base,
                verdict: verdict_of(&judged, quick_look),
                smallest_detectable: judged.detectable(),
                ratio: judged.ratio,
                trips_gate: is_guarded
                    .then(|| ruled.is_some_and(|(ruling, at)| ruling.tripped[at])),
                gate_catches_ratio: ruled.and_then(|(ruling, at)| ruling.catches[at]),
            },
        );
    }
    Table {
        answers,
        gate: ruling.map(|ruling| ruling.report(missing, too_few)),
    }
}

/// Whether a cell has a figure in two blocks: then it is to be compared.
fn is_known(header: &Header, samples: &[&Sample], cell: usize, quantity: &Quantity) -> bool {
    paired(header, samples, [cell, cell], quantity).0.len() >= 2
}

/// Main figures and costs of cells that have no base though one was asked for.
fn uncompared(header: &Header) -> usize {
    let cells = without_base(header).into_iter().map(|(cell, _)| cell);
    let figures = cells.filter(|_| header.base_asked).map(|cell| {
        let Cell { load, axes, .. } = &header.cells[cell].cell;
        let compared = QUANTITIES.iter().filter(|q| q.compared && q.applies(*load));
        compared
            .filter(|q| decides_width(q.name, *load, axes))
            .count()
    });
    figures.sum()
}

/// Does a gate rule on such a comparison?
fn is_guarded(place: Place, quantity: &Quantity, load: LoadKind) -> bool {
    matches!(place, Place::Cell(_)) && !is_said_twice(quantity, load)
}

/// Moderates comparisons: those of one quantity under one load share their scatter. `names` says which each is of; those without a name
/// stay as they are.
pub(super) fn moderated(
    names: impl IntoIterator<Item = Option<(&'static str, LoadKind)>>,
    mut table: Vec<Comparison>,
) -> Vec<Comparison> {
    let mut alike: BTreeMap<(&str, LoadKind), Vec<usize>> = BTreeMap::new();
    for (at, name) in names.into_iter().enumerate() {
        if let Some(name) = name {
            alike.entry(name).or_default().push(at);
        }
    }
    for group in alike.into_values() {
        let own: Vec<Comparison> = group.iter().map(|&at| table[at].clone()).collect();
        for (at, moderated) in group.into_iter().zip(stats::moderated(&own)) {
            table[at] = moderated;
        }
    }
    table
}

/// The verdict of a comparison. There is none in a quick look, or if too few blocks have the figure in both cells.
pub(super) fn verdict_of(judged: &Judged, quick_look: bool) -> Option<Verdict> {
    let is_enough = judged.ratio.n >= FOR_A_VERDICT as usize;
    (!quick_look && is_enough).then_some(judged.verdict)
}

/// Values of two cells in the blocks that have both.
pub(super) fn paired(
    header: &Header,
    samples: &[&Sample],
    cells: [usize; 2],
    quantity: &Quantity,
) -> (Vec<f64>, Vec<f64>) {
    let both = rounds::paired(header, samples, cells, quantity);
    both.into_values().unzip()
}

/// The series behind the intervals, in the order of blocks: ln(cell/base) of each compared cell's main quantities; if
/// no cell is compared, ln of the cells' own.
pub(super) fn series(header: &Header, samples: &[&Sample]) -> Vec<Vec<f64>> {
    let bases = bases(header);
    let ratios = log_series(header, samples, |cell| {
        bases[cell].as_ref().map(|(_, base)| *base)
    });
    if ratios.is_empty() {
        return log_series(header, samples, Some);
    }
    ratios
}

/// The longest series, and those others that keep at least nine tenths of its blocks in common; all of them in these common blocks.
/// A series of few blocks, such as CPU cost where the hypervisor took time from most, does not show which blocks are neighbours.
fn in_common_blocks(mut all: Vec<BTreeMap<u32, f64>>) -> Vec<Vec<f64>> {
    // The shorter, the more would be lost of the others; equal ones in their order.
    all.sort_by_key(|one| Reverse(one.len()));
    let longest = all.first().map_or(0, BTreeMap::len);
    let mut common: Option<BTreeSet<u32>> = None;
    let mut kept = Vec::new();
    for one in all {
        let own: BTreeSet<u32> = one.keys().copied().collect();
        let both = common.as_ref().map_or(own.clone(), |common| common & &own);
        if 10 * both.len() >= 9 * longest {
            common = Some(both);
            kept.push(one);
        }
    }
    let common = common.unwrap_or_default();
    let own = |one: &BTreeMap<u32, f64>| common.iter().map(|block| one[block]).collect();
    kept.iter().map(own).collect()
}

/// ln(cell/other) of the main quantities of each cell that has another; ln(cell) if the other is the cell itself.
fn log_series(
    header: &Header,
    samples: &[&Sample],
    other: impl Fn(usize) -> Option<usize>,
) -> Vec<Vec<f64>> {
    let mut all = Vec::new();
    for (cell, planned) in header.cells.iter().enumerate() {
        let Some(other) = other(cell) else {
            continue;
        };
        let load = planned.cell.load;
        for quantity in QUANTITIES
            .iter()
            .filter(|q| decides_width(q.name, load, &planned.cell.axes))
        {
            let both = rounds::paired(header, samples, [cell, other], quantity);
            let log = |(block, (own, theirs)): (u32, (f64, f64))| {
                let unit = if other == cell { 1.0 } else { theirs };
                (block, (own / unit).ln())
            };
            let logs: BTreeMap<u32, f64> = both.into_iter().map(log).collect();
            if logs.values().all(|v| v.is_finite()) {
                all.push(logs);
            }
        }
    }
    in_common_blocks(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_those_of_all_series() {
        let of = |blocks: &[u32]| blocks.iter().map(|b| (*b, f64::from(*b))).collect();
        let all: Vec<u32> = (0..20).collect();
        let without = |left_out: u32| -> Vec<u32> {
            all.iter().copied().filter(|b| *b != left_out).collect()
        };
        let found = in_common_blocks(vec![
            of(&all),
            of(&without(3)),
            of(&[0, 7, 19]),
            of(&without(11)),
        ]);
        assert_eq!(found.len(), 3);
        let wanted: Vec<f64> = (0..20)
            .filter(|b| ![3, 11].contains(b))
            .map(f64::from)
            .collect();
        assert!(found.iter().all(|one| *one == wanted), "{found:?}");
        assert!(in_common_blocks(Vec::new()).is_empty());
    }
}
