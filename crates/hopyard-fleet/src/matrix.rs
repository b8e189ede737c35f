//! Kernels × paths × loads: a cell for each, on one node alone, where the path is measured beside the base. Nodes are never compared
//! with each other, so that a cell says the same wherever it was measured: how the path compares with the base on that machine.
//!
//! Cells are carried out by whoever places them: a job array of Slurm, an Indexed Job of Kubernetes ([`carry_out`]), or by the
//! commands of a list of nodes ([`over_nodes`]). Each writes a file of its own, so that they need nobody in common but the file system.

mod cell;
mod nodes;
mod show;

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use hopyard_host::bounded;
use hopyard_model::{Blocks, LoadKind, plain};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

pub use self::cell::carry_out;
pub use self::nodes::over_nodes;
pub use self::show::{MatrixDocument, matrix_schema, read as read_matrix, text as matrix_text};

/// This node's own kernel.
const OWN: &str = "own";
/// Cells are numbered in file names and in job arrays, which Slurm has a thousand of by default.
const MOST_CELLS: usize = 10_000;
const LONGEST_WORD: usize = 200;

/// What is to be measured.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// The path that others are compared with, on the same node and in the same run.
    base: String,
    /// The others.
    paths: Vec<String>,
    loads: Vec<LoadKind>,
    /// Images for `hopyard run --kernel`, as nodes have them; `own` is the node's own kernel.
    #[serde(default = "own")]
    kernels: Vec<String>,
    /// Kinds of machines, each of which has all cells.
    #[serde(default)]
    kinds: Vec<String>,
    window: Option<String>,
    blocks: Option<String>,
    time_limit: Option<String>,
}

fn own() -> Vec<String> {
    vec![OWN.to_owned()]
}

/// One of its cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MatrixCell {
    /// Its number, from 0.
    pub number: usize,
    /// The kind of machine that it is for, where the matrix has kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The kernel: `own`, or an image.
    pub kernel: String,
    /// The path.
    pub path: String,
    /// What it is compared with.
    pub base: String,
    /// The load.
    pub load: LoadKind,
    /// Options of `hopyard run` that the matrix gives all cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

impl Matrix {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is no matrix.
    pub fn read(file: &Path) -> Result<Self> {
        let bytes = bounded::read(file).map_err(|e| Error::file("read", file, e))?;
        let name = plain::line(&file.display().to_string());
        let wrong = |why: &str| Error::Wrong(format!("{name}: {}", plain::document(why).trim()));
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is no UTF-8 text"))?;
        let matrix: Self = toml::from_str(&text).map_err(|e| wrong(&e.to_string()))?;
        matrix.check().map_err(|why| wrong(&why))?;
        Ok(matrix)
    }

    fn check(&self) -> std::result::Result<(), String> {
        hopyard_lab::path(&self.base).map_err(|e| format!("base: {e}"))?;
        for path in &self.paths {
            hopyard_lab::path(path).map_err(|e| format!("paths: {e}"))?;
            if *path == self.base {
                return Err(format!(
                    "paths: `{path}` is the base, which is measured beside each path anyway: leave it out"
                ));
            }
        }
        let all = [
            ("paths", &self.paths),
            ("kernels", &self.kernels),
            ("kinds", &self.kinds),
        ];
        for (key, words) in all {
            for (at, word) in words.iter().enumerate() {
                if word.is_empty() || word.len() > LONGEST_WORD || plain::line(word) != *word {
                    return Err(format!(
                        "{key}: each has 1 to {LONGEST_WORD} visible characters"
                    ));
                }
                if words[..at].contains(word) {
                    return Err(format!("{key}: `{word}` is there twice"));
                }
            }
        }
        if let Some(kind) = self
            .kinds
            .iter()
            .find(|k| k.chars().any(char::is_whitespace))
        {
            return Err(format!("kinds: `{kind}` has a blank in it"));
        }
        if self.kernels.iter().any(|kernel| kernel.starts_with('-')) {
            return Err("kernels: an image is a file, and none begins with `-`".to_owned());
        }
        type Parse = fn(&str) -> std::result::Result<Duration, String>;
        let times: [(&str, &Option<String>, Parse); 2] = [
            ("window", &self.window, hopyard_run::plan::window),
            (
                "time_limit",
                &self.time_limit,
                hopyard_run::plan::time_limit,
            ),
        ];
        for (key, text, parse) in times {
            if let Some(Err(error)) = text.as_deref().map(parse) {
                return Err(format!("{key}: {error}"));
            }
        }
        if let Some(Err(error)) = self.blocks.as_deref().map(str::parse::<Blocks>) {
            return Err(format!("blocks: {error}"));
        }
        match self.cells().len() {
            0 => Err("it has no cell: name paths, loads and kernels".to_owned()),
            n if n > MOST_CELLS => Err(format!("{n} cells are more than {MOST_CELLS}: split it")),
            _ => Ok(()),
        }
    }

    /// All cells, those of a kind together.
    #[must_use]
    pub fn cells(&self) -> Vec<MatrixCell> {
        let kinds: Vec<Option<&String>> = match &self.kinds[..] {
            [] => vec![None],
            kinds => kinds.iter().map(Some).collect(),
        };
        let mut cells = Vec::new();
        for kind in kinds {
            for kernel in &self.kernels {
                for path in &self.paths {
                    for load in &self.loads {
                        cells.push(MatrixCell {
                            number: cells.len(),
                            kind: kind.cloned(),
                            kernel: kernel.clone(),
                            path: path.clone(),
                            base: self.base.clone(),
                            load: *load,
                            options: self.options(),
                        });
                    }
                }
            }
        }
        cells
    }

    /// How each cell is measured.
    fn options(&self) -> Vec<String> {
        let all = [
            ("--window", &self.window),
            ("--blocks", &self.blocks),
            ("--time-limit", &self.time_limit),
        ];
        let given = all.into_iter().filter_map(|(flag, value)| {
            let value = value.as_ref()?;
            Some([flag.to_owned(), value.clone()])
        });
        given.flatten().collect()
    }
}

impl MatrixCell {
    /// The words after `hopyard` that measure it, but for where its run goes.
    fn words(&self) -> Vec<String> {
        let paths = format!("{},{}", self.base, self.path);
        let load = self.load.name();
        let fixed = [
            "run", "--json", "--paths", &paths, "--base", &self.base, "--loads", load,
        ];
        let mut words: Vec<String> = fixed.map(str::to_owned).into();
        if self.kernel != OWN {
            words.extend(["--kernel".to_owned(), self.kernel.clone()]);
        }
        words.extend(self.options.iter().cloned());
        words
    }
}

impl Matrix {
    /// What hands the cells to Slurm, a line for each kind of machine.
    #[must_use]
    pub fn batches(&self, file: &Path, directory: &Path) -> Vec<String> {
        let word =
            |text: &str| shlex::try_quote(text).map_or_else(|_| text.to_owned(), Cow::into_owned);
        let quoted = |path: &Path| word(&path.display().to_string());
        let cells = self.cells();
        let of_kind = cells.chunk_by(|a, b| a.kind == b.kind);
        let line = |cells: &[MatrixCell]| {
            let (first, last) = (cells[0].number, cells[0].number + cells.len() - 1);
            let constraint = cells[0]
                .kind
                .as_ref()
                .map_or_else(String::new, |kind| format!(" --constraint={}", word(kind)));
            let command = format!(
                "hopyard fleet matrix cell {} -o {}",
                quoted(file),
                quoted(directory)
            );
            format!(
                "sbatch --array={first}-{last} --nodes=1 --exclusive --requeue{constraint} --wrap {}",
                word(&command)
            )
        };
        of_kind.map(line).collect()
    }
}

/// A cell may take so long: its time limit where there is one, and room for builds and guests.
fn patience(matrix: &Matrix) -> Duration {
    let limit = matrix
        .time_limit
        .as_deref()
        .and_then(|text| hopyard_run::plan::time_limit(text).ok());
    limit.unwrap_or(Duration::from_secs(3600)) + Duration::from_secs(900)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "base = \"veth\"\npaths = [\"bridge\", \"macvlan\"]\nloads = [\"tcp_rr\", \"tcp_stream\"]\n";

    fn of(text: &str) -> std::result::Result<Matrix, String> {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("m.toml");
        std::fs::write(&file, text).unwrap();
        Matrix::read(&file).map_err(|e| e.to_string())
    }

    #[test]
    fn each_kind_has_all_cells_in_a_batch_of_its_own() {
        let matrix = of(&format!("{TEXT}kinds = [\"epyc\", \"xeon\"]\nkernels = [\"own\", \"/boot/vmlinuz-6.12\"]\nwindow = \"1s\"")).unwrap();
        let cells = matrix.cells();
        assert_eq!(cells.len(), 16);
        assert!(cells.iter().enumerate().all(|(at, cell)| cell.number == at));
        let words = cells[7].words().join(" ");
        assert_eq!(
            words,
            "run --json --paths veth,macvlan --base veth --loads tcp_stream --kernel /boot/vmlinuz-6.12 --window 1s"
        );
        let other = of(&format!("{TEXT}window = \"2s\"")).unwrap();
        let own = of(&format!("{TEXT}window = \"1s\"")).unwrap();
        assert_ne!(other.cells(), own.cells(), "measured in another way");
        let batches = matrix.batches(Path::new("my matrix.toml"), Path::new("out"));
        assert_eq!(batches.len(), 2);
        assert!(
            batches[1].contains("--array=8-15 ") && batches[1].contains("--constraint=xeon "),
            "{batches:?}"
        );
        // Slurm combines features by words that a shell reads otherwise.
        let either = of(&format!("{TEXT}kinds = [\"epyc|xeon\"]")).unwrap();
        let batches = either.batches(Path::new("matrix.toml"), Path::new("out"));
        assert!(
            batches[0].contains(" --constraint='epyc|xeon' "),
            "{batches:?}"
        );
    }

    #[test]
    fn what_is_no_matrix_is_refused() {
        for (text, why) in [
            ("", "missing field"),
            (
                "base = \"veth\"\npaths = []\nloads = [\"tcp_rr\"]",
                "has no cell",
            ),
            (
                "base = \"veth\"\npaths = [\"veth\"]\nloads = [\"tcp_rr\"]",
                "is the base",
            ),
            (
                "base = \"ether\"\npaths = [\"veth\"]\nloads = [\"tcp_rr\"]",
                "base: ",
            ),
            (&format!("{TEXT}window = \"x\""), "window: "),
            (&format!("{TEXT}blocks = \"9..2\""), "blocks: "),
            (&format!("{TEXT}kernels = [\"a\", \"a\"]"), "is there twice"),
            (&format!("{TEXT}kernels = [\"--init\"]"), "none begins with"),
            (&format!("{TEXT}colour = 1"), "unknown field"),
        ] {
            let said = of(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
