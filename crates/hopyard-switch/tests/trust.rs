//! What other users and programs may have put where switches are. Needs root.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::thread;

use hopyard_switch::{Error, NewPort, NewSwitch, Switch};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};

const BPFFS: &str = "/sys/fs/bpf";
const HOME: &str = "/sys/fs/bpf/hopyard/switch";
/// Somebody without privilege.
const USER: u32 = 1000;

fn is_mounted() -> bool {
    statfs(BPFFS).is_ok_and(|fs| fs.filesystem_type() == BPF_FS_MAGIC)
}

/// Runs `f` with mounts of its own: a file system `/run/data` with a file `keep`, no other switch, no lock, and no BPF file
/// system.
fn apart<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    let inside = || {
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some("run"), "/run", Some("tmpfs"), flags, Some("mode=755")).unwrap();
        while is_mounted() {
            umount2(BPFFS, MntFlags::MNT_DETACH).unwrap();
        }
        fs::create_dir("/run/data").unwrap();
        fs::write("/run/data/keep", "").unwrap();
        f()
    };
    thread::scope(|scope| {
        let ended = scope.spawn(inside).join();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// As [`apart`], with a BPF file system that everybody can write to, as `mount -t bpf` makes it.
fn with_open_bpffs<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    apart(|| {
        let options = Some("mode=1777");
        mount(Some("bpf"), BPFFS, Some("bpf"), MsFlags::empty(), options).unwrap();
        f()
    })
}

fn mode(path: &str) -> u32 {
    // The kernel makes the root of a BPF file system sticky in any case.
    fs::metadata(path).unwrap().mode() & 0o777
}

fn keeps() -> bool {
    Path::new("/run/data/keep").exists()
}

fn create(name: &str) -> Result<Switch, Error> {
    Switch::create(&NewSwitch {
        name,
        ..NewSwitch::default()
    })
}

fn add_port() -> Result<(), Error> {
    let port = NewPort {
        device: "lo",
        ..NewPort::default()
    };
    Switch::add_port_to("x", &port).map(drop)
}

/// Everything that a user of the crate may do first, with what it says.
fn first_steps() -> Vec<(&'static str, Option<Error>)> {
    vec![
        ("list", Switch::list().err()),
        ("open", Switch::open("x").err()),
        ("remove", Switch::remove("x").err()),
        ("discard", Switch::discard("x").err()),
        ("create", create("y").err()),
        ("add a port", add_port().err()),
    ]
}

#[test]
fn what_we_mount_and_make_is_for_root_alone() {
    apart(|| {
        let switch = create("lan").unwrap();
        assert_eq!(mode(BPFFS), 0o700);
        assert_eq!([mode(HOME), mode("/sys/fs/bpf/hopyard")], [0o700; 2]);
        switch.delete().unwrap();
        assert!(!is_mounted());
    });
}

#[test]
fn directories_of_a_local_user_are_refused_and_nothing_is_removed() {
    with_open_bpffs(|| {
        // As the user would: everything there is theirs.
        fs::create_dir_all(HOME).unwrap();
        symlink("/run/data", format!("{HOME}/x")).unwrap();
        for directory in [HOME, "/sys/fs/bpf/hopyard"] {
            chown(directory, Some(USER), None).unwrap();
        }
        for (step, error) in first_steps() {
            assert!(keeps(), "{step} removed a file of somebody else's");
            let error = error.unwrap_or_else(|| panic!("{step} went well"));
            assert!(error.is_usage(), "{step}: {error:?}");
            let text = error.to_string();
            assert!(
                text.contains("`/sys/fs/bpf/hopyard` belongs to user 1000"),
                "{step}: {text}"
            );
        }
        assert!(fs::symlink_metadata(format!("{HOME}/x")).is_ok());
        assert!(!Path::new("/run/hopyard-switch.lock").exists());
    });
}

#[test]
fn a_link_in_place_of_a_directory_is_not_followed() {
    with_open_bpffs(|| {
        fs::create_dir_all("/run/data/switch/x").unwrap();
        fs::write("/run/data/switch/x/keep", "").unwrap();
        symlink("/run/data", "/sys/fs/bpf/hopyard").unwrap();
        for (step, error) in first_steps() {
            let error = error.unwrap_or_else(|| panic!("{step} went well"));
            assert!(error.is_usage(), "{step}: {error:?}");
            assert!(
                error.to_string().contains("symbolic link"),
                "{step}: {error}"
            );
            assert!(Path::new("/run/data/switch/x/keep").exists(), "{step}");
        }
    });
}

#[test]
fn a_switch_is_a_directory_and_no_link_to_one() {
    with_open_bpffs(|| {
        create("lan").unwrap();
        symlink("/run/data", format!("{HOME}/x")).unwrap();
        assert_eq!(Switch::list().unwrap(), ["lan"]);
        let error = Switch::remove("x").unwrap_err();
        assert!(matches!(error, Error::NoSwitch { .. }), "{error}");
        Switch::discard("x").unwrap();
        assert!(Switch::open("x").is_err() && create("x").is_err());
        assert!(keeps());
        Switch::remove("lan").unwrap();
    });
}

/// What an interrupted command left is known by its files; what holds others is somebody's.
#[test]
fn a_directory_with_files_of_somebody_else_is_no_unfinished_switch() {
    with_open_bpffs(|| {
        create("lan").unwrap();
        let whole = PathBuf::from(HOME).join("lan");
        for (name, file) in [("theirs", "somebodys-map"), ("ours", "new-hopyard_up_in")] {
            let directory = PathBuf::from(HOME).join(name);
            fs::create_dir(&directory).unwrap();
            // Any pinned object will do: the BPF file system has no other files.
            fs::hard_link(whole.join("ports"), directory.join(file)).unwrap();
        }
        assert_eq!(Switch::list().unwrap(), ["lan", "theirs"]);
        assert!(Path::new(HOME).join("theirs/somebodys-map").exists());
    });
}

/// Whoever adds a file to a switch's directory says so in the list that `sweep` goes by.
#[test]
fn unfinished_switches_go_and_their_files_are_all_known() {
    with_open_bpffs(|| {
        create("lan").unwrap();
        fs::remove_file(format!("{HOME}/lan/config")).unwrap();
        assert_eq!(Switch::list().unwrap(), [""; 0]);
        assert!(!Path::new(HOME).join("lan").exists());
    });
}

#[test]
fn a_mount_that_others_may_read_is_used_as_it_is() {
    with_open_bpffs(|| {
        let switch = create("lan").unwrap();
        assert_eq!(mode(BPFFS), 0o777);
        assert_eq!(mode("/sys/fs/bpf/hopyard"), 0o700);
        switch.delete().unwrap();
        // A mount where others could exchange our directory is refused.
        fs::set_permissions(BPFFS, fs::Permissions::from_mode(0o777)).unwrap();
        let error = create("lan").unwrap_err();
        assert!(error.to_string().contains("mode 777"), "{error}");
        assert_eq!(
            fs::read_dir("/sys/fs/bpf")
                .unwrap()
                .flatten()
                .filter(|e| e.file_name() == "hopyard")
                .count(),
            0
        );
    });
}
