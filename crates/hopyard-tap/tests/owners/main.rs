//! Devices that another program made. Needs root, and a process of its own: a program that it starts briefly holds all
//! of its files, queues among them, and other tests check who holds any.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../world/mod.rs"]
mod world;

use std::process::Command;

use hopyard_tap::Device;

use world::{Sender, address, arrival, namespace};

#[test]
fn devices_of_other_programs_are_opened() {
    let handle = namespace();
    for (name, extra) in [
        ("plain0", &[][..]),
        ("pi0", &["pi"][..]),
        ("mq0", &["multi_queue", "vnet_hdr"][..]),
    ] {
        let mut ip = Command::new("ip");
        ip.args(["tuntap", "add", name, "mode", "tap"]).args(extra);
        handle.ns().adopt(&mut ip).unwrap();
        assert!(ip.status().unwrap().success());
        let (device, queue) = handle.ns().run(|| Device::open(name)).unwrap().unwrap();
        queue.set_nonblocking(true).unwrap();
        address(&handle, &device, 9);
        Sender::new(&handle, "10.9.0.2", 0).send(3).unwrap();
        assert_eq!(arrival(&[queue]).1, 3);
        assert_eq!(device.is_multi_queue(), name == "mq0");
        assert_eq!(device.vnet_header().is_some(), name == "mq0");
        handle.delete_link(name).unwrap();
    }
}
