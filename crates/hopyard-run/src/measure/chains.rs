//! Which chains of the user's packet filter rules see the traffic of a cell.

use std::time::Duration;

use super::{Error, Sampler};
use crate::lab::Lab;
use crate::load::{least_load, pace_of};
use crate::model::{Cell, Counted, FilterChain, LoadKind, Sees};

/// Lengths of a trial. The next one is used if a trial shows too little traffic.
const TRIALS: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];
/// How often a trial that the machine missed is repeated.
const TRIES: u32 = 5;
/// The most bytes of a stream in one packet of the kernel.
const LARGEST_PACKET: u64 = 65_536;

impl Sampler {
    /// Sends the cell's traffic through a lab that is not measured any more, and counts the packets in each chain of
    /// the user's rules. `None` without such rules.
    ///
    /// # Errors
    /// [`Error::Blocked`] if no traffic passes.
    pub(crate) fn chains_that_see(
        &self,
        lab: &Lab,
        cell: &Cell,
    ) -> Result<Option<Vec<FilterChain>>, Error> {
        lab.count_chains()?;
        let untouched = lab.counted_chains()?;
        if untouched.as_ref().is_none_or(Vec::is_empty) {
            return Ok(untouched);
        }
        let mut cell = cell.clone();
        if cell.axes.search.is_some() {
            cell.axes = cell
                .axes
                .at_pace(pace_of(&cell.axes, least_load(&cell.axes)));
        }
        let mut seen = Vec::new();
        for length in TRIALS {
            seen = self.chains_in_trial(lab, &cell, length)?;
            if seen.iter().all(|chain| chain.sees != Sees::Unknown) {
                break;
            }
        }
        Ok(Some(seen))
    }

    /// One trial, repeated if the machine missed it, which says nothing about the rules.
    fn chains_in_trial(
        &self,
        lab: &Lab,
        cell: &Cell,
        length: Duration,
    ) -> Result<Vec<FilterChain>, Error> {
        let mut tries = 0..TRIES;
        loop {
            tries.next();
            let before = lab.counted_chains()?.unwrap_or_default();
            let outcome = self.window_in(lab, cell, length, 0.0.into());
            let mut chains = lab.counted_chains()?.unwrap_or_default();
            for (chain, before) in chains.iter_mut().zip(before) {
                chain.packets -= before.packets;
            }
            match outcome {
                // A window that was missed before this one has also counted packets.
                Ok(measured) if measured.missed_windows > 0 && !tries.is_empty() => {}
                Ok(measured) => {
                    let units = units(cell.load, measured.received);
                    for chain in &mut chains {
                        chain.sees = Sees::of(chain.packets, units);
                    }
                    return Ok(chains);
                }
                Err(error) if error.is_missed() && !tries.is_empty() => {}
                Err(error) if error.is_missed() || error.is_interrupt() => return Err(error),
                Err(source) => {
                    return Err(Error::Blocked {
                        rules: show(cell),
                        path: cell.path.clone(),
                        load: cell.load,
                        seen: seen(&chains),
                        source: Box::new(source),
                    });
                }
            }
        }
    }
}

/// What the receiver counted, in transactions, datagrams, or units of the largest packet.
fn units(load: LoadKind, received: Counted) -> u64 {
    let Counted {
        transactions,
        messages,
        bytes,
    } = received;
    if transactions > 0 {
        transactions
    } else if load.is_tcp() || load == LoadKind::UdpGso {
        bytes / LARGEST_PACKET
    } else {
        messages
    }
}

fn show(cell: &Cell) -> String {
    let rules = cell.axes.ruleset.as_ref();
    rules.map_or_else(String::new, ToString::to_string)
}

/// The packets in each chain, as text for people.
fn seen(chains: &[FilterChain]) -> String {
    let words = |chain: &FilterChain| {
        let policy = if chain.drops {
            ", whose policy is drop,"
        } else {
            ""
        };
        let packets = match chain.packets {
            1 => "1 packet".to_owned(),
            count => format!("{count} packets"),
        };
        format!("{chain}{policy} saw {packets}")
    };
    chains.iter().map(words).collect::<Vec<_>>().join("; ")
}
