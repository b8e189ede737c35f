//! Which chains of the user's packet filter rules see the traffic of a cell.

use std::time::Duration;

use super::{Error, Sampler};
use crate::lab::Lab;
use crate::load::{least_load, pace_of};
use crate::model::{Cell, Counted, FilterChain};

/// Enough for some packets, also where the CPUs are busy.
const TRIAL: Duration = Duration::from_millis(50);
/// How often a trial that the machine missed is tried again.
const TRIES: u32 = 5;
/// What a stream passes at least in one packet of the kernel, bytes.
const LARGEST_PACKET: u64 = 65_536;

impl Sampler {
    /// Has the cell's traffic pass a lab that is measured no more, and counts what comes to each chain of the user's rules.
    /// `None` without such rules.
    ///
    /// # Errors
    /// [`Error::Blocked`] if no traffic passes.
    pub fn chains_that_see(
        &self,
        lab: &Lab,
        cell: &Cell,
    ) -> Result<Option<Vec<FilterChain>>, Error> {
        lab.count_chains()?;
        let untouched = lab.counted_chains(0)?;
        if untouched.as_ref().is_none_or(Vec::is_empty) {
            return Ok(untouched);
        }
        let mut cell = cell.clone();
        if cell.axes.search.is_some() {
            cell.axes = cell
                .axes
                .at_pace(pace_of(&cell.axes, least_load(&cell.axes)));
        }
        let mut tries = 0..TRIES;
        let outcome = loop {
            tries.next();
            match self.window_in(lab, &cell, TRIAL, 0.0.into()) {
                // What the machine missed says nothing of the rules.
                Err(error) if error.is_missed() && !tries.is_empty() => {}
                outcome => break outcome,
            }
        };
        match outcome {
            Ok(measured) => {
                let Counted {
                    transactions,
                    bytes,
                    ..
                } = measured.received;
                Ok(lab.counted_chains(transactions.max(bytes / LARGEST_PACKET))?)
            }
            Err(error) if error.is_missed() || error.is_interrupt() => Err(error),
            Err(source) => Err(Error::Blocked {
                rules: show(&cell),
                path: cell.path,
                seen: seen(&lab.counted_chains(0)?.unwrap_or_default()),
                source: Box::new(source),
            }),
        }
    }
}

fn show(cell: &Cell) -> String {
    let rules = cell.axes.ruleset.as_ref();
    rules.map_or_else(String::new, ToString::to_string)
}

/// What came to the chains, for people.
fn seen(chains: &[FilterChain]) -> String {
    let words = |chain: &FilterChain| {
        let policy = if chain.drops {
            ", whose policy is drop,"
        } else {
            ""
        };
        format!("{chain}{policy} saw {} packets", chain.packets)
    };
    chains.iter().map(words).collect::<Vec<_>>().join("; ")
}
