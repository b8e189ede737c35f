//! The two settings of this host within a generation: the labs and turns of each are grouped.

use rand::Rng;
use rand::seq::SliceRandom;

use super::standing::{Place, Standing};
use crate::measure::Error;
use crate::model::{Cell, Setting};
use crate::settings::Host;

/// Cells of one setting, whose turns follow each other.
pub(super) struct Variant {
    pub(super) setting: Option<Setting>,
    /// Indices of the cells.
    pub(super) cells: Vec<usize>,
}

/// The settings of the cells; a single group if settings are not compared.
pub(super) fn variants(cells: &[&Cell]) -> Vec<Variant> {
    let mut variants: Vec<Variant> = Vec::new();
    for (at, cell) in cells.iter().enumerate() {
        let setting = cell.axes.setting;
        match variants.iter_mut().find(|v| v.setting == setting) {
            Some(variant) => variant.cells.push(at),
            None => variants.push(Variant {
                setting,
                cells: vec![at],
            }),
        }
    }
    variants
}

impl Variant {
    /// The order of turns in a round, at random: each index as often as it has turns in a round, or once in the first
    /// round.
    pub(super) fn visits(
        &self,
        places: &[Place<'_>],
        is_first: bool,
        order: &mut impl Rng,
    ) -> Vec<usize> {
        let turns = |at: usize| match &places[at] {
            Ok(_) if is_first => 1,
            Ok(standing) => standing.turns_each_round as usize,
            Err(_) => 0,
        };
        let each = self.cells.iter().copied();
        let mut visits: Vec<usize> = each
            .flat_map(|at| std::iter::repeat_n(at, turns(at)))
            .collect();
        visits.shuffle(order);
        visits
    }

    /// Switches the host to its setting, if there is a host to switch.
    pub(super) fn switch(
        &self,
        host: Option<&mut Host>,
        places: &[Place<'_>],
    ) -> Result<(), Error> {
        let (Some(host), Some(setting)) = (host, self.setting) else {
            return Ok(());
        };
        let labs = self.cells.iter().filter_map(|at| places[*at].as_ref().ok());
        let labs: Vec<String> = labs.map(told).collect();
        Ok(host.set(setting, &labs.join("\n"))?)
    }
}

/// Its lab in a line for the command that makes a setting: the cell and its namespaces.
fn told(standing: &Standing<'_>) -> String {
    let spaces = standing.lab.spaces().iter();
    let spaces = spaces.map(|s| format!("{}={}", s.role, s.handle.ns().proc_path().display()));
    let Cell {
        path, peer, load, ..
    } = standing.cell;
    let words = [path.clone(), peer.to_string(), load.to_string()];
    words
        .into_iter()
        .chain(spaces)
        .collect::<Vec<_>>()
        .join(" ")
}
