//! hopyard as a program, the current or an older one: `hopyard run`, and its result.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hopyard::model::{Axes, CellStatus};
use hopyard::stats::Verdict;
use hopyard::{assess, signals};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;

use super::judge::{Answer, Answers, Ratio};
use super::question::{Cell, Question};
use crate::error::{Error, Result};

/// A run may take this many times its limit: labs are tried before, and blocks are completed.
const OVERRUN: u32 = 3;
/// Additional time for starting and ending.
const STARTING: Duration = Duration::from_secs(30);

/// A program, and the options that select its method.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) options: &'static [&'static str],
}

/// The parts of the document `hopyard/run/1` that are used.
#[derive(Debug, Deserialize)]
struct Document {
    cells: Vec<CellReport>,
}

#[derive(Debug, Deserialize)]
struct CellReport {
    path: String,
    axes: Sizes,
    status: CellStatus,
    #[serde(default)]
    cause: Option<String>,
    #[serde(default)]
    estimates: BTreeMap<String, Value>,
    #[serde(default)]
    verdicts: BTreeMap<String, Compared>,
}

#[derive(Debug, Deserialize)]
struct Sizes {
    #[serde(default)]
    message_size_bytes: Option<u32>,
    #[serde(default)]
    request_size_bytes: Option<u32>,
}

#[derive(Debug, Deserialize)]
struct Value {
    value: f64,
}

#[derive(Debug, Deserialize)]
struct Compared {
    ratio: Ratio,
    #[serde(default)]
    verdict: Option<Verdict>,
}

impl Program {
    /// Measures a question.
    pub(super) fn ask(&self, question: &Question, limit: Duration) -> Result<Answers> {
        let cells = question.cells();
        let mut more = vec![format!("--time-limit={}s", limit.as_secs())];
        more.extend(self.options.iter().map(|&option| option.to_owned()));
        let text = self.run(question, &cells, &more, limit)?;
        answers(&text, question).map_err(|what| self.trouble(what))
    }

    /// Duration of a transaction of the base, ns.
    pub(super) fn transaction_ns(&self, question: &Question) -> Result<f64> {
        const LIMIT: Duration = Duration::from_secs(10);
        let base = &question.cells()[..1];
        let text = self.run(question, base, &["--blocks=4".to_owned()], LIMIT)?;
        rate(&text, question)
            .map(|per_s| 1e9 / per_s)
            .map_err(|what| self.trouble(what))
    }

    /// Makes a run of some cells and returns its document, which says why if a cell failed.
    fn run(
        &self,
        question: &Question,
        cells: &[Cell],
        more: &[String],
        limit: Duration,
    ) -> Result<String> {
        let io = |doing| move |source| Error::Io { doing, source };
        let place = tempfile::tempdir().map_err(io("cannot make a directory for a run"))?;
        let (document, notes) = (place.path().join("document"), place.path().join("notes"));
        let create = |path| File::create(path).map_err(io("cannot make a file for a run"));
        let mut command = Command::new(&self.path);
        command
            .args(arguments(question, cells))
            .args(more)
            .args(["--json", "--out"])
            .arg(place.path().join("run"))
            .stdin(Stdio::null())
            .stdout(create(&document)?)
            .stderr(create(&notes)?);
        let status = self.wait(command, limit * OVERRUN + STARTING)?;
        if status.success() {
            return fs::read_to_string(&document).map_err(io("cannot read the document of a run"));
        }
        // Status 1: a cell failed, and the document says why; or its traffic did not take its path.
        let said = fs::read_to_string(&document).unwrap_or_default();
        if status.code() == Some(1) && read(&said).is_ok_and(|read| read.failure().is_some()) {
            return Ok(said);
        }
        let said = fs::read_to_string(&notes).unwrap_or_default();
        let last = said.lines().last().unwrap_or("it said nothing");
        Err(self.trouble(format!("ended with {status}: {last}")))
    }

    /// Waits until it ends; passes an interrupt on, so that it leaves nothing behind.
    fn wait(&self, mut command: Command, patience: Duration) -> Result<ExitStatus> {
        let failed = |source| Error::Start {
            program: self.path.display().to_string(),
            source,
        };
        let mut child = command.spawn().map_err(failed)?;
        let deadline = Instant::now() + patience;
        let mut is_told = false;
        loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                if signals::interrupted() {
                    return Err(Error::Interrupted);
                }
                return Ok(status);
            }
            let now = Instant::now();
            if now >= deadline + STARTING {
                child.kill().map_err(failed)?;
            } else if !is_told && (signals::interrupted() || now >= deadline) {
                is_told = true;
                if let Ok(pid) = i32::try_from(child.id()) {
                    // Fails only if it has ended meanwhile.
                    let _ = kill(Pid::from_raw(pid), Signal::SIGINT);
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn trouble(&self, what: String) -> Error {
        Error::Program {
            program: self.path.display().to_string(),
            what,
        }
    }
}

/// Options of `hopyard run` that every version accepts.
fn arguments(question: &Question, cells: &[Cell]) -> Vec<String> {
    let mut sizes: Vec<String> = cells.iter().map(|cell| cell.size.to_string()).collect();
    sizes.dedup();
    let mut paths: Vec<&str> = cells.iter().map(|cell| cell.path).collect();
    paths.dedup();
    let mut words = vec!["run".to_owned()];
    words.push(format!("--paths={}", paths.join(",")));
    words.push(format!("--loads={}", question.load));
    words.push(format!("--set=placement={}", question.placement));
    if !question.load.is_stream() {
        words.push(format!("--set=response_size={}", cells[0].size));
    }
    words.push(format!("--set={}={}", question.axis(), sizes.join(",")));
    words.push(if sizes.len() > 1 {
        format!("--base={}={}", question.axis(), sizes[0])
    } else {
        format!("--base={}", cells[0].path)
    });
    words
}

fn read(text: &str) -> std::result::Result<Document, String> {
    serde_json::from_str(text).map_err(|error| format!("printed no document of a run: {error}"))
}

fn figure(question: &Question) -> &'static str {
    assess::main_figure(question.load, &Axes::default())
}

/// A cell that failed has no answer, even where some of its blocks have figures; if the base failed, none has.
fn answers(text: &str, question: &Question) -> std::result::Result<Answers, String> {
    let document = read(text)?;
    let cells = question.cells();
    let base = document.cell(cells[0])?;
    let answer = |cell: &Cell| {
        let cell = document.cell(*cell)?;
        let are_measured = [base, cell].iter().all(|one| one.failure().is_none());
        let compared = cell.verdicts.get(figure(question));
        let compared = compared.filter(|_| are_measured);
        Ok(compared.map_or_else(Answer::none, |compared| Answer {
            // There is none if there are too few blocks.
            verdict: compared.verdict.unwrap_or(Verdict::Inconclusive),
            ratio: Some(compared.ratio),
        }))
    };
    let all = cells.iter().skip(1).map(answer);
    Ok(Answers {
        all: all.collect::<std::result::Result<_, String>>()?,
        failed: document.failure(),
    })
}

fn rate(text: &str, question: &Question) -> std::result::Result<f64, String> {
    let document = read(text)?;
    if let Some(failure) = document.failure() {
        return Err(failure);
    }
    let estimate = document.cells.first();
    estimate
        .and_then(|cell| cell.estimates.get(figure(question)))
        .map(|estimate| estimate.value)
        .filter(|value| *value > 0.0)
        .ok_or_else(|| "has no figure of the base".to_owned())
}

impl Document {
    fn cell(&self, cell: Cell) -> std::result::Result<&CellReport, String> {
        let found = self.cells.iter().find(|report| report.is(cell));
        found.ok_or_else(|| format!("did not measure {cell:?}"))
    }

    /// What it says of the first cell of which not all was measured.
    fn failure(&self) -> Option<String> {
        self.cells.iter().find_map(CellReport::failure)
    }
}

impl CellReport {
    /// What this cell's run says of it, if not all of it was measured.
    fn failure(&self) -> Option<String> {
        let what = match self.status {
            CellStatus::Ok => return None,
            CellStatus::Failed => "did not measure all of",
            CellStatus::Unsupported => "cannot build",
        };
        let size = self
            .size()
            .map_or_else(String::new, |size| format!(" with {size} bytes"));
        let cause = self.cause.as_deref().unwrap_or("no cause is given");
        Some(format!("{what} {}{size}: {cause}", self.path))
    }

    fn size(&self) -> Option<u32> {
        let axes = &self.axes;
        axes.message_size_bytes.or(axes.request_size_bytes)
    }

    fn is(&self, cell: Cell) -> bool {
        self.path == cell.path && self.size() == Some(cell.size)
    }
}

#[cfg(test)]
mod tests {
    use super::super::question::QUESTIONS;
    use super::*;

    fn question(name: &str) -> &'static Question {
        QUESTIONS.iter().find(|q| q.name == name).unwrap()
    }

    #[test]
    fn words_of_a_run() {
        let known = question("tcp_rr_known");
        assert_eq!(
            arguments(known, &known.cells()).join(" "),
            "run --paths=veth --loads=tcp_rr --set=placement=same --set=response_size=14 \
             --set=request_size=14,15,16 --base=request_size=14"
        );
        let paths = question("udp_stream_paths");
        assert_eq!(
            arguments(paths, &paths.cells()).join(" "),
            "run --paths=veth,bridge,direct --loads=udp_stream --set=placement=split \
             --set=message_size=1400 --base=veth"
        );
    }

    #[test]
    fn answers_are_those_of_the_main_figure() {
        let text = r#"{"cells":[
            {"path":"veth","axes":{"message_size_bytes":20000},"status":"ok","estimates":{"goodput_bps":{"value":2e10}}},
            {"path":"bridge","axes":{"message_size_bytes":20000},"status":"ok","verdicts":{
              "cpu_ns_per_byte":{"base":"veth","ratio":{"value":2,"low":1,"high":3},"verdict":"different"},
              "goodput_bps":{"base":"veth","ratio":{"value":0.9,"low":0.8,"high":1.1,"n":8},"verdict":"inconclusive"}}}
        ]}"#;
        let told = answers(text, question("tcp_stream_paths")).unwrap();
        assert_eq!((told.all.len(), told.failed), (1, None));
        assert_eq!(told.all[0].verdict, Verdict::Inconclusive);
        assert_eq!(told.all[0].ratio.map(|ratio| ratio.value), Some(0.9));
        assert_eq!(rate(text, question("tcp_stream_paths")), Ok(2e10));
    }

    /// Of the base, no comparison has an answer; of another cell, its own has none. Figures of some blocks do not count.
    #[test]
    fn a_cell_that_was_not_measured_has_no_answer() {
        let question = question("udp_stream_paths");
        let text = |statuses: [&str; 3]| {
            let cell = |(path, status): (&str, &str)| {
                format!(
                    r#"{{"path":"{path}","axes":{{"message_size_bytes":1400}},"status":"{status}","cause":"no memory",
                        "estimates":{{"goodput_bps":{{"value":2e10}}}},"verdicts":{{"goodput_bps":
                        {{"ratio":{{"value":0.5,"low":0.4,"high":0.6}},"verdict":"different"}}}}}}"#
                )
            };
            let cells = ["veth", "bridge", "direct"].into_iter().zip(statuses);
            format!(
                r#"{{"cells":[{}]}}"#,
                cells.map(cell).collect::<Vec<_>>().join(",")
            )
        };
        let decided = |statuses| {
            let answers = answers(&text(statuses), question).unwrap();
            let verdicts = answers.all.iter().map(|answer| answer.verdict);
            let are_decided: Vec<bool> = verdicts.map(|v| v != Verdict::Inconclusive).collect();
            (are_decided, answers.failed.unwrap_or_default())
        };
        assert_eq!(decided(["ok"; 3]), (vec![true; 2], String::new()));
        for status in ["failed", "unsupported"] {
            for (statuses, wanted, path) in [
                ([status, "ok", "ok"], [false, false], "veth"),
                (["ok", status, "ok"], [false, true], "bridge"),
                (["ok", "ok", status], [true, false], "direct"),
            ] {
                let (are_decided, said) = decided(statuses);
                assert_eq!(are_decided, wanted, "{statuses:?}");
                let wanted = format!("{path} with 1400 bytes: no memory");
                assert!(said.contains(&wanted), "{said}");
                assert!(rate(&text(statuses), question).is_err());
            }
        }
    }

    #[test]
    fn a_quick_look_decides_nothing_and_a_missing_cell_is_an_error() {
        let text = r#"{"cells":[{"path":"veth","axes":{"message_size_bytes":1400},"status":"ok"},
            {"path":"veth","axes":{"message_size_bytes":1401},"status":"ok","verdicts":{
            "goodput_bps":{"base":"message_size=1400","ratio":{"value":1,"low":0.9,"high":1.1}}}}]}"#;
        let told = answers(text, question("udp_stream_equal")).unwrap();
        assert_eq!(told.all[0].verdict, Verdict::Inconclusive);
        assert!(answers(text, question("udp_stream_paths")).is_err());
        assert!(answers("no document", question("udp_stream_equal")).is_err());
    }
}
