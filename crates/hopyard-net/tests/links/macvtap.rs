//! Queues of a macvtap.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use hopyard_net::{Error, Handle, LinkKind, MacvlanMode, NewLink, inherit};

use crate::{namespace, veth};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];
/// `struct virtio_net_hdr`, nothing unfinished.
const HEADER: [u8; 10] = [0; 10];

/// A macvtap `mt0`, on a pair within its namespace, so that it has the same index in each.
fn with_macvtap() -> Handle {
    let handle = namespace();
    handle.add_link(&veth("up0", "far0", None)).unwrap();
    handle.set_up("far0").unwrap();
    let link = NewLink {
        mac: Some(MAC),
        ..macvtap("mt0", "up0")
    };
    handle.add_link(&link).unwrap();
    handle
}

fn macvtap(name: &str, lower: &str) -> NewLink<'static> {
    let kind = LinkKind::Macvtap {
        lower: lower.into(),
        mode: MacvlanMode::Bridge,
    };
    NewLink {
        up: true,
        ..NewLink::new(name, kind)
    }
}

fn queue_of(handle: &Handle, name: &str) -> File {
    handle.open_macvtap(name, 1).unwrap().remove(0).into()
}

/// A broadcast of a protocol that is for experiments (IEEE 802, 0x88b5).
fn frame() -> Vec<u8> {
    let ethernet = [&[0xff; 6][..], &MAC, &[0x88, 0xb5]].concat();
    [&HEADER[..], &ethernet, &[7; 46]].concat()
}

fn sent(handle: &Handle) -> u64 {
    let devices = handle.device_stats().unwrap();
    devices.iter().find(|d| d.name == "mt0").unwrap().tx_packets
}

#[test]
fn queues_are_of_the_namespace_though_another_has_the_same_index() {
    let both = [with_macvtap(), with_macvtap()];
    assert_eq!(both[0].index("mt0").unwrap(), both[1].index("mt0").unwrap());
    for (mine, other) in [(&both[0], &both[1]), (&both[1], &both[0])] {
        let before = (sent(mine), sent(other));
        for queue in mine.open_macvtap("mt0", 2).unwrap() {
            File::from(queue).write_all(&frame()).unwrap();
        }
        assert_eq!((sent(mine), sent(other)), (before.0 + 2, before.1));
    }
}

#[test]
fn a_station_hears_groups_that_the_kernel_does_not_know() {
    let handle = with_macvtap();
    handle.take_all_groups("mt0").unwrap();
    handle.add_link(&macvtap("far", "far0")).unwrap();
    for end in ["up0", "far0"] {
        handle.settle(end).unwrap();
    }
    let mut asked = frame();
    let addresses = [[0x33, 0x33, 0xff, 1, 2, 3], [2, 0, 0, 0, 0, 8]].concat();
    asked[HEADER.len()..HEADER.len() + addresses.len()].copy_from_slice(&addresses);
    let sent = asked.clone();
    let mut queue = queue_of(&handle, "mt0");
    let (say, heard) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok(length) = queue.read(&mut buffer) {
            if buffer[HEADER.len()..length] == sent[HEADER.len()..] {
                return say.send(());
            }
        }
        Ok(())
    });
    queue_of(&handle, "far").write_all(&asked).unwrap();
    heard.recv_timeout(Duration::from_secs(60)).unwrap();
}

#[test]
fn a_device_of_another_kind_has_no_queues() {
    let handle = with_macvtap();
    let error = handle.open_macvtap("up0", 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot open macvtap `up0`: it is a device of another kind"
    );
    let error = handle.open_macvtap("nope", 1).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
}

#[test]
fn a_command_keeps_the_file_that_it_is_to_have_and_no_other() {
    let (kept, other) = (pipe(), pipe());
    let file = |number: RawFd| format!("/proc/self/fd/{number}");
    let is = fs::read_link(file(kept.as_raw_fd())).unwrap();
    let mut command = Command::new("readlink");
    let other = file(other.as_raw_fd());
    let kept = file(inherit(&mut command, kept));
    let output = command.args([&kept, &other]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text, format!("{}\n", is.display()));
}

fn pipe() -> OwnedFd {
    std::io::pipe().unwrap().0.into()
}
