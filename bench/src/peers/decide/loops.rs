//! Runs of another tool over existing labs: all runs of a path one after the other, then those of the next.

use std::time::{Duration, Instant};

use hopyard::signals;

use super::judge;
use super::question::{Cell, Question};
use crate::bed::Bed;
use crate::error::{Error, Result};
use crate::sample::{PATIENCE, finish, start};
use crate::scenario::Scenario;
use crate::tools::{Peer, Task};

/// Length of a run, s: the shortest that all tools support.
const SECONDS: u64 = 1;
/// A failed run is repeated; a path is given up after this many failures.
const GIVEN_UP: u32 = 3;

/// How many runs a path gets, within the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopping {
    /// As many as fit, at most 20.
    Benchstat,
    /// `netperf -i 30,3 -I 95,5`: from 3 to 30, until the 95 % interval of the mean is within ± 2.5 %.
    Netperf,
}

impl Stopping {
    fn most(self) -> usize {
        match self {
            Self::Benchstat => 20,
            Self::Netperf => 30,
        }
    }

    fn is_enough(self, figures: &[f64]) -> bool {
        figures.len() >= self.most()
            || self == Self::Netperf && figures.len() >= 3 && judge::is_known(figures)
    }
}

/// Figures of each cell: units per second as the tool reports them.
pub(super) fn figures(
    question: &Question,
    stopping: Stopping,
    limit: Duration,
) -> Result<Vec<Vec<f64>>> {
    let began = Instant::now();
    let cells = question.cells();
    let beds = cells
        .iter()
        .map(|&cell| Standing::build(question, cell))
        .collect::<Result<Vec<_>>>()?;
    let mut all = Vec::with_capacity(beds.len());
    for (place, bed) in (0..).zip(&beds) {
        let left = limit.saturating_sub(began.elapsed());
        let others = u32::try_from(beds.len()).unwrap_or(u32::MAX) - place;
        all.push(bed.figures(stopping, Instant::now() + left / others)?);
    }
    Ok(all)
}

/// Duration of a transaction of the base, ns: the median of some runs.
pub(super) fn transaction_ns(question: &Question) -> Result<f64> {
    const RUNS: usize = 3;
    let bed = Standing::build(question, question.cells()[0])?;
    let mut per_s = (0..RUNS)
        .map(|_| bed.once())
        .collect::<Result<Vec<f64>>>()?;
    per_s.sort_by(f64::total_cmp);
    Ok(1e9 / per_s[RUNS / 2])
}

/// An existing lab, and what runs over it.
struct Standing {
    bed: Bed,
    scenario: Scenario,
    peer: &'static dyn Peer,
}

impl Standing {
    fn build(question: &Question, cell: Cell) -> Result<Self> {
        let scenario = question.scenario(cell);
        let peer = question.tool.peer().ok_or_else(|| Error::Program {
            program: question.tool.to_string(),
            what: "is no peer".to_owned(),
        })?;
        Ok(Self {
            bed: Bed::on(cell.path, &scenario)?,
            scenario,
            peer,
        })
    }

    /// Runs until there are enough, or until another run, as long as the last, would end after the deadline.
    fn figures(&self, stopping: Stopping, deadline: Instant) -> Result<Vec<f64>> {
        let mut figures = Vec::new();
        let mut failed = 0;
        loop {
            let began = Instant::now();
            match self.once() {
                Ok(figure) => figures.push(figure),
                Err(error) if signals::interrupted() => return Err(error),
                Err(error) => {
                    failed += 1;
                    if failed == GIVEN_UP {
                        return Err(error);
                    }
                }
            }
            let is_late = Instant::now() + began.elapsed() > deadline;
            if is_late || stopping.is_enough(&figures) {
                return Ok(figures);
            }
        }
    }

    /// One run.
    fn once(&self) -> Result<f64> {
        let Self {
            bed,
            scenario,
            peer,
        } = self;
        let task = Task {
            scenario,
            server: bed.server().addresses.v4.into(),
            seconds: SECONDS,
        };
        let [mut client, mut server] = start(bed, *peer, task)?;
        let lasts = Duration::from_secs(SECONDS) + PATIENCE;
        let printed = finish(*peer, [&mut client, &mut server], lasts)?;
        let reported = peer
            .reported(scenario, &printed)
            .map_err(|what| client.trouble(&what))?;
        let per_s = reported.received / reported.seconds.unwrap_or(SECONDS as f64);
        // Datagrams differ in size.
        let unit = if scenario.load.is_udp_stream() {
            f64::from(scenario.size)
        } else {
            1.0
        };
        if per_s > 0.0 {
            Ok(per_s * unit)
        } else {
            Err(client.trouble("moved nothing"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_runs_are_enough() {
        let alike = vec![100.0; 30];
        assert!(!Stopping::Benchstat.is_enough(&alike[..19]));
        assert!(Stopping::Benchstat.is_enough(&alike[..20]));
        let calm = [100.0, 100.5, 101.0];
        assert!(!Stopping::Netperf.is_enough(&calm[..2]));
        assert!(Stopping::Netperf.is_enough(&calm));
        let wild: Vec<f64> = (0..30).map(|n| f64::from(n % 7 + 1)).collect();
        assert!(!Stopping::Netperf.is_enough(&wild[..29]));
        assert!(Stopping::Netperf.is_enough(&wild));
    }
}
