//! The figures of one cell in the runs of both sides, and in those named for their scatter.

use crate::assess;
use crate::base::base_of;
use crate::last_attempts;
use crate::model::stored::{Header, Run};
use crate::model::{Cell, CellStatus, MeasuredIn, RunReport, Sample, distinct};
use crate::quantities::Quantity;
use crate::stats::{self, Estimate, Samples};
use crate::verdicts::{is_generator_limited, paired};

/// Why a run has no figures of a cell whose traffic took another way: they are another path's.
const NOT_PROVED: &str = "its traffic did not take the path";

/// A run with its report.
pub(super) struct Assessed<'a> {
    pub(super) header: &'a Header,
    pub(super) report: RunReport,
    samples: Vec<&'a Sample>,
}

/// Runs of one thing, in the order in which they began.
pub(super) type Group<'a> = Vec<Assessed<'a>>;

/// All runs of a comparison.
pub(super) struct Groups<'a> {
    /// The two sides.
    pub(super) sides: [Group<'a>; 2],
    /// Groups of runs of one thing each; only their scatter is used.
    pub(super) repeats: Vec<Group<'a>>,
}

/// A cell with figures on both sides, and its base in its own run if ratios are compared.
pub(super) struct Found<'a> {
    groups: &'a Groups<'a>,
    pub(super) cell: &'a Cell,
    base: Option<(String, &'a Cell)>,
}

/// The figures of a quantity: an estimate for each run that has it.
pub(super) struct Figures {
    pub(super) sides: [Vec<Estimate>; 2],
    pub(super) repeats: Vec<Vec<Estimate>>,
}

pub(super) fn group(runs: &[Run]) -> Group<'_> {
    let mut group: Group<'_> = runs.iter().map(Assessed::of).collect();
    group.sort_by(|one, other| one.header.started.cmp(&other.header.started));
    group
}

impl<'a> Assessed<'a> {
    fn of(run: &'a Run) -> Self {
        Self {
            header: &run.header,
            report: assess(run),
            samples: last_attempts(&run.samples),
        }
    }

    pub(super) fn cells(&self) -> impl Iterator<Item = &'a Cell> {
        let header = self.header;
        header.cells.iter().map(|planned| &planned.cell)
    }

    /// The index of a cell with figures, or why it has none.
    pub(super) fn place(&self, cell: &Cell) -> Result<usize, Absent> {
        let Some(at) = self.cells().position(|own| own == cell) else {
            let mut others = self.header.left_out.iter();
            let why = others.find(|(path, _)| *path == cell.path);
            return Err(why.map_or(Absent::NotPlanned, |(_, why)| Absent::Lost(why.clone())));
        };
        let report = &self.report.cells[at];
        if report.estimates.is_empty() {
            let cause = report.cause.clone();
            let cause = cause.unwrap_or_else(|| "too few samples".to_owned());
            return Err(Absent::Lost(cause));
        }
        if !report.way.proved {
            return Err(Absent::Lost(NOT_PROVED.to_owned()));
        }
        Ok(at)
    }

    /// Whether it was to measure a cell that failed in some of its samples or all, that this host cannot build, or whose traffic took
    /// another way than its path.
    fn doubts(&self, cell: &Cell) -> bool {
        match self.place(cell) {
            Ok(at) => self.report.cells[at].status != CellStatus::Ok,
            Err(why) => why.was_asked_for(),
        }
    }

    /// How many samples of a cell failed, and how many there are.
    fn failed(&self, cell: &Cell) -> (usize, usize) {
        let Some(at) = self.cells().position(|own| own == cell) else {
            return (0, 0);
        };
        let own = self.samples.iter().filter(|sample| sample.cell == at);
        (self.report.cells[at].failed_samples as usize, own.count())
    }

    /// Was it emulated? `None` where it has no figures.
    fn is_emulated(&self, cell: &Cell) -> Option<bool> {
        let of_cell = &self.report.cells[self.place(cell).ok()?];
        Some(of_cell.has_emulated_guest() || self.header.environment.is_emulated())
    }

    fn base(&self, cell: &Cell) -> Option<(String, &'a Cell)> {
        let (name, at) = base_of(self.header, self.place(cell).ok()?)?;
        Some((name, &self.header.cells[at].cell))
    }

    /// The quantity as in the report of the run.
    fn plain(&self, cell: &Cell, quantity: &Quantity) -> Option<Estimate> {
        let report = &self.report.cells[self.place(cell).ok()?];
        report.estimates.get(quantity.name).cloned()
    }

    /// Its ratio to that of the base, paired within blocks.
    fn relative(&self, cell: &Cell, base: &Cell, quantity: &Quantity) -> Option<Estimate> {
        let places = [self.place(cell).ok()?, self.place(base).ok()?];
        let (own, others) = paired(self.header, &self.samples, places, quantity);
        let ratios = own.iter().zip(&others).map(|(own, base)| own / base);
        let ratios = Samples::new(&ratios.collect::<Vec<_>>()).ok()?;
        stats::log_mean_interval(&ratios, self.header.confidence)
    }
}

/// All cells of A's runs in their order, then those that only B's runs have.
pub(super) fn all_cells<'a>(sides: &[Group<'a>; 2]) -> Vec<&'a Cell> {
    distinct(sides.iter().flatten().flat_map(Assessed::cells))
}

/// Why a run has no figures of a cell, or a cell no ratio.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Absent {
    /// Nobody asked that run for it.
    #[error("not in its plan")]
    NotPlanned,
    /// Nobody asked for that ratio.
    #[error("it has no base, or is one")]
    NoBase,
    /// It was asked for.
    #[error("{0}")]
    Lost(String),
}

impl Absent {
    pub(super) fn was_asked_for(&self) -> bool {
        matches!(self, Self::Lost(_))
    }
}

/// What keeps a cell from being compared.
#[derive(Debug)]
pub(super) struct Gap {
    pub(super) measured_in: MeasuredIn,
    pub(super) cause: String,
    pub(super) why: Absent,
}

/// Why no run of a side has figures of a cell; `None` if one has.
fn missing(side: &Group<'_>, cell: &Cell) -> Option<Absent> {
    let mut causes = Vec::new();
    for run in side {
        causes.push(run.place(cell).err()?);
    }
    // One run that was asked for it says more than those that were not.
    let asked = causes.iter().find(|why| why.was_asked_for());
    let told = asked.or(causes.first()).cloned();
    Some(told.unwrap_or_else(|| Absent::Lost("no runs".to_owned())))
}

impl<'a> Groups<'a> {
    /// Finds a cell on both sides, or says where it is and why it cannot be compared.
    pub(super) fn find(&'a self, cell: &'a Cell, relative: bool) -> Result<Found<'a>, Gap> {
        let gap = |measured_in, cause: String, why: Absent| Gap {
            measured_in,
            cause,
            why,
        };
        let base = match self.sides.each_ref().map(|side| missing(side, cell)) {
            [None, None] if relative => Some(
                self.common_base(cell)
                    .map_err(|why| gap(MeasuredIn::Both, why.to_string(), why))?,
            ),
            [None, None] => None,
            [None, Some(why)] => return Err(gap(MeasuredIn::A, format!("B: {why}"), why)),
            [Some(why), None] => return Err(gap(MeasuredIn::B, format!("A: {why}"), why)),
            [Some(a), Some(b)] => {
                return Err(gap(MeasuredIn::Neither, format!("A: {a}; B: {b}"), b));
            }
        };
        let cells = std::iter::once(cell).chain(base.as_ref().map(|(_, base)| *base));
        if let Some(why) = cells
            .into_iter()
            .find_map(|cell| self.emulated_in_some(cell))
        {
            return Err(gap(MeasuredIn::Both, why.clone(), Absent::Lost(why)));
        }
        Ok(Found {
            groups: self,
            cell,
            base,
        })
    }

    /// The base of a cell, if it is the same in all runs that have the cell.
    fn common_base(&'a self, cell: &Cell) -> Result<(String, &'a Cell), Absent> {
        let bases = |side: &'a Group<'a>| {
            let runs = side.iter().filter(|run| run.place(cell).is_ok());
            runs.map(|run| run.base(cell)).collect::<Vec<_>>()
        };
        let sides = self.sides.each_ref().map(bases);
        let all: Vec<_> = sides.iter().flatten().collect();
        let some: Vec<_> = all.iter().filter_map(|base| base.as_ref()).collect();
        match some[..] {
            [] => Err(Absent::NoBase),
            _ if some.len() < all.len() => Err(Absent::Lost(
                "it has a base in some of the runs only".to_owned(),
            )),
            [first, ..] if some.iter().all(|base| base.1 == first.1) => Ok(first.clone()),
            [first, ..] => {
                let other = some.iter().find(|base| base.1 != first.1);
                let other = other.map_or("", |base| base.0.as_str());
                Err(Absent::Lost(format!(
                    "its base is not the same in all runs: {} and {other}",
                    first.0
                )))
            }
        }
    }

    /// Says so if a cell was emulated in some of the runs and not in others: no figure of one compares with a figure of the other.
    fn emulated_in_some(&self, cell: &Cell) -> Option<String> {
        let of_side = |side: &Group<'_>| -> (usize, usize) {
            let runs = side.iter().filter_map(|run| run.is_emulated(cell));
            let runs: Vec<bool> = runs.collect();
            let emulated = runs.iter().filter(|emulated| **emulated).count();
            (emulated, runs.len())
        };
        let [(a, of_a), (b, of_b)] = self.sides.each_ref().map(of_side);
        let is_mixed = (1..of_a + of_b).contains(&(a + b));
        is_mixed.then(|| {
            format!(
                "emulated in {a} of {of_a} runs of A and in {b} of {of_b} of B: emulated figures compare with no others"
            )
        })
    }

    /// The runs of a side that have figures of a cell.
    pub(super) fn having(&self, side: usize, cell: &Cell) -> usize {
        let runs = self.sides[side].iter();
        runs.filter(|run| run.place(cell).is_ok()).count()
    }
}

impl Found<'_> {
    /// Whether a larger share of B's runs than of A's failed in samples of it, or of its base, could not build it, or had traffic that
    /// took another way; or whether a larger share of B's samples failed.
    pub(super) fn is_doubtful(&self) -> bool {
        let base = self.base.as_ref().map(|(_, base)| *base);
        let doubts = |run: &&Assessed<'_>| {
            let mut cells = std::iter::once(self.cell).chain(base);
            cells.any(|cell| run.doubts(cell))
        };
        let of_side = |side: &Group<'_>| side.iter().filter(doubts).count();
        let cells = || std::iter::once(self.cell).chain(base);
        let failed = self.groups.sides.each_ref().map(|side| {
            let of_runs = side
                .iter()
                .flat_map(|run| cells().map(|cell| run.failed(cell)));
            of_runs.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
        });
        let [(a, of_a), (b, of_b)] = failed;
        // Rounded up: where one run has a block more, the same share is no whole number of samples.
        b > (a * of_b).div_ceil(of_a.max(1))
            || self.is_more_in_b(self.groups.sides.each_ref().map(of_side))
    }

    /// Whether a larger share of B's runs than of A's lacks this quantity, though they measured the cell. A percentile is known only in
    /// runs with enough observations, which are the faster ones.
    pub(super) fn is_thinned(&self, quantity: &Quantity) -> bool {
        let lacks = |run: &&Assessed<'_>| {
            run.place(self.cell).is_ok() && self.figure(run, quantity).is_none()
        };
        let of_side = |side: &Group<'_>| side.iter().filter(lacks).count();
        self.is_more_in_b(self.groups.sides.each_ref().map(of_side))
    }

    fn is_more_in_b(&self, [a, b]: [usize; 2]) -> bool {
        let [all_a, all_b] = self.groups.sides.each_ref().map(Vec::len);
        b * all_a > a * all_b
    }

    /// Whether only the generator limited this quantity in all runs, so that it says nothing of either side.
    pub(super) fn is_generator_limited(&self, quantity: &Quantity) -> bool {
        let base = self.base.as_ref().map(|(_, base)| *base);
        let mut runs = self.groups.sides.iter().flatten();
        runs.all(|run| {
            let mut cells = std::iter::once(self.cell).chain(base);
            cells.all(|cell| {
                run.place(cell)
                    .is_ok_and(|at| is_generator_limited(&run.samples, [at, at], quantity))
            })
        })
    }

    /// Whether any run has a figure of it.
    pub(super) fn has(&self, quantity: &Quantity) -> bool {
        let mut runs = self.groups.sides.iter().flatten();
        runs.any(|run| run.plain(self.cell, quantity).is_some())
    }

    pub(super) fn base_name(&self) -> Option<String> {
        self.base.as_ref().map(|(name, _)| name.clone())
    }

    fn figure(&self, run: &Assessed<'_>, quantity: &Quantity) -> Option<Estimate> {
        match &self.base {
            Some((_, base)) => run.relative(self.cell, base, quantity),
            None => run.plain(self.cell, quantity),
        }
    }

    /// The figure of a quantity in each run.
    pub(super) fn figures(&self, quantity: &Quantity) -> Figures {
        let of_run = |run: &Assessed<'_>| self.figure(run, quantity);
        let of_group = |group: &Group<'_>| group.iter().filter_map(of_run).collect::<Vec<_>>();
        let repeats = self.groups.repeats.iter().map(of_group);
        Figures {
            sides: self.groups.sides.each_ref().map(of_group),
            repeats: repeats.filter(|group| !group.is_empty()).collect(),
        }
    }
}
