//! From a journal to what is told of it.

use hdrhistogram::Histogram;

use super::Journal;
use crate::receiver::Effort;
use crate::summary::{DIGITS, Timings, quantiles, summarise_any};
use hopyard_model::{Arrivals, Latency, LoadKind, RunLengths};

/// What is told of a window.
pub(crate) struct Told {
    /// Of an open loop: from when a datagram was to be sent to when it was read.
    pub(crate) latency: Option<Latency>,
    /// Of an open loop: what was due in the window, sent in time, and came.
    pub(crate) due: Option<u64>,
    pub(crate) arrivals: Arrivals,
}

impl Journal {
    /// Takes in what another socket of the same load saw.
    pub(crate) fn absorb(&mut self, other: Self) -> Result<(), String> {
        self.flows.extend(other.flows);
        self.due += other.due;
        self.series.absorb(&other.series);
        let (own, others) = (&mut self.spread, other.spread);
        for (sum, one) in [
            (&mut own.latency, &others.latency),
            (&mut own.lateness, &others.lateness),
            (&mut own.ipdv, &others.ipdv),
            (&mut own.interarrival, &others.interarrival),
        ] {
            sum.add(one)?;
        }
        let added = own.run_lengths.add(others.run_lengths);
        added.map_err(|e| format!("cannot add histograms: {e}"))
    }

    /// Sums it up, with what the receiver spent.
    pub(crate) fn tell(&self, kind: LoadKind, effort: Effort) -> Result<Told, String> {
        let mut pdv = Timings::new()?;
        for flow in &self.flows {
            flow.add_pdv(&mut pdv);
        }
        let some = |timings| summarise_any(Some(timings), DIGITS);
        let paced = |timings| {
            if kind.is_open_loop() {
                some(timings)
            } else {
                Ok(None)
            }
        };
        let interarrival = self.spread.interarrival.histogram();
        Ok(Told {
            latency: paced(&self.spread.latency)?,
            due: kind.is_open_loop().then_some(self.due),
            arrivals: Arrivals {
                flows: self
                    .flows
                    .iter()
                    .map(|flow| flow.arrivals(self.open_ns))
                    .collect(),
                pdv: some(&pdv)?,
                ipdv: some(&self.spread.ipdv)?,
                interarrival: some(&self.spread.interarrival)?,
                interarrival_sd_ns: (interarrival.len() > 1).then(|| interarrival.stdev()),
                series: Some(self.series.tell()),
                lateness: paced(&self.spread.lateness)?,
                runs: runs(&self.spread.run_lengths),
                socket_drops: effort.drops,
                receiver_cpu_ns: effort.cpu_ns,
            },
        })
    }
}

fn runs(lengths: &Histogram<u64>) -> Option<RunLengths> {
    (!lengths.is_empty()).then(|| RunLengths {
        count: lengths.len(),
        mean: lengths.mean(),
        max: lengths.max(),
        quantiles: quantiles(lengths),
    })
}
