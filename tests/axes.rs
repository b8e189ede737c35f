//! What the axes ask for is what the kernel has, on every device of every path.

use std::net::IpAddr;
use std::time::Duration;

use hopyard::lab::paths::Echo;
use hopyard::lab::{Error, Lab, LabKey, role};
use hopyard::load::protocol::{Reply, Request};
use hopyard::load::{LoadSpec, Place};
use hopyard::model::{Cell, Family, LoadKind, Measurement, OffloadFlag, OffloadState, Peer};

use hopyard_net::{Handle, NetNs, nft_chains};

use crate::support::cli::PROGRAM;
use crate::support::icmp::ping;
use crate::support::walk::{Visit, walk};
use crate::support::{alone, beside, cell, float, mostly, proved, sampler, tell, until};

pub(crate) fn build(cell: &Cell) -> Result<Lab, Error> {
    Lab::build(
        hopyard::lab::path(&cell.path).unwrap(),
        cell.peer,
        &cell.axes,
    )
}

fn built(cell: &Cell) -> Result<Lab, String> {
    build(cell).map_err(|e| hopyard::chain(&e))
}

pub(crate) fn measured(
    cell: &Cell,
    window_ms: u64,
    warm_up_ms: u64,
) -> Result<Measurement, String> {
    sampler(window_ms, warm_up_ms)
        .measure_in(&built(cell)?, cell, 0.0)
        .map_err(|e| hopyard::chain(&e))
}

/// Role and name of every device of a lab; loopback only where it is the path itself. What every new namespace has, since
/// modules of tunnels put devices into each, is not the lab's.
pub(crate) fn devices(lab: &Lab) -> Vec<(&'static str, String)> {
    let fresh = Handle::new(&NetNs::create().unwrap()).unwrap();
    let fresh: Vec<String> = fresh.links().unwrap().into_iter().map(|l| l.name).collect();
    let mut devices = Vec::new();
    for space in lab.spaces() {
        for link in space.handle.links().unwrap() {
            let on_way = lab
                .topology
                .way
                .iter()
                .any(|hop| hop.namespace == space.role && hop.device == link.name);
            if !fresh.contains(&link.name) || on_way {
                devices.push((space.role, link.name));
            }
        }
    }
    devices.sort();
    devices
}

#[test]
fn offload_off_is_off_on_every_device_that_lets_one_change_it() {
    let _beside = beside();
    walk("offload=off", |path, peer| {
        for (value, wanted) in [("off", "off"), ("on", "on")] {
            let lab = built(&cell(
                path.name,
                peer,
                LoadKind::TcpStream,
                &[("offload", value)],
            ))?;
            let mut seen: Vec<(&str, String)> = Vec::new();
            for (role, name) in devices(&lab) {
                for flag in OffloadFlag::ALL {
                    let state = lab
                        .offloads
                        .iter()
                        .find(|s| s.namespace == role && s.device == name && s.flag == flag)
                        .ok_or_else(|| format!("{role}/{name} has no {}", flag.name()))?;
                    // LRO of an upper device also depends on the device below, which may not have it.
                    let below = flag == OffloadFlag::Lro && value == "on";
                    if state.state != wanted && !state.fixed && !below {
                        return Err(format!("offload={value}: {state:?}"));
                    }
                }
                seen.push((role, name));
            }
            if lab.offloads.len() != seen.len() * OffloadFlag::ALL.len() {
                return Err(format!("{} states of {seen:?}", lab.offloads.len()));
            }
            let is_set = |state: &OffloadState| !state.fixed && state.state == wanted;
            if !lab.offloads.iter().any(is_set) {
                return Err(format!("no offload was set {value}: {:?}", lab.offloads));
            }
        }
        Ok(Visit::Checked)
    });
}

#[test]
fn a_flag_by_its_name_is_as_asked_or_refused_by_its_device() {
    /// Flags that one lab is asked for: none of a group needs another, or takes it along (`netdev_fix_features()` of
    /// net/core/dev.c), so that each is as if it were asked for alone.
    const TOGETHER: [(&str, &[&[&str]]); 2] = [
        ("on", &[&["tx_checksum", "gro"], &["tso", "gso"], &["lro"]]),
        ("off", &[&["tx_checksum", "gro"], &["tso", "gso", "lro"]]),
    ];
    let _beside = beside();
    for (value, groups) in TOGETHER {
        let all = groups.concat();
        for flag in OffloadFlag::ALL {
            assert!(all.contains(&flag.name()), "{}={value}", flag.name());
        }
    }
    walk("each offload flag", |path, peer| {
        let mut visit = Visit::PassedOver;
        for (value, groups) in TOGETHER {
            for group in groups {
                let had = each_is_as_asked_or_refused(path.name, peer, group.to_vec(), value)?;
                // A veth has all of them but LRO.
                let is_had = |flag: &&str| *flag == "lro" || had.contains(flag);
                if path.name == "veth" && !group.iter().all(is_had) {
                    return Err(format!("only {had:?} of {group:?} can be {value}"));
                }
                if !had.is_empty() {
                    visit = Visit::Checked;
                }
            }
        }
        Ok(visit)
    });
}

/// Asks for these flags, without one after another that is refused. Gives those that were had.
fn each_is_as_asked_or_refused<'a>(
    path: &str,
    peer: Peer,
    mut flags: Vec<&'a str>,
    value: &str,
) -> Result<Vec<&'a str>, String> {
    while !flags.is_empty() {
        let set: Vec<(&str, &str)> = flags.iter().map(|flag| (*flag, value)).collect();
        match build(&cell(path, peer, LoadKind::TcpStream, &set)) {
            Ok(lab) => return are_as_asked(&lab, &flags, value).map(|()| flags),
            Err(e @ Error::OffloadFixed { .. }) => {
                let text = e.to_string();
                let named = |flag: &&str| text.contains(&format!("has {flag} "));
                let Some(refused) = flags.iter().position(named) else {
                    return Err(text);
                };
                if !e.is_unsupported() || !text.contains("[fixed]") {
                    return Err(text);
                }
                flags.remove(refused);
            }
            Err(e) => return Err(format!("{flags:?}={value}: {}", hopyard::chain(&e))),
        }
    }
    Ok(flags)
}

fn are_as_asked(lab: &Lab, flags: &[&str], value: &str) -> Result<(), String> {
    for (role, name) in devices(lab) {
        for flag in flags {
            let state = lab
                .offloads
                .iter()
                .find(|s| s.namespace == role && s.device == name && s.flag.name() == *flag)
                .ok_or_else(|| format!("{role}/{name} has no {flag}"))?;
            if state.state != value {
                return Err(format!("{flag}={value}: {state:?}"));
            }
        }
    }
    Ok(())
}

#[test]
fn every_device_has_the_mtu() {
    let _beside = beside();
    walk("mtu", |path, peer| {
        for mtu in [1340, 9000] {
            let set = [("mtu", &*mtu.to_string())];
            let cell = cell(path.name, peer, LoadKind::TcpStream, &set);
            let lab = match build(&cell) {
                Ok(lab) => lab,
                // Its userspace datapath would cut longer frames.
                Err(e @ Error::MtuTooLarge { .. }) if path.name == "ovs-internal" => {
                    if mtu <= 1500 || !e.is_unsupported() {
                        return Err(e.to_string());
                    }
                    tell(&e.to_string());
                    continue;
                }
                Err(e @ Error::Unsupported { .. }) if path.name == "tap-vde" && mtu > 1500 => {
                    tell(&hopyard::chain(&e));
                    continue;
                }
                // boringtun reads no longer packets.
                Err(e @ Error::AxisRefused { .. }) if path.name == "tun-vpn" && mtu > 1560 => {
                    tell(&e.to_string());
                    continue;
                }
                Err(e) => return Err(hopyard::chain(&e)),
            };
            for (role, name) in devices(&lab) {
                let handle = &lab.space(role).unwrap().handle;
                let link = handle.link(&name).unwrap();
                let kind = link.kind.as_deref().unwrap_or_default();
                let wanted = mtu - headers(kind).max(headers(&name));
                if link.mtu != wanted {
                    return Err(format!("{role}/{name} has MTU {}, not {wanted}", link.mtu));
                }
            }
        }
        Ok(Visit::Checked)
    });
}

/// What a tunnel of that kind, or a path of that name, puts around an IP packet over IPv4 at most, bytes.
fn headers(kind: &str) -> u32 {
    match kind {
        "vxlan" | "geneve" => 50,
        "gre" => 24,
        "ipip" => 20,
        // Of the latter, the path and its device, whose kind is that of taps too.
        "wireguard" | "tun-vpn" | "vpn0" => 60,
        "macsec" => 32,
        "ipsec" => 37,
        "ipsec-tunnel" => 57,
        _ => 0,
    }
}

#[test]
fn the_smallest_mtu_carries_both_families_or_the_path_says_which_does() {
    let _beside = beside();
    walk("mtu=1280", |path, peer| {
        let cell = |mtu| cell(path.name, peer, LoadKind::TcpRr, &[("mtu", mtu)]);
        let lab = match build(&cell("1280")) {
            Ok(lab) => lab,
            // IPv6 needs 1280 bytes inside a tunnel too.
            Err(e) if headers(path.name) > 0 => {
                let text = e.to_string();
                let least = (1280 + headers(path.name)).to_string();
                let says = format!("needs an MTU of {least} at least");
                if !e.is_unsupported() || !text.contains(&says) {
                    return Err(text);
                }
                built(&cell(&least))?
            }
            Err(e) => return Err(hopyard::chain(&e)),
        };
        addresses_are_set_aside(&lab)?;
        let ns = lab.space(lab.topology.client.role).unwrap().handle.ns();
        let server = lab.topology.server.addresses;
        let mut families = [Family::V4, Family::V6].into_iter();
        families.try_for_each(|family| match (path.echo)(family) {
            Echo::None => Ok(()),
            Echo::BothWays | Echo::ToServer => ping(ns, server.of(family)).map(drop),
        })?;
        Ok(Visit::Checked)
    });
}

#[test]
fn a_rate_shapes_the_wire_both_ways() {
    let _beside = beside();
    walk("rate=100mbit", |path, peer| {
        if peer != Peer::Far {
            return Ok(Visit::PassedOver);
        }
        let [stream, maerts] = [LoadKind::TcpStream, LoadKind::TcpMaerts]
            .map(|load| cell(path.name, peer, load, &[("rate", "100mbit")]));
        assert_eq!(LabKey::of(&stream), LabKey::of(&maerts), "another lab");
        let lab = built(&stream)?;
        for cell in [stream, maerts] {
            let load = cell.load;
            mostly(|| {
                let what = format!("{}, {load}", path.name);
                let counted =
                    proved(&lab, &cell, 400).unwrap_or_else(|why| panic!("{what}: {why}"));
                let mbit = |bytes: u64| bytes * 8000 / counted.window_ns;
                // A receiver that had no CPU reads in the window what its kernel took in before it.
                let came = mbit(counted.tcp.unwrap().bytes_received);
                let read = mbit(counted.received.bytes);
                let said =
                    format!("{what}: {came} Mbit/s of payload came at 100mbit, {read} were read");
                assert!(came < 105, "{said}");
                if came >= 80 && (80..105).contains(&read) {
                    Ok(())
                } else {
                    Err(said)
                }
            })?;
        }
        Ok(Visit::Checked)
    });
}

#[test]
fn ipv6_is_ipv6() {
    let _beside = beside();
    walk("family=6", |path, peer| {
        let cell = cell(path.name, peer, LoadKind::TcpRr, &[("family", "6")]);
        let lab = built(&cell)?;
        let count = || ipv6_packets(&lab);
        let before = count();
        let counted = proved(&lab, &cell, 60)?;
        let packets = count() - before;
        if packets < counted.received.transactions {
            return Err(format!(
                "{packets} IPv6 packets in {} transactions",
                counted.received.transactions
            ));
        }
        Ok(Visit::Checked)
    });
}

/// IPv6 packets that reached the server's namespace.
fn ipv6_packets(lab: &Lab) -> u64 {
    let ns = lab.space(lab.topology.server.role).unwrap().handle.ns();
    let text = ns
        .run(|| std::fs::read_to_string("/proc/thread-self/net/snmp6").unwrap())
        .unwrap();
    text.lines()
        .find_map(|line| line.strip_prefix("Ip6InReceives"))
        .and_then(|value| value.trim().parse().ok())
        .unwrap()
}

#[test]
fn the_congestion_control_asked_for_is_in_use_at_both_ends() {
    let _beside = beside();
    let reno = cell(
        "veth",
        Peer::Local,
        LoadKind::TcpStream,
        &[("congestion", "reno")],
    );
    let lab = built(&reno).unwrap();
    let topology = &lab.topology;
    let [mut server, mut client] = [&topology.server, &topology.client]
        .map(|end| lab.start_worker(end, PROGRAM.as_ref()).unwrap());
    let spec = LoadSpec::new(reno.load, &reno.axes);
    let address = Place::from(topology.server.addresses.of(reno.axes.family));
    let serve = Request::Serve {
        spec: spec.clone(),
        address: address.clone(),
        cpus: Vec::new(),
    };
    let Reply::Serving { ports } = server.ask(&serve, "listen").unwrap() else {
        panic!("no ports");
    };
    let connect = Request::Connect {
        spec,
        address,
        ports,
        cpus: Vec::new(),
        patience_ms: 5000,
    };
    let patience = Duration::from_secs(10);
    let connected = client.ask_within(&connect, "connect", patience).unwrap();
    assert_eq!(connected, Reply::Connected);
    // The connection of a load that does not begin stands until it was looked at.
    for role in ["a", "b"] {
        let ns = lab.space(role).unwrap().handle.ns();
        until("a connection of reno", patience, || {
            let output = ns.run(|| std::process::Command::new("ss").args(["-tinH"]).output());
            let text = output.unwrap().expect("ss (iproute2) runs").stdout;
            String::from_utf8_lossy(&text).contains(" reno ")
        });
    }
    drop((client, server));
    let measured = sampler(200, 50).measure_in(&lab, &reno, 0.0).unwrap();
    assert!(measured.received.bytes > 0);
}

/// Labs look the same to both families.
fn addresses_are_set_aside(lab: &Lab) -> Result<(), String> {
    let server = &lab.topology.server.addresses;
    let blocks = match (IpAddr::from(server.v4), IpAddr::from(server.v6)) {
        (IpAddr::V4(v4), IpAddr::V6(v6)) => {
            // Set aside for benchmarking (RFC 2544, RFC 5180), or loopback.
            (v4.is_loopback() || v4.octets()[..1] == [198] && v4.octets()[1] & 0xfe == 18)
                && (v6.is_loopback() || v6.segments()[..3] == [0x2001, 2, 0])
        }
        _ => false,
    };
    if blocks {
        Ok(())
    } else {
        Err(format!("{server:?}"))
    }
}

#[test]
fn ports_that_nobody_uses_are_ports_and_out_of_the_way() {
    let _beside = beside();
    walk("ports=12", |path, peer| {
        if !path.axes.contains(&"ports") {
            return Ok(Visit::PassedOver);
        }
        let cell = cell(path.name, peer, LoadKind::TcpRr, &[("ports", "12")]);
        let lab = built(&cell)?;
        let links = lab.space(role::HUB).unwrap().handle.links().unwrap();
        let idle = links.iter().filter(|l| l.name.starts_with("idle")).count();
        let in_use = if peer == Peer::Local { 2 } else { 1 };
        if idle + in_use != 12 {
            return Err(format!("{idle} idle ports beside {in_use} in use"));
        }
        let attached = if let Some(name) = lab.switch() {
            hopyard_switch::Switch::open(name)
                .unwrap()
                .show()
                .unwrap()
                .ports
                .len()
        } else {
            links
                .iter()
                .filter(|l| l.master.is_some() && l.name != "up0")
                .count()
        };
        if attached != 12 {
            return Err(format!("{attached} ports are attached"));
        }
        let passed = || -> Vec<u64> {
            let stats = lab.space(role::HUB).unwrap().handle.device_stats();
            let stats = stats.unwrap().into_iter();
            let of_idle = stats.filter(|device| device.name.starts_with("idle"));
            of_idle.map(|d| d.rx_packets + d.tx_packets).collect()
        };
        let before = passed();
        assert_eq!(before.len(), idle);
        let measured = proved(&lab, &cell, 100)?;
        assert!(measured.received.transactions > 64, "too few to tell");
        let each = passed().into_iter().zip(before);
        let each: Vec<u64> = each.map(|(after, before)| after - before).collect();
        // An idle port may see a question to all.
        if each.len() != idle || each.iter().any(|packets| *packets > 64) {
            return Err(format!("idle ports had {each:?} packets"));
        }
        Ok(Visit::Checked)
    });
}

#[test]
fn rules_stand_in_the_hub_and_stop_nothing() {
    let _beside = beside();
    walk("rules=100", |path, peer| {
        if !path.axes.contains(&"rules") {
            return Ok(Visit::PassedOver);
        }
        for family in ["4", "6"] {
            let set = [("rules", "100"), ("family", family)];
            let cell = cell(path.name, peer, LoadKind::TcpRr, &set);
            let lab = built(&cell)?;
            let hub = lab.space(role::HUB).unwrap().handle.ns();
            let chains = nft_chains(hub).unwrap();
            let found: Vec<_> = chains.iter().map(|c| (c.hook.as_str(), c.rules)).collect();
            if found != [("forward", 100)] {
                return Err(format!("{found:?}"));
            }
            let from = lab.space(lab.topology.client.role).unwrap().handle.ns();
            let to = lab.topology.server.addresses.of(cell.axes.family);
            ping(from, to)?;
        }
        Ok(Visit::Checked)
    });
}

#[test]
fn a_pace_is_kept_by_every_stream() {
    const WINDOW_MS: u64 = 500;
    /// As [`proved`] has it.
    const WARM_UP_MS: u64 = WINDOW_MS / 3;
    let _alone = alone();
    for (load, flows) in [
        (LoadKind::TcpStream, "1"),
        (LoadKind::TcpMaerts, "1"),
        (LoadKind::TcpStream, "3"),
        (LoadKind::UdpStream, "2"),
    ] {
        let set = [
            ("pace", "80mbit"),
            ("flows", flows),
            ("message_size", "1000"),
        ];
        let cell = cell("veth", Peer::Local, load, &set);
        let lab = built(&cell).unwrap();
        // Nobody keeps a pace while the hypervisor has the CPU, and what it takes by less than a tick is not told.
        mostly(|| {
            let measured = proved(&lab, &cell, WINDOW_MS).unwrap();
            let window_ns = float(measured.window_ns);
            let mbit = |bytes: u64, span_ns: f64| float(bytes) * 8e3 / span_ns;
            let rate = mbit(measured.received.bytes, window_ns);
            let stolen = measured.cpu.steal_ns / window_ns;
            let said = format!(
                "{load}, {flows} flows at 80 Mbit/s: {rate:.2} Mbit/s, {stolen:.2} CPUs stolen"
            );
            tell(&said);
            // What was read may have come before the window. What came may have waited with its sender since the start of
            // traffic, where the receiver had no room; datagrams do not wait, and count as they are sent.
            let (came, since_ns) = match measured.tcp {
                Some(tcp) => (tcp.bytes_received, window_ns + float(WARM_UP_MS) * 1e6),
                None => (measured.sent.bytes, window_ns),
            };
            assert!(
                mbit(came, since_ns) < 80.0 * 1.02,
                "{said}, {came} bytes came"
            );
            let is_over = rate.max(mbit(came, window_ns)) >= 80.0 * 1.02;
            if is_over || rate <= 80.0 * (0.98 - stolen) {
                return Err(format!("{said}, {came} bytes came"));
            }
            Ok(())
        })
        .unwrap();
    }
}
