//! The claims of a report as a TOML file: every error names file, line and key.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::code::Code;
use super::rule::{Check, Said};
use super::select::Selection;

/// What can be wrong with a file of claims.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {message}")]
pub struct Error {
    file: String,
    /// What is wrong, with the claim or the parser's line, column and key.
    message: String,
}

/// A published report.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Its name.
    pub report: String,
    /// What it is about.
    pub title: String,
    /// Author, title, place and date.
    pub source: String,
    /// What stands in for the machines of then, and what that loses.
    pub stand_in: Option<String>,
    /// The same where the wire is a cable between two machines.
    pub stand_in_on_a_cable: Option<String>,
    /// The plan whose cells are meant where a check names none.
    pub plan: String,
    /// Plan → what it takes that most runs have not (hours, a guest): it is run for claims named by their id alone.
    #[serde(default)]
    pub by_id_only: BTreeMap<String, String>,
    /// Plans whose windows cannot be shorter: not for a first look.
    #[serde(default)]
    pub slow: Vec<String>,
    /// Plan → what a first look leaves of it.
    #[serde(default)]
    pub quick: BTreeMap<String, Selection>,
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
    /// What it left open.
    #[serde(rename = "question", default)]
    pub questions: Vec<Question>,
    /// The questions as what is measured for them.
    #[serde(skip)]
    pub asked: Vec<Claim>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub id: String,
    /// What is claimed.
    pub statement: String,
    /// What is measured.
    pub measure: String,
    /// The rule, as people read it.
    pub rule: String,
    /// What was published.
    pub published: String,
    /// Where it can be tested.
    #[serde(rename = "where")]
    pub places: Vec<Code>,
    /// What to know about that.
    pub where_remark: Option<String>,
    /// What is not to be had from hopyard or on most hosts, where no check can be made without it.
    pub missing: Option<String>,
    /// What a reader of the verdict has to know.
    pub remark: Option<String>,
    /// The rule as data; all parts have to hold.
    #[serde(rename = "check", default)]
    pub checks: Vec<Check>,
    /// Figures that a reader should see beside it; the verdict does not depend on them.
    #[serde(default)]
    pub beside: Vec<Said>,
}

impl Claim {
    /// Everything that is measured for it.
    pub fn measured(&self) -> impl Iterator<Item = &Check> {
        let beside = self.beside.iter().map(|said| &said.0);
        self.checks.iter().chain(beside)
    }
}

/// A question that a report left open.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub id: String,
    pub question: String,
    /// What would answer it.
    pub method: String,
    /// The figures that do, and what there is no figure of.
    #[serde(rename = "figure", default)]
    pub figures: Vec<Said>,
}

impl Question {
    /// It as what is measured for it.
    fn asked(&self) -> Claim {
        Claim {
            id: self.id.clone(),
            statement: self.question.clone(),
            measure: self.method.clone(),
            rule: String::new(),
            published: String::new(),
            places: Vec::new(),
            where_remark: None,
            missing: None,
            remark: None,
            checks: Vec::new(),
            beside: self.figures.clone(),
        }
    }
}

/// Reads a file of claims.
///
/// # Errors
/// It is not TOML, has a key that there is not, or a rule that cannot be.
pub fn parse(file: &str, text: &str) -> Result<Report, Error> {
    let wrong = |message: String| Error {
        file: file.to_owned(),
        message,
    };
    let mut report: Report =
        toml::from_str(text).map_err(|e| wrong(e.to_string().trim_end().to_owned()))?;
    for claim in &report.claims {
        if claim.checks.is_empty() && claim.missing.is_none() {
            return Err(wrong(format!(
                "{}: neither a check nor what is missing for one",
                claim.id
            )));
        }
    }
    for question in &report.questions {
        if question.figures.is_empty() {
            let wants = "neither a figure nor what is missing for one";
            return Err(wrong(format!("{}: {wants}", question.id)));
        }
    }
    report.asked = report.questions.iter().map(Question::asked).collect();
    Ok(report)
}
