//! Printed figures that are values along a curve: from how many senders on a core is full, where jitter bends, when it
//! settles.

use super::cells::Cells;
use super::evidence::{Answer, Evidence, Value, has, scaled};
use super::spec::OnCurve;
use crate::model::{AXES, CurveReport};
use crate::quantity::{self, CLIENT_CPU, GAP_SD};
use crate::stats::{Estimate, Samples, log_mean_interval, mean};

/// The count along which senders are swept.
pub(super) const SENDERS: &str = "flows";

impl Evidence<'_> {
    pub(super) fn on_curve(&self, on: OnCurve, wanted: &Cells) -> Answer<Value> {
        let curve = self.curve(wanted)?;
        match on {
            OnCurve::Full => self.full(curve).map(Value::Between),
            OnCurve::Before => {
                last_before(curve)?;
                let full = self.full(curve)?;
                Ok(Value::Between(Estimate {
                    value: full.value - 1.0,
                    low: full.low - 1.0,
                    high: full.high - 1.0,
                    ..full
                }))
            }
            OnCurve::BusyBefore => busy(curve, last_before(curve)?),
            OnCurve::BusyFull => {
                let full = curve.client_cpus_full.as_ref().ok_or_else(no_cpus)?;
                busy(curve, full.first_full.ok_or_else(|| never(curve))?)
            }
            OnCurve::Knee => {
                let jitter = curve.quantities.get(GAP_SD);
                let knee = jitter.and_then(|jitter| jitter.knee.as_ref());
                let knee = knee.ok_or("the run did not measure jitter at enough senders")?;
                if !knee.is_shown {
                    return Err("no knee is shown".to_owned());
                }
                Ok(Value::Between(knee.at.clone()))
            }
        }
    }

    fn curve(&self, wanted: &Cells) -> Answer<&CurveReport> {
        self.cell(wanted)?;
        let axes = |curve: &CurveReport| {
            wanted.set.iter().all(|(name, value)| {
                let axis = AXES.iter().find(|axis| axis.name == name);
                axis.is_some_and(|axis| (axis.show)(&curve.axes).as_ref() == Some(value))
            })
        };
        let is_it = |curve: &&CurveReport| {
            curve.axis == SENDERS
                && wanted.path.as_ref().is_none_or(|path| *path == curve.path)
                && wanted.load.is_none_or(|load| load == curve.load)
                && wanted.peer.is_none_or(|peer| peer == curve.peer)
                && axes(curve)
        };
        self.report
            .curves
            .iter()
            .find(is_it)
            .ok_or_else(|| "the run has no curve of it against the number of senders".to_owned())
    }

    /// The first number of senders that fills the core.
    fn full(&self, curve: &CurveReport) -> Answer<Estimate> {
        let full = curve.client_cpus_full.as_ref().ok_or_else(no_cpus)?;
        full.first_full.ok_or_else(|| never(curve))?;
        let few = || "too few blocks for the number of senders that fills the core".to_owned();
        let [value, low, high] = full.first_full_between(&curve.values).ok_or_else(few)?;
        Ok(Estimate {
            value,
            low,
            high,
            confidence: self.report.run.confidence,
            n: self.report.run.blocks as usize,
        })
    }

    /// By how many percent a quantity is above that of the base: the geometric mean over all numbers of senders except
    /// one (a single sender waits for no other), within each block.
    pub(super) fn excess(&self, name: &str, wanted: &Cells) -> Answer<Estimate> {
        let all = self.report.cells.iter().filter(|cell| has(cell, wanted));
        let several = all.filter(|cell| cell.axes.flows > 1);
        let pairs: Vec<_> = several
            .map(|cell| {
                let at = |cells: &Cells| {
                    let mut at = cells.clone();
                    at.set
                        .insert(SENDERS.to_owned(), cell.axes.flows.to_string());
                    self.cell(&at)
                };
                let base = wanted.clone().with(&self.file.base.cells);
                let base = at(&base).map_err(|why| format!("its base: {why}"))?;
                Ok((at(wanted)?, base))
            })
            .collect::<Answer<_>>()?;
        if pairs.is_empty() {
            self.cell(wanted)?;
            return Err("several senders are not in this run".to_owned());
        }
        let blocks = 0..=self.seen.iter().map(|o| o.block).max().unwrap_or(0);
        let means = blocks.filter_map(|block| {
            let logs = pairs.iter().map(|(own, base)| {
                let ratio = self.in_block(own, name, block)? / self.in_block(base, name, block)?;
                (ratio > 0.0 && ratio.is_finite()).then(|| ratio.ln())
            });
            let logs: Option<Vec<f64>> = logs.collect();
            mean(&logs?).map(f64::exp)
        });
        let means = Samples::try_from(means.collect::<Vec<f64>>()).ok();
        let ratio = means.and_then(|means| log_mean_interval(&means, self.report.run.confidence));
        let ratio = ratio
            .ok_or_else(|| format!("fewer than two blocks measured {}", quantity::words(name)))?;
        Ok(Estimate {
            value: 100.0 * (ratio.value - 1.0),
            low: 100.0 * (ratio.low - 1.0),
            high: 100.0 * (ratio.high - 1.0),
            ..ratio
        })
    }

    /// When the jitter of a cell had settled.
    pub(super) fn settled(&self, wanted: &Cells) -> Answer<Estimate> {
        let cell = self.cell(wanted)?;
        let settling = cell.series.as_ref().and_then(|s| s.settling.as_ref());
        let settling = settling.ok_or("the window does not open with the traffic")?;
        let time = settling.time_s.clone();
        time.ok_or_else(|| {
            format!(
                "it settled in {} of {} windows",
                settling.settled_samples, settling.samples
            )
        })
    }
}

fn no_cpus() -> String {
    "the run did not measure the senders' own CPU".to_owned()
}

/// The last number of senders that was seen not to fill the core.
fn last_before(curve: &CurveReport) -> Answer<f64> {
    let full = curve.client_cpus_full.as_ref().ok_or_else(no_cpus)?;
    let none = "the core is full from the first sender on: nothing is before";
    full.last_not_full.ok_or_else(|| none.to_owned())
}

fn never(curve: &CurveReport) -> String {
    let full = curve.client_cpus_full.as_ref();
    let seen = full.and_then(|full| full.last_not_full);
    let last = seen.or(curve.values.last().copied()).unwrap_or(0.0);
    format!("{last} senders do not fill the core")
}

fn busy(curve: &CurveReport, senders: f64) -> Answer<Value> {
    let busy = curve.quantities.get(CLIENT_CPU).ok_or_else(no_cpus)?;
    let at = busy.values.iter().position(|value| *value == senders);
    let estimate = at
        .and_then(|at| busy.estimates.get(at))
        .ok_or_else(no_cpus)?;
    Ok(Value::Measured(scaled(estimate, 100.0)))
}
