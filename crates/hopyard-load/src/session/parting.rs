//! The end of a session: its threads end, and say what they know.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::{Session, Thread};
use crate::journal::Journal;
use crate::loops::Said;

/// How long a flow may take to notice that it is over.
pub(super) const FAREWELL: Duration = Duration::from_secs(2);

/// What the threads of a session had to say, put together.
#[derive(Default)]
pub(super) struct Parting {
    pub(super) round_trips: Option<Histogram<u64>>,
    /// Of the first packets of flows.
    pub(super) first_packets: Option<Histogram<u64>>,
    pub(super) due: Option<u64>,
    /// Of connections that were due, those that ended.
    pub(super) finished: Option<u64>,
    pub(super) journal: Option<Box<Journal>>,
}

impl Session {
    /// Ends every flow and gathers what they have to say.
    pub(super) fn farewell(&mut self) -> Result<Parting, String> {
        self.hang_up();
        let mut parting = Parting::default();
        for _ in 0..self.threads.len() {
            let outcome = self
                .ended
                .recv_timeout(FAREWELL)
                .map_err(|_| "a flow did not stop within 2 s".to_owned())?;
            parting.take_in(outcome?)?;
        }
        for Thread { start, handle, .. } in std::mem::take(&mut self.threads) {
            // It waits for another turn otherwise.
            drop(start);
            if handle.join().is_err() {
                return Err("a flow's thread panicked; its message is on stderr".to_owned());
            }
        }
        Ok(parting)
    }
}

impl Parting {
    pub(super) fn take_in(&mut self, said: Said) -> Result<(), String> {
        match said {
            Said::Nothing => {}
            Said::RoundTrips(one) => add(&mut self.round_trips, one)?,
            Said::Connections {
                transactions,
                connects,
            } => {
                add(&mut self.round_trips, transactions)?;
                add(&mut self.first_packets, connects)?;
            }
            Said::Opened(one) => {
                add(&mut self.round_trips, one.latency)?;
                add(&mut self.first_packets, one.connects)?;
                self.due = Some(self.due.unwrap_or(0) + one.due);
                self.finished = Some(self.finished.unwrap_or(0) + one.finished);
            }
            Said::Due(one) => self.due = Some(self.due.unwrap_or(0) + one),
            Said::Journal(one) => match &mut self.journal {
                Some(sum) => sum.absorb(*one)?,
                none => *none = Some(one),
            },
        }
        Ok(())
    }
}

fn add(sum: &mut Option<Histogram<u64>>, one: Histogram<u64>) -> Result<(), String> {
    match sum {
        Some(sum) => sum
            .add(one)
            .map_err(|e| format!("cannot add histograms: {e}"))?,
        none => *none = Some(one),
    }
    Ok(())
}
