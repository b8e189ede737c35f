//! What a run left: its report, and what it said.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use hopyard_host::bounded;
use hopyard_model::{LoadKind, plain, units};
use hopyard_stats::Estimate;
use serde::Deserialize;

use super::how;
use crate::plan::Column;

/// The run's report, as JSON.
pub(super) const REPORT: &str = "report.json";
/// What it said on stderr.
pub(super) const SAID: &str = "said.txt";
/// Causes are read by people, and there may be half a million of them.
const LONGEST_CAUSE: usize = 400;

/// What came of a run.
#[derive(Debug, Default)]
pub(super) struct Finding {
    pub(super) figures: Vec<(u16, Estimate)>,
    /// Why it failed, if it did.
    pub(super) cause: Option<String>,
    /// It took longer than this and was ended.
    pub(super) late: Option<Duration>,
}

/// The part of a report that a fleet keeps.
#[derive(Deserialize)]
struct Report {
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    load: LoadKind,
    cause: Option<String>,
    #[serde(default)]
    failed_samples: u32,
    estimates: BTreeMap<String, Estimate>,
}

impl Finding {
    pub(super) fn read(self, directory: &Path, status: ExitStatus, columns: &[Column]) -> Self {
        let report = bounded::read(&directory.join(REPORT)).ok();
        let report: Option<Report> = report.and_then(|text| serde_json::from_slice(&text).ok());
        let cells = report.map(|report| report.cells).unwrap_or_default();
        let mut figures = Vec::new();
        for (place, column) in columns.iter().enumerate() {
            let cell = cells.iter().find(|cell| cell.load == column.load);
            let figure = cell.and_then(|cell| cell.estimates.get(column.quantity));
            if let (Some(figure), Ok(place)) = (figure, u16::try_from(place)) {
                figures.push((place, figure.clone()));
            }
        }
        let has = |column: &Column, place: usize| {
            !column.is_main() || figures.iter().any(|(at, _)| usize::from(*at) == place)
        };
        let missing = columns
            .iter()
            .enumerate()
            .find(|(place, c)| !has(c, *place));
        let cause = if status.success() && missing.is_none() && self.late.is_none() {
            None
        } else {
            Some(cause(self.late, &cells, directory, status))
        };
        // It thinks that all is well, and what it said is not about that.
        let cause = match missing {
            Some((_, column)) if status.success() && self.late.is_none() => Some(format!(
                "its report has no {} of {}: see {REPORT} and {SAID} in {}",
                column.quantity,
                column.load,
                directory.display()
            )),
            _ => cause,
        };
        Self {
            figures,
            cause,
            ..self
        }
    }
}

/// The first of these that there is: too late, a cell's cause, the run's last words, its exit status.
fn cause(late: Option<Duration>, cells: &[Cell], directory: &Path, status: ExitStatus) -> String {
    let failed = cells.iter().find_map(|cell| {
        let cause = cell.cause.as_ref()?;
        Some(match cell.failed_samples {
            0 => format!("{}: {cause}", cell.load),
            n => format!(
                "{}: {}: {cause}",
                cell.load,
                units::counted(n as usize, "failed sample")
            ),
        })
    });
    let text = match late {
        Some(limit) => format!(
            "it took longer than {} and was ended",
            units::show_duration(limit)
        ),
        None => failed
            .or_else(|| last_words(&directory.join(SAID)))
            .unwrap_or_else(|| how(status)),
    };
    short(&text)
}

/// In one line that is not too long.
pub(super) fn short(text: &str) -> String {
    let text = plain::line(text);
    match text.char_indices().nth(LONGEST_CAUSE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The last message on stderr, without the program's name. Its further lines are indented.
pub(crate) fn last_words(file: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).ok()?;
    opened.take(1 << 20).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let begin = lines.iter().rposition(|line| !line.starts_with(' '))?;
    let message = lines[begin..].join(" ");
    Some(
        message
            .strip_prefix("hopyard: ")
            .unwrap_or(&message)
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    const COLUMNS: [Column; 2] = [
        Column {
            load: LoadKind::TcpRr,
            quantity: "transactions_per_s",
        },
        Column {
            load: LoadKind::TcpRr,
            quantity: "latency_p50_ns",
        },
    ];

    fn found(report: &str, said: &str, status: i32, late: Option<Duration>) -> Finding {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(REPORT), report).unwrap();
        std::fs::write(home.path().join(SAID), said).unwrap();
        let found = Finding {
            late,
            ..Finding::default()
        };
        found.read(home.path(), ExitStatus::from_raw(status << 8), &COLUMNS)
    }

    fn report(cause: &str, name: &str) -> String {
        let figure = r#"{"value":2.0,"low":1.0,"high":3.0,"confidence":0.95,"n":4}"#;
        format!(
            r#"{{"schema":"x","cells":[{{"load":"tcp_rr","cause":{cause},"failed_samples":1,"estimates":{{"{name}":{figure}}}}}]}}"#
        )
    }

    #[test]
    fn a_run_is_measured_when_it_says_so_and_has_each_main_figure() {
        let fine = found(&report("null", "transactions_per_s"), "", 0, None);
        assert_eq!((fine.cause, fine.figures.len()), (None, 1));
        let other = found(&report("null", "latency_p50_ns"), "", 0, None);
        let cause = other.cause.unwrap();
        assert!(
            cause.starts_with("its report has no transactions_per_s of tcp_rr"),
            "{cause}"
        );
        assert_eq!(other.figures[0].0, 1);
    }

    #[test]
    fn the_cause_is_what_broke_it() {
        let said = "hopyard: 2 cells\nhopyard: cannot reach the server: \n  no route\u{1b}[31m\n";
        for (text, status, late, cause) in [
            (
                report("\"no route\"", "x"),
                1,
                None,
                "tcp_rr: 1 failed sample: no route",
            ),
            (
                String::new(),
                2,
                None,
                "cannot reach the server: no route [31m",
            ),
            (
                report("null", "transactions_per_s"),
                130,
                None,
                "cannot reach the server: no route [31m",
            ),
            (
                "half a rep".to_owned(),
                0,
                Some(Duration::from_secs(60)),
                "it took longer than 60s and was ended",
            ),
        ] {
            assert_eq!(
                found(&text, said, status, late).cause.as_deref(),
                Some(cause)
            );
        }
        assert_eq!(
            found("", "", 3, None).cause.unwrap(),
            "it ended with status 3"
        );
        let long = found("", &"x".repeat(9000), 2, None).cause.unwrap();
        assert!(long.chars().count() == LONGEST_CAUSE + 1 && long.ends_with('…'));
    }
}
