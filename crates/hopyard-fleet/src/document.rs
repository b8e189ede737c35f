//! `hopyard/fleet/1`: what `fleet.json` has and `--json` prints.

use std::collections::BTreeMap;
use std::path::Path;

use hopyard_host::bounded;
use hopyard_stats::{Estimate, Judged};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::assess::Assessed;
use crate::error::{Error, Result};
use crate::fleet::Fleet;
use crate::outcome::{End, State};
use crate::plan::Plan;
use crate::rank::Ranks;

/// Name and version of the document.
pub const SCHEMA: &str = "hopyard/fleet/1";

/// All that is known of a fleet.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    /// [`SCHEMA`].
    schema: &'static str,
    /// When it was first begun, RFC 3339.
    started: &'a str,
    /// How it ended the last time; null of one that was killed or still runs.
    end: Option<End>,
    /// What was asked for.
    plan: &'a Plan,
    /// Number of pairs by state.
    counts: BTreeMap<&'static str, usize>,
    /// Median of all pairs by `LOAD QUANTITY`.
    medians: BTreeMap<String, f64>,
    /// All machines, the worst first.
    machines: Vec<MachineReport<'a>>,
    /// All pairs in the order of the rounds.
    #[schemars(with = "Vec<PairReport>")]
    pairs: PairReports<'a>,
}

/// A machine, by what its own pairs gave.
#[derive(Serialize, JsonSchema)]
struct MachineReport<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rack: Option<&'a str>,
    /// Pairs of it that were measured.
    measured: usize,
    /// Pairs of it that failed.
    failed: usize,
    /// Pairs of it that were not begun.
    skipped: usize,
    /// Why it was given up, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<&'a str>,
    /// Median over its pairs as the client, by `LOAD QUANTITY`.
    as_client: BTreeMap<String, f64>,
    /// Median over its pairs as the server.
    as_server: BTreeMap<String, f64>,
    /// The worst of these against the median of all pairs; less than 1 is worse. Null where nothing was measured.
    standing: Option<f64>,
}

/// What became of a pair.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PairState {
    Measured,
    Failed,
    Skipped,
}

/// A pair, by its last attempt.
#[derive(Serialize, JsonSchema)]
struct PairReport<'a> {
    client: &'a str,
    server: &'a str,
    state: PairState,
    /// Why it failed or was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<std::borrow::Cow<'a, str>>,
    /// Which attempt it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    /// When it began, ms since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    began_ms: Option<u64>,
    /// How long its machines were taken, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ms: Option<u64>,
    /// The figures of the plan's loads; there may be some of a pair that failed.
    figures: Vec<FigureReport<'a>>,
}

/// A figure with the interval that the run gave it.
#[derive(Serialize, JsonSchema)]
struct FigureReport<'a> {
    load: &'static str,
    quantity: &'static str,
    unit: &'static str,
    #[serde(flatten)]
    estimate: &'a Estimate,
}

/// Pairs are made as they are written: there may be half a million.
struct PairReports<'a>(&'a Fleet);

impl Serialize for PairReports<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_seq((0..self.0.pairs.len()).map(|place| pair(self.0, place)))
    }
}

fn pair(fleet: &Fleet, place: usize) -> PairReport<'_> {
    let pair = fleet.pairs[place];
    let [client, server] = pair.ends().map(|machine| fleet.name(machine));
    let Some(outcome) = &fleet.outcomes[place] else {
        return PairReport {
            client,
            server,
            state: PairState::Skipped,
            cause: Some(fleet.why_skipped(pair).into()),
            attempt: None,
            began_ms: None,
            took_ms: None,
            figures: Vec::new(),
        };
    };
    PairReport {
        client,
        server,
        state: match outcome.state {
            State::Measured => PairState::Measured,
            State::Failed => PairState::Failed,
        },
        cause: outcome.cause.as_deref().map(Into::into),
        attempt: Some(outcome.attempt),
        began_ms: Some(outcome.began_ms),
        took_ms: Some(outcome.took_ms),
        figures: outcome
            .figures
            .iter()
            .map(|(at, estimate)| {
                let column = &fleet.columns[usize::from(*at)];
                FigureReport {
                    load: column.load.name(),
                    quantity: column.quantity,
                    unit: column.unit(),
                    estimate,
                }
            })
            .collect(),
    }
}

/// Number of pairs that were measured, failed, and were not begun.
pub(crate) fn counts(fleet: &Fleet) -> [usize; 3] {
    let begun = fleet.outcomes.iter().flatten();
    let measured = begun.clone().filter(|o| o.is_measured()).count();
    let begun = begun.count();
    [measured, begun - measured, fleet.pairs.len() - begun]
}

/// The document of what is known of a fleet.
#[must_use]
pub fn document<'a>(fleet: &'a Fleet, ranks: &Ranks) -> Document<'a> {
    let named = |medians: &[Option<f64>]| -> BTreeMap<String, f64> {
        let columns = ranks.main.iter().map(|column| &fleet.columns[*column]);
        let medians = columns.zip(medians);
        medians
            .filter_map(|(c, median)| Some((format!("{} {}", c.load, c.quantity), (*median)?)))
            .collect()
    };
    let of_role = |machine: &crate::rank::Machine, role: usize| -> Vec<Option<f64>> {
        machine.medians.iter().map(|both| both[role]).collect()
    };
    let machine = |machine: &crate::rank::Machine| {
        let endpoint = &fleet.plan.endpoints[usize::from(machine.machine)];
        MachineReport {
            name: &endpoint.name,
            rack: endpoint.rack.as_deref(),
            measured: machine.measured,
            failed: machine.failed,
            skipped: machine.skipped,
            lost: fleet.lost[usize::from(machine.machine)].as_deref(),
            as_client: named(&of_role(machine, 0)),
            as_server: named(&of_role(machine, 1)),
            standing: machine.standing,
        }
    };
    let names = ["measured", "failed", "skipped"];
    Document {
        schema: SCHEMA,
        started: &fleet.started,
        end: fleet.end,
        plan: &fleet.plan,
        counts: names.into_iter().zip(counts(fleet)).collect(),
        medians: named(&ranks.medians),
        machines: ranks.machines.iter().map(machine).collect(),
        pairs: PairReports(fleet),
    }
}

/// Name and version of [`Assessment`].
pub(crate) const ASSESSMENT_SCHEMA: &str = "hopyard/fleet-report/1";

/// What `hopyard report` of a fleet prints as JSON: its document, with estimates made from the samples, and verdicts.
#[derive(Serialize, JsonSchema)]
pub struct Assessment<'a> {
    /// [`ASSESSMENT_SCHEMA`].
    schema: &'static str,
    /// Number of samples that estimates rest on.
    samples: u64,
    /// Pairs within this of the median of all are equivalent to it.
    margin: f64,
    /// Each pair and load against the median of all pairs.
    #[schemars(with = "Vec<VerdictReport>")]
    verdicts: VerdictReports<'a>,
    /// The fleet; its main figures are those of the samples.
    fleet: Document<'a>,
}

/// A pair against the median of all.
#[derive(Serialize, JsonSchema)]
struct VerdictReport<'a> {
    client: &'a str,
    server: &'a str,
    load: &'static str,
    #[serde(flatten)]
    judged: &'a Judged,
}

struct VerdictReports<'a> {
    fleet: &'a Fleet,
    main: &'a [usize],
    assessed: &'a Assessed,
}

impl Serialize for VerdictReports<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let columns = self.main.iter().map(|at| &self.fleet.columns[*at]);
        let loads = columns.zip(&self.assessed.verdicts);
        serializer.collect_seq(loads.flat_map(|(column, verdicts)| {
            let verdicts = verdicts.iter().enumerate();
            verdicts.filter_map(move |(place, judged)| {
                let [client, server] = self.fleet.pairs[place].ends().map(|m| self.fleet.name(m));
                Some(VerdictReport {
                    client,
                    server,
                    load: column.load.name(),
                    judged: judged.as_ref()?,
                })
            })
        }))
    }
}

/// The document of a fleet whose samples were read.
#[must_use]
pub fn assessment<'a>(
    fleet: &'a Fleet,
    ranks: &'a Ranks,
    assessed: &'a Assessed,
    margin: f64,
) -> Assessment<'a> {
    Assessment {
        schema: ASSESSMENT_SCHEMA,
        samples: assessed.samples,
        margin,
        verdicts: VerdictReports {
            fleet,
            main: &ranks.main,
            assessed,
        },
        fleet: document(fleet, ranks),
    }
}

/// The JSON schema (2020-12) of [`Assessment`].
#[must_use]
pub fn assessment_schema() -> serde_json::Value {
    hopyard_model::named_schema(
        schemars::schema_for!(Assessment<'static>),
        ASSESSMENT_SCHEMA,
    )
}

/// Writes `fleet.json` so that it is there whole or as it was.
///
/// # Errors
/// It cannot be written.
pub fn write(document: &Document<'_>, directory: &Path) -> Result<()> {
    let file = directory.join("fleet.json");
    let written = bounded::replace_with(&file, |out| {
        serde_json::to_writer(&mut *out, document)?;
        out.write_all(b"\n")
    });
    written.map_err(|e| Error::file("write", &file, e))
}

/// The JSON schema (2020-12) of the document.
#[must_use]
pub fn schema() -> serde_json::Value {
    hopyard_model::named_schema(schemars::schema_for!(Document<'static>), SCHEMA)
}
