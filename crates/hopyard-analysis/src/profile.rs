//! The CPU cost of each cell by subsystem: shares of samples × measured cost.
//!
//! Each block has one sampling window besides its measured one. A block's cost is divided by the shares of its own
//! window, and the parts are combined as the cost is, as a ratio of sums. So they sum to it, and every interval
//! contains the differences between blocks.

mod tally;
#[cfg(test)]
mod tests;

use super::base::bases;
use super::quantities::{cost, quantity};
use crate::model::stored::Header;
use crate::model::{
    CellReport, FunctionCost, Outcome, ProfileDifference, ProfileReport, ProfileWindow, Sample,
    SubsystemCost, SubsystemDifference,
};
use crate::stats::{Estimate, jackknife};
use crate::units::float;
use tally::{Tally, names};

/// A window with fewer busy samples is too imprecise: at 100, a subsystem of 10 % is known to ± 6 points.
const FEW: u64 = 100;
/// Functions listed for each subsystem.
const FUNCTIONS: usize = 8;

/// Fills in the profile of every cell that has one and whose cost is known.
pub(super) fn fill(
    header: &Header,
    windows: &[ProfileWindow],
    samples: &[&Sample],
    cells: &mut [CellReport],
) {
    if windows.is_empty() {
        return;
    }
    let splits: Vec<Option<Split>> = (0..cells.len())
        .map(|cell| Split::of(header, windows, samples, cell))
        .collect();
    // The cost of traffic that took another path is not compared, nor that of an emulated CPU with a real one's.
    let mut bases = bases(header);
    let is_proved: Vec<bool> = cells.iter().map(|cell| cell.way.proved).collect();
    let is_emulated: Vec<bool> = cells.iter().map(CellReport::has_emulated_guest).collect();
    for (index, cell) in cells.iter_mut().enumerate() {
        let Some(split) = &splits[index] else {
            continue;
        };
        cell.profile = split.report(header.confidence);
        let base = bases[index].take();
        let base = base.filter(|(_, at)| {
            is_proved[index] && is_proved[*at] && is_emulated[index] == is_emulated[*at]
        });
        let base = base.and_then(|(name, at)| Some((name, splits[at].as_ref()?)));
        if let (Some(profile), Some((name, base))) = (&mut cell.profile, base) {
            profile.difference = split.difference(base, name, header.confidence);
        }
    }
}

/// A block of a cell.
#[derive(Clone)]
struct Block {
    block: u32,
    /// CPU time, ns.
    cost: f64,
    /// Units of work.
    units: f64,
    /// Shares of it by subsystem, in the order of [`names`]; they sum to 1.
    shares: Vec<f64>,
}

/// A cell's cost, divided block by block.
struct Split {
    quantity: &'static str,
    blocks: Vec<Block>,
    windows: Vec<Tally>,
    pooled: Tally,
}

impl Split {
    fn of(
        header: &Header,
        windows: &[ProfileWindow],
        samples: &[&Sample],
        cell: usize,
    ) -> Option<Self> {
        let load = header.cells.get(cell)?.cell.load;
        let quantity = quantity(cost(load)).ok()?;
        let own: Vec<&Sample> = samples.iter().copied().filter(|s| s.cell == cell).collect();
        let tallies: Vec<(u32, Tally)> = windows
            .iter()
            .filter(|w| w.cell == cell)
            .filter(|w| {
                own.iter()
                    .any(|s| (s.block, s.attempt) == (w.block, w.attempt))
            })
            .map(|w| (w.block, Tally::of(w)))
            .collect();
        let pooled = Tally::pooled(tallies.iter().map(|(_, tally)| tally));
        let usual = pooled.shares()?;
        let blocks = own.iter().filter_map(|sample| {
            let Outcome::Measured(m) = &sample.outcome else {
                return None;
            };
            let [cost, units] = quantity.demand(m, header.cpu_tolerance())?;
            let window = tallies.iter().find(|(block, _)| *block == sample.block);
            Some(Block {
                block: sample.block,
                cost,
                units,
                // A block whose window failed is divided by the shares of the others.
                shares: window
                    .and_then(|(_, tally)| tally.shares())
                    .unwrap_or_else(|| usual.clone()),
            })
        });
        Some(Self {
            quantity: quantity.name,
            blocks: blocks.collect(),
            windows: tallies.into_iter().map(|(_, tally)| tally).collect(),
            pooled,
        })
    }

    fn report(&self, confidence: f64) -> Option<ProfileReport> {
        let first = self.windows.first()?;
        let mut subsystems = Vec::new();
        let total = per_unit(&self.blocks, None, None)?;
        for (place, name) in names().enumerate() {
            let seen = self.pooled.count(place);
            if seen == 0 {
                continue;
            }
            let cost = jackknife(self.blocks.len(), confidence, |out| {
                per_unit(&self.blocks, Some(place), out)
            })?;
            subsystems.push(SubsystemCost {
                name: name.to_owned(),
                share_ratio: cost.value / total,
                functions: functions(&self.pooled, place, cost.value),
                cost: Estimate {
                    low: cost.low.max(0.0).min(cost.value),
                    ..cost
                },
            });
        }
        // A stable sort: equal ones keep the file's order.
        subsystems.sort_by(|a, b| b.cost.value.total_cmp(&a.cost.value));
        let thin = self.windows.iter().filter(|w| w.busy() < FEW).count();
        Some(ProfileReport {
            quantity: self.quantity.to_owned(),
            windows: u32::try_from(self.windows.len()).unwrap_or(u32::MAX),
            thin_windows: u32::try_from(thin).unwrap_or(u32::MAX),
            window_s: first.span_s,
            frequency_hz: first.frequency_hz,
            busy_samples: self.pooled.busy(),
            idle_samples: self.pooled.idle,
            elsewhere_samples: self.pooled.elsewhere,
            lost_samples: self.pooled.lost,
            subsystems,
            difference: None,
        })
    }

    /// The blocks that another cell also has, in their order.
    fn shared_with(&self, other: &Self) -> Vec<Block> {
        let shared = |b: &&Block| other.blocks.iter().any(|o| o.block == b.block);
        let mut blocks: Vec<Block> = self.blocks.iter().filter(shared).cloned().collect();
        blocks.sort_by_key(|b| b.block);
        blocks
    }

    /// Over the blocks that both have.
    fn difference(&self, base: &Self, name: String, confidence: f64) -> Option<ProfileDifference> {
        let (own, theirs) = (self.shared_with(base), base.shared_with(self));
        let between = |place| {
            jackknife(own.len(), confidence, |out| {
                Some(per_unit(&own, place, out)? - per_unit(&theirs, place, out)?)
            })
        };
        let mut subsystems = Vec::new();
        for (place, name) in names().enumerate() {
            if self.pooled.count(place) + base.pooled.count(place) > 0 {
                subsystems.push(SubsystemDifference {
                    name: name.to_owned(),
                    cost: between(Some(place))?,
                });
            }
        }
        subsystems.sort_by(|a, b| b.cost.value.abs().total_cmp(&a.cost.value.abs()));
        Some(ProfileDifference {
            base: name,
            total: between(None)?,
            subsystems,
        })
    }
}

/// Cost per unit over blocks without one of them, for one subsystem or all.
fn per_unit(blocks: &[Block], subsystem: Option<usize>, out: Option<usize>) -> Option<f64> {
    let (mut cost, mut units) = (0.0, 0.0);
    for (at, block) in blocks.iter().enumerate() {
        if Some(at) != out {
            let share =
                subsystem.map_or(1.0, |place| block.shares.get(place).copied().unwrap_or(0.0));
            cost += block.cost * share;
            units += block.units;
        }
    }
    (units > 0.0).then(|| cost / units)
}

/// The costliest functions of a subsystem, with their shares of its cost.
fn functions(tally: &Tally, place: usize, cost: f64) -> Vec<FunctionCost> {
    let whole = float(tally.count(place));
    let mut functions: Vec<FunctionCost> = tally
        .functions(place)
        .map(|(name, samples)| FunctionCost {
            name: name.to_owned(),
            cost: cost * float(samples) / whole,
        })
        .collect();
    functions.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    functions.truncate(FUNCTIONS);
    functions
}
