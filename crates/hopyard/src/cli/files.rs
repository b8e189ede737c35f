//! Files that the user named for a result.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use hopyard_net::owned;
use nix::fcntl::OFlag;

/// Writes a file in one step: who reads it finds the old contents or the new ones, and a full disk leaves the old ones. A pipe or a
/// device is written as it is, and so is a link in a directory that nobody else can write to: elsewhere, somebody could choose which
/// file root overwrites, and the link is replaced.
///
/// # Errors
/// It cannot be written.
pub(super) fn write(file: &Path, text: &[u8]) -> io::Result<()> {
    let old = match fs::symlink_metadata(file) {
        Ok(old) if is_link(&old) && is_in_a_directory_of_our_own(file) => {
            return fs::write(file, text);
        }
        Ok(old) if !old.is_file() && !old.is_symlink() => return write_in_place(file, text),
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let draft = draft(file)?;
    let as_before = old.as_ref().filter(|old| !is_link(old));
    let written = written_beside(&draft, as_before, text).and_then(|()| fs::rename(&draft, file));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&draft);
    }
    match written {
        Err(error) if as_before.is_some() && keeps_from_replacing(error.kind()) => {
            write_in_place(file, text)
        }
        written => written,
    }
}

/// A file of the same owner and mode as the old one.
fn written_beside(draft: &Path, old: Option<&Metadata>, text: &[u8]) -> io::Result<()> {
    let mut opened = open(draft)?;
    if let Some(old) = old {
        fchown(&opened, Some(old.uid()), Some(old.gid()))?;
        opened.set_permissions(old.permissions())?;
    }
    opened.write_all(text)
}

/// A directory of others or one that cannot be written, a file of others, or something mounted on it: the file itself may be written
/// nevertheless.
fn keeps_from_replacing(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidFilename, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(
        kind,
        PermissionDenied | ReadOnlyFilesystem | ResourceBusy | InvalidFilename
    )
}

/// Does a name lead to what has other names, too?
fn is_link(old: &Metadata) -> bool {
    old.is_symlink() || old.is_file() && old.nlink() > 1
}

/// Is a file in a directory that nobody but root and the caller can put anything into?
fn is_in_a_directory_of_our_own(file: &Path) -> bool {
    let directory = match file.parent() {
        Some(named) if named != Path::new("") => named,
        _ => Path::new("."),
    };
    // What leads there may be a link, which the caller named.
    fs::canonicalize(directory).is_ok_and(|real| owned::check_directory(&real).is_ok())
}

/// Writes what is there, unless it is a symbolic link.
fn write_in_place(file: &Path, text: &[u8]) -> io::Result<()> {
    let mut opened = File::options()
        .write(true)
        .truncate(true)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(file)?;
    opened.write_all(text)
}

/// A name beside the file that no collector reads. A file left by a killed command is removed by the next process with the same id.
fn draft(file: &Path) -> io::Result<PathBuf> {
    let name = file
        .file_name()
        .ok_or_else(|| io::Error::other("it is no name of a file"))?;
    let name = format!(".{}.{}", name.to_string_lossy(), std::process::id());
    Ok(file.with_file_name(name))
}

fn open(draft: &Path) -> io::Result<File> {
    match fs::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::options().write(true).create_new(true).open(draft)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_in_one_step_and_nothing_is_left_beside_it() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("hopyard.prom");
        for text in ["long and old\n", "new\n"] {
            write(&file, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        }
        write(&file, b"newest\n").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        let left = || fs::read_dir(home.path()).unwrap().count();
        assert_eq!(left(), 1);
        assert!(write(&home.path().join("absent/hopyard.prom"), b"new\n").is_err());
        // A directory with the file's name is in the way.
        fs::create_dir(home.path().join("d")).unwrap();
        assert!(write(&home.path().join("d"), b"new\n").is_err());
        assert_eq!(left(), 2);
    }

    #[test]
    fn links_and_devices_stay_what_they_are() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::write(at("file"), "old").unwrap();
        symlink(at("file"), at("soft")).unwrap();
        fs::hard_link(at("file"), at("hard")).unwrap();
        for name in ["soft", "hard"] {
            write(&at(name), name.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(at("file")).unwrap(), name);
        }
        assert!(fs::symlink_metadata(at("soft")).unwrap().is_symlink());
        write(Path::new("/dev/null"), b"new").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn where_others_can_write_a_link_is_replaced_and_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let theirs = home.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        fs::set_permissions(&theirs, fs::Permissions::from_mode(0o777)).unwrap();
        let victim = home.path().join("victim");
        fs::write(&victim, "secret").unwrap();
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
        let named = theirs.join("hopyard.prom");
        type Link = fn(&Path, &Path) -> io::Result<()>;
        let links: [Link; 2] = [|to, at| symlink(to, at), |to, at| fs::hard_link(to, at)];
        for link in links {
            link(&victim, &named).unwrap();
            write(&named, b"figures").unwrap();
            assert_eq!(fs::read_to_string(&victim).unwrap(), "secret");
            assert_eq!(fs::read_to_string(&named).unwrap(), "figures");
            let made = fs::symlink_metadata(&named).unwrap();
            assert!(made.is_file() && made.nlink() == 1);
            // What is a plain file by now stays one, with its mode.
            write(&named, b"newer").unwrap();
            assert_eq!(fs::read_to_string(&named).unwrap(), "newer");
            fs::remove_file(&named).unwrap();
        }
    }
}
