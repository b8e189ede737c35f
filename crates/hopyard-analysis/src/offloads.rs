//! The result of a sweep of offloads: which flag matters, and which only together with another.
//!
//! A flag is judged by the combination that differs from all on in that flag alone, as read back. A combination in
//! which another flag goes off as well shows nothing about the flag until it is compared with that other flag off.

mod changes;
mod sentence;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use changes::offload_changes;

use super::quantities::{cost, main_figure};
use crate::model::stored::Header;
use crate::model::{
    Axes, CellReport, LoadKind, OffloadChange, OffloadCombination, OffloadContrast, OffloadFinding,
    OffloadFlag, OffloadReport, OffloadSurvey, Peer, RunSummary, Switch, VerdictReport,
};
use crate::stats::Verdict;

type Verdicts = BTreeMap<String, VerdictReport>;

/// Two cells to compare, besides the comparisons with their bases.
pub(super) struct Contrast {
    load: LoadKind,
    peer: Peer,
    flag: OffloadFlag,
    given: OffloadFlag,
    /// The cell with both flags off, and the cell with the given one off.
    pub(super) cells: (usize, usize),
    /// Name of the second.
    pub(super) base: String,
}

/// Every flag switched off while another one is off.
pub(super) fn contrasts(header: &Header) -> Vec<Contrast> {
    let Some(survey) = &header.offloads else {
        return Vec::new();
    };
    let mut contrasts = Vec::new();
    for (flag, given, both, one) in pairs(survey) {
        let with = |change: &OffloadChange, load: LoadKind, peer: Peer| {
            header.cells.iter().position(|c| {
                (c.cell.load, c.cell.peer) == (load, peer)
                    && OffloadChange::of(&c.cell.axes).as_ref() == Some(change)
            })
        };
        for (first, planned) in header.cells.iter().enumerate() {
            let (load, peer) = (planned.cell.load, planned.cell.peer);
            if OffloadChange::of(&planned.cell.axes).as_ref() != Some(both) {
                continue;
            }
            contrasts.extend(with(one, load, peer).map(|second| Contrast {
                load,
                peer,
                flag,
                given,
                cells: (first, second),
                base: one.to_string(),
            }));
        }
    }
    contrasts
}

/// (flag, other flag, combination with both off, combination with the other off).
fn pairs(
    survey: &OffloadSurvey,
) -> Vec<(OffloadFlag, OffloadFlag, &OffloadChange, &OffloadChange)> {
    let measured = || survey.combinations.iter().filter(|c| c.is_measured());
    let mut pairs = Vec::new();
    for both in measured() {
        let [one, other] = both.changed[..] else {
            continue;
        };
        for (flag, given) in [(one, other), (other, one)] {
            let alone = measured().find(|c| c.changed == [given]);
            pairs.extend(alone.map(|alone| (flag, given, &both.change, &alone.change)));
        }
    }
    pairs
}

/// The report; `None` if the run is not a sweep of offloads.
pub(super) fn report(
    header: &Header,
    summary: &RunSummary,
    cells: &[CellReport],
    asked: Vec<Contrast>,
    answers: Vec<Verdicts>,
) -> Option<OffloadReport> {
    let survey = header.offloads.clone()?;
    let contrasts: Vec<OffloadContrast> = asked
        .into_iter()
        .zip(answers)
        .map(|(contrast, verdicts)| OffloadContrast {
            load: contrast.load,
            peer: contrast.peer,
            flag: contrast.flag,
            given: contrast.given,
            verdicts,
        })
        .collect();
    let mut findings: Vec<OffloadFinding> = Vec::new();
    for cell in cells {
        let (load, peer) = (cell.load, cell.peer);
        if findings.iter().all(|f| (f.load, f.peer) != (load, peer)) {
            let sweep = Sweep {
                survey: &survey,
                cells: cells
                    .iter()
                    .filter(|c| (c.load, c.peer) == (load, peer))
                    .collect(),
                contrasts: contrasts
                    .iter()
                    .filter(|c| (c.load, c.peer) == (load, peer))
                    .collect(),
                summary,
                load,
                peer,
            };
            findings.push(sweep.finding());
        }
    }
    Some(OffloadReport {
        survey,
        contrasts,
        findings,
    })
}

/// The cells of one load.
struct Sweep<'a> {
    survey: &'a OffloadSurvey,
    cells: Vec<&'a CellReport>,
    contrasts: Vec<&'a OffloadContrast>,
    summary: &'a RunSummary,
    load: LoadKind,
    peer: Peer,
}

/// A flag switched off by name, with the rest on.
struct Single<'a> {
    flag: OffloadFlag,
    /// Flags that go off with it.
    along: Vec<OffloadFlag>,
    /// Comparisons with all on.
    verdicts: &'a Verdicts,
    shown: Shown,
}

/// The joint result of the verdicts on main figure and CPU cost.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    /// One of them differs.
    Different,
    /// Both are equivalent.
    Equivalent,
    /// Neither; a difference of this size would have been detected.
    Unclear(f64),
}

/// The main figure of a load and its cost. A sweep of offloads does not search.
fn quantities(load: LoadKind) -> [&'static str; 2] {
    [main_figure(load, &Axes::default()), cost(load)]
}

/// The comparisons that a finding is based on.
fn judged(
    verdicts: &Verdicts,
    load: LoadKind,
) -> impl Iterator<Item = (&'static str, &VerdictReport)> {
    quantities(load)
        .into_iter()
        .filter_map(|name| Some((name, verdicts.get(name)?)))
}

/// `None` if nothing was judged.
fn shown(verdicts: &Verdicts, load: LoadKind) -> Option<Shown> {
    let mut shown = Shown::Equivalent;
    let mut any = false;
    for name in quantities(load) {
        let report = verdicts.get(name);
        let Some((report, verdict)) = report.and_then(|it| Some((it, it.verdict?))) else {
            // What was not judged may differ by any factor.
            shown = match shown {
                Shown::Different => Shown::Different,
                Shown::Equivalent | Shown::Unclear(_) => Shown::Unclear(f64::INFINITY),
            };
            continue;
        };
        any = true;
        let size = report.smallest_detectable.unwrap_or(f64::INFINITY);
        shown = match (verdict, shown) {
            (Verdict::Different, _) | (_, Shown::Different) => Shown::Different,
            (Verdict::Equivalent, before) => before,
            (Verdict::Inconclusive, Shown::Unclear(before)) => Shown::Unclear(before.max(size)),
            (Verdict::Inconclusive, Shown::Equivalent) => Shown::Unclear(size),
        };
    }
    any.then_some(shown)
}

/// Of those quantities that are shown to differ, the one furthest from 1, and its distance.
fn strength(verdicts: &Verdicts, load: LoadKind) -> Option<(f64, &'static str)> {
    judged(verdicts, load)
        .filter(|(_, report)| report.verdict == Some(Verdict::Different))
        .map(|(name, report)| (report.ratio.value.ln().abs(), name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
}

impl<'a> Sweep<'a> {
    fn combination(&self, change: &OffloadChange) -> Option<&'a OffloadCombination> {
        self.survey
            .combinations
            .iter()
            .find(|c| c.change == *change)
    }

    /// The comparison of a combination with its base, or of the combination that was measured instead. If that one has
    /// another base, its comparison cannot be used.
    fn verdicts(&self, change: &OffloadChange) -> Option<&'a Verdicts> {
        let combination = self.combination(change)?;
        let measured = combination.same_as.as_ref().unwrap_or(change);
        let cell = self.cell(measured)?;
        // A replacement with all off as its base has another base.
        let same_base = measured.base() == change.base();
        (same_base && cell.way.proved && !cell.verdicts.is_empty()).then_some(&cell.verdicts)
    }

    /// Flags that were changed alone, in the order of the survey.
    fn singles(&self) -> Vec<Single<'a>> {
        let single = |combination: &'a OffloadCombination| {
            let change = &combination.change;
            let [flag] = change.flags[..] else {
                return None;
            };
            if change.rest != Switch::On || !combination.changed.contains(&flag) {
                return None;
            }
            let verdicts = self.verdicts(change)?;
            let along = combination.changed.iter().copied();
            Some(Single {
                flag,
                along: along.filter(|other| *other != flag).collect(),
                verdicts,
                shown: shown(verdicts, self.load)?,
            })
        };
        self.survey.combinations.iter().filter_map(single).collect()
    }

    fn contrast(&self, flag: OffloadFlag, given: OffloadFlag) -> Option<&'a OffloadContrast> {
        let proved = |flags: &[OffloadFlag]| {
            let own = self
                .survey
                .combinations
                .iter()
                .filter(|c| c.is_measured() && same_flags(&c.changed, flags));
            own.flat_map(|c| self.cell(&c.change))
                .any(|cell| cell.way.proved)
        };
        self.contrasts
            .iter()
            .copied()
            .find(|c| (c.flag, c.given) == (flag, given))
            .filter(|_| proved(&[flag, given]) && proved(&[given]))
    }

    fn cell(&self, change: &OffloadChange) -> Option<&'a CellReport> {
        self.cells
            .iter()
            .copied()
            .find(|cell| OffloadChange::of(&cell.axes).as_ref() == Some(change))
    }

    fn finding(&self) -> OffloadFinding {
        let singles = self.singles();
        let (alone, taking): (Vec<_>, Vec<_>) =
            singles.iter().partition(|single| single.along.is_empty());
        let (leader, near) = self.leader(&alone);
        let names = |s: &&Single<'_>| s.flag;
        OffloadFinding {
            load: self.load,
            peer: self.peer,
            flag: leader.map(|l| l.flag),
            not_told_apart: near.iter().map(names).collect(),
            verdicts: leader.map_or_else(Verdicts::new, |l| self.differing(l.verdicts)),
            sentence: self.sentence(&alone, leader, &near),
            remarks: if singles.is_empty() {
                Vec::new()
            } else {
                self.remarks(&alone, &taking, leader)
            },
        }
    }

    fn differing(&self, verdicts: &Verdicts) -> Verdicts {
        judged(verdicts, self.load)
            .filter(|(_, report)| report.verdict == Some(Verdict::Different))
            .map(|(name, report)| (name.to_owned(), report.clone()))
            .collect()
    }

    /// The flag with the greatest effect alone, and those whose intervals overlap its own: verdicts only compare with
    /// all on, so the order among those is not shown.
    fn leader<'s>(
        &self,
        alone: &[&'s Single<'a>],
    ) -> (Option<&'s Single<'a>>, Vec<&'s Single<'a>>) {
        let strongest = alone
            .iter()
            .filter_map(|single| Some((strength(single.verdicts, self.load)?, *single)))
            .max_by(|(a, _), (b, _)| a.0.total_cmp(&b.0));
        let Some(((_, quantity), leader)) = strongest else {
            return (None, Vec::new());
        };
        let overlaps = |single: &&&Single<'_>| {
            let ratios = (leader.verdicts.get(quantity), single.verdicts.get(quantity));
            matches!(ratios, (Some(one), Some(other))
                if one.ratio.low <= other.ratio.high && other.ratio.low <= one.ratio.high)
        };
        let near = alone
            .iter()
            .filter(|s| s.flag != leader.flag && s.shown == Shown::Different)
            .filter(overlaps)
            .copied()
            .collect();
        (Some(leader), near)
    }
}

fn same_flags(one: &[OffloadFlag], other: &[OffloadFlag]) -> bool {
    one.len() == other.len() && one.iter().all(|flag| other.contains(flag))
}
