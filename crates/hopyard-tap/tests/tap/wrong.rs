//! Wrong uses, and their errors.

use hopyard_net::{Handle, LinkKind, NewLink};
use hopyard_tap::{Device, Error, NewDevice, Offloads, Queues, VnetHeaderSize};

use crate::world::{Sender, make, namespace, world};

fn create(handle: &Handle, new: &NewDevice) -> Error {
    handle.ns().run(|| new.create()).unwrap().unwrap_err()
}

#[test]
fn requests_that_contradict_themselves_change_nothing() {
    let handle = namespace();
    let tap = || NewDevice::tap("x0");
    let checksum = Offloads {
        checksum: true,
        ..Offloads::default()
    };
    let wrong = [
        ("is no device name", NewDevice::tap("")),
        ("is no device name", NewDevice::tap("a/b")),
        ("is no device name", NewDevice::tap("%s")),
        ("is no device name", NewDevice::tap("%d%d")),
        ("is no device name", NewDevice::tap("sixteen-bytes-xx")),
        (
            "one queue at least",
            NewDevice {
                queues: Queues::Multi(0),
                ..tap()
            },
        ),
        (
            "at most 256 queues",
            NewDevice {
                queues: Queues::Multi(257),
                ..tap()
            },
        ),
        (
            "need `vnet_header`",
            NewDevice {
                offloads: checksum,
                ..tap()
            },
        ),
        (
            "needs `checksum`",
            NewDevice {
                offloads: Offloads {
                    checksum: false,
                    ..Offloads::ALL
                },
                vnet_header: Some(VnetHeaderSize::Basic),
                ..tap()
            },
        ),
    ];
    for (word, new) in wrong {
        let text = create(&handle, &new).to_string();
        assert!(text.starts_with("cannot create tap `"), "{text}");
        assert!(text.contains(word), "{text}");
    }
    assert_eq!(handle.links().unwrap().len(), 1, "loopback alone");
}

#[test]
fn a_taken_name_says_by_what() {
    let handle = namespace();
    let kind = LinkKind::veth("v1", None);
    handle.add_link(&NewLink::new("v0", kind)).unwrap();
    let (_device, _queues) = make(&handle, &NewDevice::tun("tun0"));
    for (name, by) in [
        ("v0", "a device of kind `veth`;"),
        ("lo", "another device;"),
        ("tun0", "a tun;"),
    ] {
        let error = create(&handle, &NewDevice::tap(name));
        assert!(matches!(error, Error::NameTaken { .. }), "{error}");
        assert!(error.to_string().contains(by), "{error}");
    }
    for (name, word) in [
        ("v0", "veth"),
        ("lo", "another device"),
        ("none", "no such device"),
    ] {
        let error = handle.ns().run(|| Device::open(name)).unwrap().unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
        assert!(
            handle
                .ns()
                .run(|| Device::find(name))
                .unwrap()
                .unwrap()
                .is_none()
        );
    }
}

#[test]
fn states_are_changed_once() {
    let (handle, device, queues) = world(NewDevice {
        queues: Queues::Multi(2),
        ..NewDevice::tap("tap0")
    });
    let again = queues[0].attach().unwrap_err();
    assert!(matches!(again, Error::AlreadyAttached { .. }), "{again}");
    queues[0].detach().unwrap();
    let again = queues[0].detach().unwrap_err();
    assert!(matches!(again, Error::AlreadyDetached { .. }), "{again}");
    assert_eq!(
        again.to_string(),
        "cannot detach a queue of `tap0`: it is detached already"
    );

    handle.delete_link("tap0").unwrap();
    for queue in &queues {
        for gone in [
            queue.state().unwrap_err(),
            queue.attach().unwrap_err(),
            queue.detach().unwrap_err(),
            queue.set_persistent(true).unwrap_err(),
            queue.set_carrier(true).unwrap_err(),
        ] {
            assert!(matches!(gone, Error::Gone { .. }), "{gone}");
        }
        let mut frame = [0; 64];
        let gone = queue.read(&mut frame).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(libc::EBADFD));
        let gone = queue.write(&frame).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(libc::EBADFD));
    }
    let gone = device.open_queue().unwrap_err();
    assert!(matches!(gone, Error::Missing { .. }), "{gone}");
    assert!(handle.link("tap0").is_err(), "and nothing was made");
}

#[test]
fn frames_that_do_not_fit() {
    let (handle, _device, queues) = world(NewDevice::tap("tap0"));
    let sender = Sender::new(&handle, "10.9.0.2", 0);
    let mut small = [0; 20];
    sender.send(1).unwrap();
    let cut = queues[0].read_frame(&mut small).unwrap_err();
    assert_eq!(cut.raw_os_error(), Some(libc::EFBIG));
    sender.send(1).unwrap();
    assert_eq!(
        queues[0].read(&mut small).unwrap(),
        20,
        "cut without a word"
    );
    assert_eq!(
        queues[0].write(&[0; 13]).unwrap_err().raw_os_error(),
        Some(libc::EINVAL)
    );
    handle.set_down("tap0").unwrap();
    assert_eq!(
        queues[0].write(&[0; 64]).unwrap_err().raw_os_error(),
        Some(libc::EIO)
    );
}
