//! Directories that several processes make and remove.

use std::path::Path;
use std::{fs, io};

/// How often they are made: each failure is one that somebody removed meanwhile.
const TRIES: usize = 100;

/// Makes a directory with those above it, one of which another process may remove meanwhile, with the last that it had there.
///
/// # Errors
/// As `mkdir(2)`.
pub fn make_directories(path: &Path) -> io::Result<()> {
    retry(|| fs::create_dir_all(path))
}

/// Tries again as long as another process removed a directory meanwhile.
pub(crate) fn retry(make: impl Fn() -> io::Result<()>) -> io::Result<()> {
    for _ in 1..TRIES {
        match make() {
            Err(error) if is_gone(&error) => {}
            made => return made,
        }
    }
    make()
}

/// Was a directory there a moment ago? `ENODEV` is said of a group that is being removed (`cgroup_mkdir`), `EEXIST` of one that
/// was found, and then was no directory any more.
fn is_gone(error: &io::Error) -> bool {
    let number = error.raw_os_error();
    matches!(number, Some(libc::ENOENT | libc::ENODEV | libc::EEXIST))
}
