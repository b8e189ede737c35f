//! Which cells to measure more of, for a claim that is undecided.
//!
//! Claims that the first blocks decide are left alone. The time that is left goes to the others, one after another, the one first that
//! seems to be decided soonest, and only to the cells that its verdict hangs on. Checking after every few blocks makes wrong verdicts more
//! frequent than the confidence says. So checks are few, and a verdict before the last one takes a part of the risk of error (after
//! Haybittle 1971 and Peto 1976, who asked interim looks of trials for more than the last one).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use super::bounds::Bounds;
use super::demand::{PlanDemand, needs_profile, part};
use super::figure::{Figure, Spread};
use super::rule::Check;
use super::verdict::{Judged, checks, together};
use super::{Chosen, Evidence};
use crate::model::{Blocks, BoundPosition, Cell, ClaimVerdict, FOR_A_VERDICT};
use crate::plan;
use crate::stats::{self, Estimate};
use crate::store::Run;

/// Share of the risk of error that a verdict has before the last one. With two further looks a claim that lies on its bound gets a verdict
/// in 7 % of simulated cases, of which 5 % are asked for (tests/looks.rs); with four of them at a fifth of the risk, in 10 %.
pub(super) const EARLY: f64 = 0.1;
/// A claim gets more blocks at most this many times. Some blocks do not narrow their figures: those of cells that fail, or of a figure that
/// is known only as finely as numbers of senders were measured.
pub const MOST_TIMES: usize = 2;
/// A claim that seems to take more than this many times what is left is not begun: what it takes is known only roughly.
const HOPE: u32 = 4;
/// The blocks that a claim gets at once, over those that it has. Not fewer, so that checks are few; not more, because afterwards it is
/// known better how many are missing.
const GROWTH: RangeInclusive<f64> = 0.5..=2.0;

/// More blocks of some cells of a plan, for a claim.
#[derive(Debug)]
pub struct Further {
    /// The claim.
    pub claim: String,
    /// The plan with the cells and the number of blocks.
    pub demand: PlanDemand,
    /// The time that deciding the claim takes, roughly.
    pub takes: Duration,
}

/// What to measure next with the time that is left. What was `spent` on a claim counts with what it still seems to take: one that takes
/// more each time lies on its bound, and shall not keep the others waiting. `None` if every claim is decided, or seems to take too long.
///
/// # Errors
/// A plan that comes along is wrong, which a test rules out.
pub fn further(
    chosen: &[Chosen<'_>],
    evidence: &Evidence,
    left: Duration,
    spent: &dyn Fn(&str) -> Duration,
) -> Result<Option<Further>, plan::FileError> {
    let wanted = chosen.iter().flat_map(|one| wanted(*one, evidence));
    let in_time = wanted.filter(|wanted| wanted.takes <= left * HOPE);
    let all = |wanted: &Wanted| wanted.takes + spent(&wanted.claim);
    match in_time.min_by_key(|wanted| (!wanted.decides, all(wanted))) {
        Some(wanted) => wanted.further(evidence).map(Some),
        None => Ok(None),
    }
}

/// What a claim wants of one plan.
#[derive(Debug)]
struct Wanted {
    claim: String,
    plan: String,
    cells: Vec<Cell>,
    profile: bool,
    /// Can it be decided? A claim of which something cannot be tested is not shown to hold.
    decides: bool,
    /// Blocks that there are, and those that are missing.
    had: f64,
    missing: f64,
    takes: Duration,
}

/// Cells of a point that lies across the bounds.
struct Open<'a> {
    check: &'a Check,
    cells: &'a [Cell],
    /// Blocks in which the figure is known, and those that are missing.
    known: f64,
    missing: f64,
    /// Is the estimate outside the rule's bounds?
    is_outside: bool,
}

/// Points that decide a part of a rule, if their estimates are right.
struct Deciding<'a> {
    /// Do they refute it, and with it the claim?
    refutes: bool,
    open: Vec<Open<'a>>,
}

impl Deciding<'_> {
    fn missing(&self) -> f64 {
        self.open
            .iter()
            .map(|open| open.missing)
            .fold(0.0, f64::max)
    }
}

/// What an undecided claim wants of each plan; nothing of one that is decided or that blocks cannot decide.
fn wanted(one: Chosen<'_>, evidence: &Evidence) -> Vec<Wanted> {
    let judged = checks(one, evidence, EARLY);
    let reports: Vec<_> = judged.iter().map(|part| part.report.clone()).collect();
    if together(&reports) != ClaimVerdict::Undecided {
        return Vec::new();
    }
    let undecided = |part: &&Judged<'_>| part.report.verdict == ClaimVerdict::Undecided;
    let parts = judged.iter().filter(undecided).filter_map(deciding);
    let (refuting, showing): (Vec<_>, Vec<_>) = parts.partition(|part| part.refutes);
    let is_whole = |part: &Judged<'_>| {
        let report = &part.report;
        let is_tested = report.untested.is_empty() && report.verdict != ClaimVerdict::Untestable;
        is_tested && part.check.stronger.is_none()
    };
    let decides = !refuting.is_empty() || judged.iter().all(is_whole);
    let open = match soonest(refuting) {
        // One part that fails refutes the claim.
        Some(part) => part.open,
        None => showing.into_iter().flat_map(|part| part.open).collect(),
    };
    let mut by_plan: BTreeMap<&str, Vec<Open<'_>>> = BTreeMap::new();
    for open in open {
        let plan = one.plan_of(open.check);
        by_plan.entry(plan).or_default().push(open);
    }
    let of_plan = |(plan, open): (&str, Vec<Open<'_>>)| {
        let run = evidence.of_plan(plan).ok()?;
        of_plan(&one.claim.id, run, &open, decides)
    };
    by_plan.into_iter().filter_map(of_plan).collect()
}

/// The fewest blocks that decide a part: as many points outside as refute it, or within as it takes to hold.
fn deciding<'a>(part: &'a Judged<'a>) -> Option<Deciding<'a>> {
    let points = &part.report.points;
    let count = |lies| points.iter().filter(|point| point.lies == lies).count();
    let over = part.check.over;
    let (outside, inside): (Vec<_>, Vec<_>) = open_points(part).partition(|open| open.is_outside);
    let nearest = |mut open: Vec<Open<'a>>, wanted: usize, refutes: bool| {
        open.sort_by(|a, b| a.missing.total_cmp(&b.missing));
        let is_possible = (1..=open.len()).contains(&wanted);
        open.truncate(wanted);
        is_possible.then_some(Deciding { refutes, open })
    };
    let lacks = |needed: usize, lies| needed.saturating_sub(count(lies));
    let needed = lacks(over.outside(points.len()), BoundPosition::Outside);
    let refuting = nearest(outside, needed, true);
    let is_shown = |verdict| {
        part.check
            .shown_by_no_figure(verdict, part.is_diluted)
            .is_none()
    };
    let refuting = refuting.filter(|_| is_shown(ClaimVerdict::Fails));
    let needed = lacks(over.within(points.len()), BoundPosition::Inside);
    let showing = nearest(inside, needed, false).filter(|_| is_shown(ClaimVerdict::Holds));
    soonest(refuting.into_iter().chain(showing))
}

fn soonest<'a>(all: impl IntoIterator<Item = Deciding<'a>>) -> Option<Deciding<'a>> {
    let by_blocks = |a: &Deciding<'_>, b: &Deciding<'_>| a.missing().total_cmp(&b.missing());
    all.into_iter().min_by(by_blocks)
}

/// The points of a part that lie across its bounds.
fn open_points<'a>(part: &'a Judged<'a>) -> impl Iterator<Item = Open<'a>> {
    let bounds = Bounds::of_report(&part.report);
    let points = part.report.points.iter().zip(&part.places);
    points.filter_map(move |(point, place)| {
        let own = &point.measured;
        let seen = Seen::of(own, &place.figure);
        let is_outside = bounds.margin(seen.expected.mean) < 0.0;
        // If only a disturbed window is above 0, no number of others shows that nothing is.
        let is_hopeless = bounds.ask_for_none() && own.value > 0.0;
        let is_open = point.lies == BoundPosition::Across && !place.cells.is_empty();
        let confidence = if is_outside { &place.wide } else { own }.confidence;
        (is_open && !is_hopeless).then(|| Open {
            check: part.check,
            cells: &place.cells,
            known: own.n as f64,
            missing: missing(&seen, confidence, bounds),
            is_outside,
        })
    })
}

/// What was seen of a figure, by which further blocks are planned.
pub(super) struct Seen {
    blocks: f64,
    /// Of all blocks that there are.
    all: Spread,
    /// Of further blocks, as expected: like most of the present ones. One disturbed block of eight can move the mean of all to a bound;
    /// if further blocks were like that, hundreds would seem to be missing.
    expected: Spread,
}

impl Seen {
    pub(super) fn of(measured: &Estimate, figure: &Figure) -> Self {
        /// Some blocks lie apart if the spread of all is more than this many times that of most.
        const SOME_APART: f64 = 2.0;
        let blocks = measured.n as f64;
        let error = measured.standard_error().unwrap_or(0.0);
        let all = Spread {
            mean: measured.value,
            sd: error * blocks.sqrt(),
        };
        let most = figure.of_most_blocks();
        let most = most.filter(|most| all.sd > SOME_APART * most.sd);
        Self {
            blocks,
            all,
            expected: most.unwrap_or(all),
        }
    }

    /// Of so many blocks, the present ones included: the verdict is by all of them.
    fn with(&self, blocks: f64) -> Spread {
        let (all, expected) = (self.all, self.expected);
        let more = blocks - self.blocks;
        let mean = (self.blocks * all.mean + more * expected.mean) / blocks;
        let around = |of: Spread| of.sd.powi(2) + (of.mean - mean).powi(2);
        let present =
            (self.blocks - 1.0) * all.sd.powi(2) + self.blocks * (all.mean - mean).powi(2);
        Spread {
            mean,
            sd: ((present + more * around(expected)) / (blocks - 1.0)).sqrt(),
        }
    }
}

/// Blocks that are missing until the last look decides with the probability [`stats::POWER`], if further ones are as expected.
/// `confidence` is that of an early look. Infinite for a value on the bound.
pub(super) fn missing(seen: &Seen, confidence: f64, bounds: Bounds) -> f64 {
    /// A claim that takes more blocks counts as one on the bound.
    const MOST: f64 = 1e5;
    let last = 1.0 - (1.0 - confidence) / EARLY;
    let is_outside = |mean: f64| bounds.margin(mean) < 0.0;
    let needed = |Spread { mean, sd }: Spread| {
        if is_outside(mean) != is_outside(seen.expected.mean) {
            return f64::INFINITY;
        }
        // A figure without spread is sure with any number.
        if sd == 0.0 {
            return 0.0;
        }
        let needed = stats::blocks_needed(bounds.distance(mean) / sd, last, stats::POWER);
        needed.map_or(f64::INFINITY, f64::from)
    };
    let least = seen.blocks + f64::from(FOR_A_VERDICT);
    let all = if seen.expected == seen.all {
        needed(seen.all).max(least)
    } else {
        // The spread of all blocks falls with their number, because those apart become a smaller share of them.
        let tried = std::iter::successors(Some(least), |blocks| Some((blocks * 1.2).ceil()));
        let mut tried = tried.take_while(|blocks| *blocks < MOST);
        let enough = tried.find(|blocks| needed(seen.with(*blocks)) <= *blocks);
        enough.unwrap_or(f64::INFINITY)
    };
    all - seen.blocks
}

/// How many blocks a claim gets at once, of those that it has and those that are missing.
pub(super) fn at_once(had: f64, missing: f64) -> f64 {
    let [least, most] = [GROWTH.start(), GROWTH.end()].map(|factor| had * factor);
    missing.clamp(least, most).max(f64::from(FOR_A_VERDICT))
}

fn of_plan(claim: &str, run: &Run, open: &[Open<'_>], decides: bool) -> Option<Wanted> {
    let planned = run.header.cells.iter().map(|planned| &planned.cell);
    let is_needed = |cell: &&Cell| open.iter().any(|open| open.cells.contains(cell));
    let cells: Vec<Cell> = planned.filter(is_needed).cloned().collect();
    let profile = open.iter().any(|open| needs_profile(open.check));
    let had = |open: &Open<'_>| blocks_of(run, open.cells) as f64;
    // A figure may be unknown in some blocks, as CPU time is while the hypervisor takes much.
    let missing = |open: &Open<'_>| open.missing * (had(open) / open.known).max(1.0);
    let missing = open.iter().map(missing).fold(0.0, f64::max);
    let block = block_takes(run, &cells, profile);
    // A part that stands on its bound takes for ever.
    let takes = Duration::try_from_secs_f64(block.as_secs_f64() * missing).ok()?;
    (!cells.is_empty()).then(|| Wanted {
        claim: claim.to_owned(),
        plan: run.header.plan.clone(),
        cells,
        profile,
        decides,
        had: open.iter().map(had).fold(0.0, f64::max),
        missing,
        takes,
    })
}

/// The blocks that have all of these cells.
fn blocks_of(run: &Run, cells: &[Cell]) -> usize {
    let of_cell = |cell: &Cell| -> BTreeSet<u32> {
        let at = run.header.cells.iter().position(|one| one.cell == *cell);
        let own = run.samples.iter().filter(|one| Some(one.cell) == at);
        own.map(|sample| sample.block).collect()
    };
    let common = cells.iter().map(of_cell).reduce(|a, b| &a & &b);
    common.map_or(0, |blocks| blocks.len())
}

/// How long these cells took in a block, on average. Of cells that took turns each has an equal part of their time.
fn block_takes(run: &Run, cells: &[Cell], profile: bool) -> Duration {
    let mut shared: BTreeMap<(u32, u64), u32> = BTreeMap::new();
    for sample in &run.samples {
        *shared.entry((sample.block, sample.started_ns)).or_default() += 1;
    }
    let of_cell = |cell: &Cell| -> Option<Duration> {
        let at = run
            .header
            .cells
            .iter()
            .position(|planned| planned.cell == *cell)?;
        let own = run.samples.iter().filter(|sample| sample.cell == at);
        let parts = own.map(|sample| {
            Duration::from_nanos(sample.took_ns) / shared[&(sample.block, sample.started_ns)]
        });
        let count = u32::try_from(parts.clone().count()).ok()?;
        parts.sum::<Duration>().checked_div(count)
    };
    let measuring: Duration = cells.iter().filter_map(of_cell).sum();
    let header = &run.header;
    let window = header.profile_window_ns.unwrap_or(header.window_ns);
    let profiling =
        Duration::from_nanos(window + header.warm_up_ns) * u32::try_from(cells.len()).unwrap_or(0);
    measuring + if profile { profiling } else { Duration::ZERO }
}

impl Wanted {
    fn further(self, evidence: &Evidence) -> Result<Further, plan::FileError> {
        let mut plan = plan::find(&self.plan)?;
        if evidence.first_looks.contains(&self.plan) {
            plan.apply_quick_preset();
        }
        // Saturates, and no plan has so many.
        let blocks = (at_once(self.had, self.missing).ceil() as u32).min(Blocks::MOST);
        plan.blocks = Blocks {
            min: blocks,
            max: blocks,
        };
        plan.time_limit = None;
        plan.parts = self.cells.iter().map(part).collect();
        Ok(Further {
            claim: self.claim,
            takes: self.takes,
            demand: PlanDemand {
                plan,
                profile: self.profile,
                claims: 1,
                left_out: Vec::new(),
            },
        })
    }
}
