//! Turns: the labs of several cells stand side by side, and each has a short window in every round.
//!
//! Neighbours in time are alike, so cells are compared within a round (docs/method.md, "Turns"). What a lab and its
//! connections keep is replicated by the next generation, which makes them anew.

mod conclusion;
mod labs;
mod round;
mod standing;
mod variants;

use std::rc::Rc;
use std::time::{Duration, Instant};

use rand::Rng;
use rand::seq::SliceRandom;

pub use self::labs::Labs;
use self::round::Lengths;
use self::standing::{Place, Standing, interrupts_only};
use self::variants::{Variant, variants};
use super::{Error, QuietCores, Sampler};
use crate::lab::paths::Need;
use crate::lab::{self, Lab};
use crate::model::{Cell, CpuAccounting, LoadKind, Measurement, Rate, takes_another};
use crate::settings::Host;

/// Length of a turn's window: long against the reading of the clocks, short against bursts of steal.
pub const WINDOW: Duration = Duration::from_millis(25);
/// Labs that stand side by side at most: more would make a round longer than the bursts it is to avoid.
pub const MOST_CELLS: usize = 24;

/// Loads whose connections can pause between turns: they leave nothing on the way that would arrive in the turn of another cell.
pub const LOADS: [LoadKind; 6] = [
    LoadKind::TcpStream,
    LoadKind::TcpMaerts,
    LoadKind::TcpRr,
    LoadKind::TcpCrr,
    LoadKind::UdpStream,
    LoadKind::UdpRr,
];

/// A turn of the first round, which counts for nothing (what connections learn at their beginning), with all that goes with it.
const FIRST: Duration = Duration::from_millis(30);
/// Workers start, connect and end. Measured on two virtual CPUs.
const ENDS: Duration = Duration::from_millis(12);
/// A turn with all that goes with it, roughly.
const EACH: Duration = Duration::from_micros(35_500);

/// Can a cell take turns with others? Its labs have to stand side by side, its connections to pause, and short windows to
/// tell what it is about.
#[must_use]
pub fn takes_turns(cell: &Cell) -> bool {
    let axes = &cell.axes;
    let pauses = LOADS.contains(&cell.load);
    let is_small = axes.containers.is_none() && axes.ports.is_none_or(|ports| ports <= 64);
    let is_plain = axes.search.is_none() && axes.start.is_none() && axes.scheduler.is_none();
    // What waits before a slow wire when a turn ends would run into the turns of others.
    let is_drained = axes.rate_bps.is_none_or(|Rate(limit)| limit.is_none());
    let on_this_kernel =
        lab::path(&cell.path).is_ok_and(|path| !path.needs().contains(&Need::Guest));
    pauses && is_small && is_plain && is_drained && on_this_kernel
}

/// Fewest and most rounds of a generation, whatever would be best: fewer leave nothing to choose from where some are
/// disturbed, more are seldom worth their time.
pub const ROUNDS: std::ops::RangeInclusive<u32> = 4..=64;

/// How many rounds make up a window of the length that was asked for.
#[must_use]
pub fn rounds(window: Duration) -> u32 {
    let rounds = u32::try_from(window.as_nanos().div_ceil(WINDOW.as_nanos()));
    rounds.map_or(u32::MAX, |n| n.max(*ROUNDS.start()))
}

/// How many rounds a generation is to have.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// Undisturbed turns that each cell is to have.
    pub wanted: u32,
    /// No round begins after it but the first.
    pub deadline: Option<Instant>,
}

/// How many rounds a generation is to have where so many were asked for and so many would serve best: the best, within a
/// factor of what was asked for. Those that were asked for where nothing tells better, or where they are beyond [`ROUNDS`].
#[must_use]
pub fn chosen_rounds(asked: u32, worth: Option<f64>) -> u32 {
    const FACTOR: f64 = 2.0;
    let Some(worth) = worth.filter(|_| asked <= *ROUNDS.end()) else {
        return asked;
    };
    let asked = f64::from(asked);
    let chosen = worth.clamp(asked / FACTOR, asked * FACTOR);
    (chosen.round() as u32).clamp(*ROUNDS.start(), *ROUNDS.end())
}

impl Sampler {
    /// Can this machine's clocks tell the CPU time of a turn?
    #[must_use]
    pub fn has_turns(&self) -> bool {
        self.meter.accounting() == CpuAccounting::IdleClock
    }

    /// What a generation of some cells costs beyond its rounds, in rounds. Labs are there already.
    #[must_use]
    pub fn generation_cost(cells: &[&Cell]) -> f64 {
        let around: Duration = cells.iter().map(|_| ENDS + FIRST).sum();
        let round = EACH * u32::try_from(cells.len()).unwrap_or(u32::MAX);
        around.as_secs_f64() / round.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// How long a generation of some cells takes in labs that stand, roughly.
    #[must_use]
    pub fn generation_estimate(cells: &[&Cell], rounds: u32) -> Duration {
        let each = |_| ENDS + FIRST + EACH * rounds;
        cells.iter().map(each).sum()
    }

    /// Measures cells by turns in so many rounds, in `labs` that stand side by side, of which those that are missing are made; fewer, but one at least, where
    /// a deadline comes first. The order of the results is that of the cells. Where they are of two settings, `host` is
    /// switched before the labs of each are made and before their turns of each round.
    ///
    /// # Errors
    /// The meter or a switch fails, or the user wants to stop; a cell that failed has its error in its place.
    pub fn generation(
        &self,
        cells: &[&Cell],
        rounds: Rounds,
        quiet: impl Into<QuietCores>,
        order: &mut impl Rng,
        mut host: Option<&mut Host>,
        labs: &mut Labs,
    ) -> Result<Vec<Result<Measurement, Error>>, Error> {
        let quiet = quiet.into();
        labs.keep_for(cells);
        let mut variants = variants(cells);
        variants.shuffle(order);
        let mut places: Vec<Place<'_>> = cells.iter().map(|_| Err(Error::Interrupted)).collect();
        for variant in &variants {
            variant.switch(host.as_deref_mut(), &places)?;
            for &at in &variant.cells {
                let cell = cells[at];
                let standing = labs.for_cell(cell).and_then(|lab| self.stand(cell, lab));
                places[at] = interrupts_only(standing)?;
            }
        }
        self.take_turns(places, variants, rounds, quiet, order, host)
    }

    /// The same in labs that were built before, whatever was changed in them since. Each is a cell's own, all of one setting.
    ///
    /// # Errors
    /// As [`Sampler::generation`].
    pub fn generation_in(
        &self,
        labs: Vec<(&Cell, Lab)>,
        rounds: Rounds,
        quiet: impl Into<QuietCores>,
        order: &mut impl Rng,
    ) -> Result<Vec<Result<Measurement, Error>>, Error> {
        let quiet = quiet.into();
        let cells: Vec<&Cell> = labs.iter().map(|(cell, _)| *cell).collect();
        let mut places: Vec<Place<'_>> = Vec::with_capacity(labs.len());
        for (cell, lab) in labs {
            places.push(interrupts_only(self.stand(cell, Rc::new(lab)))?);
        }
        self.take_turns(places, variants(&cells), rounds, quiet, order, None)
    }

    /// Takes as many rounds as it needs, and concludes.
    fn take_turns(
        &self,
        mut places: Vec<Place<'_>>,
        mut variants: Vec<Variant>,
        Rounds { wanted, deadline }: Rounds,
        quiet: QuietCores,
        order: &mut impl Rng,
        mut host: Option<&mut Host>,
    ) -> Result<Vec<Result<Measurement, Error>>, Error> {
        let mut take = |places: &mut [Place<'_>],
                        variants: &[Variant],
                        round: u32,
                        lengths: Lengths|
         -> Result<(), Error> {
            for variant in variants {
                variant.switch(host.as_deref_mut(), places)?;
                self.round(places, &variant.cells, round, lengths, quiet)?;
            }
            Ok(())
        };
        for variant in &mut variants {
            variant.cells.shuffle(order);
        }
        take(&mut places, &variants, 0, Lengths::FIRST)?;
        for place in places.iter_mut().flatten() {
            place.taken.clear();
        }
        let mut round = 0;
        while places.iter().any(Result::is_ok)
            && takes_another(round, wanted, fewest_quiet(&places))
        {
            if round > 0 && deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break;
            }
            variants.shuffle(order);
            for variant in &mut variants {
                variant.cells.shuffle(order);
            }
            take(&mut places, &variants, round, Lengths::EACH)?;
            round += 1;
        }
        let concluded = |place: Place<'_>| place.and_then(|standing| standing.conclude(quiet));
        places
            .into_iter()
            .map(|place| interrupts_only(concluded(place)))
            .collect()
    }
}

/// The undisturbed turns of the cell that has fewest of them.
fn fewest_quiet(places: &[Place<'_>]) -> usize {
    let quiet = |place: &Standing<'_>| place.taken.iter().filter(|t| t.turn.is_quiet()).count();
    let standing = places.iter().flatten();
    standing.map(quiet).min().unwrap_or(usize::MAX)
}
