//! The document `hopyard/claims/1`: the verdicts on published claims for this machine.
//!
//! Fields are only ever added. Names of quantities contain SI base units.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use hopyard_stats::Estimate;

/// The document `hopyard/claims/1`: claims by report, with the runs that they were judged by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimsReport {
    /// Always `hopyard/claims/1`.
    pub schema: String,
    /// Version and build of hopyard, kernel and CPU, as text; absent if nothing was measured.
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
    /// When it began (RFC 3339); empty in documents of older versions.
    #[serde(default)]
    pub started: String,
    /// Number of complete blocks: each has a sample of every cell.
    pub blocks: u32,
    /// Blocks of some cells besides, for claims that the others did not decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub further: Option<FurtherBlocks>,
    /// Length of a measured window, s.
    pub window_s: f64,
    /// Confidence of all intervals, 0 to 1.
    pub confidence: f64,
    /// Whether it ran to its end.
    pub complete: bool,
    /// What a reader must know before trusting its figures.
    pub warnings: Vec<String>,
}

/// Blocks of some cells of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FurtherBlocks {
    pub blocks: u32,
    /// Cells that any of them has.
    pub cells: u32,
}

/// A published report with its claims.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportOfClaims {
    /// Name of the report, as `hopyard claims NAME` takes it.
    pub report: String,
    /// Its subject.
    pub title: String,
    /// Author, title, place and date.
    pub source: String,
    /// What replaces the machines of that time, and what is lost by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stand_in: Option<String>,
    /// The selected claims.
    pub claims: Vec<ClaimReport>,
    /// The open questions, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<QuestionReport>,
}

/// How far a question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answered {
    /// Everything that would answer it was measured.
    Whole,
    /// Part of it was measured.
    Partly,
    /// None of it was measured.
    Open,
}

impl Answered {
    /// The answer's state as reports print it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Whole => "answered",
            Self::Partly => "partly answered",
            Self::Open => "open",
        }
    }
}

/// A question that a report left open, and the answer of this machine.
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
    /// The answer in sentences, generated from the figures.
    pub answer: String,
    /// The figures, and what is missing.
    pub figures: Vec<AnswerFigure>,
}

/// A figure that answers a question, for one point or several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerFigure {
    /// What is measured: `goodput, macvlan / native`.
    pub what: String,
    /// The quantity with its unit; absent for ratios and if nothing is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<String>,
    /// What the figures mean, if that is known beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// The points at which it was measured.
    pub points: Vec<AnswerPoint>,
    /// What was observed, if nothing is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// What is missing, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// A figure that answers a question, at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerPoint {
    /// What distinguishes this point from the others; empty if there is only one.
    pub at: String,
    /// The figure with its interval.
    pub measured: Estimate,
    /// The published value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
}

/// The verdict on a claim's evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// All of the evidence is within the rule.
    Holds,
    /// Some of it is entirely outside.
    Fails,
    /// Not all of the evidence is within the rule, but none of it is entirely outside.
    Undecided,
    /// This host lacks what the test needs.
    Untestable,
}

impl ClaimVerdict {
    /// The verdict as reports print it.
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

/// How a remark begins that says which cells a first look was limited to.
pub const FIRST_LOOK: &str = "A first look";

/// One claim with its rule, verdict and evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimReport {
    /// Id of the claim, as `hopyard claims ID` takes it.
    pub id: String,
    /// What is claimed, in a sentence.
    pub statement: String,
    /// The rule, as text for people.
    pub rule: String,
    /// What was published, with its figures.
    pub published: String,
    /// The verdict on all checks together.
    pub verdict: ClaimVerdict,
    /// The verdict with its reason, in a sentence that can be quoted.
    pub sentence: String,
    /// Remarks that a reader needs.
    pub remarks: Vec<String>,
    /// The parts of the rule; all of them must hold.
    pub checks: Vec<CheckReport>,
}

impl ClaimReport {
    /// Whether any part of its rule was tested.
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
    /// The quantity with its unit; absent for ratios and if nothing is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<String>,
    /// Lower bound of the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Upper bound of the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Whether the rule is met outside the bounds instead: below the one or above the other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beyond: bool,
    /// The verdict of this part.
    pub verdict: ClaimVerdict,
    /// A stronger form of the statement; the claim's verdict does not depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<GradeReport>,
    /// The points at which it was measured, each judged by itself.
    pub points: Vec<PointReport>,
    /// The point that decides: index into `points`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deciding: Option<usize>,
    /// If undecided: the distance beyond a bound, as a share, that would have been detected four times out of five.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_effect: Option<f64>,
    /// What was observed, if nothing is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// What could not be tested, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untested: Vec<String>,
}

/// A stronger form of a statement ("clearly"), judged by the same figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GradeReport {
    /// Its word in the rule.
    pub called: String,
    /// Its lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// Its upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// Its verdict.
    pub verdict: ClaimVerdict,
}

/// The position of an interval relative to the bounds of a rule.
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

/// A figure at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PointReport {
    /// What distinguishes this point from the others; empty if there is only one.
    pub at: String,
    /// The figure with its interval.
    pub measured: Estimate,
    /// The published value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// Position of its interval relative to the bounds; outside only if the interval of simultaneous confidence is.
    pub lies: BoundPosition,
}
