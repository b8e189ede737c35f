//! A search for a rate (RFC 9971): trials of growing length in one lab, each an ordinary window.

use std::time::Duration;

use super::{Error, QuietCores, Sampler};
use crate::lab::Lab;
use crate::load::{least_load, pace_of};
use crate::model::{Cell, Measurement, OpenLoop, SearchFor, Searched};
use crate::stats::search::{Asked, Goal, Search, Trial};
use crate::units::float;

/// Shortest trial: in a shorter one, the edges dominate.
const SHORTEST: Duration = Duration::from_millis(50);
/// Factor by which trials before those of full length are shorter.
const SHORTER: u32 = 4;
/// This many trials of full length decide the class of a load, ...
const FULL_TRIALS: u32 = 3;
/// ... of which at most half may lose more, as RFC 9971 recommends: the majority counts.
const EXCEED_RATIO: f64 = 0.5;
/// How far apart the bounds may be. RFC 9971 recommends at least the share that may be lost.
const WIDTH_RATIO: f64 = 0.01;
/// Trials that a search usually takes: short ones and full ones.
const TRIALS: [u32; 2] = [5, 8];
/// Besides each trial: starting, connecting and ending workers.
const AROUND: Duration = Duration::from_millis(50);

impl Sampler {
    /// The goal, with trials of up to a window's length.
    fn goal(&self, wanted: SearchFor) -> Goal {
        let window = self.window.as_secs_f64();
        let shortest = (window / f64::from(SHORTER)).max(SHORTEST.as_secs_f64());
        Goal {
            loss_ratio: wanted.loss_ratio(),
            exceed_ratio: EXCEED_RATIO,
            width_ratio: WIDTH_RATIO.max(wanted.loss_ratio()),
            initial_trial_s: shortest.min(window),
            final_trial_s: window,
            duration_sum_s: window * f64::from(FULL_TRIALS),
        }
    }

    /// How long a search takes, roughly, without its lab.
    pub(super) fn search_estimate(&self, cell: &Cell) -> Duration {
        let [short, full] = TRIALS;
        let each = |window| self.traffic(cell, window) + AROUND;
        each(self.window / SHORTER) * short + each(self.window) * full
    }

    /// Searches in an existing lab. The result is the last trial at the lower bound, with the search attached.
    ///
    /// # Errors
    /// As [`Sampler::measure`]; [`Error::NoLowerBound`] if even the least load loses too much.
    pub(super) fn search_in(
        &self,
        lab: &Lab,
        cell: &Cell,
        wanted: SearchFor,
        quiet: QuietCores,
    ) -> Result<Measurement, Error> {
        let goal = self.goal(wanted);
        let least = least_load(&cell.axes);
        let mut search = Search::new(goal, least, self.most_load(cell)?);
        let mut windows = Vec::new();
        while let Some(asked) = search.ask() {
            let (trial, window) = self.trial(lab, cell, asked, quiet)?;
            search.tell(trial);
            windows.push(window);
        }
        let result = search.result();
        let missed_windows = windows.iter().flatten().map(|m| m.missed_windows).sum();
        let bound = result.lower_per_s.and_then(|lower| {
            let kept = |trial: &Trial| {
                trial.load_per_s.total_cmp(&lower).is_eq() && trial.loss_ratio <= goal.loss_ratio
            };
            let at = search.trials().iter().rposition(kept)?;
            windows.swap_remove(at)
        });
        let mut bound = bound.ok_or_else(|| Error::NoLowerBound {
            least_per_s: search
                .trials()
                .iter()
                .map(|trial| trial.load_per_s)
                .fold(f64::INFINITY, f64::min),
            loss_ratio: goal.loss_ratio,
        })?;
        bound.missed_windows = missed_windows;
        bound.search = Some(Searched {
            goal,
            result,
            trials: search.trials().to_vec(),
        });
        Ok(bound)
    }

    /// What the generator can send without any path, all flows together. It cannot offer more, so higher loads are not
    /// tried.
    fn most_load(&self, cell: &Cell) -> Result<f64, Error> {
        let one = self.ceiling(cell.load, &cell.axes)?;
        let cpus = u32::try_from(self.meter.cpus().len()).unwrap_or(u32::MAX);
        Ok(one * f64::from(cell.axes.flows.min(cpus)))
    }

    /// One trial, with its measurement if anything arrived.
    fn trial(
        &self,
        lab: &Lab,
        cell: &Cell,
        asked: Asked,
        quiet: QuietCores,
    ) -> Result<(Trial, Option<Measurement>), Error> {
        let pace = pace_of(&cell.axes, asked.load_per_s);
        let paced = Cell {
            axes: cell.axes.at_pace(pace),
            ..cell.clone()
        };
        let duration = Duration::from_secs_f64(asked.duration_s);
        let (window, loss_ratio) = match self.window_in(lab, &paced, duration, quiet) {
            Ok(m) => {
                let loss = m.open_loop.and_then(OpenLoop::loss_ratio);
                (Some(m), loss.ok_or(Error::NoCommonClock)?)
            }
            // With `was_taken`, the CPUs were taken away: that says nothing about the path.
            Err(Error::Nothing {
                was_taken: false, ..
            }) => (None, 1.0),
            Err(error) => return Err(error),
        };
        let trial = Trial {
            load_per_s: asked.load_per_s,
            duration_s: asked.duration_s,
            loss_ratio,
            forwarded_per_s: window.as_ref().map_or(0.0, arrived_per_s),
        };
        Ok((trial, window))
    }
}

fn arrived_per_s(m: &Measurement) -> f64 {
    float(m.received.messages) * 1e9 / float(m.window_ns.max(1))
}
