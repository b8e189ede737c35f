//! Files of a run directory or of a kept lab that somebody else may have made: a FIFO or a device in the place of a file, a line without
//! end, more than a run can be, a link to another place.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

/// Most bytes of a document: thousands of cells take less than a tenth.
pub const MOST_OF_A_DOCUMENT: u64 = 8 << 20;
/// Most bytes of a file of lines: 1000 blocks of 100 cells take about so much.
pub const MOST_OF_LINES: u64 = 512 << 20;
/// Most bytes of a line: a sample takes some KiB, a profile some hundred.
pub const MOST_OF_A_LINE: u64 = 4 << 20;

/// Reads a document.
pub fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let opened = open(file, MOST_OF_A_DOCUMENT)?;
    // It may grow meanwhile.
    opened.take(MOST_OF_A_DOCUMENT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The lines of a file, one after another.
pub struct Lines(BufReader<File>);

impl Lines {
    pub fn open(file: &Path) -> io::Result<Self> {
        open(file, MOST_OF_LINES).map(|file| Self(BufReader::new(file)))
    }

    /// The next line without its end; `None` after the last, and of a line that lacks its end.
    pub fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let mut limited = self.0.by_ref().take(MOST_OF_A_LINE);
        let read = limited.read_until(b'\n', &mut line)?;
        if line.pop() == Some(b'\n') {
            return Ok(Some(line));
        }
        if read as u64 == MOST_OF_A_LINE {
            return Err(too_large(format!(
                "a line of more than {MOST_OF_A_LINE} bytes"
            )));
        }
        Ok(None)
    }
}

/// Opens a file to read it, if it is one and not too large.
fn open(file: &Path, most: u64) -> io::Result<File> {
    // A FIFO would wait for a writer.
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let opened = File::options()
        .read(true)
        .custom_flags(flags.bits())
        .open(file)?;
    check(&opened, most)?;
    Ok(opened)
}

/// Opens a file of a run to write it: one of its directory, never what a link leads to.
pub fn open_to_write(file: &Path, options: &mut std::fs::OpenOptions) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let opened = options.custom_flags(flags.bits()).open(file)?;
    check(&opened, MOST_OF_LINES)?;
    Ok(opened)
}

/// Writes a document into a file of the directory, never where a link leads to.
pub fn write(file: &Path, text: &[u8]) -> io::Result<()> {
    check_size(text.len() as u64, MOST_OF_A_DOCUMENT)?;
    let mut options = File::options();
    options.write(true).create(true);
    let mut opened = open_to_write(file, &mut options)?;
    opened.set_len(0)?;
    opened.write_all(text)
}

/// Writes a document in the place of the file, in one step: whoever reads it finds the old one or the new one.
pub fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    check_size(text.len() as u64, MOST_OF_A_DOCUMENT)?;
    replace_with(file, |out| out.write_all(text))
}

/// As [`replace`], for a document of any size that is written piece by piece.
pub fn replace_with(
    file: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let new = new_of(file);
    let gone = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    };
    // What a killed program left.
    fs::remove_file(&new).or_else(gone)?;
    let written = open_to_write(&new, File::options().write(true).create_new(true))
        .and_then(|opened| {
            let mut out = BufWriter::new(opened);
            fill(&mut out)?;
            out.flush()
        })
        .and_then(|()| fs::rename(&new, file));
    written.inspect_err(|_| {
        // The first problem is the one to report.
        let _ = fs::remove_file(&new);
    })
}

/// Where the next state of a file is written: beside it, so that both are of one file system.
fn new_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

fn check(file: &File, most: u64) -> io::Result<()> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        let why = "it is no regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    check_size(metadata.len(), most)
}

/// Is a file of this size as small as it can be read again?
pub fn check_size(bytes: u64, most: u64) -> io::Result<()> {
    if bytes <= most {
        return Ok(());
    }
    Err(too_large(format!(
        "it has {bytes} bytes, more than the {most} that a run may have in one file"
    )))
}

fn too_large(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_may_be_so_long_and_no_longer() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("lines");
        let longest = MOST_OF_A_LINE as usize - 1;
        for (length, fits) in [(longest, true), (longest + 1, false)] {
            let text = format!("a\n{}\nhalf", "x".repeat(length));
            fs::write(&file, text).unwrap();
            let mut lines = Lines::open(&file).unwrap();
            assert_eq!(lines.next_line().unwrap(), Some(b"a".to_vec()));
            assert_eq!(lines.next_line().is_ok(), fits, "{length}");
            if fits {
                assert_eq!(lines.next_line().unwrap(), None);
            }
        }
    }

    #[test]
    fn a_file_is_replaced_whole_or_stays() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("a.json");
        replace(&file, b"a longer text").unwrap();
        replace_with(&file, |out| out.write_all(b"text")).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"text");
        let fails = |out: &mut dyn Write| {
            out.write_all(b"half")?;
            Err(io::Error::other("no more"))
        };
        assert!(replace_with(&file, fails).is_err());
        assert_eq!(fs::read(&file).unwrap(), b"text");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
        // What a killed program left is no hindrance, and nothing is written where it leads.
        let [new, target] = ["a.json.new", "target"].map(|name| home.path().join(name));
        fs::write(&target, b"own").unwrap();
        std::os::unix::fs::symlink(&target, &new).unwrap();
        replace(&file, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::read(&target).unwrap(), b"own");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_link_is_not_followed_by_what_writes() {
        let home = tempfile::tempdir().unwrap();
        let [link, target] = ["link", "target"].map(|name| home.path().join(name));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(write(&link, b"text").is_err());
        assert!(!target.exists());
        write(&target, b"a longer text").unwrap();
        write(&target, b"text").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"text");
    }
}
