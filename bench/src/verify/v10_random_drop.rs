//! V10: a rule drops one datagram in a thousand at random. The share is measured, and every counter on the path
//! balances to the packet over the whole life of the flow.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use hopyard::lab::{self, Lab, role};
use hopyard::model::{Axes, CpuTolerance, Family, LoadKind, Peer, Rate};
use hopyard::{assess, signals, stats};
use hopyard_net::{NetNs, apply_ruleset, clock};

use crate::bench::{Bench, on_its_way, until_calm, wait_until};
use crate::cells;
use crate::experiment::{Experiment, Failure, Row, Verdict};
use crate::v10_ledger::{Books, ruleset, socket_drops};

pub(crate) static EXPERIMENT: Experiment = Experiment {
    id: "V10",
    title: "a rule in the hub of veth-route drops 0.1 % of a paced UDP stream at random",
    only_when_named: false,
    run,
};

const ONE_IN: u32 = 1000;
/// By chance alone, one run in a hundred falls outside this interval.
const CONFIDENCE: f64 = 0.99;
const DATAGRAM: [u8; 1400] = [0x5a; 1400];
/// Datagrams sent at once, every ms: far below what the path and the receiver can carry.
const BURST: u64 = 40;
const BURST_EVERY_NS: u64 = 1_000_000;
/// Of hopyard's own load.
const PER_S: u64 = 10_000;
/// Wait after the last datagram: longer than any can be under way.
const DRAIN_NS: u64 = 300_000_000;

/// Counts of the two sockets.
struct Flow {
    sent: u64,
    received: u64,
    /// Datagrams for which the receiving socket had no room.
    refused: u64,
}

fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let axes = Axes::default().for_cell(LoadKind::UdpStream, Peer::Local, &[]);
    let lab = Lab::build(lab::path("veth-route")?, Peer::Local, &axes)?;
    let (client, server) = (&lab.topology.client, &lab.topology.server);
    let from = lab.space(client.role)?.handle.ns();
    let to = lab.space(server.role)?.handle.ns();
    let receiver = bound(to, server.addresses.of(Family::V4))?;
    let address = receiver.local_addr()?;
    for space in lab.spaces() {
        let devices: Vec<&str> = lab
            .topology
            .way
            .iter()
            .filter(|hop| hop.namespace == space.role)
            .map(|hop| hop.device.as_str())
            .collect();
        let forwards = space.role == role::HUB;
        let rules = ruleset(&devices, address.port(), forwards.then_some(ONE_IN));
        apply_ruleset(space.handle.ns(), &rules)?;
    }
    let sender = bound(from, client.addresses.of(Family::V4))?;
    let books = Books::read(&lab)?;
    let errors = socket_drops(to)?;
    let count = bench.pick(200_000, 50_000);
    let (sent, received) = send_and_receive(&sender, &receiver, address, count)?;
    let books = Books::read(&lab)?.since(&books);
    let refused = socket_drops(to)? - errors;
    let flow = Flow {
        sent,
        received,
        refused,
    };
    Ok(vec![
        share(&books, sent)?,
        balance(&books, &flow),
        as_reported(bench)?,
    ])
}

/// What a user is told of the same rule: quantity `lost_ratio` of a cell of hopyard's own load.
fn as_reported(bench: &Bench) -> Result<Row, Failure> {
    let cell = cells::cell("veth-route", Peer::Local, LoadKind::UdpStream, |axes| {
        axes.message_size_bytes = Some(DATAGRAM.len() as u32);
        // So slow that no socket lacks room, and a window that is counted a moment late has few more.
        axes.pace_bps = Some(Rate(Some(PER_S * 8 * DATAGRAM.len() as u64)));
    });
    let lab = Lab::build(lab::path("veth-route")?, Peer::Local, &cell.axes)?;
    let rule = format!(
        "table inet v10 {{\nchain forward {{\ntype filter hook forward priority 0\n\
         meta l4proto udp numgen random mod {ONE_IN} == 0 drop\n}}\n}}\n"
    );
    apply_ruleset(lab.space(role::HUB)?.handle.ns(), &rule)?;
    let sampler = bench.sampler(bench.pick(20_000, 5000), 200)?;
    let take = || Ok((on_its_way(sampler.measure_in(&lab, &cell, 0.0)?)?, ()));
    let (m, ()) = until_calm(0.0, take)?;
    let sent = m.sent.messages;
    let lost = assess::quantity("lost_ratio")
        .ok()
        .and_then(|quantity| quantity.value(&m, cell.load, CpuTolerance(0.02)))
        .ok_or(Failure::NoFigure("the share that was lost"))?;
    let count = (lost * sent as f64).round().max(0.0) as u64;
    let share = stats::binomial_interval(count, sent, CONFIDENCE)
        .ok_or(Failure::NoFigure("a flow that sent nothing"))?;
    Ok(Row {
        id: "V10",
        what: format!("{sent} datagrams of {cell}, the same rule: what the report says"),
        promised: "0.1 % is inside the 99 % interval of the share lost".to_owned(),
        seen: format!(
            "{:.4} % ({:.4} to {:.4} %)",
            100.0 * lost,
            100.0 * share.low,
            100.0 * share.high
        ),
        verdict: Verdict::of((share.low..=share.high).contains(&(1.0 / f64::from(ONE_IN)))),
    })
}

fn bound(ns: &NetNs, address: IpAddr) -> Result<UdpSocket, Failure> {
    Ok(ns.run(|| UdpSocket::bind(SocketAddr::new(address, 0)))??)
}

/// Sends `count` datagrams at an even pace; returns how many were sent and received.
fn send_and_receive(
    sender: &UdpSocket,
    receiver: &UdpSocket,
    to: SocketAddr,
    count: u64,
) -> Result<(u64, u64), Failure> {
    sender.connect(to)?;
    receiver.set_read_timeout(Some(Duration::from_millis(50)))?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let taking = scope.spawn(|| {
            let mut buffer = [0; DATAGRAM.len()];
            let mut received = 0;
            // One time-out after the end means that the socket is empty.
            loop {
                let last = over.load(Relaxed);
                match receiver.recv(&mut buffer) {
                    Ok(_) => received += 1,
                    Err(_) if last => return received,
                    Err(_) => {}
                }
            }
        });
        let sent = send(sender, count);
        let rested = wait_until(clock::monotonic_ns() + DRAIN_NS);
        over.store(true, Relaxed);
        let received = taking
            .join()
            .map_err(|_| Failure::NoFigure("a receiver that panicked"))?;
        rested?;
        Ok((sent?, received))
    })
}

fn send(sender: &UdpSocket, count: u64) -> Result<u64, Failure> {
    let start_ns = clock::monotonic_ns();
    let mut sent = 0;
    for burst in 0..count / BURST {
        if signals::interrupted() {
            return Err(Failure::Interrupted);
        }
        clock::sleep_until_monotonic_ns(start_ns + burst * BURST_EVERY_NS)?;
        for _ in 0..BURST {
            sender.send(&DATAGRAM)?;
            sent += 1;
        }
    }
    Ok(sent)
}

fn share(books: &Books, sent: u64) -> Result<Row, Failure> {
    let dropped = books.dropped(role::HUB);
    let share = stats::binomial_interval(dropped, sent, CONFIDENCE)
        .ok_or(Failure::NoFigure("a flow that sent nothing"))?;
    let truth = 1.0 / f64::from(ONE_IN);
    Ok(Row {
        id: "V10",
        what: format!("{sent} datagrams, 1 in {ONE_IN} dropped by `numgen random`"),
        promised: "0.1 % is inside the 99 % interval of the share dropped".to_owned(),
        seen: format!(
            "{dropped} dropped: {:.4} % ({:.4} to {:.4} %)",
            100.0 * share.value,
            100.0 * share.low,
            100.0 * share.high
        ),
        verdict: Verdict::of((share.low..=share.high).contains(&truth)),
    })
}

/// Every pair of counters from socket to socket; both must be equal.
fn balance(books: &Books, flow: &Flow) -> Row {
    let (_, a_tx) = books.device(role::A, "eth0");
    let (in_rx, _) = books.device(role::HUB, "veth-a");
    let (_, out_tx) = books.device(role::HUB, "veth-b");
    let (b_rx, _) = books.device(role::B, "eth0");
    let hub_in = books.flow(role::HUB, "in", "veth-a");
    let hub_out = books.flow(role::HUB, "out", "veth-b");
    let b_in = books.flow(role::B, "in", "eth0");
    let accounts = [
        (
            "sent = flow out of a",
            flow.sent,
            books.flow(role::A, "out", "eth0"),
        ),
        (
            "a/eth0 tx = sent + chatter",
            a_tx,
            flow.sent + books.chatter(role::A, "out", "eth0"),
        ),
        ("hub/veth-a rx = a/eth0 tx", in_rx, a_tx),
        (
            "hub/veth-a rx = flow in + chatter",
            in_rx,
            hub_in + books.chatter(role::HUB, "in", "veth-a"),
        ),
        (
            "flow into hub = flow out + dropped by the rule",
            hub_in,
            hub_out + books.dropped(role::HUB),
        ),
        (
            "hub/veth-b tx = flow out + chatter",
            out_tx,
            hub_out + books.chatter(role::HUB, "out", "veth-b"),
        ),
        ("b/eth0 rx = hub/veth-b tx", b_rx, out_tx),
        (
            "b/eth0 rx = flow in + chatter",
            b_rx,
            b_in + books.chatter(role::B, "in", "eth0"),
        ),
        (
            "flow into b = received + refused by the socket",
            b_in,
            flow.received + flow.refused,
        ),
    ];
    let broken: Vec<String> = accounts
        .iter()
        .filter(|(_, left, right)| left != right)
        .map(|(name, left, right)| format!("{name}: {left} against {right}"))
        .collect();
    let chatter = books.chatter(role::A, "out", "eth0") + books.chatter(role::HUB, "out", "veth-b");
    Row {
        id: "V10",
        what: "counters of sockets, devices and rules over the whole life of the flow".to_owned(),
        promised: format!("{} accounts balance to the packet", accounts.len()),
        seen: if broken.is_empty() {
            format!(
                "all balance: {} sent, {} dropped, {} refused by the socket, {} received, {chatter} others \
                 forward",
                flow.sent,
                books.dropped(role::HUB),
                flow.refused,
                flow.received
            )
        } else {
            broken.join("; ")
        },
        verdict: Verdict::of(broken.is_empty()),
    }
}
