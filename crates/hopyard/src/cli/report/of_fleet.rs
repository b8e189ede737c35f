//! `hopyard report` of a fleet.

use hopyard_fleet::{
    DuckDb, Fleet, MARGIN, Page, Ranks, assess, assessment, page, points, text, verdicts_text,
};

use super::ReportArgs;
use crate::cli::{Done, Failure, deliver, pretty};

/// Refuses options that would be ignored.
fn check(args: &ReportArgs) -> Result<(), Failure> {
    let is_of_runs =
        args.flame.is_some() || args.functions.is_some() || args.published || !args.need.is_empty();
    if is_of_runs {
        return Err(Failure::request(
            "--need, --flame, --functions and --published are of single runs: a fleet's are in its directory, pairs/CLIENT--SERVER/N/run",
        ));
    }
    if !args.history.is_empty() && args.format.name != "html" {
        return Err(Failure::request(format!(
            "--history draws a line over time on a fleet's page, and {} has none: add --format html",
            args.format.name
        )));
    }
    Ok(())
}

/// From its samples, read by DuckDB.
pub(super) fn report(args: &ReportArgs) -> Done {
    check(args)?;
    let engine = DuckDb::find(args.duckdb.as_deref())?;
    let mut fleet = Fleet::read(&args.run)?;
    let margin = args.margin.unwrap_or(MARGIN);
    let assessed = assess(&mut fleet, &args.run, &engine, margin)?;
    let ranks = Ranks::of(&fleet);
    let said = match args.format.name {
        "text" => text(&fleet, &ranks) + &verdicts_text(&fleet, &ranks, &assessed, margin),
        "json" => pretty(&assessment(&fleet, &ranks, &assessed, margin))?,
        "html" => {
            // All points of a line are the runs' own figures, this fleet's too.
            let directories = args.history.iter().chain([&args.run]);
            let all = directories.map(|directory| {
                let fleet = Fleet::read(directory)?;
                let ranks = Ranks::of(&fleet);
                Ok((fleet, ranks))
            });
            let mut all = all.collect::<Result<Vec<_>, hopyard_fleet::Error>>()?;
            // It may be among the earlier ones too.
            let last = all.len() - 1;
            let mut at = 0..;
            all.retain(|(other, _)| at.next() == Some(last) || other.started != fleet.started);
            let history = points(all.iter().map(|(fleet, ranks)| (fleet, ranks)));
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

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    fn refusal(words: &[&str]) -> Option<String> {
        let command = ReportArgs::augment_args(Command::new("report"));
        let words = [&["report", "FLEET"], words].concat();
        let matches = command.try_get_matches_from(words).unwrap();
        let refused = check(&ReportArgs::from_arg_matches(&matches).unwrap()).err()?;
        assert_eq!(refused.status, 2);
        Some(refused.message)
    }

    #[test]
    fn a_history_is_refused_where_it_would_not_be_shown() {
        let history = ["--history", "OLD"];
        for format in ["text", "json"] {
            let message = refusal(&[&["--format", format], &history[..]].concat()).unwrap();
            assert!(message.contains(&format!("{format} has none")), "{message}");
        }
        assert_eq!(refusal(&["--format", "html", "--history", "OLD"]), None);
        assert_eq!(refusal(&["--format", "json"]), None);
    }
}
