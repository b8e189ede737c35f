//! One cell: its run, and the file that says what came of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hopyard_host::bounded;
use hopyard_model::{LoadKind, VerdictReport, plain, units};
use hopyard_stats::Estimate;
use serde::{Deserialize, Serialize};

use super::{Matrix, MatrixCell, patience};
use crate::error::{Error, Result};

/// Name and version of a cell's file.
const SCHEMA: &str = "hopyard/matrix-cell/1";
pub(super) const CELL: &str = "cell.json";
const REPORT: &str = "report.json";
const SAID: &str = "said.txt";
const LOOK: Duration = Duration::from_millis(50);
const GRACE: Duration = Duration::from_secs(10);

/// What came of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub(crate) struct Outcome {
    /// [`SCHEMA`].
    pub(super) schema: String,
    /// Which one.
    #[serde(flatten)]
    pub(super) cell: MatrixCell,
    /// The node that it was measured on, by its host name or its name in the list of nodes.
    pub(super) node: String,
    /// That node's processor, as its run says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cpu: Option<String>,
    /// The kernel that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kernel_release: Option<String>,
    /// Why it failed; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cause: Option<String>,
    /// The path's figures.
    #[serde(default)]
    pub(super) estimates: BTreeMap<String, Estimate>,
    /// Against the base, on the same node.
    #[serde(default)]
    pub(super) verdicts: BTreeMap<String, VerdictReport>,
}

/// The part of a run's report that a cell keeps.
#[derive(Deserialize)]
struct Report {
    run: Run,
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Run {
    environment: Environment,
}

#[derive(Deserialize)]
struct Environment {
    #[serde(default)]
    cpu_model: Option<String>,
    #[serde(default)]
    kernel_release: Option<String>,
}

#[derive(Deserialize)]
struct Cell {
    path: String,
    load: LoadKind,
    cause: Option<String>,
    #[serde(default)]
    estimates: BTreeMap<String, Estimate>,
    #[serde(default)]
    verdicts: BTreeMap<String, VerdictReport>,
}

/// Measures a cell on this machine, and writes what came of it below the directory. Is it measured?
///
/// # Errors
/// The matrix has no such cell, or the directory cannot be written.
pub fn carry_out(
    matrix: &Matrix,
    number: usize,
    directory: &Path,
    program: &Path,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<bool> {
    let cells = matrix.cells();
    let cell = cells.get(number).ok_or_else(|| {
        Error::Wrong(format!(
            "there is no cell {number}: the matrix has {}, from 0",
            units::counted(cells.len(), "cell")
        ))
    })?;
    let home = directory.join("cells").join(number.to_string());
    // An engine that places a failed task anew finds what it left.
    match std::fs::remove_dir_all(home.join("run")) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::file("remove", &home, e));
        }
        _ => {}
    }
    let mut command = Command::new(program);
    command
        .args(cell.words())
        .arg("--out")
        .arg(home.join("run"));
    let node = hostname();
    let command = (command, Stdio::null());
    let outcome = measure(cell, &node, command, &home, patience(matrix), is_stopped)?;
    Ok(outcome.is_some_and(|outcome| outcome.cause.is_none()))
}

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    plain::line(name.trim())
}

/// Runs a command that measures a cell, with this standard input. What came of it; nothing where it was interrupted.
pub(super) fn measure(
    cell: &MatrixCell,
    node: &str,
    (mut command, input): (Command, Stdio),
    home: &Path,
    patience: Duration,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Outcome>> {
    std::fs::create_dir_all(home).map_err(|e| Error::file("make", home, e))?;
    let create = |name: &str| {
        let file = home.join(name);
        std::fs::File::create(&file).map_err(|e| Error::file("make", &file, e))
    };
    command
        .stdin(input)
        .stdout(create(REPORT)?)
        .stderr(create(SAID)?);
    let Some(ended) = wait(command, patience, is_stopped) else {
        return Ok(None);
    };
    let outcome = outcome(cell, node, &ended, home);
    let file = home.join(CELL);
    let text =
        serde_json::to_vec_pretty(&outcome).map_err(|e| Error::file("write", &file, e.into()))?;
    bounded::replace(&file, &text).map_err(|e| Error::file("write", &file, e))?;
    Ok(Some(outcome))
}

/// How a command ended, or why it never did; nothing where it was interrupted. Its process leads a group. When its time is over, its
/// standard input ends if it has one of ours, then it is told to end, then it is killed.
pub(super) fn wait(
    mut command: Command,
    patience: Duration,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Option<std::result::Result<ExitStatus, String>> {
    use nix::sys::signal::{Signal, killpg};
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    hopyard_net::end_with_starter(&mut command);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) => return Some(Err(format!("it cannot be started: {e}"))),
    };
    let group = i32::try_from(child.id())
        .map(nix::unistd::Pid::from_raw)
        .ok()?;
    let (mut deadline, mut late, mut stopped) = (Instant::now() + patience, false, false);
    let mut input = child.stdin.take();
    let mut signals = [Signal::SIGTERM].into_iter();
    loop {
        match child.try_wait() {
            Ok(Some(_)) if stopped => return None,
            Ok(Some(_)) if late => {
                return Some(Err(format!(
                    "it took longer than {} and was ended",
                    units::show_duration(patience)
                )));
            }
            Ok(Some(status)) => return Some(Ok(status)),
            Ok(None) => {}
            Err(e) => return Some(Err(format!("it cannot be waited for: {e}"))),
        }
        let is_over = Instant::now() >= deadline;
        if is_over || (is_stopped() && !stopped) {
            if input.take().is_none() {
                let signal = signals.next().unwrap_or(Signal::SIGKILL);
                // It may have gone just now.
                let _gone = killpg(group, signal);
            }
            stopped |= is_stopped();
            late |= is_over && !stopped;
            deadline = Instant::now() + GRACE;
        }
        std::thread::sleep(LOOK);
    }
}

fn outcome(
    cell: &MatrixCell,
    node: &str,
    ended: &std::result::Result<ExitStatus, String>,
    home: &Path,
) -> Outcome {
    let report = bounded::read(&home.join(REPORT)).map_err(|e| e.to_string());
    let report: std::result::Result<Report, String> =
        report.and_then(|text| serde_json::from_slice(&text).map_err(|e| e.to_string()));
    let own = report.as_ref().ok().and_then(|report| {
        let mut cells = report.cells.iter();
        cells.find(|found| found.path == cell.path && found.load == cell.load)
    });
    let main = cell.load.info().main_figure;
    let cause = match (ended, own) {
        (Err(why), _) => Some(why.clone()),
        (Ok(status), Some(own)) if status.success() => own.cause.clone().or_else(|| {
            let has_figure = own.estimates.contains_key(main);
            (!has_figure).then(|| {
                format!(
                    "its report has no {main}: see {REPORT} and {SAID} in {}",
                    home.display()
                )
            })
        }),
        // It thinks that all is well, and what it said is not about that.
        (Ok(status), None) if status.success() => Some(match &report {
            Ok(_) => format!(
                "its report has no cell of {}: see {REPORT} in {}",
                cell.path,
                home.display()
            ),
            Err(why) => format!("its report cannot be read: {why}"),
        }),
        (Ok(status), own) => Some(
            own.and_then(|own| own.cause.clone())
                .or_else(|| crate::children::last_words(&home.join(SAID)))
                .unwrap_or_else(|| crate::children::how(*status)),
        ),
    };
    let environment = report.as_ref().ok().map(|report| &report.run.environment);
    Outcome {
        schema: SCHEMA.to_owned(),
        cell: cell.clone(),
        node: node.to_owned(),
        cpu: environment.and_then(|e| e.cpu_model.clone()),
        kernel_release: environment.and_then(|e| e.kernel_release.clone()),
        cause: cause.map(|cause| plain::line(&cause)),
        estimates: own.map(|own| own.estimates.clone()).unwrap_or_default(),
        verdicts: own.map(|own| own.verdicts.clone()).unwrap_or_default(),
    }
}

/// What the file of a cell says, if it has one that is whole.
pub(super) fn read(directory: &Path, number: usize) -> Result<Option<Outcome>> {
    let file = directory.join("cells").join(number.to_string()).join(CELL);
    let text = match bounded::read(&file) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::file("read", &file, e)),
    };
    let wrong = |why: &str| {
        Error::Wrong(format!(
            "{}: {}",
            plain::line(&file.display().to_string()),
            plain::line(why)
        ))
    };
    let outcome: Outcome = serde_json::from_slice(&text).map_err(|e| wrong(&e.to_string()))?;
    if outcome.schema != SCHEMA {
        return Err(wrong(&format!(
            "schema `{}` is not `{SCHEMA}`",
            outcome.schema
        )));
    }
    Ok(Some(outcome))
}
