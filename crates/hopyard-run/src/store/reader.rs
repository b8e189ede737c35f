//! Reading a run directory.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Deserialize;

use super::check::{self, Known};
use super::{END, Error, HEADER, Header, PROFILES, Run, SAMPLES, SCHEMA};
use crate::bounded::{self, Lines};
use crate::model::{ProfileWindow, Sample};

/// Reads a run directory. An incomplete last line (the writer was killed) is ignored.
///
/// # Errors
/// There is no run, or a file is damaged or of another version.
pub fn load(directory: &Path) -> Result<Run, Error> {
    let file = directory.join(HEADER);
    if !file.exists() {
        return Err(Error::NoRun(directory.to_owned()));
    }
    let text = bounded::read(&file).map_err(|source| Error::Read {
        file: file.clone(),
        source,
    })?;
    check_schema(&file, &text)?;
    let header: Header = parse(&file, 1, &text)?;
    check::header(&header).map_err(|why| Error::Wrong { file, why })?;
    let mut known = Known::of(&header);
    let samples = load_lines(&directory.join(SAMPLES), |sample: &Sample| {
        known.sample(sample)
    })?;
    let mut known = Known::of(&header);
    let profiles = load_lines(&directory.join(PROFILES), |profile: &ProfileWindow| {
        known.profile(profile)
    })?;
    let file = directory.join(END);
    let end = match bounded::read(&file) {
        Ok(text) => Some(parse(&file, 1, &text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(source) => return Err(Error::Read { file, source }),
    };
    Ok(Run {
        header,
        samples,
        profiles,
        end,
    })
}

/// The run directories for an argument: the directory itself if it is one, else all run directories in it, by name.
///
/// # Errors
/// It cannot be read, or there is no run.
pub fn runs_in(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    if directory.join(HEADER).exists() {
        return Ok(vec![directory.to_owned()]);
    }
    let read = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Error::NoRun(directory.to_owned())
        }
        _ => Error::Read {
            file: directory.to_owned(),
            source,
        },
    };
    let entries = fs::read_dir(directory).map_err(read)?;
    let paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()
        .map_err(read)?;
    let mut runs: Vec<PathBuf> = paths
        .into_iter()
        .filter(|path| path.join(HEADER).exists())
        .collect();
    if runs.is_empty() {
        return Err(Error::NoRun(directory.to_owned()));
    }
    runs.sort();
    Ok(runs)
}

fn check_schema(file: &Path, text: &[u8]) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct Schema {
        schema: String,
    }
    let Schema { schema } = parse(file, 1, text)?;
    if schema == SCHEMA {
        Ok(())
    } else {
        Err(Error::Schema {
            file: file.to_owned(),
            found: schema,
        })
    }
}

/// The lines of a file; none if it does not exist.
fn load_lines<T: for<'de> Deserialize<'de>>(
    file: &Path,
    mut check: impl FnMut(&T) -> Result<(), String>,
) -> Result<Vec<T>, Error> {
    let unreadable = |source| Error::Read {
        file: file.to_owned(),
        source,
    };
    let mut lines = match Lines::open(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(unreadable(source)),
    };
    let mut values = Vec::new();
    while let Some(line) = lines.next_line().map_err(unreadable)? {
        let number = values.len() + 1;
        let value: T = parse(file, number, &line)?;
        check(&value).map_err(|why| Error::Damaged {
            file: file.to_owned(),
            line: number,
            source: serde::de::Error::custom(why),
        })?;
        values.push(value);
    }
    Ok(values)
}

fn parse<T: for<'de> Deserialize<'de>>(file: &Path, line: usize, text: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(text).map_err(|source| Error::Damaged {
        file: file.to_owned(),
        line: line + source.line() - 1,
        source,
    })
}
