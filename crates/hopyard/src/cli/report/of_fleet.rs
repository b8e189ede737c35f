//! `hopyard report` of a fleet.

use hopyard_fleet::{
    DuckDb, Fleet, MARGIN, Page, Ranks, assess, assessment, page, points, text, verdicts_text,
};

use super::ReportArgs;
use crate::cli::{Done, Failure, deliver, pretty};

/// From its samples, read by DuckDB.
pub(super) fn report(args: &ReportArgs) -> Done {
    let is_of_runs =
        args.flame.is_some() || args.functions.is_some() || args.published || !args.need.is_empty();
    if is_of_runs {
        return Err(Failure::request(
            "--need, --flame, --functions and --published are of single runs: a fleet's are in its directory, pairs/CLIENT--SERVER/N/run",
        ));
    }
    let engine = DuckDb::find(args.duckdb.as_deref())?;
    let mut fleet = Fleet::read(&args.run)?;
    let margin = args.margin.unwrap_or(MARGIN);
    let assessed = assess(&mut fleet, &args.run, &engine, margin)?;
    let ranks = Ranks::of(&fleet);
    let said = match args.format.name {
        "text" => text(&fleet, &ranks) + &verdicts_text(&fleet, &ranks, &assessed, margin),
        "json" => pretty(&assessment(&fleet, &ranks, &assessed, margin))?,
        "html" => {
            let before = args.history.iter().map(|directory| {
                let fleet = Fleet::read(directory)?;
                let ranks = Ranks::of(&fleet);
                Ok((fleet, ranks))
            });
            let before = before.collect::<Result<Vec<_>, hopyard_fleet::Error>>()?;
            let all = before
                .iter()
                .filter(|(other, _)| other.started != fleet.started);
            let all = all.map(|(fleet, ranks)| (fleet, ranks));
            let history = points(all.chain(std::iter::once((&fleet, &ranks))));
            page(&Page {
                fleet: &fleet,
                ranks: &ranks,
                assessed: Some(&assessed),
                history: &history,
            })
        }
        other => {
            return Err(Failure::request(format!(
                "a fleet has no report as {other}: choose text, json or html; samples/ in its directory has all samples as Parquet"
            )));
        }
    };
    deliver(said.as_bytes(), args.output.as_deref())
}
