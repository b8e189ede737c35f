//! The same two namespaces, the server's worker behind ssh and behind `nsenter`: what a cell says, and what it costs to be asked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hopyard::stats;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::site::Site;
use crate::{Failure, of_children, tell};

const BLOCKS: u32 = 2;
const LOADS: [&str; 2] = ["tcp_stream", "tcp_rr"];
const CONFIDENCE: f64 = 0.95;
const MARGIN: f64 = 0.02;

/// What is compared, of those loads that have it.
const QUANTITIES: [&str; 5] = [
    "goodput_bps",
    "transactions_per_s",
    "cpu_ns_per_byte",
    "cpu_ns_per_transaction",
    "latency_p50_ns",
];

/// A load and a quantity.
type Name = (String, String);

/// Of a run: figures by load and quantity, and what each sample cost hopyard itself.
#[derive(Default)]
struct Run {
    figures: BTreeMap<Name, f64>,
    wall_s: f64,
    cpu_s: f64,
}

/// A quantity over the pairs of runs that both have it.
struct Line<'a> {
    name: &'a Name,
    pairs: usize,
    /// None if the pairs are too few.
    compared: Option<stats::Comparison>,
}

/// Every quantity that any run has.
fn lines<'a>(own: &'a [Run], ssh: &'a [Run]) -> Vec<Line<'a>> {
    let names: BTreeSet<&Name> = own
        .iter()
        .chain(ssh)
        .flat_map(|run| run.figures.keys())
        .collect();
    let line = |name| {
        let figure = |run: &Run| run.figures.get(name).copied();
        let pairs = own.iter().zip(ssh);
        let both = pairs.filter_map(|(own, ssh)| figure(own).zip(figure(ssh)));
        let (own, ssh): (Vec<f64>, Vec<f64>) = both.unzip();
        Line {
            name,
            pairs: own.len(),
            compared: stats::compare(&ssh, &own, CONFIDENCE),
        }
    };
    names.into_iter().map(line).collect()
}

/// The quantities that no load compares.
fn not_compared(lines: &[Line<'_>]) -> Vec<&'static str> {
    let compared = |quantity: &&str| {
        let mut compared = lines.iter().filter(|line| line.compared.is_some());
        compared.any(|line| line.name.1 == **quantity)
    };
    QUANTITIES
        .into_iter()
        .filter(|quantity| !compared(quantity))
        .collect()
}

fn tell_lines(lines: &[Line<'_>], runs: usize) {
    let table: Vec<stats::Comparison> = lines
        .iter()
        .filter_map(|line| line.compared.clone())
        .collect();
    let mut all_judged = stats::judge(&table, MARGIN, CONFIDENCE).into_iter();
    for line in lines {
        let (load, quantity) = line.name;
        let of = format!("{load} {quantity}, {} of {runs} pairs", line.pairs);
        let judged = line.compared.as_ref().and_then(|_| all_judged.next());
        tell(&judged.map_or_else(
            || format!("{of}: too few to compare"),
            |judged| {
                format!(
                    "{of}: ssh/nsenter {:.4}, {:.4} to {:.4} ({:?}, smallest detectable {:.1} %)",
                    judged.ratio.value,
                    judged.ratio.low,
                    judged.ratio.high,
                    judged.verdict,
                    judged.smallest_detectable * 100.0
                )
            },
        ));
    }
}

/// Tells what is compared and what it cost; an error if a quantity is not compared at all.
fn compare_runs([own, ssh]: [&[Run]; 2]) -> Result<(), Failure> {
    let lines = lines(own, ssh);
    tell_lines(&lines, own.len());
    tell_costs(own, ssh);
    let without = not_compared(&lines);
    if without.is_empty() {
        return Ok(());
    }
    Err(format!("too few pairs of runs have {}", without.join(", ")).into())
}

fn tell_costs(own: &[Run], ssh: &[Run]) {
    let samples = f64::from(BLOCKS) * LOADS.len() as f64;
    for (name, runs) in [("nsenter", own), ("ssh", ssh)] {
        let mean = |of: fn(&Run) -> f64| {
            runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64 / samples
        };
        tell(&format!(
            "{name}: {:.2} s of wall-clock and {:.3} s of CPU for each sample, in hopyard, its workers and the commands",
            mean(|run| run.wall_s),
            mean(|run| run.cpu_s)
        ));
    }
}

pub(crate) fn compare(hopyard: &Path, pairs: u32) -> Result<(), Failure> {
    let site = Site::new(2, hopyard)?;
    let prefixes = [site.enter(2), site.login(2)];
    let mut runs: [Vec<Run>; 2] = [Vec::new(), Vec::new()];
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for pair in 0..pairs {
        let mut order = [0, 1];
        order.shuffle(&mut rng);
        for way in order {
            runs[way].push(run(
                hopyard,
                &site,
                &prefixes[way],
                &format!("run-{pair}-{way}"),
            )?);
        }
    }
    tell(&format!(
        "{pairs} pairs of runs, {BLOCKS} blocks of {} each",
        LOADS.join(" and ")
    ));
    compare_runs([&runs[0], &runs[1]])
}

fn run(hopyard: &Path, site: &Site, server: &str, name: &str) -> Result<Run, Failure> {
    let programs = hopyard.parent().unwrap_or(Path::new("/")).display();
    let path = std::env::var("PATH")?;
    let (began, cpu) = (Instant::now(), of_children()?);
    let output = Command::new(hopyard)
        .env("PATH", format!("{programs}:{path}"))
        .args([
            "run",
            "--paths",
            "as-is",
            "--json",
            "--window",
            "500ms",
            "--warm-up",
            "200ms",
        ])
        .args([
            "--client",
            &site.enter(1),
            "--server",
            server,
            "--loads",
            &LOADS.join(","),
        ])
        .args(["--blocks", &format!("{BLOCKS}..{BLOCKS}"), "--out"])
        .arg(site.path(name))
        .stdin(Stdio::null())
        .output()?;
    let wall_s = began.elapsed().as_secs_f64();
    let cpu_s = of_children()?
        .saturating_sub(cpu)
        .max(Duration::ZERO)
        .as_secs_f64();
    let report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("{e}: {}", String::from_utf8_lossy(&output.stderr)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("a run of {name} ended with {}: {said}", output.status).into());
    }
    let mut figures = BTreeMap::new();
    for cell in report["cells"].as_array().ok_or("a report without cells")? {
        let load = cell["load"].as_str().unwrap_or_default().to_owned();
        for quantity in QUANTITIES {
            if let Some(value) = cell["estimates"][quantity]["value"].as_f64() {
                figures.insert((load.clone(), quantity.to_owned()), value);
            }
        }
    }
    Ok(Run {
        figures,
        wall_s,
        cpu_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that has every quantity but these.
    fn run(nth: u32, without: &[&str]) -> Run {
        let with = QUANTITIES
            .into_iter()
            .filter(|name| !without.contains(name));
        let figure = |name: &str| {
            (
                ("tcp_rr".to_owned(), name.to_owned()),
                100.0 + f64::from(nth),
            )
        };
        Run {
            figures: with.map(figure).collect(),
            ..Run::default()
        }
    }

    fn runs(without: impl Fn(u32) -> &'static [&'static str]) -> Vec<Run> {
        (0..8).map(|nth| run(nth, without(nth))).collect()
    }

    #[test]
    fn a_quantity_that_one_run_lacks_is_compared_by_the_other_pairs() {
        let (whole, all) = (runs(|_| &[]), QUANTITIES.len());
        let first: fn(u32) -> &'static [&'static str] =
            |nth| if nth == 0 { &["goodput_bps"] } else { &[] };
        for (own, ssh) in [(&runs(first), &whole), (&whole, &runs(first))] {
            let lines = lines(own, ssh);
            assert_eq!(lines.len(), all);
            for line in &lines {
                let pairs = if line.name.1 == "goodput_bps" { 7 } else { 8 };
                assert_eq!(line.pairs, pairs, "{:?}", line.name);
                assert!(line.compared.is_some(), "{:?}", line.name);
            }
            assert!(not_compared(&lines).is_empty());
        }
    }

    #[test]
    fn a_quantity_without_a_line_is_an_error() {
        let whole = runs(|_| &[]);
        let none = runs(|_| &["latency_p50_ns"]);
        let one = runs(|nth| if nth == 0 { &[] } else { &["latency_p50_ns"] });
        assert!(compare_runs([&whole, &whole]).is_ok());
        for (own, ssh) in [
            (&none, &none),
            (&whole, &none),
            (&one, &whole),
            (&one, &one),
        ] {
            assert_eq!(not_compared(&lines(own, ssh)), ["latency_p50_ns"]);
            let error = compare_runs([own, ssh]).unwrap_err().to_string();
            assert_eq!(error, "too few pairs of runs have latency_p50_ns");
        }
    }
}
