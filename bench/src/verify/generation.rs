//! One generation of turns in labs that an experiment prepared.

use hopyard::lab::{self, Lab};
use hopyard::measure::{QuietCores, Sampler, turns};
use hopyard::model::{Cell, Measurement};
use rand_chacha::ChaCha8Rng;

use crate::bench::on_its_way;
use crate::experiment::Failure;

/// A new lab for a cell.
pub(crate) fn lab_of(cell: &Cell) -> Result<Lab, Failure> {
    Ok(Lab::build(lab::path(&cell.path)?, cell.peer, &cell.axes)?)
}

/// Measures cells by turns, each in its lab: as many rounds as make up the sampler's window, with disturbed turns
/// repeated. Results are in the order of the labs; if one cell fails, all do.
pub(crate) fn generation(
    sampler: &Sampler,
    labs: Vec<(&Cell, Lab)>,
    quiet: impl Into<QuietCores>,
    order: &mut ChaCha8Rng,
) -> Result<Vec<Measurement>, Failure> {
    let cells = labs.iter().map(|(cell, _)| *cell);
    let rounds = turns::Rounds {
        wanted: cells
            .map(|cell| turns::rounds(cell, sampler.window))
            .max()
            .unwrap_or(1),
        deadline: None,
    };
    let measured = sampler.generation_in(labs, rounds, quiet, order)?;
    measured
        .into_iter()
        .map(|m| on_its_way(m.map_err(Failure::from)?))
        .collect()
}
