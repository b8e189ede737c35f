use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use std::{sync, thread};

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn with_store(f: impl FnOnce(&Store, &Path)) {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("networks/front");
    f(&Store::make(directory.clone()).unwrap(), &directory);
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_reservation_is_written_as_the_reference_program_writes_it() {
    with_store(|store, directory| {
        let owner = Owner::new("c1", "eth0");
        let four = store.reserve(&owner, [ip("10.1.0.2")]).unwrap();
        assert_eq!(four, Some(ip("10.1.0.2")));
        store.reserve(&owner, [ip("fd00:0:0::7")]).unwrap();
        store.note_last(0, ip("10.1.0.2")).unwrap();
        store.note_last(1, ip("fd00::7")).unwrap();
        assert_eq!(
            names(directory),
            [
                "10.1.0.2",
                "fd00::7",
                "last_reserved_ip.0",
                "last_reserved_ip.1",
                "lock"
            ]
        );
        let text = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
        assert_eq!(text("10.1.0.2"), "c1\r\neth0");
        assert_eq!(text("last_reserved_ip.1"), "fd00::7");
        assert_eq!(store.last(1), Some(ip("fd00::7")));
        assert_eq!(store.last(2), None);
        fs::write(directory.join("last_reserved_ip.1"), "").unwrap();
        assert_eq!(store.last(1), None);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&store.file(ip("10.1.0.2"))), 0o600);
    });
}

#[test]
fn the_first_that_is_free_is_reserved() {
    with_store(|store, directory| {
        let owner = Owner::new("c1", "eth0");
        let all = [ip("10.1.0.2"), ip("10.1.0.3"), ip("10.1.0.4")];
        fs::write(directory.join("10.1.0.2"), "").unwrap();
        // Of an ADD that was killed.
        fs::write(directory.join(NEW), "x\r\neth0").unwrap();
        assert_eq!(store.reserve(&owner, all).unwrap(), Some(all[1]));
        assert_eq!(store.reserve(&owner, all).unwrap(), Some(all[2]));
        assert_eq!(store.reserve(&owner, all).unwrap(), None);
        assert_eq!(store.owner(all[1]).unwrap(), Some(owner.clone()));
        assert_eq!(
            names(directory),
            ["10.1.0.2", "10.1.0.3", "10.1.0.4", "lock"]
        );
    });
}

#[test]
fn only_what_names_the_owner_is_freed() {
    with_store(|store, directory| {
        let owner = Owner::new("c1", "eth0");
        let fill = || {
            for (name, text) in [
                ("10.1.0.2", "c1\r\neth0"),
                ("10.1.0.3", "c1\r\neth0\n"),
                ("10.1.0.4", "c1\r\neth1"),
                ("10.1.0.5", "c1"),
                ("10.1.0.6", "c2"),
                ("10.1.0.7", ""),
                (NEW, "c1\r\neth0"),
            ] {
                fs::write(directory.join(name), text).unwrap();
            }
        };
        fill();
        let known = ["10.1.0.2", "10.1.0.4", "10.1.0.9"].map(ip);
        store.release(&owner, &known).unwrap();
        assert!(!directory.join("10.1.0.2").exists());
        assert_eq!(names(directory).len(), 7);
        fill();
        store.release(&owner, &[]).unwrap();
        let left = ["10.1.0.4", "10.1.0.5", "10.1.0.6", "10.1.0.7", "lock"];
        assert_eq!(names(directory), left);
        // Nothing else names it: what an old version wrote.
        store.release(&owner, &[]).unwrap();
        let left = ["10.1.0.4", "10.1.0.6", "10.1.0.7", "lock"];
        assert_eq!(names(directory), left);
        store.release(&owner, &[]).unwrap();
        store.release(&owner, &known).unwrap();
        assert_eq!(names(directory), left);
        // The record names what was not written when the power failed.
        store
            .release(&owner, &[ip("10.1.0.6"), ip("10.1.0.7")])
            .unwrap();
        assert_eq!(names(directory), ["10.1.0.4", "10.1.0.6", "lock"]);
    });
}

#[test]
fn one_at_a_time_has_the_store() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("front");
    assert!(Store::open(directory.clone()).unwrap().is_none());
    let held = Store::make(directory.clone()).unwrap();
    let (sender, receiver) = sync::mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            let store = Store::open(directory).unwrap();
            sender.send(store.is_some()).unwrap();
        });
        let waits = receiver.recv_timeout(Duration::from_millis(100));
        assert!(waits.is_err());
        drop(held);
        assert!(receiver.recv().unwrap());
    });
}

#[test]
fn what_is_no_file_is_passed_over() {
    with_store(|store, directory| {
        let owner = Owner::new("c1", "eth0");
        store.reserve(&owner, [ip("10.1.0.2")]).unwrap();
        fs::create_dir(directory.join("10.1.0.3")).unwrap();
        // Nobody would ever write to it.
        nix::unistd::mkfifo(&directory.join("10.1.0.4"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::os::unix::net::UnixListener::bind(directory.join("socket")).unwrap();
        store.release(&owner, &[]).unwrap();
        assert_eq!(names(directory), ["10.1.0.3", "10.1.0.4", "lock", "socket"]);
    });
}
