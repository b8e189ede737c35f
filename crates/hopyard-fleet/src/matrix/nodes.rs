//! Cells over a list of nodes: each node takes the next cell of its kind as soon as it has none.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hopyard_lab::Prefix;

use super::cell::{self, Outcome, measure};
use super::{Matrix, MatrixCell, patience};
use crate::endpoints::Endpoint;
use crate::error::{Error, Result};

/// What a node runs: the run's directory is a temporary one there, and goes again. The run ends with the script's standard input
/// at the latest: sshd sends no signal to what it started where the connection ends.
const SCRIPT: &str = r#"d=$(mktemp -d) || exit 3; exec 3<&0; hopyard "$@" --out "$d/run" </dev/null 3<&- & p=$!; { cat <&3; kill $p; } >/dev/null 2>&1 & w=$!; trap 'kill $w 2>/dev/null; rm -rf "$d"' EXIT; trap 'kill $p 2>/dev/null; wait $p' TERM INT HUP; wait $p; s=$?; exit $s"#;
/// How long a login may take.
const ANSWERS: Duration = Duration::from_secs(30);

/// Measures all cells that are not measured yet, on nodes of their kinds. A node that does not answer after a cell that brought no
/// report is given up; others of its kind have its cells. The names of such nodes.
///
/// # Errors
/// A kind has no node, or the directory cannot be written.
pub fn over_nodes(
    matrix: &Matrix,
    nodes: &[Endpoint],
    directory: &Path,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<String>> {
    let cells = matrix.cells();
    for cell in &cells {
        if let Some(kind) = &cell.kind
            && !nodes.iter().any(|node| node.kind.as_ref() == Some(kind))
        {
            return Err(Error::Wrong(format!(
                "no endpoint has `kind = \"{kind}\"`, which the matrix asks for"
            )));
        }
    }
    let mut left = VecDeque::new();
    for cell in cells {
        // The matrix may have changed since, and then its numbers mean other cells.
        let earlier = cell::read(directory, cell.number)?;
        let is_measured = |o: &Outcome| o.cause.is_none() && o.cell == cell;
        if !earlier.as_ref().is_some_and(is_measured) {
            left.push_back(cell);
        }
    }
    let left = Mutex::new(left);
    let results: Vec<Result<bool>> = std::thread::scope(|scope| {
        let one = |node| {
            let left = &left;
            scope.spawn(move || of_node(matrix, node, left, directory, is_stopped))
        };
        let threads: Vec<_> = nodes.iter().map(one).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<bool>>| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });
    let mut lost = Vec::new();
    for (node, result) in nodes.iter().zip(results) {
        if !result? {
            lost.push(node.name.clone());
        }
    }
    Ok(lost)
}

/// A node goes on after a cell that failed: the next one may be another kernel's. False if it was given up.
fn of_node(
    matrix: &Matrix,
    node: &Endpoint,
    left: &Mutex<VecDeque<MatrixCell>>,
    directory: &Path,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<bool> {
    let prefix: Prefix = node
        .connect
        .parse()
        .map_err(|e| Error::Wrong(format!("endpoint `{}`: {e}", node.name)))?;
    while !is_stopped() {
        let next = {
            let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
            let fits = |cell: &MatrixCell| cell.kind.is_none() || cell.kind == node.kind;
            let at = left.iter().position(fits);
            at.and_then(|at| left.remove(at))
        };
        let Some(cell) = next else { break };
        let home = directory.join("cells").join(cell.number.to_string());
        // ssh hands its words to a shell there, which would split and expand them once more.
        let mut words = vec![
            "sh".to_owned(),
            "-c".to_owned(),
            SCRIPT.to_owned(),
            "hopyard".to_owned(),
        ];
        words.extend(matrix.words(&cell));
        let words: Vec<String> = match is_remote_shell(&prefix) {
            true => words
                .iter()
                .map(|word| shlex::try_quote(word).map_or_else(|_| word.clone(), Cow::into_owned))
                .collect(),
            false => words,
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let command = prefix.command(&words);
        let outcome = measure(
            &cell,
            &node.name,
            (command, Stdio::piped()),
            &home,
            patience(matrix),
            is_stopped,
        )?;
        let is_silent = |o: &Outcome| o.kernel_release.is_none() && !answers(&prefix, is_stopped);
        if outcome.as_ref().is_some_and(is_silent) {
            let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
            left.push_front(cell);
            return Ok(false);
        }
    }
    Ok(true)
}

/// Does a command end well there?
fn answers(prefix: &Prefix, is_stopped: &(dyn Fn() -> bool + Sync)) -> bool {
    let mut command = prefix.command(&["true"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let ended = cell::wait(command, ANSWERS, is_stopped);
    // Interrupted, nobody knows.
    ended.is_none_or(|ended| ended.is_ok_and(|status| status.success()))
}

/// Does it join its words to a line for a shell, as ssh does?
fn is_remote_shell(prefix: &Prefix) -> bool {
    let names = prefix
        .words()
        .iter()
        .map(|word| word.rsplit('/').next().unwrap_or(word));
    names
        .clone()
        .any(|name| matches!(name, "ssh" | "slogin" | "autossh"))
}
