//! Bounded access to files of a run directory or a kept lab that somebody else may have made. They may be a FIFO, a
//! device or a link, or have an endless line or an impossible size.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use nix::fcntl::OFlag;

/// Most bytes of a document: thousands of cells take less than a tenth.
pub(crate) const MOST_OF_A_DOCUMENT: u64 = 8 << 20;
/// Most bytes of a file of lines: about 1000 blocks of 100 cells.
pub const MOST_OF_LINES: u64 = 512 << 20;
/// Most bytes of a line: a sample takes some KiB, a profile some hundred.
pub const MOST_OF_A_LINE: u64 = 4 << 20;

/// Reads a document.
pub fn read(file: &Path) -> io::Result<Vec<u8>> {
    read_up_to(file, MOST_OF_A_DOCUMENT)
}

/// Reads a document that may have so many bytes.
pub fn read_up_to(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let opened = open(file, most)?;
    // It may grow meanwhile.
    opened.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The lines of a file, one after another.
pub struct Lines(BufReader<File>);

impl Lines {
    pub fn open(file: &Path) -> io::Result<Self> {
        open(file, MOST_OF_LINES).map(|file| Self(BufReader::new(file)))
    }

    /// The next line without its newline; `None` after the last one, and for a line without a newline.
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

/// All bytes of a file that somebody named, which may be a pipe; `None` where it has more than `most`.
pub fn read_named(name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(name)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// So many lines are read before somebody asks for them.
const READ_AHEAD: usize = 16;

/// Lines of at most so many bytes as they come, from a thread of its own; the end of the channel is the end of what is read. Bytes
/// that are no UTF-8 (somebody's banner) do not end it. Whoever sends more than is read waits.
pub fn lines_as_they_come(from: impl Read + Send + 'static, most: u64) -> Receiver<String> {
    let (to, lines) = sync_channel(READ_AHEAD);
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        loop {
            let mut line = Vec::new();
            let read = from.by_ref().take(most).read_until(b'\n', &mut line);
            let line = String::from_utf8_lossy(&line).into_owned();
            if !matches!(read, Ok(1..)) || to.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Opens a file for reading, if it is a regular file and not too large.
fn open(file: &Path, most: u64) -> io::Result<File> {
    // Opening a FIFO would wait for a writer.
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let opened = File::options()
        .read(true)
        .custom_flags(flags.bits())
        .open(file)?;
    check(&opened, most)?;
    Ok(opened)
}

/// Opens a file of a run for writing: only a file in its directory, never the target of a link.
pub fn open_to_write(file: &Path, options: &mut std::fs::OpenOptions) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let opened = options.custom_flags(flags.bits()).open(file)?;
    check(&opened, MOST_OF_LINES)?;
    Ok(opened)
}

/// Replaces the file by a document atomically: a reader finds the old one or the new one.
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
    // Left by a killed program.
    fs::remove_file(&new).or_else(gone)?;
    let written = open_to_write(&new, File::options().write(true).create_new(true))
        .and_then(|opened| {
            let mut out = BufWriter::new(opened);
            fill(&mut out)?;
            out.flush()
        })
        .and_then(|()| fs::rename(&new, file));
    written.inspect_err(|_| {
        // The first error is the one to report.
        let _ = fs::remove_file(&new);
    })
}

/// The temporary name for a file's new contents: beside it, so that both are on one file system.
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

/// Checks that a file of this size may be read again.
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn bytes_that_are_no_text_do_not_end_what_is_read() {
        let lines = lines_as_they_come(&b"\xe9t\xe9\nnext\nhalf"[..], 100);
        let lines: Vec<String> = lines.iter().collect();
        assert_eq!(lines, ["\u{fffd}t\u{fffd}\n", "next\n", "half"]);
    }

    /// Says the same line for ever, and counts it.
    struct Endless(Arc<AtomicUsize>);

    impl Read for Endless {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            room.fill(b'y');
            room[room.len() - 1] = b'\n';
            self.0.fetch_add(room.len(), Ordering::Relaxed);
            Ok(room.len())
        }
    }

    #[test]
    fn what_nobody_asks_for_is_not_read() {
        let count = Arc::new(AtomicUsize::new(0));
        let lines = lines_as_they_come(Endless(Arc::clone(&count)), 4096);
        assert!(lines.recv().is_ok());
        thread::sleep(Duration::from_millis(100));
        let read = count.load(Ordering::Relaxed);
        assert!(read <= 256 << 10, "{read} bytes");
        // The thread ends with whoever listens.
        drop(lines);
        let began = Instant::now();
        while Arc::strong_count(&count) > 1 {
            assert!(began.elapsed() < Duration::from_secs(10));
            thread::sleep(Duration::from_millis(1));
        }
    }

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
        // Leftovers of a killed program do no harm, and nothing is written through a link.
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
        let mut options = File::options();
        assert!(open_to_write(&link, options.write(true).create(true)).is_err());
        assert!(!target.exists());
        replace(&link, b"text").unwrap();
        assert!(!target.exists() && !link.is_symlink());
        assert_eq!(fs::read(&link).unwrap(), b"text");
    }
}
