//! Every path with every peer: built, pinged, loaded, proved, taken down, nothing left.

use std::net::IpAddr;
use std::thread;
use std::time::Duration;

use hopyard::lab::paths::Echo;
use hopyard::lab::{Lab, Path, role};
use hopyard::load::Sockets;
use hopyard::meter::path_proof::{self, Traffic};
use hopyard::model::{Cell, DeviceCount, Direction, Family, Hop, LoadKind, Measurement, Peer};
use hopyard_net::{Handle, LinkKind, NetNs, NewLink};

use crate::support::cli::PROGRAM;
use crate::support::host::unharmed;
use crate::support::icmp::ping_within;
use crate::support::kernels::{guests_boot_one, kernel};
use crate::support::traces::Traces;
use crate::support::walk::{Visit, walk_all, walk_guests};
use crate::support::{apart, beside, cell, proved, sampler, tell, unless_disturbed};

/// Of payload: as many transactions, whose responses have a byte each.
const ENOUGH_BYTES: u64 = 100;
/// A window is not doubled beyond this.
const LONGEST_MS: u64 = 1600;
/// An echo request is answered within this time, once the other end is up.
const ANSWERED: Duration = Duration::from_secs(5);
/// The same of a guest that boots meanwhile.
const BOOTED_AND_ANSWERED: Duration = Duration::from_secs(95);

fn build(path: &'static Path, peer: Peer, cell: &Cell) -> Result<Lab, String> {
    Lab::build(path, peer, &cell.axes).map_err(|e| hopyard::chain(&e))
}

#[test]
fn every_path_connects_carries_and_goes_without_a_trace() {
    apart(|| {
        open_what_stays_open();
        unharmed(|| walk_all("conformance", conform_without_a_trace));
    });
}

/// The same for the path with a guest, which takes seconds to boot.
#[test]
fn a_guest_connects_carries_and_goes_without_a_trace() {
    // It may have to be fetched, by names that the host's `/run` may say how to look up.
    kernel();
    apart(|| {
        open_what_stays_open();
        pack_what_guests_boot();
        unharmed(|| walk_guests("conformance of guests", conform_without_a_trace));
    });
}

/// What a process opens once is not a trace of the first path.
fn open_what_stays_open() {
    conform(hopyard::lab::path("veth").unwrap(), Peer::Local, &[]).unwrap();
}

/// The same for guests: the file system that they boot into.
fn pack_what_guests_boot() {
    guests_boot_one();
    let vm = hopyard::lab::path("vm").unwrap();
    if vm.available().is_ok() {
        let cell = cell(vm.name, Peer::Host, LoadKind::TcpStream, &[]);
        let lab = build(vm, Peer::Host, &cell).unwrap();
        let client = &lab.topology.client;
        let _booted = lab.start_worker(client, PROGRAM.as_ref()).unwrap();
    }
}

fn conform_without_a_trace(
    path: &'static Path,
    peer: Peer,
    set: &[(&str, &str)],
) -> Result<Visit, String> {
    let before = Traces::now();
    let outcome = conform(path, peer, set);
    outcome.and(before.unchanged())?;
    Ok(Visit::Checked)
}

fn conform(path: &'static Path, peer: Peer, set: &[(&str, &str)]) -> Result<(), String> {
    let stream = cell(path.name, peer, LoadKind::TcpStream, set);
    let lab = build(path, peer, &stream)?;
    let client = &lab.topology.client;
    let is_guest = client.guest_cpus.is_some();
    if !is_guest {
        ping_both_ways(&lab)?;
    }
    // A guest boots for each of them.
    let loads: &[LoadKind] = match client.guest_cpus {
        Some(_) => &[LoadKind::TcpStream],
        None if path.check_load(LoadKind::UdpRr).is_err() => {
            &[LoadKind::TcpStream, LoadKind::TcpRr]
        }
        None => &[LoadKind::TcpStream, LoadKind::UdpRr],
    };
    for &load in loads {
        let mut set = set.to_vec();
        if lab.topology.spliced_at.is_some() && load.is_stream() {
            // pasta of 2023 stalls for seconds where a stream overruns its sockets.
            set.push(("pace", "100mbit"));
        }
        let cell = cell(path.name, peer, load, &set);
        let measured = if is_guest {
            pinged_meanwhile(&lab, || enough(&lab, &cell))
        } else {
            enough(&lab, &cell)
        };
        let measured = measured.map_err(|why| format!("{load}: {why}"))?;
        carried(&lab, &measured).map_err(|why| format!("{load}: {why}"))?;
        let steal = measured.guest_steal_ratio;
        if steal.is_some() != is_guest || steal.is_some_and(|share| !(0.0..1.0).contains(&share)) {
            return Err(format!(
                "{load}: steal of a guest ({is_guest}) is {steal:?}"
            ));
        }
    }
    Ok(())
}

/// From one end to an address of the other.
struct Ping<'a> {
    from: &'a NetNs,
    to: IpAddr,
    way: String,
    /// Does the path answer it?
    answered: bool,
}

/// All that there are between the ends of a lab.
fn pings(lab: &Lab) -> Result<Vec<Ping<'_>>, String> {
    let mut pings = Vec::new();
    // Ends of Unix sockets have no device but a loopback of their own.
    if lab.path.sockets != Sockets::Internet {
        return Ok(pings);
    }
    let ends = [&lab.topology.client, &lab.topology.server];
    for (is_back, from, to) in [(false, ends[0], ends[1]), (true, ends[1], ends[0])] {
        // A guest has no namespace to ping from; its answers come the same way.
        if from.guest_cpus.is_some() {
            continue;
        }
        let space = lab.space(from.role).map_err(|e| e.to_string())?;
        for family in [Family::V4, Family::V6] {
            pings.push(Ping {
                from: space.handle.ns(),
                to: to.addresses.of(family),
                way: format!("{} to {}", from.role, to.role),
                answered: match (lab.path.echo)(family) {
                    Echo::BothWays => true,
                    Echo::ToServer => !is_back,
                    Echo::None => false,
                },
            });
        }
    }
    Ok(pings)
}

impl Ping<'_> {
    fn is_answered_within(&self, patience: Duration) -> Result<(), String> {
        let answer = ping_within(self.from, self.to, patience);
        answer
            .map(drop)
            .map_err(|why| format!("{}: {why}", self.way))
    }
}

fn ping_both_ways(lab: &Lab) -> Result<(), String> {
    for ping in pings(lab)? {
        let Ping { from, to, way, .. } = &ping;
        if ping.answered {
            ping.is_answered_within(ANSWERED)?;
        } else if let Ok(time) = ping_within(from, *to, Duration::from_millis(300)) {
            return Err(format!(
                "{way}: {to} answered after {time:?}, unlike what the path says"
            ));
        }
    }
    Ok(())
}

/// Pings a guest and measures it, so that one guest serves both: a guest stands as long as its worker, and takes seconds to boot.
/// Its card answers before its worker starts, so that the pings are over when the window opens.
fn pinged_meanwhile<T>(
    lab: &Lab,
    measure: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    let pings = pings(lab)?;
    // While it boots, nothing is answered in any case.
    if let Some(silent) = pings.iter().find(|ping| !ping.answered) {
        return Err(format!("{}: no guest is known to be silent", silent.way));
    }
    let answered = || {
        let mut pings = pings.iter();
        pings.try_for_each(|ping| ping.is_answered_within(BOOTED_AND_ANSWERED))
    };
    let (measured, answered) = thread::scope(|scope| {
        let answered = scope.spawn(answered);
        let measured = measure();
        (measured, answered.join().unwrap())
    });
    // An end that cannot be measured does not answer either.
    let measured = measured?;
    answered.map(|()| measured)
}

/// A measurement in which enough arrived to tell each device of the way from one beside it. An end that has no CPU for most of
/// a window leaves less: the next window is twice as long. Where the CPUs were there, that is the path's fault.
fn enough(lab: &Lab, cell: &Cell) -> Result<Measurement, String> {
    // A guest whose CPU is emulated sends few packets.
    let is_guest = lab.topology.client.guest_cpus.is_some();
    let mut window_ms = if is_guest { 400 } else { 100 };
    unless_disturbed(|| {
        loop {
            let measured = proved(lab, cell, window_ms);
            let is_longest = window_ms == LONGEST_MS;
            window_ms = LONGEST_MS.min(2 * window_ms);
            let measured = measured?;
            if measured.received.bytes >= ENOUGH_BYTES {
                return each_hop_counts(lab, cell, &measured).map(|()| measured);
            }
            // Tests beside this one take CPUs too, and are no disturbance.
            if is_longest {
                return Err(format!("only {:?} arrived", measured.received));
            }
        }
    })
}

/// Every device of the way that the path says moved.
fn carried(lab: &Lab, measured: &Measurement) -> Result<(), String> {
    for hop in &lab.topology.way {
        let device = measured
            .devices
            .iter()
            .find(|d| d.namespace == hop.namespace && d.name == hop.device)
            .ok_or_else(|| format!("{hop:?} has no counters"))?;
        let moved = |direction: &Direction| match direction {
            Direction::Rx => device.rx_packets > 0,
            Direction::Tx => device.tx_packets > 0,
        };
        if !hop.forward.iter().chain(hop.backward).all(moved) {
            return Err(format!("{device:?} did not move as {hop:?} must"));
        }
    }
    Ok(())
}

/// The same counters held against a way that lacks one of its devices, or has one that counted nothing, prove nothing.
fn each_hop_counts(lab: &Lab, cell: &Cell, measured: &Measurement) -> Result<(), String> {
    let traffic = Traffic {
        load: cell.load,
        axes: &cell.axes,
        sent: measured.sent.into(),
        received: measured.received.into(),
    };
    let whole = &lab.topology.way;
    for left_out in 0..whole.len() {
        let mut way = whole.clone();
        let hop = way.remove(left_out);
        if path_proof::prove(&way, &measured.devices, traffic).proved {
            return Err(format!("a way without {hop:?} is proved all the same"));
        }
    }
    let role = lab.topology.server.role;
    let way = [&whole[..], &[Hop::tx(role, "idle0")]].concat();
    let devices = [&measured.devices[..], &[idle(role)]].concat();
    let proof = path_proof::prove(&way, &devices, traffic);
    let problem = format!("{role}/idle0 sent 0 ");
    if proof.proved || !proof.problems.iter().any(|p| p.starts_with(&problem)) {
        return Err(format!("a way with an idle device: {proof:?}"));
    }
    Ok(())
}

/// What a device counts that nothing passes.
fn idle(role: &str) -> DeviceCount {
    DeviceCount::new(role, "idle0", [0, 0, 0, 0])
}

/// With a real device; `each_hop_counts` holds the counters of every path against such a way.
#[test]
fn a_device_that_is_not_passed_refutes_the_way() {
    let _beside = beside();
    for path in ["bridge", "veth"] {
        for load in [LoadKind::TcpStream, LoadKind::UdpRr] {
            let cell = cell(path, Peer::Local, load, &[]);
            let mut lab = build(hopyard::lab::path(path).unwrap(), Peer::Local, &cell).unwrap();
            let role = lab.topology.server.role;
            idle_pair(&lab.space(role).unwrap().handle);
            lab.topology.way.push(Hop::tx(role, "idle0"));
            unless_disturbed(|| {
                let measured = sampler(60, 20).measure_in(&lab, &cell, 0.0);
                let way = measured.map_err(|e| hopyard::chain(&e))?.way;
                let problem = format!("{role}/idle0 sent 0 ");
                let is_named = way.problems.iter().any(|p| p.starts_with(&problem));
                (!way.proved && is_named)
                    .then_some(())
                    .ok_or(format!("{path}, {load}: {way:?}"))
            })
            .unwrap();
        }
    }
}

/// A pair of devices that nothing passes.
fn idle_pair(handle: &Handle) {
    let kind = LinkKind::veth("idle1", None);
    handle.add_link(&NewLink::new("idle0", kind)).unwrap();
    for device in ["idle0", "idle1"] {
        handle.set_up(device).unwrap();
    }
}

#[test]
fn traffic_that_goes_round_the_path_is_found_out() {
    // Its window is of 60 ms.
    let _beside = beside();
    for load in LoadKind::ALL {
        let cell = cell("bridge", Peer::Local, load, &[]);
        let lab = build(hopyard::lab::path("bridge").unwrap(), Peer::Local, &cell).unwrap();
        let (a, b) = (
            &lab.space(role::A).unwrap().handle,
            &lab.space(role::B).unwrap().handle,
        );
        let kind = LinkKind::veth("round", Some(b.ns()));
        a.add_link(&NewLink {
            up: true,
            ..NewLink::new("round", kind)
        })
        .unwrap();
        b.set_up("round").unwrap();
        let (client, server) = (
            lab.topology.client.addresses.v4,
            lab.topology.server.addresses.v4,
        );
        a.add_route(Some((server.into(), 32)), None, Some("round"))
            .unwrap();
        b.add_route(Some((client.into(), 32)), None, Some("round"))
            .unwrap();
        let measured = sampler(60, 20).measure_in(&lab, &cell, 0.0).unwrap();
        assert!(!measured.way.proved, "{load}: {:?}", measured.way);
        let problems = measured.way.problems.join("\n");
        assert!(
            problems.contains("a/round is not on the path"),
            "{load}: {problems}"
        );
        assert!(problems.contains("hub/veth-a"), "{load}: {problems}");
    }
    tell("a way round the bridge is found out under every load");
}

#[test]
fn a_peer_that_a_path_does_not_have_is_refused_with_those_it_has() {
    apart(|| {
        let before = Traces::now();
        let mut refused = 0;
        for path in hopyard::lab::PATHS {
            for peer in Peer::ALL {
                if path.peers.contains(&peer) {
                    continue;
                }
                let cell = cell(path.name, peer, LoadKind::TcpRr, &[]);
                let error = build(path, peer, &cell).unwrap_err();
                assert!(
                    error.contains(&format!("has no peer `{}`", peer.name())),
                    "{error}"
                );
                assert!(error.contains(path.peers[0].name()), "{error}");
                refused += 1;
            }
        }
        assert!(refused > 0);
        before.unchanged().unwrap();
    });
}
