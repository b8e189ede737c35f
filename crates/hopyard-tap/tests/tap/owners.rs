//! Persistent devices, and who may use them.

use std::path::Path;

use hopyard_net::Handle;
use hopyard_tap::{Device, Error, NewDevice, Queues, State, VnetHeaderSize};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};

use crate::world::{Sender, address, arrival, make, namespace};

const USER: u32 = 65_534;

fn persistent(name: &str) -> NewDevice {
    NewDevice {
        persistent: true,
        queues: Queues::Multi(2),
        vnet_header: Some(VnetHeaderSize::Mergeable),
        ..NewDevice::tap(name)
    }
}

fn open(handle: &Handle, name: &str) -> Result<(Device, hopyard_tap::Queue), Error> {
    handle.ns().run(|| Device::open(name)).unwrap()
}

#[test]
fn a_persistent_device_survives_and_is_found_again() {
    let handle = namespace();
    let (device, queues) = make(&handle, &persistent("keep0"));
    address(&handle, &device, 9);
    drop(queues);
    let link = handle.tun_link("keep0").unwrap().unwrap();
    assert!(link.persistent && link.multi_queue && link.vnet_header);
    assert_eq!((link.attached, link.owner), (Some(0), None));
    assert_eq!(link.index, device.index());

    let (found, queue) = open(&handle, "keep0").unwrap();
    assert_eq!(found.vnet_header(), Some(VnetHeaderSize::Mergeable));
    assert_eq!(found.index(), device.index());
    let second = found.open_queue().unwrap();
    queue.set_nonblocking(true).unwrap();
    second.set_nonblocking(true).unwrap();
    let queues = [queue, second];
    Sender::new(&handle, "10.9.0.2", 0).send(5).unwrap();
    assert_eq!(arrival(&queues).1, 5);

    queues[0].set_persistent(false).unwrap();
    drop(queues);
    assert!(handle.link("keep0").is_err());
    let gone = open(&handle, "keep0").unwrap_err();
    assert!(matches!(gone, Error::Missing { .. }), "{gone}");
    assert!(handle.link("keep0").is_err(), "looking makes nothing");
}

#[test]
fn whoever_comes_first_chooses_the_header() {
    let handle = namespace();
    drop(make(&handle, &persistent("keep0")));
    let with = |header| {
        handle
            .ns()
            .run(move || Device::open_with("keep0", header))
            .unwrap()
    };
    let (bare, queue) = with(None).unwrap();
    assert_eq!(bare.vnet_header(), None);
    let late = with(Some(VnetHeaderSize::Basic)).unwrap_err();
    assert!(matches!(late, Error::Invalid { .. }), "{late}");
    drop(queue);
    let (basic, queue) = with(Some(VnetHeaderSize::Basic)).unwrap();
    assert_eq!(basic.vnet_header(), Some(VnetHeaderSize::Basic));
    let (same, _other) = open(&handle, "keep0").unwrap();
    assert_eq!(same.vnet_header(), Some(VnetHeaderSize::Basic));
    // Its size would change under who holds it.
    let larger = with(Some(VnetHeaderSize::Mergeable)).unwrap_err();
    assert!(matches!(larger, Error::Invalid { .. }), "{larger}");
    let (as_before, _third) = open(&handle, "keep0").unwrap();
    assert_eq!(as_before.vnet_header(), Some(VnetHeaderSize::Basic));
    queue.set_persistent(false).unwrap();
}

/// A `/dev/net/tun` that everybody may open, visible only to the calling thread.
fn open_driver_to_all() {
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_SLAVE | MsFlags::MS_REC, none).unwrap();
    mount(
        Some("tmpfs"),
        "/dev/net",
        Some("tmpfs"),
        MsFlags::empty(),
        none,
    )
    .unwrap();
    let node = Path::new("/dev/net/tun");
    mknod(node, SFlag::S_IFCHR, Mode::empty(), makedev(10, 200)).unwrap();
    std::fs::set_permissions(node, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
}

/// Makes only the calling thread a user without privileges.
fn become_user(user: u32, group: u32) {
    let none: *const libc::gid_t = std::ptr::null();
    // SAFETY: no groups are read from the null pointer, as the count is 0.
    let groups = unsafe { libc::syscall(libc::SYS_setgroups, 0, none) };
    // SAFETY: the call takes three numbers.
    let gid = unsafe { libc::syscall(libc::SYS_setresgid, group, group, group) };
    // SAFETY: the call takes three numbers.
    let uid = unsafe { libc::syscall(libc::SYS_setresuid, user, user, user) };
    assert_eq!((groups, gid, uid), (0, 0, 0));
}

#[test]
fn its_owner_needs_no_privilege() {
    let handle = namespace();
    let devices = [
        ("own0", Some(USER), None),
        ("grp0", None, Some(USER)),
        ("both0", Some(USER), Some(1)),
        ("root0", Some(0), None),
        ("open0", None, None),
    ];
    for (name, owner, group) in devices {
        let new = NewDevice {
            owner,
            group,
            ..persistent(name)
        };
        drop(make(&handle, &new));
        let link = handle.tun_link(name).unwrap().unwrap();
        assert_eq!((link.owner, link.group), (owner, group));
    }
    handle
        .ns()
        .run(|| {
            open_driver_to_all();
            become_user(USER, USER);
            // A device without owner may be opened by everybody.
            for name in ["own0", "grp0", "open0"] {
                let (device, queue) = Device::open(name).unwrap();
                let second = device.open_queue().unwrap();
                second.detach().unwrap();
                second.attach().unwrap();
                assert_eq!(queue.state().unwrap(), State::Attached);
            }
            for name in ["both0", "root0"] {
                let denied = Device::open(name).unwrap_err();
                assert!(matches!(denied, Error::Denied { .. }), "{denied}");
                assert!(denied.to_string().contains("CAP_NET_ADMIN"), "{denied}");
            }
            let denied = NewDevice::tap("new0").create().unwrap_err();
            assert!(matches!(denied, Error::Denied { .. }), "{denied}");
            assert!(Device::find("own0").unwrap().is_some());
        })
        .unwrap();
    for (name, ..) in devices {
        handle.delete_link(name).unwrap();
    }
}

#[test]
fn a_driver_that_is_closed_or_absent_is_named() {
    let handle = namespace();
    let denied = handle.ns().run(|| {
        open_driver_to_all();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions("/dev/net/tun", mode).unwrap();
        become_user(USER, USER);
        NewDevice::tap("x0").create().unwrap_err()
    });
    assert!(
        denied
            .unwrap()
            .to_string()
            .contains("chmod 0666 /dev/net/tun")
    );
    let absent = handle.ns().run(|| {
        open_driver_to_all();
        std::fs::remove_file("/dev/net/tun").unwrap();
        NewDevice::tap("x0").create().unwrap_err()
    });
    let absent = absent.unwrap();
    assert!(matches!(absent, Error::NoDriver { .. }), "{absent}");
    assert!(absent.is_unsupported() && absent.to_string().contains("module `tun`"));
}
