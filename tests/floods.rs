//! Numbered datagrams: what the receiver says of them, with real traffic.

use std::time::Duration;

use hopyard::lab::{Lab, role};
use hopyard::model::{Arrivals, Cell, LoadKind, Measurement, Peer};
use hopyard_net::apply_ruleset;

use crate::support::{alone, cell, float, proved, sampler, tell};

fn built(path: &str, load: LoadKind, set: &[(&str, &str)]) -> (Lab, Cell) {
    let cell = cell(path, Peer::Local, load, set);
    let path = hopyard::lab::path(path).unwrap();
    (Lab::build(path, Peer::Local, &cell.axes).unwrap(), cell)
}

fn measured(lab: &Lab, cell: &Cell, window_ms: u64) -> (Measurement, Arrivals) {
    let measured = proved(lab, cell, window_ms).unwrap();
    let arrivals = measured.arrivals.clone().expect("numbered datagrams");
    (measured, arrivals)
}

fn lost(arrivals: &Arrivals) -> u64 {
    arrivals.flows.iter().map(|flow| flow.lost).sum()
}

#[test]
fn a_flood_is_told_flow_by_flow() {
    let _alone = alone();
    for family in ["4", "6"] {
        let set = [("flows", "4"), ("message_size", "64"), ("family", family)];
        let (lab, cell) = built("bridge", LoadKind::UdpFlood, &set);
        let (m, arrivals) = measured(&lab, &cell, 400);
        assert_eq!(arrivals.flows.len(), 4);
        for flow in &arrivals.flows {
            assert!(flow.packets > 100, "{flow:?}");
            assert_eq!((flow.bytes, flow.duplicates), (64 * flow.packets, 0));
            assert!(flow.delay_min_ns.unwrap() > 0 && flow.delay_min_ns <= flow.delay_max_ns);
            assert!(flow.ipdv_min_ns.unwrap() <= 0 && flow.ipdv_max_ns.unwrap() >= 0);
        }
        // What arrived and what was read differ by a queue at most.
        let read = float(m.received.messages);
        assert!((float(arrivals.packets()) / read - 1.0).abs() < 0.05);
        // The senders of a CPU have it in turns, some ms each.
        let runs = arrivals.runs.unwrap();
        assert!(runs.mean > 10.0, "{runs:?}");
        let [busy] = arrivals.receiver_cpu_ns[..] else {
            panic!("a thread for each of the receiver's CPUs");
        };
        assert!(busy > 0 && busy < m.window_ns * 11 / 10, "{busy}");
        assert!(arrivals.lateness.is_none() && m.latency.is_none());
        tell(&format!(
            "IPv{family}, 4 senders: {read} packets, runs of {:.0}, receiver at {} ms of CPU, {} dropped",
            runs.mean,
            busy / 1_000_000,
            arrivals.socket_drops
        ));
    }
}

#[test]
fn a_thousand_senders() {
    let _alone = alone();
    let set = [("flows", "1000"), ("message_size", "64")];
    let (lab, cell) = built("veth", LoadKind::UdpFlood, &set);
    let (_, arrivals) = measured(&lab, &cell, 1000);
    assert_eq!(arrivals.flows.len(), 1000);
    let heard = arrivals.flows.iter().filter(|f| f.packets > 0).count();
    tell(&format!("{heard} of 1,000 senders had a turn in a second"));
    assert!(heard > 20, "{heard}");
}

#[test]
fn what_a_rule_drops_is_lost_and_what_a_socket_drops_is_said() {
    let _alone = alone();
    let set = [("pace", "40mbit"), ("message_size", "500"), ("flows", "2")];
    let (lab, cell) = built("veth-route", LoadKind::UdpPaced, &set);
    let hub = lab.space(role::HUB).unwrap().handle.ns();
    let rules = "table inet t { chain c { type filter hook forward priority 0;\n\
         udp length > 100 numgen random mod 20 == 0 drop\n}\n}\n";
    apply_ruleset(hub, rules).unwrap();
    let (_, arrivals) = measured(&lab, &cell, 1000);
    let sent = float(arrivals.packets() + lost(&arrivals));
    let share = float(lost(&arrivals)) / sent;
    tell(&format!(
        "a rule drops 5 %: {:.2} % of {sent}",
        share * 100.0
    ));
    // Ten thousand trials: five standard deviations.
    assert!((share - 0.05).abs() < 0.011, "{share}");
    assert_eq!(arrivals.socket_drops, 0);

    let set = [("message_size", "64"), ("socket_buffer", "4KiB")];
    let (lab, cell) = built("veth", LoadKind::UdpFlood, &set);
    let (_, arrivals) = measured(&lab, &cell, 300);
    let (lost, dropped) = (float(lost(&arrivals)), float(arrivals.socket_drops));
    tell(&format!("a small socket: {lost} lost, {dropped} dropped"));
    assert!(dropped > 0.0 && (lost / dropped - 1.0).abs() < 0.1);
}

#[test]
fn an_open_loop_keeps_its_rate_and_its_distribution() {
    let _alone = alone();
    for distribution in ["constant", "poisson"] {
        let set = [
            ("pace", "8mbit"),
            ("message_size", "500"),
            ("flows", "2"),
            ("distribution", distribution),
        ];
        let (lab, cell) = built("veth", LoadKind::UdpPaced, &set);
        let (m, arrivals) = measured(&lab, &cell, 2000);
        let rate = float(arrivals.bytes()) * 8e9 / float(m.window_ns);
        let gaps = arrivals.interarrival.as_ref().unwrap();
        let latency = m.latency.unwrap();
        tell(&format!(
            "{distribution}: {:.3} Mbit/s, gaps of {:.0} µs in the mean, {} in the median; {} µs late at p50",
            rate / 1e6,
            gaps.mean_ns / 1e3,
            gaps.quantiles[4].1 / 1000,
            latency.quantiles[4].1 / 1000,
        ));
        // A Poisson process of 4,000 is within 8 % by five standard deviations.
        assert!((rate / 8e6 - 1.0).abs() < 0.08, "{rate}");
        let median = float(gaps.quantiles[4].1) / 1e6;
        let wanted = if distribution == "poisson" {
            2.0f64.ln()
        } else {
            1.0
        };
        assert!((median / wanted - 1.0).abs() < 0.1, "{median}");
        assert_eq!(lost(&arrivals), 0);
        assert!(arrivals.lateness.is_some());
    }
}

/// Every other datagram is held back for a known time on its way.
#[test]
fn known_delays_are_known_jitter() {
    let _alone = alone();
    let set = [("pace", "4mbit"), ("message_size", "500")];
    let (lab, cell) = built("veth", LoadKind::UdpPaced, &set);
    let mut sampler = sampler(2000, 100);
    sampler.service_time = Duration::from_micros(200);
    let m = sampler.measure_in(&lab, &cell, 0.0).unwrap();
    let arrivals = m.arrivals.unwrap();
    let [pdv, ipdv] = [arrivals.pdv, arrivals.ipdv].map(|times| times.unwrap().quantiles);
    let at = |quantiles: &[(f64, u64)], q: f64| {
        let found = quantiles
            .iter()
            .find(|(at, _)| (at - q).abs() < 1e-9)
            .unwrap();
        float(found.1) / 1e3
    };
    let smoothed = arrivals.flows[0].jitter_rfc3550_ns.unwrap() / 1e3;
    tell(&format!(
        "0 and 200 µs by turns: PDV {:.1} and {:.1} µs, |IPDV| {:.1} µs, RFC 3550 {smoothed:.1} µs",
        at(&pdv, 0.25),
        at(&pdv, 0.75),
        at(&ipdv, 0.5)
    ));
    assert!(at(&pdv, 0.25) < 20.0);
    assert!((at(&pdv, 0.75) - 200.0).abs() < 20.0);
    assert!((at(&ipdv, 0.5) - 200.0).abs() < 10.0);
    assert!((smoothed - 200.0).abs() < 40.0);
}
