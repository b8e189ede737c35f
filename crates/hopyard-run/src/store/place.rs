//! Where a run is stored: checked before anything is built or measured.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::{END, Error, HEADER, PROFILES, SAMPLES};

/// Checks that a run can be written there. Leaves nothing behind.
///
/// # Errors
/// The directory holds a run, or cannot be written.
pub fn check_place(directory: &Path) -> Result<(), Error> {
    refuse_taken(directory)?;
    check_writable(directory)
}

/// Checks that files can be created in a directory, or where it would be created.
///
/// # Errors
/// They cannot.
pub fn check_writable(directory: &Path) -> Result<(), Error> {
    // For a privileged process, permission bits prove nothing, so try to create a file.
    try_a_file(nearest(directory)).map_err(|source| Error::Write {
        file: directory.to_owned(),
        source,
    })
}

/// Refuses a directory with a run, or with the rest of one, which must not be overwritten.
pub(super) fn refuse_taken(directory: &Path) -> Result<(), Error> {
    let there = |file: &&str| directory.join(file).exists();
    match [HEADER, SAMPLES, PROFILES, END].into_iter().find(there) {
        Some(file) => Err(Error::Taken {
            directory: directory.to_owned(),
            file,
        }),
        None => Ok(()),
    }
}

/// The directory itself, or the nearest existing one above it.
fn nearest(directory: &Path) -> &Path {
    let mut upwards = directory.ancestors();
    match upwards.find(|d| d.as_os_str().is_empty() || d.exists()) {
        Some(found) if !found.as_os_str().is_empty() => found,
        _ => Path::new("."),
    }
}

fn try_a_file(directory: &Path) -> io::Result<()> {
    let file = directory.join(format!(".hopyard-{}", std::process::id()));
    File::options().write(true).create_new(true).open(&file)?;
    fs::remove_file(&file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_tried_without_a_trace() {
        let home = tempfile::tempdir().unwrap();
        let there = || fs::read_dir(home.path()).unwrap().count();
        for fit in ["", "run", "deep/er/run"] {
            check_place(&home.path().join(fit)).unwrap();
            assert_eq!(there(), 0, "{fit}");
        }
        let file = home.path().join(END);
        fs::write(&file, "").unwrap();
        for unfit in [&file, &file.join("run")] {
            let error = check_place(unfit).unwrap_err();
            assert!(matches!(error, Error::Write { file, .. } if file == *unfit));
        }
        let error = check_place(home.path()).unwrap_err().to_string();
        assert!(
            error.contains("end.json") && error.contains("--out"),
            "{error}"
        );
    }
}
