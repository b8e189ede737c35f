//! Cells over a list of nodes: each node takes the next cell of its kind as soon as it has none.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hopyard_lab::Prefix;

use super::cell::{self, Outcome, measure};
use super::{Matrix, MatrixCell, patience};
use crate::endpoints::Endpoint;
use crate::error::{Error, Result};

/// What a node runs: the run's directory is a temporary one there, and goes again. The run ends with the script's standard input
/// at the latest: sshd sends no signal to what it started where the connection ends.
const SCRIPT: &str = r#"d=$(mktemp -d) || exit 3; exec 3<&0; hopyard "$@" --out "$d/run" </dev/null 3<&- & p=$!; { cat <&3; kill $p; } >/dev/null 2>&1 & w=$!; trap 'kill $w 2>/dev/null; rm -rf "$d"' EXIT; trap 'kill $p 2>/dev/null; wait $p' TERM INT HUP; wait $p; s=$?; exit $s"#;
/// How often a node without work looks whether there is some again.
const LOOK: Duration = Duration::from_millis(200);
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
    let mut todo = Todo::default();
    for cell in cells {
        // The matrix may have changed since, and then its numbers mean other cells.
        let earlier = cell::read(directory, cell.number)?;
        let is_measured = |o: &Outcome| o.cause.is_none() && o.cell == cell;
        if !earlier.as_ref().is_some_and(is_measured) {
            todo.left.push_back(cell);
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

/// Cells that nobody measures yet, and those that some node does.
#[derive(Default)]
struct Todo {
    left: VecDeque<MatrixCell>,
    measuring: Vec<MatrixCell>,
}

/// What a node does next.
enum Next {
    Cell(MatrixCell),
    /// What others measure may come back, if their nodes are lost.
    Wait,
    None,
}

impl Todo {
    fn next(&mut self, node: &Endpoint) -> Next {
        let fits = |cell: &MatrixCell| cell.kind.is_none() || cell.kind == node.kind;
        let at = self.left.iter().position(fits);
        match at.and_then(|at| self.left.remove(at)) {
            Some(cell) => {
                self.measuring.push(cell.clone());
                Next::Cell(cell)
            }
            None if self.measuring.iter().any(fits) => Next::Wait,
            None => Next::None,
        }
    }

    fn ended(&mut self, cell: MatrixCell, is_lost: bool) {
        self.measuring.retain(|other| other.number != cell.number);
        if is_lost {
            self.left.push_front(cell);
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
        let cell = match lock(todo).next(node) {
            Next::Cell(cell) => cell,
            Next::Wait => {
                std::thread::sleep(LOOK);
                continue;
            }
            Next::None => break,
        };
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
            &cell,
            &node.name,
            (command, Stdio::piped()),
            &home,
            patience(matrix),
            is_stopped,
        );
        let outcome = outcome.inspect_err(|_| lock(todo).ended(cell.clone(), false))?;
        let is_silent = |o: &Outcome| o.kernel_release.is_none() && !answers(&prefix, is_stopped);
        let is_lost = outcome.as_ref().is_some_and(is_silent);
        lock(todo).ended(cell, is_lost);
        if is_lost {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::machines;

    #[test]
    fn what_a_lost_node_had_is_waited_for_by_its_kind() {
        let matrix: Matrix = toml::from_str(
            "base = 'veth'\npaths = ['bridge']\nloads = ['tcp_rr']\nkinds = ['a', 'b']",
        )
        .unwrap();
        let mut nodes = machines(3);
        for (node, kind) in nodes.iter_mut().zip(["a", "a", "b"]) {
            node.kind = Some(kind.to_owned());
        }
        let mut todo = Todo::default();
        todo.left.extend(matrix.cells());
        let Next::Cell(cell) = todo.next(&nodes[0]) else {
            panic!("there is one of kind a");
        };
        assert!(matches!(todo.next(&nodes[1]), Next::Wait));
        let Next::Cell(other) = todo.next(&nodes[2]) else {
            panic!("there is one of kind b");
        };
        todo.ended(other, false);
        assert!(matches!(todo.next(&nodes[2]), Next::None));
        todo.ended(cell.clone(), true);
        assert!(matches!(todo.next(&nodes[1]), Next::Cell(again) if again == cell));
        todo.ended(cell, false);
        assert!(matches!(todo.next(&nodes[1]), Next::None));
    }
}
