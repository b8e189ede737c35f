use std::os::unix::fs::{PermissionsExt, chown, symlink};

use super::*;

/// A directory of its own, which goes with this.
struct Room(PathBuf);

impl Room {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("hopyard-owned-{}-{name}", std::process::id()));
        fs::create_dir(&path).unwrap();
        // Tests may run with any umask.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path.canonicalize().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A directory with a file that must not be removed, and a symbolic link to the directory.
    fn with_trap(name: &str) -> (Self, PathBuf) {
        let room = Self::new(name);
        fs::create_dir(room.at("data")).unwrap();
        fs::write(room.at("data/keep"), "").unwrap();
        symlink(room.at("data"), room.at("link")).unwrap();
        let keep = room.at("data/keep");
        (room, keep)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn says(outcome: io::Result<()>, word: &str) {
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains(word), "{error}");
}

#[test]
fn nothing_is_removed_through_a_link() {
    let (room, keep) = Room::with_trap("through");
    says(remove_file(&room.at("link/keep")), "symbolic link");
    fs::create_dir(room.at("data/empty")).unwrap();
    says(remove_directory(&room.at("link/empty")), "symbolic link");
    says(remove_tree(&room.at("link/empty")), "symbolic link");
    says(remove_tree(&room.at("link")), "symbolic link");
    assert!(keep.exists() && room.at("data/empty").exists());
    // The link itself goes.
    remove_file(&room.at("link")).unwrap();
    assert!(keep.exists() && !room.at("link").exists());
}

#[test]
fn a_tree_goes_with_its_links_and_not_what_they_lead_to() {
    let (room, keep) = Room::with_trap("tree");
    fs::create_dir_all(room.at("tree/a/b")).unwrap();
    fs::write(room.at("tree/a/b/file"), "").unwrap();
    symlink(room.at("data"), room.at("tree/a/link")).unwrap();
    symlink(&keep, room.at("tree/link")).unwrap();
    remove_tree(&room.at("tree")).unwrap();
    assert!(keep.exists() && !room.at("tree").exists());
    let missing = remove_tree(&room.at("tree")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    fs::create_dir_all(room.at(&"d/".repeat(DEEPEST + 1))).unwrap();
    says(remove_tree(&room.at("d")), "directories deep");
}

#[test]
fn a_directory_is_made_where_only_its_owner_can_change_it() {
    let room = Room::new("made");
    make_directory(&room.at("a/b"), 0o700).unwrap();
    assert_eq!(fs::metadata(room.at("a/b")).unwrap().mode() & 0o7777, 0o700);
    make_directory(&room.at("a/b"), 0o755).unwrap();
    // In a directory for everybody one's own stays one's own, by the sticky bit alone.
    for (mode, fits) in [
        (0o1777, true),
        (0o777, false),
        (0o775, false),
        (0o755, true),
    ] {
        fs::set_permissions(room.at("a"), fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(check_directory(&room.at("a/b")).is_ok(), fits, "{mode:o}");
    }
    fs::set_permissions(room.at("a/b"), fs::Permissions::from_mode(0o1777)).unwrap();
    says(check_directory(&room.at("a/b")), "mode 1777");
    symlink(room.at("a"), room.at("link")).unwrap();
    says(make_directory(&room.at("link/c"), 0o700), "symbolic link");
    assert!(!room.at("a/c").exists());
    let missing = check_directory(&room.at("missing")).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn somebody_elses_directory_is_refused() {
    assert!(geteuid().is_root(), "these tests need root");
    let room = Room::new("theirs");
    fs::create_dir(room.at("theirs")).unwrap();
    chown(room.at("theirs"), Some(1000), None).unwrap();
    says(check_directory(&room.at("theirs")), "belongs to user 1000");
    says(
        make_directory(&room.at("theirs/x"), 0o700),
        "belongs to user 1000",
    );
    assert!(
        !room.at("theirs/x").exists(),
        "refused before anything is made"
    );
}

#[test]
fn a_lock_is_one_holders_on_a_file_that_only_its_owner_can_open() {
    let room = Room::new("lock");
    let file = room.at("lock");
    // What a holder that was killed leaves.
    fs::write(&file, "").unwrap();
    drop(Lock::wait(&file).unwrap());
    assert!(!file.exists());
    let held = Lock::take(&file).unwrap().unwrap();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600);
    assert!(Lock::take(&file).unwrap().is_none());
    let waits = std::thread::spawn({
        let file = file.clone();
        move || drop(Lock::wait(&file).unwrap())
    });
    drop(held);
    waits.join().unwrap();
    assert!(!file.exists());
    symlink(room.at("data"), &file).unwrap();
    assert!(Lock::wait(&file).is_err() && !room.at("data").exists());
}
