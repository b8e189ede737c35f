//! The first sentence of a report: what to choose, or why nothing can be said yet and how much more time that needs.

pub(super) mod time;
mod versus;

use super::document::Block;
use super::group::Layout;
use super::quantity::capital;
use crate::model::{
    Base, Candidate, CellReport, CellStatus, Choice, FOR_A_VERDICT, Feature, Recommendation,
    RunReport, VerdictReport, distinct,
};
use crate::plain;
use crate::stats::Verdict;
use crate::units::counted;
use time::unseen;

/// The most names in one list.
const NAMED: usize = 3;

/// The sentence, if the run asks a question at all.
pub(super) fn blocks(report: &RunReport, layout: &Layout<'_>) -> Vec<Block> {
    let sentence = sentence(report, layout);
    sentence.map(Block::Answer).into_iter().collect()
}

fn sentence(report: &RunReport, layout: &Layout<'_>) -> Option<String> {
    if report.offloads.is_some() || report.cells.is_empty() {
        return None;
    }
    if !report.cells.iter().any(CellReport::is_measured) {
        return Some("Nothing could be measured: the causes stand below.".to_owned());
    }
    if report.run.quick_look {
        let blocks = counted(report.run.blocks as usize, "block");
        return Some(format!(
            "Quick look: {blocks}, no verdicts; at least {FOR_A_VERDICT} are needed."
        ));
    }
    match &report.recommendation {
        Some(recommendation) => Some(Advice::new(recommendation, report, layout).sentence()),
        None => versus::extremes(report, layout),
    }
}

/// A recommendation being put into one sentence.
struct Advice<'a> {
    recommendation: &'a Recommendation,
    report: &'a RunReport,
    layout: &'a Layout<'a>,
}

impl<'a> Advice<'a> {
    fn new(
        recommendation: &'a Recommendation,
        report: &'a RunReport,
        layout: &'a Layout<'a>,
    ) -> Self {
        Self {
            recommendation,
            report,
            layout,
        }
    }

    fn sentence(&self) -> String {
        let choices = &self.recommendation.choices;
        let possible: Vec<&Choice> = choices.iter().filter(|c| c.reason.is_none()).collect();
        let Some(first) = possible.first() else {
            let reason = choices.iter().find_map(|choice| choice.reason.as_deref());
            return capital(&plain::line(reason.unwrap_or("no path can be recommended"))) + ".";
        };
        let candidates = distinct(possible.iter().flat_map(|c| candidates(c)).map(path));
        let needs = &self.recommendation.needs;
        if let ([only], false) = (&candidates[..], needs.is_empty()) {
            let only = plain::line(only);
            let versus = self.versus(&first.best[0].path, &possible);
            let versus = versus.map_or_else(String::new, |versus| match versus.contains(',') {
                true => format!("{versus}, and "),
                false => format!("{versus} and "),
            });
            return format!("{only} is {versus}the only one {}.", offers(needs));
        }
        let (open, told): (Vec<&Choice>, Vec<&Choice>) =
            possible.iter().partition(|choice| is_open(choice));
        if told.is_empty() {
            let verdicts = self.undecided(&open);
            return format!(
                "No path can be recommended: {}.",
                unseen(&verdicts, self.report)
            );
        }
        let mut sentence = self.leaders(&told, possible.len());
        if !open.is_empty() {
            let places = listed(&self.places(&open));
            let unseen = unseen(&self.undecided(&open), self.report);
            sentence += &format!("; under {places} {unseen}");
        }
        sentence + "."
    }

    /// Which path is best where.
    fn leaders(&self, told: &[&Choice], of: usize) -> String {
        let sets: Vec<Vec<&str>> = told
            .iter()
            .map(|choice| distinct(choice.best.iter().map(path)))
            .collect();
        let everywhere: Vec<&str> = sets[0]
            .iter()
            .copied()
            .filter(|path| sets.iter().all(|set| set.contains(path)))
            .collect();
        let among = match &self.recommendation.needs[..] {
            [] => String::new(),
            needs => format!(" of those {}", offers(needs)),
        };
        let place = match told.len() {
            1 => format!(" under {}", self.places(told)[0]),
            n if n == of => format!(" under {}", self.all(told)),
            _ => format!(" under {}", listed(&self.places(told))),
        };
        match &everywhere[..] {
            [] => self.by_load(told, &sets, &among),
            [one] => {
                let ties = told.iter().zip(&sets).filter(|(_, set)| set.len() > 1);
                let ties: Vec<&Choice> = ties.map(|(choice, _)| *choice).collect();
                let tied = match ties.len() {
                    0 => String::new(),
                    _ => format!(", though tied under {}", listed(&self.places(&ties))),
                };
                let versus = self.versus(one, told);
                let versus = versus.unwrap_or_else(|| self.none_better(told));
                let one = plain::line(one);
                format!("{one} is the best choice{among}{place}{tied}: {versus}")
            }
            several => format!(
                "{} are the best choice{among}{place}, and not told apart",
                listed(&several.iter().map(|p| plain::line(p)).collect::<Vec<_>>())
            ),
        }
    }

    /// Names the paths that have figures but failed, since these are not compared.
    fn none_better(&self, told: &[&Choice]) -> String {
        let is_barred = |cell: &&CellReport| {
            cell.is_unproved() || (cell.is_measured() && cell.status == CellStatus::Failed)
        };
        let is_meant = |cell: &&CellReport| {
            let mut choices = told.iter();
            choices.any(|choice| (choice.load, choice.peer) == (cell.load, cell.peer))
        };
        let barred = self.report.cells.iter().filter(is_barred).filter(is_meant);
        let barred = distinct(barred.map(|cell| &*cell.path));
        match &barred[..] {
            [] => "no other path is shown to be better".to_owned(),
            paths => {
                let paths: Vec<String> = paths.iter().map(|path| plain::line(path)).collect();
                format!(
                    "no other candidate is shown to be better ({} failed)",
                    listed(&paths)
                )
            }
        }
    }

    /// All choices by what they are: loads, or the same load more than once.
    fn all(&self, choices: &[&Choice]) -> String {
        let loads = distinct(choices.iter().map(|choice| choice.load)).len();
        let what = if loads == choices.len() {
            "loads"
        } else {
            "conditions"
        };
        match choices.len() {
            2 => format!("both {what}"),
            n => format!("all {n} {what}"),
        }
    }

    /// A different path for each load.
    fn by_load(&self, told: &[&Choice], sets: &[Vec<&str>], among: &str) -> String {
        let clauses = distinct(sets.iter()).into_iter().map(|set| {
            let own = told.iter().zip(sets).filter(|(_, other)| *other == set);
            let own: Vec<&Choice> = own.map(|(choice, _)| *choice).collect();
            let names: Vec<String> = set.iter().map(|path| plain::line(path)).collect();
            let names = names.split_at_checked(NAMED).map_or_else(
                || names.join(" or "),
                |(first, rest)| match rest.len() {
                    0 => first.join(" or "),
                    more => format!("{} or {more} more", first.join(", ")),
                },
            );
            format!("{names} for {}", listed(&self.places(&own)))
        });
        let clauses: Vec<String> = clauses.collect();
        format!("The best choice{among} is {}", clauses.join(", "))
    }

    /// What distinguishes choices: their loads, if that is enough.
    fn places(&self, choices: &[&Choice]) -> Vec<String> {
        let all = &self.recommendation.choices;
        let loads = distinct(all.iter().map(|choice| choice.load)).len();
        let place = |choice: &&Choice| {
            if loads == all.len() {
                return choice.load.to_string();
            }
            super::recommendation::place(choice, self.report, self.layout).replace(" · ", ", ")
        };
        choices.iter().map(place).collect()
    }

    /// A path compared with the base of the run, as text; `None` for the base itself or without one.
    fn versus(&self, path: &str, choices: &[&Choice]) -> Option<String> {
        let Some(Ok(Base::Path(base))) = self.layout.base.map(Base::parse) else {
            return None;
        };
        let mut met: Vec<(String, &VerdictReport, bool)> = Vec::new();
        for (choice, place) in choices.iter().zip(self.places(choices)) {
            let own = choice.best.iter().filter(|best| best.path == path);
            for best in own {
                let is_own = |cell: &&crate::model::CellReport| {
                    (cell.load, cell.peer, &*cell.path) == (choice.load, choice.peer, path)
                        && cell.axes == best.axes
                };
                let cell = self.report.cells.iter().find(is_own)?;
                let verdict = cell.verdicts.get(&choice.quantity)?;
                met.push((
                    place.clone(),
                    verdict,
                    versus::more_is_better(&choice.quantity),
                ));
            }
        }
        versus::phrase(&met, base)
    }

    /// Paths that could not be told apart, by load or setting.
    fn undecided(&self, open: &[&'a Choice]) -> Vec<(String, f64)> {
        let places = self.places(open);
        let all = open.iter().zip(places).map(|(choice, place)| {
            let of = |candidate: &'a Candidate| candidate.versus.get(&choice.quantity);
            let sizes = candidates(choice)
                .filter_map(of)
                .map(|v| v.smallest_detectable.unwrap_or(f64::INFINITY));
            (place, sizes.fold(0.0, f64::max))
        });
        all.collect()
    }
}

fn candidates(choice: &Choice) -> impl Iterator<Item = &Candidate> {
    choice.best.iter().chain(&choice.others)
}

fn path(candidate: &Candidate) -> &str {
    &candidate.path
}

/// Whether nothing is shown: neither a worse path, nor that all are equivalent.
fn is_open(choice: &Choice) -> bool {
    let same = |candidate: &Candidate| {
        let verdict = candidate.versus.get(&choice.quantity);
        verdict.is_none_or(|v| v.verdict == Some(Verdict::Equivalent))
    };
    choice.best.len() > 1 && choice.others.is_empty() && !choice.best.iter().all(same)
}

fn offers(needs: &[Feature]) -> String {
    match needs {
        [Feature::Filter] => "your filter sees".to_owned(),
        [Feature::Vlan] => "that puts an endpoint into a VLAN".to_owned(),
        [Feature::HostAccess] => "that reaches the host's own addresses".to_owned(),
        [Feature::Learning] => "that finds further addresses behind an endpoint".to_owned(),
        [Feature::Unprivileged] => "that needs no privilege".to_owned(),
        _ => {
            let names: Vec<&str> = needs.iter().map(|need| need.name()).collect();
            format!("that offers {}", names.join(" and "))
        }
    }
}

/// `a, b and c`; only the first of many.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] if names.len() <= NAMED + 1 => {
            format!("{} and {last}", first.join(", "))
        }
        _ => format!(
            "{} and {} more",
            names[..NAMED].join(", "),
            names.len() - NAMED
        ),
    }
}
