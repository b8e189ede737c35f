//! The same two namespaces, the server's worker behind ssh and behind `nsenter`: what a cell says, and what it costs to be asked.

use std::collections::BTreeMap;
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

/// Of a run: figures by load and quantity, and what each sample cost hopyard itself.
struct Run {
    figures: BTreeMap<(String, String), f64>,
    wall_s: f64,
    cpu_s: f64,
}

fn compare_runs(ways: [&[Run]; 2]) {
    let [own, ssh] = ways;
    let names: Vec<&(String, String)> = own
        .first()
        .map(|run| run.figures.keys().collect())
        .unwrap_or_default();
    let mut told = Vec::new();
    let mut table = Vec::new();
    for name in names {
        let of = |runs: &[Run]| -> Option<Vec<f64>> {
            runs.iter()
                .map(|run| run.figures.get(name).copied())
                .collect()
        };
        if let (Some(own), Some(ssh)) = (of(own), of(ssh))
            && let Some(compared) = stats::compare(&ssh, &own, CONFIDENCE)
        {
            told.push(name);
            table.push(compared);
        }
    }
    for ((load, quantity), judged) in told
        .into_iter()
        .zip(stats::judge(&table, MARGIN, CONFIDENCE))
    {
        tell(&format!(
            "{load} {quantity}: ssh/nsenter {:.4}, {:.4} to {:.4} ({:?}, smallest detectable {:.1} %)",
            judged.ratio.value,
            judged.ratio.low,
            judged.ratio.high,
            judged.verdict,
            judged.smallest_detectable * 100.0
        ));
    }
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
    compare_runs([&runs[0], &runs[1]]);
    Ok(())
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
        for quantity in [
            "goodput_bps",
            "transactions_per_s",
            "cpu_ns_per_byte",
            "cpu_ns_per_transaction",
            "latency_p50_ns",
        ] {
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
