//! DuckDB, which reads the table of samples: its command line program, or its Python module (docs/adr/0010).
//!
//! It gets a script on stdin and writes rows as CSV to stdout, so both forms are spoken to in the same way. It opens no file to write
//! to: `COPY … TO '/dev/stdout'` creates a plain file where a machine has lost that link. It is no part of this program: an engine for
//! queries would take longer to build than all the rest.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hopyard_host::programs;
use hopyard_model::plain;

use crate::error::{Error, Result};

/// Bound for the engine; the program itself has the rest of 2 GiB.
const MEMORY: &str = "1GB";
/// Imports the module, but not from the current directory: that may be a fleet of somebody else's.
macro_rules! import {
    () => {
        "import sys; sys.path[:] = filter(None, sys.path); import duckdb\n"
    };
}
/// What Python is told to do.
const BY_PYTHON: &str = concat!(
    import!(),
    "for row in duckdb.execute(sys.stdin.read()).fetchall(): print(*row, sep=',')"
);
/// Of what it complains of.
const LONGEST_COMPLAINT: u64 = 4 << 10;

/// The engine, found.
#[derive(Debug)]
pub struct DuckDb {
    program: PathBuf,
    arguments: &'static [&'static str],
}

impl DuckDb {
    /// The program that is named, else `duckdb`, else `python3` if it has the module.
    ///
    /// # Errors
    /// There is none of them.
    pub fn find(named: Option<&Path>) -> Result<Self> {
        if let Some(program) = named {
            // A relative path is the user's, but DuckDB is started in the fleet's directory. A bare name is looked up in PATH.
            let has_directory = program.components().count() > 1;
            let program = match has_directory.then(|| std::path::absolute(program)) {
                Some(Ok(whole)) => whole,
                _ => program.to_owned(),
            };
            return Ok(Self::of(program));
        }
        if let Some(program) = programs::in_path("duckdb") {
            return Ok(Self::of(program));
        }
        if let Some(program) = programs::in_path("python3") {
            let python = Self::of(program);
            let mut check = Command::new(&python.program);
            check.args(["-c", import!()]).stdin(Stdio::null());
            let done = check.stdout(Stdio::null()).stderr(Stdio::null()).status();
            if done.is_ok_and(|status| status.success()) {
                return Ok(python);
            }
        }
        Err(Error::Wrong(
            "DuckDB reads the samples of a fleet, and neither its program `duckdb` is in PATH nor has `python3` its module: \
             install one of them (`python3 -m venv v && v/bin/pip install duckdb`, then `--duckdb v/bin/python`); `hopyard fleet show` needs neither"
                .to_owned(),
        ))
    }

    fn of(program: PathBuf) -> Self {
        let name = program
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let is_python = name.is_some_and(|name| name.contains("python"));
        Self {
            program,
            arguments: if is_python {
                &["-c", BY_PYTHON]
            } else {
                &["-batch", "-csv", "-noheader"]
            },
        }
    }

    /// Rows of a query within a directory, each given to `row` as its fields. No field may have a comma or a quotation mark in it.
    ///
    /// # Errors
    /// The engine cannot be started, complains, or says what is no row.
    pub fn rows(
        &self,
        directory: &Path,
        query: &str,
        mut row: impl FnMut(&[&str]) -> std::result::Result<(), String>,
    ) -> Result<()> {
        let name = plain::line(&self.program.display().to_string());
        let wrong = |why: &str| Error::Wrong(format!("DuckDB ({name}): {}", plain::line(why)));
        let mut child = Command::new(&self.program)
            .args(self.arguments)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| wrong(&format!("cannot be started: {e}")))?;
        let script = format!(
            "SET memory_limit = '{MEMORY}'; SET preserve_insertion_order = false; SET enable_progress_bar = false;\n\
             {query};\n"
        );
        let written = child
            .stdin
            .take()
            .map_or(Ok(()), |mut to| to.write_all(script.as_bytes()));
        let complaint = child.stderr.take().map(|from| {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                let mut from = from.take(LONGEST_COMPLAINT);
                // What came until then is worth telling.
                let _read = from.read_to_end(&mut text);
                let _rest = std::io::copy(&mut from.into_inner(), &mut std::io::sink());
                String::from_utf8_lossy(&text).into_owned()
            })
        });
        // A program may end before it has read the script. Then its status says why, or its output lacks rows.
        let failed = written.err().filter(|e| e.kind() != ErrorKind::BrokenPipe);
        let mut problem = failed.map(|e| e.to_string());
        if let Some(said) = child.stdout.take() {
            for line in BufReader::new(said).lines() {
                let told = match &line {
                    Ok(line) => row(&line.split(',').collect::<Vec<_>>()),
                    Err(e) => Err(e.to_string()),
                };
                if let Err(why) = told {
                    problem.get_or_insert(why);
                }
            }
        }
        let status = child.wait().map_err(|e| wrong(&e.to_string()))?;
        let complaint = complaint.and_then(|thread| thread.join().ok());
        if !status.success() {
            return Err(wrong(complaint.as_deref().unwrap_or("it failed")));
        }
        match problem {
            Some(why) => Err(wrong(&why)),
            None => Ok(()),
        }
    }
}
