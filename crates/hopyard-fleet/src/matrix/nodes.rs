//! Cells over a list of nodes: each node takes the next cell of its kind as soon as it has none.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hopyard_host::bounded;
use hopyard_lab::{CONNECT, Prefix};

use super::cell::{self, Outcome, measure};
use super::{Matrix, MatrixCell, patience};
use crate::children::{ECHO, is_echo};
use crate::endpoints::Endpoint;
use crate::error::{Error, Result};

/// What a node runs: the run's directory is a temporary one there, and goes again. The run ends with the script's standard input
/// at the latest: sshd sends no signal to what it started where the connection ends.
const SCRIPT: &str = r#"d=$(mktemp -d) || exit 3; exec 3<&0; hopyard "$@" --out "$d/run" </dev/null 3<&- & p=$!; { cat <&3; kill $p; } >/dev/null 2>&1 & w=$!; trap 'kill $w 2>/dev/null; rm -rf "$d"' EXIT; trap 'kill $p 2>/dev/null; wait $p' TERM INT HUP; wait $p; s=$?; exit $s"#;
/// How often a node without work looks whether there is some again.
const LOOK: Duration = Duration::from_millis(200);
/// So many nodes try a cell that brings no report: it may be a node that cannot measure anything, or the cell that nobody can measure.
const MOST_TRIES: usize = 3;

/// Measures all cells that are not measured yet, on nodes of their kinds. A cell that brought no report goes to other nodes. Returns the
/// names of nodes that did not answer after such a cell: they are given up.
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
    let mut todo = Todo::default();
    for cell in cells {
        // The matrix may have changed since, and then its numbers mean other cells.
        let earlier = cell::read(directory, cell.number)?;
        let is_measured = |o: &Outcome| o.cause.is_none() && o.cell == cell;
        if !earlier.as_ref().is_some_and(is_measured) {
            todo.left.push_back(Waiting {
                cell,
                tried: Vec::new(),
            });
        }
    }
    let todo = Mutex::new(todo);
    let results: Vec<Result<bool>> = std::thread::scope(|scope| {
        let one = |node| {
            let todo = &todo;
            scope.spawn(move || of_node(matrix, node, todo, directory, is_stopped))
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

/// A cell that is not measured yet.
#[derive(Debug, Clone)]
struct Waiting {
    cell: MatrixCell,
    /// The nodes where it brought no report.
    tried: Vec<String>,
}

impl Waiting {
    fn fits(&self, node: &Endpoint) -> bool {
        let is_its_kind = self.cell.kind.is_none() || self.cell.kind == node.kind;
        is_its_kind && self.tried.len() < MOST_TRIES && !self.tried.contains(&node.name)
    }
}

/// Cells that nobody measures yet, and those that some node does.
#[derive(Default)]
struct Todo {
    left: VecDeque<Waiting>,
    measuring: Vec<Waiting>,
}

/// What a node does next.
enum Next {
    Cell(Waiting),
    /// What others measure may come back.
    Wait,
    None,
}

impl Todo {
    fn next(&mut self, node: &Endpoint) -> Next {
        let at = self.left.iter().position(|waiting| waiting.fits(node));
        match at.and_then(|at| self.left.remove(at)) {
            Some(waiting) => {
                self.measuring.push(waiting.clone());
                Next::Cell(waiting)
            }
            None if self.measuring.iter().any(|waiting| waiting.fits(node)) => Next::Wait,
            None => Next::None,
        }
    }

    /// A node is done with a cell, which others may take if it brought no report there.
    fn ended(&mut self, mut waiting: Waiting, node: &Endpoint, has_report: bool) {
        let number = waiting.cell.number;
        self.measuring.retain(|other| other.cell.number != number);
        if !has_report {
            waiting.tried.push(node.name.clone());
            // Others have a turn before it, so that one that nobody can measure holds up none.
            self.left.push_back(waiting);
        }
    }
}

fn lock(todo: &Mutex<Todo>) -> MutexGuard<'_, Todo> {
    todo.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A node goes on after a cell that failed: the next one may be another kernel's. False if it was given up.
fn of_node(
    matrix: &Matrix,
    node: &Endpoint,
    todo: &Mutex<Todo>,
    directory: &Path,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<bool> {
    let prefix: Prefix = node
        .connect
        .parse()
        .map_err(|e| Error::Wrong(format!("endpoint `{}`: {e}", node.name)))?;
    while !is_stopped() {
        let waiting = match lock(todo).next(node) {
            Next::Cell(waiting) => waiting,
            Next::Wait => {
                std::thread::sleep(LOOK);
                continue;
            }
            Next::None => break,
        };
        let cell = &waiting.cell;
        let home = directory.join("cells").join(cell.number.to_string());
        // ssh hands its words to a shell there, which would split and expand them once more.
        let mut words = vec![
            "sh".to_owned(),
            "-c".to_owned(),
            SCRIPT.to_owned(),
            "hopyard".to_owned(),
        ];
        words.extend(cell.words());
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
            cell,
            &node.name,
            (command, Stdio::piped()),
            &home,
            patience(matrix),
            is_stopped,
        );
        let outcome = outcome.inspect_err(|_| lock(todo).ended(waiting.clone(), node, true))?;
        let has_report = |o: &Outcome| o.kernel_release.is_some();
        let has_report = outcome.as_ref().is_none_or(has_report);
        // Before others have the cell, whose directory has the answer.
        let answers = if has_report {
            Ok(true)
        } else {
            answers_there(&prefix, &home, is_stopped)
        };
        lock(todo).ended(waiting, node, has_report);
        if !answers? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Does it say what it is told to?
fn answers_there(
    prefix: &Prefix,
    home: &Path,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<bool> {
    let file = home.join("answer.txt");
    let said = File::create(&file).map_err(|e| Error::file("make", &file, e))?;
    let mut command = prefix.command(&["echo", ECHO]);
    command
        .stdin(Stdio::null())
        .stdout(said)
        .stderr(Stdio::null());
    if cell::wait(command, CONNECT, is_stopped).is_none() {
        // Interrupted, nobody knows.
        return Ok(true);
    }
    let said = bounded::read(&file).map_err(|e| Error::file("read", &file, e))?;
    let text = String::from_utf8_lossy(&said);
    Ok(text.lines().any(is_echo))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::machines;

    #[test]
    fn a_cell_without_a_report_goes_to_other_nodes() {
        let matrix: Matrix = toml::from_str(
            "base = 'veth'\npaths = ['bridge']\nloads = ['tcp_rr']\nkinds = ['a', 'b']",
        )
        .unwrap();
        let mut nodes = machines(5);
        for (node, kind) in nodes.iter_mut().zip(["a", "a", "b", "a", "a"]) {
            node.kind = Some(kind.to_owned());
        }
        let mut todo = Todo::default();
        let untried = |cell| Waiting {
            cell,
            tried: Vec::new(),
        };
        todo.left.extend(matrix.cells().into_iter().map(untried));
        let Next::Cell(cell) = todo.next(&nodes[0]) else {
            panic!("there is one of kind a");
        };
        assert!(matches!(todo.next(&nodes[1]), Next::Wait));
        let Next::Cell(other) = todo.next(&nodes[2]) else {
            panic!("there is one of kind b");
        };
        todo.ended(other, &nodes[2], true);
        assert!(matches!(todo.next(&nodes[2]), Next::None));
        todo.ended(cell.clone(), &nodes[0], false);
        // Not by the same node again, and by three at most.
        assert!(matches!(todo.next(&nodes[0]), Next::None));
        for node in [1, 3] {
            let Next::Cell(again) = todo.next(&nodes[node]) else {
                panic!("nobody has measured it");
            };
            assert_eq!(again.cell, cell.cell);
            assert!(matches!(todo.next(&nodes[4]), Next::Wait));
            todo.ended(again, &nodes[node], false);
        }
        assert!(matches!(todo.next(&nodes[4]), Next::None));
    }
}
