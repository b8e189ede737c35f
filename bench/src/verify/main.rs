//! `verify`: the experiments with a known answer that prove the instrument (docs/method.md).
//!
//! Each runs on real traffic through real kernel objects in namespaces of its own, and prints the promise, the result,
//! and whether the promise was kept. Exit status 0: every promise tried was kept; 1: one was missed, or could not be
//! tried and that was not allowed.

mod bench;
mod burn;
mod burner;
mod experiment;
mod generation;
mod hog;
mod kept;
mod pair;
mod table;
mod two_runs;
mod v01_shaped_wire;
mod v02_shaped_ratio;
mod v03_burn_by_phase;
mod v04_foreign_burn;
mod v05_known_work;
mod v06_equal_cells;
mod v07_coverage;
mod v08_service_time;
mod v09_stopped_receiver;
mod v10_ledger;
mod v10_random_drop;
mod v11_one_slow_cell;
mod v12_peers;
mod v13_profile_ablation;
mod v14_known_jitter;
mod v15_shaped_search;
mod v16_soak;
mod v17_many_endpoints;
mod v18_equal_under_hog;
mod v19_slow_under_hog;
mod v20_printed_coverage;
mod v21_wire_cost;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hopyard::signals;
use hopyard_bench::cells;

use bench::Bench;
use experiment::{EXPERIMENTS, Experiment, Failure, Row, Verdict};

/// Runs experiments with a known answer and prints what was promised and what was seen.
#[derive(Debug, Parser)]
#[command(name = "verify")]
struct Cli {
    #[command(subcommand)]
    role: Option<Role>,
    /// Experiments to run, by id: V1,V3
    #[arg(long, value_delimiter = ',', value_name = "IDS")]
    only: Vec<String>,
    #[command(flatten)]
    asked: bench::Asked,
    /// One JSON object on stdout instead of the table
    #[arg(long)]
    json: bool,
    /// An experiment that cannot run here does not make the exit status 1
    #[arg(long)]
    allow_missing: bool,
    /// List the experiments and end
    #[arg(long)]
    list: bool,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Burns CPU by a plan (started by the experiments).
    #[command(hide = true)]
    Burner(burner::Plan),
    /// Takes CPUs from all others in random bursts.
    #[command(hide = true)]
    Hog(hog::Plan),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.role {
        Some(Role::Burner(plan)) => burner::main(plan).map(|()| ExitCode::SUCCESS),
        Some(Role::Hog(plan)) => hog::main(plan).map(|()| ExitCode::SUCCESS),
        None if cli.list => table::list(EXPERIMENTS).map(|()| ExitCode::SUCCESS),
        None => verify(&cli),
    };
    outcome.unwrap_or_else(|failure| {
        hopyard::note(format_args!("{}", hopyard::chain(&failure)));
        ExitCode::from(if failure.is_interrupt() {
            signals::INTERRUPTED
        } else {
            2
        })
    })
}

fn verify(cli: &Cli) -> Result<ExitCode, Failure> {
    let chosen = choose(&cli.only)?;
    signals::listen()?;
    let bench = Bench::new(&cli.asked)?;
    let mut rows = Vec::new();
    let mut interrupted = false;
    for experiment in chosen {
        let said = run(experiment, &bench);
        interrupted = said.is_none();
        rows.extend(said.into_iter().flatten());
        if interrupted {
            break;
        }
    }
    if cli.json {
        table::json(&bench, &rows)?;
    } else {
        table::print(&bench, &rows)?;
    }
    if interrupted {
        return Err(Failure::Interrupted);
    }
    let broken = rows.iter().any(|row| match row.verdict {
        Verdict::Missed | Verdict::Failed(_) => true,
        Verdict::CannotRun(_) => !cli.allow_missing,
        Verdict::Within | Verdict::Stated => false,
    });
    Ok(ExitCode::from(u8::from(broken)))
}

/// Rows of one experiment; `None` if the user wants to stop.
fn run(experiment: &Experiment, bench: &Bench) -> Option<Vec<Row>> {
    hopyard::note(format_args!("{}: {}", experiment.id, experiment.title));
    let (id, title) = (experiment.id, experiment.title.to_owned());
    let verdict = match (experiment.run)(bench) {
        Ok(rows) if rows.is_empty() => return Some(vec![Row::not_measured(id, title)]),
        Ok(rows) => return Some(rows),
        Err(failure) if failure.is_interrupt() => return None,
        Err(failure) if failure.is_unsupported() => Verdict::CannotRun(hopyard::chain(&failure)),
        Err(failure) => Verdict::Failed(hopyard::chain(&failure)),
    };
    Some(vec![Row::without_figures(id, title, verdict)])
}

fn choose(only: &[String]) -> Result<Vec<&'static Experiment>, Failure> {
    if only.is_empty() {
        let all = EXPERIMENTS.iter().copied();
        return Ok(all.filter(|one| !one.only_when_named).collect());
    }
    only.iter()
        .map(|id| {
            EXPERIMENTS
                .iter()
                .copied()
                .find(|e| e.id.eq_ignore_ascii_case(id))
                .ok_or_else(|| Failure::NoSuchExperiment {
                    id: id.clone(),
                    choices: EXPERIMENTS
                        .iter()
                        .map(|e| e.id)
                        .collect::<Vec<_>>()
                        .join(", "),
                })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_found_in_any_case() {
        let mut ids: Vec<_> = EXPERIMENTS.iter().map(|e| e.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), EXPERIMENTS.len());
        assert_eq!(choose(&["v3".to_owned()]).unwrap()[0].id, "V3");
        let error = choose(&["V99".to_owned()]).err().unwrap().to_string();
        assert!(
            error.starts_with("there is no experiment `V99`: choose V1,"),
            "{error}"
        );
    }
}
