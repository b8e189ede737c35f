//! Turns: the labs of several cells exist side by side, and each has a short window in every round.
//!
//! Neighbouring moments are alike, so cells are compared within a round (docs/method.md, "Turns"). What lasts as long
//! as a lab and its connections is replicated by the next generation, which makes them anew.

mod conclusion;
mod labs;
mod lengths;
mod round;
mod standing;
mod variants;

use std::rc::Rc;
use std::time::{Duration, Instant};

use rand::Rng;
use rand::seq::SliceRandom;

pub use self::labs::Labs;
use self::lengths::{LONGEST_PAUSE, Lengths, pause_of};
use self::round::Round;
use self::standing::{Place, Standing, interrupts_only};
use self::variants::{Variant, variants};
use super::own_lab::let_netns_cleanup_end;
use super::{Error, QuietCores, Sampler};
use crate::lab::paths::Need;
use crate::lab::{self, Lab};
use crate::model::{Cell, CpuAccounting, Measurement, Rate, takes_another};
use crate::settings::Host;

/// The most labs side by side: with more, a round would be longer than the bursts it must avoid.
pub const MOST_CELLS: usize = 24;

/// Workers start, connect and end. Measured on two virtual CPUs.
const ENDS: Duration = Duration::from_millis(12);

/// Whether a cell can take turns with others: its labs must exist side by side, its connections must pause, and short
/// windows must be long enough for its figures.
#[must_use]
pub fn takes_turns(cell: &Cell) -> bool {
    let axes = &cell.axes;
    let pauses = cell.load.pauses();
    let is_small = axes.containers.is_none() && axes.ports.is_none_or(|ports| ports <= 64);
    let is_plain = axes.search.is_none() && axes.start.is_none() && axes.scheduler.is_none();
    // Frames waiting before a slow wire when a turn ends would run into the turns of others. A wire that pauses holds few,
    // and the turn lasts until it has sent them.
    let has_rate = axes.rate_bps.is_some_and(|Rate(limit)| limit.is_some());
    let is_drained = !has_rate || axes.wire_pause_ns.is_some();
    let is_short = pause_of(cell).is_none_or(|pause| pause <= LONGEST_PAUSE);
    let on_this_kernel = lab::path(&cell.path).is_ok_and(|path| !path.needs.contains(&Need::GUEST));
    pauses && is_small && is_plain && is_drained && is_short && on_this_kernel
}

/// The window of a turn of a cell that takes turns.
#[must_use]
pub(crate) fn window(cell: &Cell) -> Duration {
    Lengths::of(cell).window
}

/// Fewest and most rounds of a generation. With fewer, there is no choice if some are disturbed; more are seldom worth
/// their time.
pub const ROUNDS: std::ops::RangeInclusive<u32> = 4..=64;

/// The most turns of a cell that a generation may want. Each is stored, and those of a sample are one line of a file that has
/// [`MOST_OF_A_LINE`](crate::bounded::MOST_OF_A_LINE) at most: three times as many, if all are disturbed, of some 570 bytes each.
pub(crate) const MOST_TURNS: u32 = 2_000;

/// How many rounds of a cell add up to a window of this length.
#[must_use]
pub fn rounds(cell: &Cell, window: Duration) -> u32 {
    let turn = Lengths::of(cell).window.as_nanos().max(1);
    let rounds = u32::try_from(window.as_nanos().div_ceil(turn));
    rounds.map_or(u32::MAX, |n| n.max(*ROUNDS.start()))
}

/// A cell of a generation. A cell that many others are compared with has several turns in each round, because it is
/// part of all their ratios.
#[derive(Debug, Clone, Copy)]
pub struct Participant<'a> {
    pub cell: &'a Cell,
    /// Its turns in each round, 1 or more.
    pub turns: u32,
}

impl Participant<'_> {
    /// Approximate duration of its turns in a round.
    fn in_a_round(&self) -> Duration {
        Lengths::of(self.cell).whole() * self.turns
    }

    /// Approximate duration of what is done for it besides: connecting, and the first round, which does not count because connections
    /// adapt in it.
    fn around(&self) -> Duration {
        ENDS + Lengths::of_first(self.cell).whole()
    }
}

impl<'a> From<&'a Cell> for Participant<'a> {
    /// With one turn in each round.
    fn from(cell: &'a Cell) -> Self {
        Self { cell, turns: 1 }
    }
}

/// The number of turns in each round for a cell that this many others are compared with. √n times as many turns as for
/// the others make n ratios most precise for the time (Dunnett, "A multiple comparison procedure for comparing several
/// treatments with a control", JASA 50, 1955).
#[must_use]
pub(crate) fn turns_of_base(compared: usize) -> u32 {
    let compared = u32::try_from(compared).unwrap_or(u32::MAX);
    (f64::from(compared).sqrt().round() as u32).max(1)
}

/// The wanted number of rounds of a generation.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    /// Rounds with an undisturbed turn that each cell needs.
    pub wanted: u32,
    /// After this, no round begins, except the first.
    pub deadline: Option<Instant>,
}

/// The number of rounds of a generation: the optimum, within a factor of the number asked for. If the optimum is
/// unknown, or the number asked for is beyond [`ROUNDS`], it is the number asked for.
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
    /// Whether this machine's clocks can measure the CPU time of a turn.
    #[must_use]
    pub(crate) fn has_turns(&self) -> bool {
        self.meter.accounting() != CpuAccounting::ProcStat
    }

    /// What a generation of cells costs beyond its rounds, in rounds, if its labs exist.
    #[must_use]
    pub fn generation_cost(cells: &[Participant<'_>]) -> f64 {
        let around: Duration = cells.iter().map(Participant::around).sum();
        let round: Duration = cells.iter().map(Participant::in_a_round).sum();
        around.as_secs_f64() / round.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Approximate duration of a generation of cells in existing labs.
    #[must_use]
    pub(crate) fn generation_estimate(cells: &[Participant<'_>], rounds: u32) -> Duration {
        let time = |c: &Participant<'_>| c.around() + c.in_a_round() * rounds;
        cells.iter().map(time).sum()
    }

    /// Measures cells by turns in the wanted number of rounds, or in fewer (at least one) if a deadline comes first. It
    /// uses existing `labs` and builds missing ones. Results are in the order of the cells. If the cells are of two
    /// settings, `host` is switched before the labs of each are built and before their turns of each round.
    ///
    /// # Errors
    /// The meter or a switch fails, or the user wants to stop. A cell that failed has its error in its place.
    pub fn generation(
        &self,
        cells: &[Participant<'_>],
        rounds: Rounds,
        quiet: impl Into<QuietCores>,
        order: &mut impl Rng,
        mut host: Option<&mut Host>,
        labs: &mut Labs,
    ) -> Result<Vec<Result<Measurement, Error>>, Error> {
        let quiet = quiet.into();
        let plain: Vec<&Cell> = cells.iter().map(|one| one.cell).collect();
        labs.keep_for(&plain);
        let mut variants = variants(&plain);
        variants.shuffle(order);
        let mut places: Vec<Place<'_>> = cells.iter().map(|_| Err(Error::Interrupted)).collect();
        for variant in &mut variants {
            variant.cells.shuffle(order);
            variant.switch(host.as_deref_mut(), &places)?;
            for &at in &variant.cells {
                let one = cells[at];
                let standing = labs.for_cell(one.cell).and_then(|lab| self.stand(one, lab));
                places[at] = interrupts_only(standing)?;
            }
        }
        self.take_turns(places, variants, rounds, quiet, order, host)
    }

    /// The same in labs that the caller built and may have changed, one for each cell, all of one setting.
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
            places.push(interrupts_only(self.stand(cell.into(), Rc::new(lab)))?);
        }
        self.take_turns(places, variants(&cells), rounds, quiet, order, None)
    }

    /// Takes as many rounds as needed, and concludes.
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
                        variants: &mut [Variant],
                        order: &mut _,
                        round: Round|
         -> Result<(), Error> {
            variants.shuffle(order);
            for variant in variants {
                variant.switch(host.as_deref_mut(), places)?;
                let visits = variant.visits(places, round.number.is_none(), order);
                self.round(places, &visits, round)?;
            }
            Ok(())
        };
        let first = Round {
            number: None,
            quiet,
            wanted: 0,
        };
        let_netns_cleanup_end()?;
        take(&mut places, &mut variants, order, first)?;
        for place in places.iter_mut().flatten() {
            place.taken.clear();
        }
        for number in 0.. {
            let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if !wants_another(&places, wanted) || number > 0 && is_late {
                break;
            }
            let round = Round {
                number: Some(number),
                quiet,
                wanted,
            };
            take(&mut places, &mut variants, order, round)?;
        }
        let concluded = |place: Place<'_>| place.and_then(|standing| standing.conclude(quiet));
        places
            .into_iter()
            .map(|place| interrupts_only(concluded(place)))
            .collect()
    }
}

/// Whether a generation needs another round. Not if no lab works any more.
fn wants_another(places: &[Place<'_>], wanted: u32) -> bool {
    let standing = || places.iter().flatten();
    let taken = standing().map(Standing::taken_each).max();
    let fewest_quiet = standing().map(Standing::quiet_rounds).min();
    taken
        .zip(fewest_quiet)
        .is_some_and(|(taken, fewest_quiet)| takes_another(taken, wanted, fewest_quiet))
}
