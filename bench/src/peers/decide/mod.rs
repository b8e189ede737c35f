//! Decided comparisons per minute, for four methods that say whether one path is slower than another, and by how much.
//!
//! Every method gets the same tables, labs of the same kind and the same time for each table. The order of all tables
//! of all methods, with and without a real-time hog, is random, so that drift of the machine favours none
//! (docs/bench.md).

mod hog;
mod judge;
mod loops;
mod program;
mod question;
mod report;
mod slow;
mod tally;
mod target;
mod way;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use hopyard::{note, signals};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::json;

use crate::error::{Error, Result};
use question::{QUESTIONS, Question};
use tally::{Record, Tally};
use target::Outcome;
use way::{Way, Ways};

/// Time for a cell in a table, s. A run of sockperf takes three seconds, and benchstat's test needs four runs to reject
/// anything.
const PER_CELL_S: u64 = 16;
/// A quick look measures only streams, for which a run of iperf3 takes little more than a second.
const QUICK_PER_CELL_S: u64 = 7;

/// Decided comparisons per minute, of hopyard with turns, of the release before them, of loops of iperf3 and sockperf
/// judged as benchstat does, and of loops that end as netperf's do (root; some thirty-five minutes).
#[derive(Debug, clap::Args)]
pub(crate) struct Decide {
    /// The program of the release before turns (scripts/old-release builds it); without it this release with --turns off
    #[arg(long, value_name = "PROGRAM")]
    old: Option<PathBuf>,
    /// Two tables with less time for each, some five minutes: a look at whether it works, no proof
    #[arg(long)]
    quick: bool,
    /// Only these tables
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    only: Vec<String>,
    /// Compare turns with these methods only, which is faster
    #[arg(long, value_delimiter = ',', value_name = "METHOD,…", value_enum, default_values_t = Way::OTHERS)]
    against: Vec<Way>,
    /// How often each method measures each table, with the hog and without it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    tables: u16,
    /// Seed of the order and of the hog's bursts
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write every answer, and what is made of them, to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

/// One table to measure.
#[derive(Debug, Clone, Copy)]
struct Task {
    question: &'static Question,
    way: Way,
    hog: bool,
    repetition: usize,
}

impl Decide {
    /// Methods to run, in the order of the report.
    fn methods(&self) -> Vec<Way> {
        let others = Way::OTHERS.into_iter();
        let asked = others.filter(|way| self.against.contains(way));
        asked.chain([Way::Turns]).collect()
    }
}

/// Runs everything; true if no target was missed, and no table failed that must not ([`failed`]).
pub(crate) fn run(options: &Decide) -> Result<bool> {
    signals::listen().map_err(io_error("cannot listen to signals"))?;
    hopyard::lab::clean::clean(false)?;
    let questions = chosen(options)?;
    let repetitions = usize::from(options.tables);
    let verify = beside("verify")?;
    let mut ways = ways(options)?;
    let versions = versions(&ways, &questions)?;
    ways.prepare(&questions)?;
    let methods = options.methods();
    let tasks = tasks(&questions, &methods, repetitions, options.seed);
    let mut records = Vec::with_capacity(tasks.len());
    for (done, task) in (0_u64..).zip(&tasks) {
        note(format_args!(
            "table {} of {}: {}, {}, {}; {} s",
            done + 1,
            tasks.len(),
            task.question.name,
            task.way,
            if task.hog { "hog" } else { "as it is" },
            ways.limit(task.question).as_secs()
        ));
        records.push(ask(&ways, *task, &verify, options.seed + done)?);
    }
    let of = |hog: bool| methods.iter().map(move |&way| (way, hog));
    let each = [false, true].into_iter().flat_map(of);
    let tallies: Vec<Tally> = each
        .map(|(way, hog)| Tally::of(&records, way, hog))
        .collect();
    let targets = target::all(&tallies);
    print(options, &versions, &report::text(&tallies, &targets))
        .map_err(io_error("cannot print"))?;
    if let Some(file) = &options.json {
        let whole = json!({
            "seed": options.seed,
            "quick": options.quick,
            "versions": versions.iter().map(|(w, v)| json!({"of": w, "version": v})).collect::<Vec<_>>(),
            "transactions": ways.transactions,
            "ways": tallies,
            "targets": targets,
            "tables": records,
        });
        fs::write(file, format!("{whole:#}\n")).map_err(io_error("cannot write the JSON file"))?;
    }
    for tally in &tallies {
        let failed = failed(tally);
        if failed > 0 {
            note(format_args!(
                "{failed} tables of `{}` failed ({}): the target for decisions per minute cannot be met there",
                tally.way,
                report::machine(tally.hog)
            ));
        }
    }
    Ok(is_good(&tallies, &targets))
}

/// The number of tables that failed and must not: of turns all that failed, of the release before them those that failed not because of
/// the hog alone. Another tool may fail.
fn failed(tally: &Tally) -> u64 {
    match tally.way {
        Way::Turns => tally.failed,
        Way::Windows => tally.failed - tally.failed_by_hog,
        Way::Benchstat | Way::Netperf => 0,
    }
}

/// Whether no target was missed and no table failed that must not. A table that fails at once costs no time and decides
/// nothing, so that the figures alone would not show it.
fn is_good(tallies: &[Tally], targets: &[target::Against]) -> bool {
    let is_missed = |one: &target::Against| [one.speed, one.coverage].contains(&Outcome::Missed);
    tallies.iter().all(|tally| failed(tally) == 0) && !targets.iter().any(is_missed)
}

/// Measures one table. A method that fails is a finding. Errors are only the user's wish to stop, and a missing hog.
fn ask(ways: &Ways, task: Task, verify: &Path, seed: u64) -> Result<Record> {
    let mut hog = task.hog.then(|| hog::start(verify, seed)).transpose()?;
    let asked = ways.ask(task.way, task.question)?;
    if let Some(hog) = &mut hog
        && hog
            .has_ended()
            .map_err(io_error("cannot read whether the hog runs"))?
    {
        return Err(Error::Program {
            program: format!("{} hog", verify.display()),
            what: "ended before the table did".to_owned(),
        });
    }
    let (told, failed) = match asked.told {
        Ok(told) => told,
        Err(_) if signals::interrupted() => return Err(Error::Interrupted),
        Err(error) => (Vec::new(), Some(hopyard::chain(&error))),
    };
    if let Some(why) = &failed {
        note(format_args!("{}, {}: {why}", task.question.name, task.way));
    }
    Ok(Record {
        question: task.question.name,
        way: task.way,
        hog: task.hog,
        repetition: task.repetition,
        seconds: asked.seconds,
        comparisons: task.question.cells().len() as u64 - 1,
        told,
        failed,
    })
}

/// Every table once in each repetition, with each of the methods, with the hog and without it, in random order.
fn tasks(
    questions: &[&'static Question],
    methods: &[Way],
    repetitions: usize,
    seed: u64,
) -> Vec<Task> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut all = Vec::new();
    for repetition in 0..repetitions {
        let mut some: Vec<Task> = Vec::new();
        for &question in questions {
            for &way in methods {
                some.extend([false, true].map(|hog| Task {
                    question,
                    way,
                    hog,
                    repetition,
                }));
            }
        }
        some.shuffle(&mut random);
        all.extend(some);
    }
    all
}

fn ways(options: &Decide) -> Result<Ways> {
    let own = beside("hopyard")?;
    let seconds = if options.quick {
        QUICK_PER_CELL_S
    } else {
        PER_CELL_S
    };
    Ok(Ways {
        windows: way::windows(options.old.clone(), own.clone()),
        turns: way::turns(own),
        per_cell: Duration::from_secs(seconds),
        transactions: Vec::new(),
    })
}

fn chosen(options: &Decide) -> Result<Vec<&'static Question>> {
    if options.only.is_empty() {
        let all = QUESTIONS.iter();
        return Ok(all.filter(|q| q.quick || !options.quick).collect());
    }
    let find = |name: &String| {
        let found = QUESTIONS.iter().find(|question| question.name == name);
        found.ok_or_else(|| {
            hopyard::model::UnknownName::new(
                "table",
                name,
                QUESTIONS.iter().map(|question| question.name),
            )
        })
    };
    Ok(options
        .only
        .iter()
        .map(find)
        .collect::<std::result::Result<_, _>>()?)
}

/// A program that is built with this one.
fn beside(name: &'static str) -> Result<PathBuf> {
    let own = std::env::current_exe().map_err(io_error("cannot find the own program"))?;
    let path = own.with_file_name(name);
    if path.is_file() {
        return Ok(path);
    }
    Err(Error::Program {
        program: path.display().to_string(),
        what: "is missing: `cargo build --release -p hopyard -p hopyard-bench` makes it".to_owned(),
    })
}

/// The version that each program reports; an error if one cannot be run.
fn versions(ways: &Ways, questions: &[&'static Question]) -> Result<Vec<(String, String)>> {
    let said = |name: String, program: &Path, option: &str| -> Result<(String, String)> {
        let failed = |source| Error::Start {
            program: program.display().to_string(),
            source,
        };
        let output = Command::new(program).arg(option).output().map_err(failed)?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().next().unwrap_or_default().trim();
        Ok((name, line.to_owned()))
    };
    let mut versions = Vec::new();
    for (way, program) in [(Way::Windows, &ways.windows), (Way::Turns, &ways.turns)] {
        let name = format!(
            "{way}: {} {}",
            program.path.display(),
            program.options.join(" ")
        );
        versions.push(said(name, &program.path, "--version")?);
    }
    for question in questions {
        let name = question.tool.to_string();
        if let Some(peer) = question.tool.peer()
            && !versions.iter().any(|(known, _)| *known == name)
        {
            let [program, option] = peer.version();
            versions.push(said(name, program.as_ref(), option)?);
        }
    }
    Ok(versions)
}

fn print(options: &Decide, versions: &[(String, String)], text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (of, version) in versions {
        writeln!(out, "{of}: {version}")?;
    }
    writeln!(out, "{text}seed {}", options.seed)?;
    if options.quick {
        writeln!(out, "a quick look, not a proof")?;
    }
    out.flush()
}

fn io_error(doing: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { doing, source }
}

#[cfg(test)]
mod tests;
