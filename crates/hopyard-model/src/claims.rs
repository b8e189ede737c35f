//! The document `hopyard/claims/1`: what published claims amount to on this machine.
//!
//! Fields are only ever added. SI base units are in the names of quantities.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use hopyard_stats::Estimate;

/// The document `hopyard/claims/1`: claims by report, with the runs that they were judged by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimsReport {
    /// Always `hopyard/claims/1`.
    pub schema: String,
    /// Version and build of hopyard, kernel and CPU, in words; absent where nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// The runs that claims were judged by.
    pub runs: Vec<ClaimsRun>,
    /// The reports with their claims, in the order of the reports.
    pub reports: Vec<ReportOfClaims>,
}

/// A run that claims were judged by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimsRun {
    /// Name of its plan.
    pub plan: String,
    /// Id of the run: time and plan.
    pub id: String,
    /// When it was begun (RFC 3339); empty in documents of older versions.
    #[serde(default)]
    pub started: String,
    /// Number of complete blocks: each has a sample of every cell.
    pub blocks: u32,
    /// Length of a measured window, s.
    pub window_s: f64,
    /// Confidence of all intervals, 0 to 1.
    pub confidence: f64,
    /// Was it carried out to its end?
    pub complete: bool,
    /// What a reader must know before trusting its figures.
    pub warnings: Vec<String>,
}

/// A published report with its claims.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportOfClaims {
    /// Name of the report, as `hopyard claims NAME` takes it.
    pub report: String,
    /// What it is about.
    pub title: String,
    /// Author, title, place and date.
    pub source: String,
    /// What stands in for the machines of then, and what that loses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<String>,
    /// The claims that were asked for.
    pub claims: Vec<ClaimReport>,
    /// The open questions, where these were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<QuestionReport>,
}

/// How far a question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answered {
    /// All that would answer it was measured.
    Whole,
    /// Some of it was.
    Partly,
    /// Nothing of it was.
    Open,
}

impl Answered {
    /// In words, as reports print it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Whole => "answered",
            Self::Partly => "partly answered",
            Self::Open => "open",
        }
    }
}

/// A question that a report left open, and what this machine says to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionReport {
    /// Id of the question, as `hopyard claims --questions ID` takes it.
    pub id: String,
    /// The question.
    pub question: String,
    /// What would answer it.
    pub method: String,
    /// How far it is answered.
    pub answered: Answered,
    /// The answer in sentences, made of the figures.
    pub answer: String,
    /// The figures, and what there is none of.
    pub figures: Vec<AnswerFigure>,
}

/// A figure in answer to a question, at one place or several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerFigure {
    /// What is measured: `goodput, macvlan / native`.
    pub what: String,
    /// The quantity with its unit; absent for ratios and where nothing is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<String>,
    /// What the figures mean, where that is known beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// Where it was measured.
    pub points: Vec<AnswerPoint>,
    /// What was seen, where nothing is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// What is missing, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// A figure in answer to a question at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerPoint {
    /// Where: what sets it apart from the other points; empty where there is one alone.
    pub at: String,
    /// The figure with its interval.
    pub measured: Estimate,
    /// What was published for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
}

/// What a claim's evidence says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// All of the evidence is within the rule.
    Holds,
    /// Some of it is wholly outside.
    Fails,
    /// The evidence neither lies all within the rule nor is any of it wholly outside.
    Undecided,
    /// What it takes is not to be had here.
    Untestable,
}

impl ClaimVerdict {
    /// The verdict in words, as reports print it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Undecided => "undecided",
            Self::Untestable => "cannot be tested here",
        }
    }
}

/// One claim with its rule, verdict and evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimReport {
    /// Id of the claim, as `hopyard claims ID` takes it.
    pub id: String,
    /// What is claimed, in a sentence.
    pub statement: String,
    /// The rule, as people read it.
    pub rule: String,
    /// What was published, with its figures.
    pub published: String,
    /// The verdict on all checks together.
    pub verdict: ClaimVerdict,
    /// All of it in a sentence that can be quoted.
    pub sentence: String,
    /// What a reader has to know besides.
    pub remarks: Vec<String>,
    /// The parts of the rule; all of them have to hold.
    pub checks: Vec<CheckReport>,
}

impl ClaimReport {
    /// Was any part of its rule tested?
    #[must_use]
    pub fn was_tested(&self) -> bool {
        let is = |check: &CheckReport| !check.points.is_empty() || check.seen.is_some();
        self.checks.iter().any(is)
    }
}

/// A part of a rule, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// What is measured: `goodput, veth-route / native`.
    pub what: String,
    /// The quantity with its unit; absent for ratios and where nothing is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<String>,
    /// Least that is within the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Most that is within the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Is within the rule what lies below the one bound or above the other?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beyond: bool,
    /// The verdict of this part.
    pub verdict: ClaimVerdict,
    /// A further grade of the statement; the claim's verdict does not depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<GradeReport>,
    /// Where it was measured, each judged by itself.
    pub points: Vec<PointReport>,
    /// The point that decides: place in `points`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deciding: Option<usize>,
    /// Where it is undecided: how far beyond a bound, as a share, would have shown four times out of five.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_effect: Option<f64>,
    /// What was seen, where nothing is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// What could not be tested, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untested: Vec<String>,
}

/// A further grade of a statement ("clearly"), judged by the same figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GradeReport {
    /// What the rule calls it.
    pub called: String,
    /// Least that is within it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Most that is within it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Is it so?
    pub verdict: ClaimVerdict,
}

/// How an interval lies to the bounds of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BoundPosition {
    /// The whole interval is within the bounds.
    Inside,
    /// The whole interval is outside the bounds.
    Outside,
    /// The interval contains a bound.
    Across,
}

/// A figure at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointReport {
    /// Where: what sets it apart from the other points; empty where there is one alone.
    pub at: String,
    /// The figure with its interval.
    pub measured: Estimate,
    /// What was published for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// How its interval lies to the bounds; outside only where the interval of simultaneous confidence is.
    pub lies: BoundPosition,
}
