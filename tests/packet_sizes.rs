//! How much a packet holds, by the device that takes it in.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::process::Command;

use hopyard::lab::Error;
use hopyard::model::{Arrived, LoadKind, Peer};
use hopyard_net::NetNs;

use crate::axes::{build, devices, measured};
use crate::support::walk::{Visit, is_asked_for, unshared, walk};
use crate::support::{beside, cell, mostly, tell};

/// Bytes of a packet that the server's device took in, on the average, frame header included.
fn bytes_per_skb(path: &str, set: &[(&str, &str)]) -> u64 {
    let cell = cell(path, Peer::Local, LoadKind::TcpStream, set);
    let mut all = Arrived { bytes: 0, skbs: 0 };
    // A controller without a CPU reads the device for both edges at once: a window like that counts nothing, or is missed.
    for _ in 0..5 {
        let measured = match measured(&cell, 100, 30) {
            Err(why) if why.starts_with("the window was missed") => continue,
            measured => measured.unwrap(),
        };
        let arrived = measured.arrived.unwrap();
        all.bytes += arrived.bytes;
        all.skbs += arrived.skbs;
        if all.skbs >= 100 {
            break;
        }
    }
    assert!(all.skbs >= 100, "{path}: {all:?}");
    all.bytes / all.skbs
}

#[test]
fn without_offloads_every_segment_fits_a_frame() {
    let _beside = beside();
    for path in ["veth", "bridge"] {
        let with = bytes_per_skb(path, &[]);
        let without = bytes_per_skb(path, &[("offload", "off")]);
        tell(&format!(
            "{path}: {with} bytes per skb, {without} with offload=off"
        ));
        assert!(without <= 1514, "{path}: {without}");
        assert!(with > 2 * 1514, "{path}: {with}");
    }
}

/// What iproute2 says of a device: `gso_max_size 65536 …`.
fn ip_details(ns: &NetNs, device: &str) -> String {
    let words = ["-details", "link", "show", "dev", device];
    let output = ns.run(|| Command::new("ip").args(words).output());
    let text = output.unwrap().expect("ip (iproute2) runs").stdout;
    String::from_utf8(text).unwrap()
}

/// The same of each device of a namespace, by its name.
fn details_of_all(ns: &NetNs) -> BTreeMap<String, String> {
    let words = ["-details", "-oneline", "link", "show"];
    let output = ns.run(|| Command::new("ip").args(words).output());
    let text = output.unwrap().expect("ip (iproute2) runs").stdout;
    let text = String::from_utf8(text).unwrap();
    // `2: eth0@if3: <…`.
    let named = |line: &str| {
        let (_, rest) = line.split_once(": ")?;
        let name = rest.split([':', '@']).next()?;
        Some((name.to_owned(), line.to_owned()))
    };
    text.lines().filter_map(named).collect()
}

#[test]
fn every_device_has_gso_max_or_is_named_as_the_one_that_cannot() {
    let _beside = beside();
    let is_big_at_veth = Cell::new(false);
    walk("gso_max", |path, peer| {
        for (value, bytes) in [("32KiB", 32_768), ("180KiB", 184_320)] {
            let cell = cell(path.name, peer, LoadKind::TcpStream, &[("gso_max", value)]);
            let lab = match build(&cell) {
                Ok(lab) => lab,
                Err(e @ Error::AxisRefused { .. }) if bytes > 65_536 => {
                    let text = e.to_string();
                    if !e.is_unsupported() || !text.contains("takes 65536 bytes at most") {
                        return Err(text);
                    }
                    tell(&format!("{}: {text}", path.name));
                    continue;
                }
                Err(e) => return Err(format!("gso_max={value}: {}", hopyard::chain(&e))),
            };
            let mut shown = BTreeMap::new();
            for (role, name) in devices(&lab) {
                let all = shown
                    .entry(role)
                    .or_insert_with(|| details_of_all(lab.space(role).unwrap().handle.ns()));
                let text = all.get(&name).map_or("", String::as_str);
                for key in ["gso_max_size", "gro_max_size"] {
                    if !text.contains(&format!("{key} {bytes} ")) {
                        return Err(format!("{role}/{name} has no {key} {bytes}: {text}"));
                    }
                }
            }
            if bytes > 65_536 && path.name == "veth" {
                is_big_at_veth.set(true);
            }
        }
        Ok(Visit::Checked)
    });
    // The walk passes where every path refuses 180 KiB; iproute2 says whether a veth takes it.
    if is_asked_for("veth") {
        let script =
            "ip link add big type veth && ip link set big gso_max_size 184320 gro_max_size 184320";
        let takes_it = unshared(&["sh", "-c", script]) == Some(true);
        assert_eq!(is_big_at_veth.get(), takes_it);
    }
}

#[test]
fn gso_max_decides_how_much_a_packet_holds() {
    let _beside = beside();
    let own = NetNs::current().unwrap();
    let before = ip_details(&own, "lo");
    for family in ["4", "6"] {
        // Messages larger than packets, so that a packet is as full as may be.
        let of = |size| {
            let set = [
                ("family", family),
                ("gso_max", size),
                ("message_size", "1MiB"),
            ];
            bytes_per_skb("veth", &set)
        };
        mostly(|| {
            let (small, usual, large) = (of("16KiB"), of("64KiB"), of("180KiB"));
            let said = format!(
                "IPv{family}: {small} bytes per skb with gso_max=16KiB, {usual} with 64KiB, {large} with 180KiB"
            );
            tell(&said);
            // The sizes are of the kernel's packet with all its headers.
            assert!(small <= 16 * 1024 && usual <= 64 * 1024, "{said}");
            assert!(large <= 180 * 1024, "{said}");
            if small < usual && large > 64 * 1024 {
                Ok(())
            } else {
                Err(said)
            }
        })
        .unwrap();
    }
    assert_eq!(ip_details(&own, "lo"), before);
}
