//! Cells over a list of nodes: each node takes the next cell of its kind as soon as it has none.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use hopyard_lab::Prefix;

use super::cell::{self, measure};
use super::{Matrix, MatrixCell, patience};
use crate::endpoints::Endpoint;
use crate::error::{Error, Result};

/// What a node runs: the run's directory is a temporary one there, and goes again.
const SCRIPT: &str = r#"d=$(mktemp -d) || exit 3; trap 'rm -rf "$d"' EXIT; trap 'kill $p 2>/dev/null; wait $p' TERM INT HUP; hopyard "$@" --out "$d/run" & p=$!; wait $p; s=$?; exit $s"#;

/// Measures all cells that are not measured yet, on nodes of their kinds. How many are measured now.
///
/// # Errors
/// A kind has no node, or the directory cannot be written.
pub fn over_nodes(
    matrix: &Matrix,
    nodes: &[Endpoint],
    directory: &Path,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<usize> {
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
    let mut measured = 0;
    for cell in cells {
        match cell::read(directory, cell.number)? {
            Some(outcome) if outcome.cause.is_none() => measured += 1,
            _ => left.push_back(cell),
        }
    }
    let left = Mutex::new(left);
    let results: Vec<Result<usize>> = std::thread::scope(|scope| {
        let one = |node| {
            let left = &left;
            scope.spawn(move || of_node(matrix, node, left, directory, is_stopped))
        };
        let threads: Vec<_> = nodes.iter().map(one).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<usize>>| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });
    for result in results {
        measured += result?;
    }
    Ok(measured)
}

/// A node goes on after a cell that failed: the next one may be another kernel's.
fn of_node(
    matrix: &Matrix,
    node: &Endpoint,
    left: &Mutex<VecDeque<MatrixCell>>,
    directory: &Path,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<usize> {
    let prefix: Prefix = node
        .connect
        .parse()
        .map_err(|e| Error::Wrong(format!("endpoint `{}`: {e}", node.name)))?;
    let mut measured = 0;
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
        measured += usize::from(measure(
            &cell,
            &node.name,
            command,
            &home,
            patience(matrix),
            is_stopped,
        )?);
    }
    Ok(measured)
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
