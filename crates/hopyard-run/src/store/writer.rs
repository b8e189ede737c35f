//! Writing a run directory: one writer at a time, each line in one write.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{END, End, Error, HEADER, Header, PROFILES, Record, SAMPLES, place};
use crate::bounded::{self, MOST_OF_A_LINE, MOST_OF_LINES, check_size, open_to_write};
use crate::model::{ProfileWindow, Sample};

/// A run being written.
#[derive(Debug)]
pub struct Writer {
    directory: PathBuf,
    samples: File,
    /// Created with the first profile.
    profiles: Option<File>,
}

impl Writer {
    /// Creates the directory and writes the header.
    ///
    /// # Errors
    /// The directory holds a run, or cannot be written.
    pub fn create(directory: &Path, header: &Header) -> Result<Self, Error> {
        place::refuse_taken(directory)?;
        let is_new = !directory.exists();
        fs::create_dir_all(directory).map_err(|source| Error::Write {
            file: directory.to_owned(),
            source,
        })?;
        // The file of samples first: of two programs with the same directory only one succeeds.
        let file = directory.join(SAMPLES);
        let samples = new_file(&file)?;
        lock(directory, &samples)?;
        write_json(&directory.join(HEADER), header).inspect_err(|_| {
            // The error of the header is the one to report.
            let _ = fs::remove_file(&file);
            if is_new {
                let _ = fs::remove_dir(directory);
            }
        })?;
        Ok(Self {
            directory: directory.to_owned(),
            samples,
            profiles: None,
        })
    }

    /// Opens the directory of a run that will be continued; changes nothing yet.
    ///
    /// # Errors
    /// There is no run, another process writes it, or it cannot be written.
    pub fn open(directory: &Path) -> Result<Self, Error> {
        if !directory.join(HEADER).exists() {
            return Err(Error::NoRun(directory.to_owned()));
        }
        let samples = old_file(&directory.join(SAMPLES), true)?;
        lock(directory, &samples)?;
        let file = directory.join(PROFILES);
        let profiles = if file.exists() {
            Some(old_file(&file, false)?)
        } else {
            None
        };
        Ok(Self {
            directory: directory.to_owned(),
            samples,
            profiles,
        })
    }

    /// Continues a run that was opened: removes an incomplete last line and the record of its end, and stores its new
    /// options (time limit, needs).
    ///
    /// # Errors
    /// The files cannot be read or written.
    pub fn go_on(&mut self, header: &Header) -> Result<(), Error> {
        write_json(&self.directory.join(HEADER), header)?;
        let failed = |file: &str| {
            let file = self.directory.join(file);
            |source| Error::Write { file, source }
        };
        cut_half_a_line(&mut self.samples).map_err(failed(SAMPLES))?;
        if let Some(profiles) = &mut self.profiles {
            cut_half_a_line(profiles).map_err(failed(PROFILES))?;
        }
        match fs::remove_file(self.directory.join(END)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(END)(error)),
            _ => Ok(()),
        }
    }

    /// Path of the run directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Record for Writer {
    /// One write per line, so that a reader of a running run gets each sample at once. A file grows by pages, so the
    /// last line may be incomplete for a moment; lines are complete up to the last newline.
    fn append(&mut self, sample: &Sample) -> Result<(), Error> {
        append(&mut self.samples, sample).map_err(|source| Error::Write {
            file: self.directory.join(SAMPLES),
            source,
        })
    }

    fn append_profile(&mut self, profile: &ProfileWindow) -> Result<(), Error> {
        let file = self.directory.join(PROFILES);
        let profiles = match &mut self.profiles {
            Some(profiles) => profiles,
            none => none.insert(new_file(&file)?),
        };
        append(profiles, profile).map_err(|source| Error::Write { file, source })
    }

    fn is_full(&self, blocks: u32) -> bool {
        let files = [Some(&self.samples), self.profiles.as_ref()];
        let sizes = files
            .into_iter()
            .flatten()
            .filter_map(|file| file.metadata().ok());
        let most = sizes.map(|metadata| metadata.len()).max().unwrap_or(0);
        are_full(most, blocks)
    }

    fn finish(&mut self, end: End) -> Result<(), Error> {
        write_json(&self.directory.join(END), &end)
    }
}

/// Whether a file with so many blocks in so many bytes has no room for one that is twice as long as they are.
fn are_full(bytes: u64, blocks: u32) -> bool {
    let of_each = bytes / u64::from(blocks.max(1));
    bytes + 2 * of_each > MOST_OF_LINES
}

fn new_file(file: &Path) -> Result<File, Error> {
    File::options()
        .create_new(true)
        .append(true)
        .open(file)
        .map_err(|source| Error::Write {
            file: file.to_owned(),
            source,
        })
}

fn append(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    check_size(line.len() as u64, MOST_OF_A_LINE)?;
    check_size(file.metadata()?.len() + line.len() as u64, MOST_OF_LINES)?;
    file.write_all(&line)
}

/// Writes a file whole or not at all: half a document would make the run unreadable.
fn write_json(file: &Path, value: &impl Serialize) -> Result<(), Error> {
    serde_json::to_vec_pretty(value)
        .map_err(io::Error::from)
        .and_then(|mut text| {
            text.push(b'\n');
            bounded::replace(file, &text)
        })
        .map_err(|source| Error::Write {
            file: file.to_owned(),
            source,
        })
}

/// Prevents other processes from writing the run while the file is open.
fn lock(directory: &Path, samples: &File) -> Result<(), Error> {
    samples.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => Error::Busy(directory.to_owned()),
        TryLockError::Error(source) => Error::Write {
            file: directory.join(SAMPLES),
            source,
        },
    })
}

fn old_file(file: &Path, create: bool) -> Result<File, Error> {
    let mut options = File::options();
    options.read(true).append(true).create(create);
    open_to_write(file, &mut options).map_err(|source| Error::Write {
        file: file.to_owned(),
        source,
    })
}

/// Bytes per read.
const CHUNK: usize = 1 << 16;

/// Shortens a file to its last complete line.
fn cut_half_a_line(file: &mut File) -> io::Result<()> {
    let mut end = file.metadata()?.len();
    let mut chunk = vec![0; CHUNK];
    while end > 0 {
        let begin = end.saturating_sub(CHUNK as u64);
        let part = &mut chunk[..(end - begin) as usize];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(part)?;
        if let Some(last) = part.iter().rposition(|byte| *byte == b'\n') {
            return file.set_len(begin + last as u64 + 1);
        }
        end = begin;
    }
    file.set_len(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn a_run_ends_before_it_cannot_be_read_again() {
        assert!(!are_full(0, 0) && !are_full(MOST_OF_LINES / 2, 10));
        // A block of a hundred is a hundredth.
        assert!(!are_full(MOST_OF_LINES / 100 * 98, 100));
        assert!(are_full(MOST_OF_LINES / 100 * 99, 100));
    }

    #[test]
    fn half_a_line_is_cut_and_no_whole_one() {
        let home = tempfile::tempdir().unwrap();
        for (text, whole) in [
            ("a\nb\nhalf", "a\nb\n"),
            ("a\n", "a\n"),
            ("half", ""),
            ("", ""),
        ] {
            let path = home.path().join("lines");
            fs::write(&path, text).unwrap();
            cut_half_a_line(&mut old_file(&path, false).unwrap()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        }
    }

    #[test]
    fn a_run_has_one_writer() {
        let home = tempfile::tempdir().unwrap();
        assert!(matches!(Writer::open(home.path()), Err(Error::NoRun(_))));
        fs::write(home.path().join(HEADER), "{}").unwrap();
        let first = Writer::open(home.path()).unwrap();
        let error = Writer::open(home.path()).unwrap_err().to_string();
        assert!(
            error.ends_with("is being written: its run is under way"),
            "{error}"
        );
        drop(first);
        // A process that another test is just starting holds the file until it runs its program.
        let again = || {
            thread::sleep(Duration::from_millis(1));
            Writer::open(home.path()).is_ok()
        };
        assert!((0..1000).any(|_| again()));
    }
}
