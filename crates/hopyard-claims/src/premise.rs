//! What a run shows of what has to be so for a part of a rule to be tested at all.

use super::called::compared;
use super::demand::pairs;
use super::groups::{Group, names};
use super::label::at;
use super::position::position;
use super::rule::{Given, Judge};
use super::values::Values;
use crate::model::{BoundPosition, Cell};
use crate::report::claims::quoted;
use crate::stats::Estimate;
use crate::store::Run;

/// What a run shows of a premise: each of its figures with the cells that it is of, and why it is not so where it is not.
pub(super) struct Premise {
    figures: Vec<(Vec<Cell>, Result<(), String>)>,
    otherwise: String,
}

impl Premise {
    /// What a run shows of it.
    pub(super) fn of_run(given: &Given, run: &Run) -> Self {
        let check = &*given.check;
        let cells: Vec<Cell> = run.header.cells.iter().map(|c| c.cell.clone()).collect();
        let found = pairs(check, &cells);
        let groups = Group::all(check, &found);
        let names = names(&groups.iter().collect::<Vec<_>>(), false);
        let figures = groups.iter().zip(names).map(|(group, name)| {
            let cells: Vec<Cell> = group.cells().cloned().collect();
            (cells, is_so(given, run, (group, &name)))
        });
        Self {
            figures: figures.collect(),
            otherwise: given.otherwise.clone(),
        }
    }

    /// Is it so for a figure of these cells? Of the premise's own figures those count that are of one of them; where none is, those of
    /// the same path, peer and load.
    ///
    /// # Errors
    /// It is not, or that is not shown, and why.
    pub(super) fn is_so_of(&self, cells: &[&Cell]) -> Result<(), String> {
        let kind = |cell: &Cell| (cell.path.clone(), cell.peer, cell.load);
        let of = |is_meant: &dyn Fn(&Cell) -> bool| {
            let own = self.figures.iter();
            let own = own.filter(|(of, _)| of.iter().any(is_meant));
            own.map(|(_, so)| so.clone()).collect::<Vec<_>>()
        };
        let mut own = of(&|cell| cells.contains(&cell));
        if own.is_empty() {
            own = of(&|cell| cells.iter().any(|one| kind(one) == kind(cell)));
        }
        if own.is_empty() {
            return Err(format!("{} (that was not measured)", self.otherwise));
        }
        own.into_iter().collect()
    }
}

/// Is one of its figures within its bounds?
fn is_so(given: &Given, run: &Run, (group, name): (&Group<'_>, &str)) -> Result<(), String> {
    let check = &*given.check;
    let Some((what, _)) = check.of_cells() else {
        return Ok(());
    };
    let what = &what.in_run(run);
    let figure = group.figure(check, &Values { run, what })?;
    let interval = figure.interval(run.header.confidence);
    let is_inside = |interval: &Estimate| {
        position(check.bounds(), &figure, (interval, interval)) == BoundPosition::Inside
    };
    if interval.as_ref().is_some_and(is_inside) {
        return Ok(());
    }
    let quantity = what.name(group.cell().load);
    let words = crate::report::claims::words(&quantity);
    let called = compared(&words, check, &[group]);
    let is_level = matches!(check.judge, Judge::Level { .. });
    let quantity = is_level.then_some(quantity.as_str());
    let seen = interval.map_or_else(
        || "is not known".to_owned(),
        |interval| format!("is {}", quoted(quantity, &interval)),
    );
    let at = at(name);
    Err(format!("{} ({called} {seen}{at})", given.otherwise))
}
