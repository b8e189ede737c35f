//! What is known of a fleet: read from its directory, or grown while it is measured.

use std::collections::HashMap;
use std::path::Path;

use hopyard_host::bounded;
use hopyard_model::plain;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::outcome::{End, Outcome};
use crate::plan::{Column, Plan};
use crate::schedule::Pair;

pub(crate) const STORE: &str = "hopyard/fleet-store/1";
pub(crate) const PLAN: &str = "plan.json";
pub(crate) const JOURNAL: &str = "pairs.jsonl";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub(crate) schema: String,
    /// RFC 3339.
    pub(crate) started: String,
    pub(crate) plan: Plan,
    /// `load quantity` of each column, so that another version's figures are not taken for ours.
    pub(crate) columns: Vec<String>,
}

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// `hopyard fleet run` began, for the first time or to go on.
    Began { at: String },
    /// A pair ended.
    Pair {
        client: u16,
        server: u16,
        #[serde(flatten)]
        outcome: Outcome,
    },
    /// A machine did not answer any more.
    Lost { machine: u16, cause: String },
    /// The samples of all pairs of a round that are measured by now are in a file, but for those `without`, by their places.
    Kept {
        round: u32,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        without: Vec<usize>,
    },
    /// `hopyard fleet run` ended.
    Ended { why: End },
}

/// What is known of a fleet.
#[derive(Debug)]
pub struct Fleet {
    /// What was asked for.
    pub plan: Plan,
    /// When it was first begun, RFC 3339.
    pub started: String,
    /// The pairs in the order of the rounds.
    pub pairs: Vec<Pair>,
    /// What became of each, by its place among the pairs; of several attempts the last.
    pub outcomes: Vec<Option<Outcome>>,
    /// Machines that did not answer any more, and why that is thought, by their places; of the last session.
    pub lost: Vec<Option<String>>,
    /// How the last session ended; `None` of one that was killed or runs.
    pub end: Option<End>,
    /// Figures that each pair has.
    pub columns: Vec<Column>,
    /// The first place of each round among the pairs, and their number.
    rounds: Vec<usize>,
    /// Which pairs have their samples in a file.
    kept: Vec<bool>,
    /// Files that each round has.
    parts: Vec<u32>,
}

impl Fleet {
    pub(crate) fn new(plan: Plan, started: String) -> Self {
        let by_round = plan.rounds();
        let mut rounds = vec![0];
        for round in &by_round {
            rounds.push(rounds.last().unwrap_or(&0) + round.len());
        }
        let parts = vec![0; by_round.len()];
        let pairs: Vec<Pair> = by_round.into_iter().flatten().collect();
        Self {
            kept: vec![false; pairs.len()],
            rounds,
            parts,
            outcomes: vec![None; pairs.len()],
            lost: vec![None; plan.endpoints.len()],
            end: None,
            columns: plan.columns(),
            pairs,
            plan,
            started,
        }
    }

    /// What a directory holds.
    ///
    /// # Errors
    /// It is none of a fleet, or damaged: the message names file and line.
    pub fn read(directory: &Path) -> Result<Self> {
        let file = directory.join(PLAN);
        let bytes = bounded::read(&file).map_err(|e| Error::file("read", &file, e))?;
        let wrong = |why: &str| Error::Wrong(format!("{}: {}", shown(&file), plain::line(why)));
        let header: Header = serde_json::from_slice(&bytes).map_err(|e| wrong(&e.to_string()))?;
        if header.schema != STORE {
            return Err(wrong(&format!(
                "schema `{}` is not `{STORE}`",
                header.schema
            )));
        }
        header.plan.check().map_err(|why| wrong(&why))?;
        let mut fleet = Self::new(header.plan, header.started);
        if header.columns != column_names(&fleet.columns) {
            return Err(wrong(
                "its figures are those of another version of hopyard: use that version",
            ));
        }
        fleet.read_journal(&directory.join(JOURNAL))?;
        Ok(fleet)
    }

    fn read_journal(&mut self, file: &Path) -> Result<()> {
        let cannot = |e| Error::file("read", file, e);
        let places: HashMap<Pair, usize> = self
            .pairs
            .iter()
            .enumerate()
            .map(|(i, p)| (*p, i))
            .collect();
        let mut lines = bounded::Lines::open(file).map_err(cannot)?;
        let mut number = 0;
        while let Some(line) = lines.next_line().map_err(cannot)? {
            number += 1;
            let wrong =
                |why: &str| Error::Wrong(format!("{}:{number}: {}", shown(file), plain::line(why)));
            match serde_json::from_slice(&line).map_err(|e| wrong(&e.to_string()))? {
                Line::Began { .. } => {
                    self.lost.fill(None);
                    self.end = None;
                }
                Line::Pair {
                    client,
                    server,
                    outcome,
                } => {
                    let place = places.get(&Pair { client, server });
                    let place = *place.ok_or_else(|| wrong("the plan has no such pair"))?;
                    check(&outcome, self.columns.len()).map_err(wrong)?;
                    self.outcomes[place] = Some(outcome);
                }
                Line::Lost { machine, cause } => {
                    let lost = self.lost.get_mut(usize::from(machine));
                    *lost.ok_or_else(|| wrong("the plan has no such machine"))? = Some(cause);
                }
                Line::Kept { round, without } => {
                    let round = round as usize;
                    if round >= self.parts.len() {
                        return Err(wrong("the plan has no such round"));
                    }
                    self.keep(round, &without);
                }
                Line::Ended { why } => self.end = Some(why),
            }
        }
        Ok(())
    }

    /// A name for the whole of it, by when it was first begun: `20260301T101500250`.
    #[must_use]
    pub fn id(&self) -> String {
        match self.started.parse::<jiff::Timestamp>() {
            Ok(time) => time.strftime("%Y%m%dT%H%M%S%3f").to_string(),
            // Whoever wrote something else there still has a name of harmless characters.
            Err(_) => self
                .started
                .chars()
                .filter(char::is_ascii_alphanumeric)
                .collect(),
        }
    }

    /// Number of rounds.
    pub(crate) fn rounds(&self) -> usize {
        self.parts.len()
    }

    /// The round of a pair.
    #[must_use]
    pub(crate) fn round_of(&self, place: usize) -> usize {
        self.rounds.partition_point(|first| *first <= place) - 1
    }

    /// Places of a round's pairs.
    pub(crate) fn places(&self, round: usize) -> std::ops::Range<usize> {
        self.rounds[round]..self.rounds[round + 1]
    }

    /// Pairs of a round that are measured, and whose samples are in no file.
    pub(crate) fn not_kept(&self, round: usize) -> Vec<usize> {
        let is_measured = |place: &usize| {
            let outcome = self.outcomes[*place].as_ref();
            outcome.is_some_and(Outcome::is_measured)
        };
        let places = self.places(round);
        places
            .filter(|p| !self.kept[*p] && is_measured(p))
            .collect()
    }

    /// Number of the next file of a round.
    pub(crate) fn next_part(&self, round: usize) -> u32 {
        self.parts[round]
    }

    /// Whatever a round has by now is in a file, but for the samples of these pairs, which were not to be had.
    pub(crate) fn keep(&mut self, round: usize, without: &[usize]) {
        for place in self.not_kept(round) {
            self.kept[place] = !without.contains(&place);
        }
        self.parts[round] += 1;
    }

    /// Name of a machine.
    #[must_use]
    pub fn name(&self, machine: u16) -> &str {
        &self.plan.endpoints[usize::from(machine)].name
    }

    /// Why a pair was not begun. Only for one that has no outcome.
    #[must_use]
    pub(crate) fn why_skipped(&self, pair: Pair) -> String {
        let lost = |machine: &u16| self.lost[usize::from(*machine)].is_some();
        match (pair.ends().iter().find(|m| lost(m)), self.end) {
            (Some(machine), _) => format!("{} was lost before", self.name(*machine)),
            (None, Some(End::TimeLimit)) => "the time was over before".to_owned(),
            (None, Some(End::Interrupted)) => "the fleet was interrupted before".to_owned(),
            (None, Some(End::Complete)) => "the fleet ended before".to_owned(),
            (None, Some(End::Broken)) => "the fleet could not go on".to_owned(),
            (None, None) => "not measured yet".to_owned(),
        }
    }

    /// Is every pair measured?
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let mut outcomes = self.outcomes.iter();
        outcomes.all(|o| o.as_ref().is_some_and(Outcome::is_measured))
    }
}

/// Does a directory look like that of a fleet?
#[must_use]
pub fn is_fleet(directory: &Path) -> bool {
    directory.join(PLAN).is_file() && directory.join(JOURNAL).is_file()
}

pub(crate) fn shown(file: &Path) -> String {
    plain::line(&file.display().to_string())
}

pub(crate) fn column_names(columns: &[Column]) -> Vec<String> {
    let name = |c: &Column| format!("{} {}", c.load, c.quantity);
    columns.iter().map(name).collect()
}

/// What an outcome cannot be.
pub(crate) fn check(outcome: &Outcome, columns: usize) -> std::result::Result<(), &'static str> {
    if outcome.attempt == 0 {
        return Err("attempts count from 1");
    }
    if outcome.is_measured() == outcome.cause.is_some() {
        return Err("a pair that failed has a cause, and no other");
    }
    for (place, (column, figure)) in outcome.figures.iter().enumerate() {
        if usize::from(*column) >= columns {
            return Err("a figure is of no column of the plan");
        }
        if outcome.figures[..place].iter().any(|(at, _)| at == column) {
            return Err("a figure is there twice");
        }
        let ends = [figure.low, figure.value, figure.high, figure.confidence];
        let is_within = figure.low <= figure.value && figure.value <= figure.high;
        if !is_within || !ends.iter().all(|v| v.is_finite()) {
            return Err("a figure is not within its interval");
        }
    }
    Ok(())
}
