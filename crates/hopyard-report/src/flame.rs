//! Flame graphs: all call chains of a cell's profile windows in one picture, as SVG, and as folded stacks for other
//! programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use inferno::flamegraph::{self, Options};

use crate::assess::counted_windows;
use crate::assess::subsystems::{Place, place};
use crate::model::stored::Run;
use crate::model::{AXES, Cell, ProfileWindow};
use crate::plain;

/// Why there are no pictures.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The run has no profiles.
    #[error("the run has no profiles to draw: take them with `hopyard run --profile`")]
    None,
    /// A file cannot be written.
    #[error("cannot write {}", .file.display())]
    Write {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Draws every profiled cell of a run into a directory, which is created if needed: `NAME.svg` and `NAME.folded`.
/// Returns the pictures' names.
///
/// # Errors
/// The run has no profiles, or the directory cannot be written.
pub fn draw(run: &Run, directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let written = |file: &Path, outcome: io::Result<()>| {
        outcome.map_err(|source| Error::Write {
            file: file.to_owned(),
            source,
        })
    };
    let graphs = graphs(run);
    if graphs.is_empty() {
        return Err(Error::None);
    }
    written(directory, fs::create_dir_all(directory))?;
    let mut pictures = Vec::new();
    for (cell, folded) in graphs {
        let name = name(run, cell);
        let stacks = directory.join(format!("{name}.folded"));
        written(&stacks, fs::write(&stacks, folded.join("\n") + "\n"))?;
        let picture = directory.join(format!("{name}.svg"));
        let svg = svg(&run.header.cells[cell].cell, &folded);
        written(&picture, svg.and_then(|svg| fs::write(&picture, svg)))?;
        pictures.push(picture);
    }
    Ok(pictures)
}

/// The folded stacks of each cell that has busy samples.
fn graphs(run: &Run) -> Vec<(usize, Vec<String>)> {
    let cells = 0..run.header.cells.len();
    let counted = counted_windows(&run.samples, &run.profiles);
    cells
        .map(|cell| {
            let windows = counted.iter().copied().filter(|w| w.cell == cell);
            (cell, folded(windows))
        })
        .filter(|(_, folded)| !folded.is_empty())
        .collect()
}

/// `client;entry_SYSCALL_64_after_hwframe;…;udp_sendmsg 17`; idle samples are left out.
fn folded<'a>(windows: impl Iterator<Item = &'a ProfileWindow>) -> Vec<String> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for window in windows {
        for (stack, samples) in window.stacks() {
            if place(&stack) != Place::Idle {
                let frames: Vec<String> = stack
                    .iter()
                    .map(|frame| plain::line(frame).replace(';', ":"))
                    .collect();
                let sum = counts.entry(frames.join(";")).or_default();
                *sum = sum.saturating_add(samples);
            }
        }
    }
    let lines = counts.into_iter().filter(|(_, samples)| *samples > 0);
    lines
        .map(|(stack, samples)| format!("{stack} {samples}"))
        .collect()
}

fn svg(cell: &Cell, folded: &[String]) -> io::Result<Vec<u8>> {
    let mut options = Options::default();
    options.title = format!(
        "{} · {} · {}",
        plain::line(&cell.path),
        cell.peer,
        cell.load
    );
    options.subtitle = Some("busy CPU time of the whole machine, sampled".to_owned());
    // The same samples make the same picture.
    options.deterministic = true;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, folded.iter().map(String::as_str), &mut svg)?;
    Ok(svg)
}

/// What distinguishes a cell from the others, usable as a file name.
fn name(run: &Run, cell: usize) -> String {
    let fit = |c: char| c.is_ascii_alphanumeric() || "-_.=".contains(c);
    let name = facts(run, cell).join("-");
    name.chars().map(|c| if fit(c) { c } else { '_' }).collect()
}

/// The same as a title for people.
pub(super) fn title(run: &Run, cell: usize) -> String {
    facts(run, cell).join(" · ")
}

/// Path, peer, load, and the axes that vary.
fn facts(run: &Run, cell: usize) -> Vec<String> {
    let cells = &run.header.cells;
    let own = &cells[cell].cell;
    let mut parts = vec![own.path.clone(), own.peer.to_string(), own.load.to_string()];
    for axis in AXES {
        let value = (axis.show)(&own.axes);
        let alike =
            |other: &Cell| (&other.path, other.peer, other.load) == (&own.path, own.peer, own.load);
        let varies = cells
            .iter()
            .filter(|c| alike(&c.cell))
            .any(|c| (axis.show)(&c.cell.axes) != value);
        if varies {
            parts.push(format!(
                "{}={}",
                axis.name,
                value.as_deref().unwrap_or("none")
            ));
        }
    }
    parts
}
