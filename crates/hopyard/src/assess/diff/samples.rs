//! The samples of one cell in two runs.

use crate::assess::base::base_of;
use crate::assess::cells::measured;
use crate::assess::last_attempts;
use crate::assess::quantities::Quantity;
use crate::assess::verdicts::paired;
use crate::model::{Cell, LoadKind, MeasuredIn, RunReport, Sample};
use crate::stats::{self, Estimate, Samples};
use crate::store::{Header, Run};

/// One of the two runs.
pub(super) struct Side<'a> {
    header: &'a Header,
    report: &'a RunReport,
    samples: Vec<&'a Sample>,
}

/// A quantity of one cell in one run.
pub(super) struct Series {
    /// A value per block.
    pub(super) values: Vec<f64>,
    /// All of them together, as a report of the run has it.
    pub(super) estimate: Estimate,
}

/// A cell with figures in both runs: its place in each, and that of its base where ratios are compared.
pub(super) struct Found<'a> {
    /// The base.
    pub(super) base: Option<String>,
    sides: &'a [Side<'a>; 2],
    at: [usize; 2],
    bases: Option<[usize; 2]>,
}

impl<'a> Side<'a> {
    pub(super) fn of(run: &'a Run, report: &'a RunReport) -> Self {
        Self {
            header: &run.header,
            report,
            samples: last_attempts(&run.samples),
        }
    }

    /// Why there are no figures of a cell, where there are none.
    fn missing(&self, at: Option<usize>) -> Option<String> {
        let Some(cell) = at.and_then(|at| self.report.cells.get(at)) else {
            return Some("not in its plan".to_owned());
        };
        let none = cell.estimates.is_empty();
        none.then(|| {
            cell.cause
                .clone()
                .unwrap_or_else(|| "too few samples".to_owned())
        })
    }

    fn cell(&self, at: usize) -> &Cell {
        &self.header.cells[at].cell
    }
}

/// Finds a cell in both runs, or says where it is and why it cannot be compared.
pub(super) fn of_cell<'a>(
    sides: &'a [Side<'a>; 2],
    at: [Option<usize>; 2],
    relative: bool,
) -> Result<Found<'a>, (MeasuredIn, String)> {
    let [a, b] = [0, 1].map(|run| sides[run].missing(at[run]));
    let at = match (a, b, at) {
        (None, None, [Some(a), Some(b)]) => [a, b],
        (None, b, _) => return Err((MeasuredIn::A, in_run("B", b))),
        (a, None, _) => return Err((MeasuredIn::B, in_run("A", a))),
        (a, b, _) => {
            let both = format!("{}; {}", in_run("A", a), in_run("B", b));
            return Err((MeasuredIn::Neither, both));
        }
    };
    let (base, bases) = if relative {
        let (name, bases) = common_base(sides, at).map_err(|why| (MeasuredIn::Both, why))?;
        (Some(name), Some(bases))
    } else {
        (None, None)
    };
    Ok(Found {
        base,
        sides,
        at,
        bases,
    })
}

fn in_run(name: &str, cause: Option<String>) -> String {
    format!("run {name}: {}", cause.unwrap_or_default())
}

/// The base of a cell, where it is the same in both runs.
fn common_base(sides: &[Side<'_>; 2], at: [usize; 2]) -> Result<(String, [usize; 2]), String> {
    match [0, 1].map(|run| base_of(sides[run].header, at[run])) {
        [Some((name, a)), Some((_, b))] if sides[0].cell(a) == sides[1].cell(b) => {
            Ok((name, [a, b]))
        }
        [Some((a, _)), Some((b, _))] => {
            Err(format!("its base is not the same: {a} in A, {b} in B"))
        }
        [None, None] => Err("it has no base, or is one".to_owned()),
        [_, _] => Err("it has a base in one run only".to_owned()),
    }
}

impl Found<'_> {
    /// Does either run have a figure of it?
    pub(super) fn has(&self, quantity: &Quantity) -> bool {
        (0..2).any(|run| {
            let cell = &self.sides[run].report.cells[self.at[run]];
            cell.estimates.contains_key(quantity.name)
        })
    }

    /// A quantity in both runs; `None` where one of them has no figure of it.
    pub(super) fn series(
        &self,
        quantity: &Quantity,
        load: LoadKind,
        confidence: f64,
    ) -> Option<[Series; 2]> {
        let one = |run: usize| match self.bases {
            Some(bases) => self.relative(run, bases[run], quantity, confidence),
            None => self.plain(run, quantity, load, confidence),
        };
        Some([one(0)?, one(1)?])
    }

    fn plain(
        &self,
        run: usize,
        quantity: &Quantity,
        load: LoadKind,
        confidence: f64,
    ) -> Option<Series> {
        let side = &self.sides[run];
        let measured = measured(&side.samples, self.at[run]);
        let tolerance = side.header.cpu_tolerance();
        Some(Series {
            values: measured
                .iter()
                .filter_map(|m| quantity.value(m, load, tolerance))
                .collect(),
            estimate: quantity.estimate(&measured, load, tolerance, confidence)?,
        })
    }

    fn relative(
        &self,
        run: usize,
        base: usize,
        quantity: &Quantity,
        confidence: f64,
    ) -> Option<Series> {
        let Side {
            header, samples, ..
        } = &self.sides[run];
        let (own, others) = paired(header, samples, [self.at[run], base], quantity);
        let values: Vec<f64> = own
            .iter()
            .zip(&others)
            .map(|(own, base)| own / base)
            .collect();
        let estimate = stats::log_mean_interval(&Samples::new(&values).ok()?, confidence)?;
        Some(Series { values, estimate })
    }
}
