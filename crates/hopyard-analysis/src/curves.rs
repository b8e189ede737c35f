//! Quantities as functions of a count: the curves that the cells of a run make, and their figures.
//!
//! A curve consists of cells that differ in one count only. Its replicate is the block: a quantity uses the blocks in
//! which every cell of the curve has it.

mod senders;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use senders::{Along, changes, fullness, knees, lines, slopes_around};

use super::quantities::QUANTITIES;
use crate::model::stored::Header;
use crate::model::{
    AXES, Axes, Axis, Cell, CurveReport, FullInterval, Measurement, QuantityCurve, Sample,
    Saturation, StepReport,
};
use crate::stats::{self, Curve, Estimate};

/// Fewest values of a curve.
const LEAST: usize = 3;

/// The quantities that have curves.
const TOLD: [&str; 14] = [
    "goodput_bps",
    "packets_per_s",
    "transactions_per_s",
    CLIENT_CPU,
    CPU,
    "cpu_ns_per_byte",
    "cpu_ns_per_packet",
    "cpu_ns_per_transaction",
    "latency_p99_ns",
    "interarrival_sd_ns",
    "jitter_pdv_p99_ns",
    "jitter_rfc3550_ns",
    "client_context_switches_per_s",
    "run_length_p50_packets",
];
const CLIENT_CPU: &str = "client_cpu_busy_ratio";
const CPU: &str = "cpu_busy_ratio";

/// Change of a share that counts as a leap.
const LEAP_POINTS: f64 = 0.4;
/// Factor of any other quantity that counts as a leap.
const LEAP_FACTOR: f64 = 1.5;

/// The samples of a run by cell and block.
pub(super) struct Measured<'a> {
    header: &'a Header,
    by_place: BTreeMap<(usize, u32), &'a Measurement>,
}

/// Cells that differ in one count only.
pub(super) struct Swept {
    axis: &'static Axis,
    /// (value of the count, index of the cell), rising.
    cells: Vec<(f64, usize)>,
}

/// Every curve of a run.
pub(super) fn report(header: &Header, samples: &[&Sample]) -> Vec<CurveReport> {
    let measured = Measured::of(header, samples);
    let curves = measured.swept();
    curves.iter().map(|swept| measured.report(swept)).collect()
}

impl<'a> Measured<'a> {
    /// Leaves out cells whose path proof failed in any sample: their traffic took another path.
    pub(super) fn of(header: &'a Header, samples: &[&'a Sample]) -> Self {
        let one = |s: &&'a Sample| Some(((s.cell, s.block), s.measurement()?));
        let mut by_place: BTreeMap<_, &Measurement> = samples.iter().filter_map(one).collect();
        let unproved = by_place.iter().filter(|(_, m)| !m.way.proved);
        let unproved: BTreeSet<usize> = unproved.map(|((cell, _), _)| *cell).collect();
        by_place.retain(|(cell, _), _| !unproved.contains(cell));
        Self { header, by_place }
    }

    /// Every curve: for each count, the cells that are equal without it.
    pub(super) fn swept(&self) -> Vec<Swept> {
        let mut all = Vec::new();
        for axis in AXES.iter().filter(|axis| axis.counts) {
            let mut groups: Vec<(Cell, Swept)> = Vec::new();
            for (place, planned) in self.header.cells.iter().enumerate() {
                let Some(count) = count(axis, &planned.cell.axes) else {
                    continue;
                };
                let mut without = planned.cell.clone();
                (axis.clear)(&mut without.axes);
                match groups.iter_mut().find(|(cell, _)| *cell == without) {
                    Some((_, swept)) => swept.cells.push((count, place)),
                    None => groups.push((
                        without,
                        Swept {
                            axis,
                            cells: vec![(count, place)],
                        },
                    )),
                }
            }
            all.extend(groups.into_iter().map(|(_, swept)| swept));
        }
        for swept in &mut all {
            swept.cells.sort_by(|a, b| a.0.total_cmp(&b.0));
            swept.cells.dedup_by(|a, b| a.0 == b.0);
        }
        all.retain(|swept| swept.cells.len() >= LEAST);
        all
    }

    fn cell(&self, swept: &Swept) -> &'a Cell {
        // A curve has cells.
        &self.header.cells[swept.cells[0].1].cell
    }

    /// The blocks in which all given cells have a quantity, with their values.
    fn rows(&self, cells: &[usize], name: &str) -> BTreeMap<u32, Vec<f64>> {
        let Some(quantity) = QUANTITIES.iter().find(|q| q.name == name) else {
            return BTreeMap::new();
        };
        let tolerance = self.header.cpu_tolerance();
        let value = |cell: usize, block: u32| {
            let load = self.header.cells[cell].cell.load;
            let m = self.by_place.get(&(cell, block))?;
            let value = quantity.value(m, load, tolerance);
            value.filter(|_| quantity.applies(load))
        };
        let blocks: BTreeSet<u32> = self.by_place.keys().map(|(_, block)| *block).collect();
        let row = |block: u32| {
            let values = cells.iter().map(|cell| value(*cell, block));
            Some((block, values.collect::<Option<_>>()?))
        };
        blocks.into_iter().filter_map(row).collect()
    }

    /// Whether a cell's figure may be shown: a percentile that some blocks lack is that of the faster ones.
    fn is_known(&self, cell: usize, name: &str) -> bool {
        let own = || self.by_place.range((cell, 0)..=(cell, u32::MAX));
        let mut named = QUANTITIES.iter().filter(|q| q.name == name);
        named.any(|quantity| quantity.is_known_in(own().map(|(_, m)| *m)))
    }

    /// The counts, and their cells, of which any block has a quantity, of a percentile nearly all blocks.
    fn known(&self, swept: &Swept, name: &str) -> (Vec<f64>, Vec<usize>) {
        let has = |(_, cell): &&(f64, usize)| {
            self.is_known(*cell, name) && !self.rows(&[*cell], name).is_empty()
        };
        swept.cells.iter().filter(has).copied().unzip()
    }

    /// The curve of a quantity at the counts that have it; `None` if fewer than three have, or no block has all of them.
    pub(super) fn curve(&self, swept: &Swept, name: &str) -> Option<Curve> {
        let (x, cells) = self.known(swept, name);
        (x.len() >= LEAST).then_some(())?;
        Curve::new(x, self.rows(&cells, name).into_values().collect())
    }

    /// The curve, with the estimate at each count by the rule of a cell's, of the same blocks.
    fn curve_and_estimates(&self, swept: &Swept, name: &str) -> Option<(Curve, Vec<Estimate>)> {
        let quantity = QUANTITIES.iter().find(|q| q.name == name)?;
        let (x, cells) = self.known(swept, name);
        (x.len() >= LEAST).then_some(())?;
        let rows = self.rows(&cells, name);
        let of = |cell: &usize| {
            let own = rows
                .keys()
                .filter_map(|block| self.by_place.get(&(*cell, *block)));
            let own: Vec<&Measurement> = own.copied().collect();
            let load = self.header.cells[*cell].cell.load;
            let tolerance = self.header.cpu_tolerance();
            quantity.estimate(&own, load, tolerance, self.header.confidence)
        };
        let estimates = cells.iter().map(of).collect::<Option<_>>()?;
        Some((Curve::new(x, rows.into_values().collect())?, estimates))
    }

    fn report(&self, swept: &Swept) -> CurveReport {
        let cell = self.cell(swept);
        let told = TOLD.iter().filter_map(|name| {
            let (curve, estimates) = self.curve_and_estimates(swept, name)?;
            Some(((*name).to_owned(), self.told(name, &curve, estimates)?))
        });
        CurveReport {
            path: cell.path.clone(),
            peer: cell.peer,
            load: cell.load,
            axis: swept.axis.name.to_owned(),
            axes: cell.axes.clone(),
            values: swept.cells.iter().map(|(count, _)| *count).collect(),
            client_cpus_full: self.full(swept, CLIENT_CPU),
            cpus_full: self.full(swept, CPU),
            quantities: told.collect(),
        }
    }

    /// Where a share of busy time becomes full.
    pub(super) fn full(&self, swept: &Swept, name: &str) -> Option<Saturation> {
        let curve = self.curve(swept, name)?;
        let reached = stats::reached(
            &curve,
            Saturation::FULL,
            self.header.confidence,
            self.header.seed,
        );
        Some(Saturation {
            last_not_full: reached.last_before,
            first_full: reached.first,
            interval: reached.interval.map(|i| FullInterval {
                low: i.low,
                high: i.high,
            }),
            most_busy_ratio: curve.mean().into_iter().fold(0.0, f64::max),
        })
    }

    /// The figures of a quantity's curve; `None` with a single block.
    fn told(&self, name: &str, curve: &Curve, estimates: Vec<Estimate>) -> Option<QuantityCurve> {
        let confidence = self.header.confidence;
        let seed = self.header.seed;
        let over = |i: usize| stats::paired_ratio(&curve.at(i), &curve.at(0), confidence);
        let places = 0..curve.x().len();
        Some(QuantityCurve {
            values: curve.x().to_vec(),
            estimates,
            over_first: places
                .map(over)
                .collect::<Option<Vec<_>>>()
                .unwrap_or_default(),
            exponent: stats::exponent(curve, confidence),
            line: stats::straight(curve, confidence, seed)?,
            step: step(name, curve, confidence),
            knee: stats::knee(curve, confidence, seed),
        })
    }
}

/// The value of a count in a cell that has it.
fn count(axis: &Axis, axes: &Axes) -> Option<f64> {
    (axis.show)(axes)?.parse().ok()
}

/// Shares change by points, everything else by a factor.
fn is_share(name: &str) -> bool {
    name.ends_with("_ratio")
}

/// The largest leap or change. `None` for a quantity that is not always above 0, because it has no factor.
pub(super) fn step(name: &str, curve: &Curve, confidence: f64) -> Option<StepReport> {
    let x = curve.x();
    let step = if is_share(name) {
        stats::largest_step(curve, confidence, |_| LEAP_POINTS)?
    } else {
        // A growth from 0 has no factor.
        let growth = |i: usize| if x[i] > 0.0 { x[i + 1] / x[i] } else { 1.0 };
        let least = |i: usize| LEAP_FACTOR.max(growth(i)).ln();
        let mut step = stats::largest_step(&curve.ln()?, confidence, least)?;
        for end in [
            &mut step.change.value,
            &mut step.change.low,
            &mut step.change.high,
        ] {
            *end = end.exp();
        }
        step
    };
    Some(StepReport {
        from: x[step.from],
        to: x[step.from + 1],
        change: step.change,
        is_leap: step.is_leap,
    })
}
