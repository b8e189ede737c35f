//! Numbered datagrams: what the receiver says of them, with real traffic.

use std::time::Duration;

use hopyard::lab::{Lab, role};
use hopyard::model::{Arrivals, Cell, LoadKind, Measurement, Outcome, Peer, Sample};
use hopyard_net::apply_ruleset;

use crate::support::cli::run;
use crate::support::{alone, beside, cell, float, mostly, proved, sampler, tell, unless_disturbed};

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
    arrivals.flows.iter().filter_map(|flow| flow.lost).sum()
}

#[test]
fn a_flood_is_told_flow_by_flow() {
    let _alone = alone();
    for family in ["4", "6"] {
        let set = [("flows", "4"), ("message_size", "64"), ("family", family)];
        let (lab, cell) = built("bridge", LoadKind::UdpFlood, &set);
        mostly(|| {
            let (m, arrivals) = measured(&lab, &cell, 400);
            flows_are_told(&arrivals);
            let [busy] = arrivals.receiver_cpu_ns[..] else {
                panic!("a thread for each of the receiver's CPUs");
            };
            assert!(busy > 0 && busy < m.window_ns * 11 / 10, "{busy}");
            assert!(arrivals.lateness.is_none() && m.latency.is_none());
            let read = float(m.received.messages);
            let run = arrivals.runs.as_ref().map_or(0.0, |runs| runs.mean);
            tell(&format!(
                "IPv{family}, 4 senders: {read} packets, runs of {run:.0}, receiver at {} ms of CPU, {} dropped",
                busy / 1_000_000,
                arrivals.socket_drops
            ));
            // What arrived and what was read differ by a queue at most, where nobody was kept from the window's edges. The
            // senders of a CPU have it in turns, some ms each.
            let apart = (float(arrivals.packets()) / read - 1.0).abs();
            let all_sent = arrivals.flows.iter().all(|flow| flow.packets > 100);
            if apart < 0.05 && all_sent && run > 10.0 {
                Ok(())
            } else {
                Err(format!("{read} packets were read, runs of {run:.0}: {:?}", arrivals.flows))
            }
        })
        .unwrap();
    }
}

/// What holds of four flows however many turns each of them had.
fn flows_are_told(arrivals: &Arrivals) {
    assert_eq!(arrivals.flows.len(), 4);
    for flow in &arrivals.flows {
        assert_eq!((flow.bytes, flow.duplicates), (64 * flow.packets, 0));
        assert_eq!(flow.lost.is_some(), flow.packets > 0, "{flow:?}");
        if flow.packets > 0 {
            assert!(flow.delay_min_ns.unwrap() > 0 && flow.delay_min_ns <= flow.delay_max_ns);
        }
        if flow.packets > 100 {
            assert!(flow.ipdv_min_ns.unwrap() <= 0 && flow.ipdv_max_ns.unwrap() >= 0);
        }
    }
}

#[test]
fn a_thousand_senders() {
    let _beside = beside();
    let set = [("flows", "1000"), ("message_size", "64")];
    let (lab, cell) = built("veth", LoadKind::UdpFlood, &set);
    unless_disturbed(|| {
        let arrivals = proved(&lab, &cell, 1000)?.arrivals.unwrap();
        assert_eq!(arrivals.flows.len(), 1000);
        let heard = arrivals.flows.iter().filter(|f| f.packets > 0).count();
        let said = format!("{heard} of 1,000 senders had a turn in a second");
        tell(&said);
        if heard > 20 { Ok(()) } else { Err(said) }
    })
    .unwrap();
}

#[test]
fn what_a_rule_drops_is_lost_and_what_a_socket_drops_is_said() {
    let _beside = beside();
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
    // Ten thousand trials, or as many as were sent: five standard deviations.
    let deviation = (0.05 * 0.95 / sent).sqrt();
    assert!((share - 0.05).abs() < 5.0 * deviation, "{share}");
    assert_eq!(arrivals.socket_drops, 0);

    // Room for two or three datagrams: it drops all the time, not now and then. What was dropped after the last that
    // arrived is not lost yet, which a receiver that was kept from its CPU at the end makes a few percent of.
    let set = [("message_size", "1400"), ("socket_buffer", "4KiB")];
    let (lab, cell) = built("veth", LoadKind::UdpFlood, &set);
    mostly(|| {
        let (_, arrivals) = measured(&lab, &cell, 1500);
        let (lost, dropped) = (float(lost(&arrivals)), float(arrivals.socket_drops));
        let said = format!("a small socket: {lost} lost, {dropped} dropped");
        tell(&said);
        assert!(dropped > 0.0, "{said}");
        if (lost / dropped - 1.0).abs() < 0.1 {
            Ok(())
        } else {
            Err(said)
        }
    })
    .unwrap();
}

#[test]
fn an_open_loop_keeps_its_rate_and_its_distribution() {
    let _alone = alone();
    for distribution in ["constant", "poisson"] {
        let set = [
            ("pace", "16mbit"),
            ("message_size", "500"),
            ("flows", "2"),
            ("distribution", distribution),
        ];
        let (lab, cell) = built("veth", LoadKind::UdpPaced, &set);
        // Of 4,000 messages; a Poisson process of as many is within 8 % by five standard deviations.
        let (wanted, off) = if distribution == "poisson" {
            (2.0f64.ln(), 320)
        } else {
            (1.0, 0)
        };
        mostly(|| {
            let (m, arrivals) = measured(&lab, &cell, 1000);
            let rate = float(arrivals.bytes()) * 8e9 / float(m.window_ns);
            let gaps = arrivals.interarrival.as_ref().unwrap();
            let latency = m.latency.unwrap();
            let said = format!(
                "{distribution}: {:.3} Mbit/s, gaps of {:.0} µs in the mean, {} in the median; {} µs late at p50",
                rate / 1e6,
                gaps.mean_ns / 1e3,
                gaps.quantiles[4].1 / 1000,
                latency.quantiles[4].1 / 1000,
            );
            tell(&said);
            // What is due is a matter of the schedule alone.
            let open_loop = m.open_loop.unwrap();
            assert!(open_loop.due.abs_diff(4000) <= off, "{open_loop:?}");
            assert!(open_loop.arrived <= open_loop.due, "{open_loop:?}");
            assert!(arrivals.lateness.is_some());
            let median = float(gaps.quantiles[4].1) / 0.5e6;
            let is_spread = (median / wanted - 1.0).abs() < 0.1 && (rate / 16e6 - 1.0).abs() < 0.08;
            if is_spread && open_loop.arrived == open_loop.due && lost(&arrivals) == 0 {
                Ok(())
            } else {
                Err(format!("{said}; {open_loop:?}, {} lost", lost(&arrivals)))
            }
        })
        .unwrap();
    }
}

/// What comes first of each flow is as far apart as the flows begin; the window opens when the last has begun.
#[test]
fn flows_begin_one_after_another() {
    let _beside = beside();
    for containers in [None, Some("own")] {
        let mut set = vec![
            ("flows", "4"),
            ("pace", "8mbit"),
            ("message_size", "100"),
            ("start", "staggered:50ms"),
        ];
        set.extend(containers.map(|containers| ("containers", containers)));
        let (lab, cell) = built("bridge", LoadKind::UdpPaced, &set);
        mostly(|| {
            let (m, arrivals) = measured(&lab, &cell, 300);
            let flows = arrivals.flows.iter();
            let mut ahead: Vec<u64> = flows
                .map(|flow| flow.first_before_window_ns.unwrap_or(0) / 1_000_000)
                .collect();
            ahead.sort_unstable();
            tell(&format!("flows began {ahead:?} ms before the window"));
            assert_eq!(ahead.len(), 4);
            // The last one has its warm-up, a third of the window. Who has no CPU is late, and nobody is early.
            for (nth, planned) in [100, 150, 200, 250].into_iter().enumerate() {
                assert!(ahead[nth] <= planned, "{ahead:?}");
            }
            let open_loop = m.open_loop.unwrap();
            assert!(
                open_loop.due == 3000 && open_loop.arrived <= 3000,
                "{open_loop:?}"
            );
            let mut pairs = ahead.windows(2);
            let are_apart = pairs.all(|pair| (45..56).contains(&(pair[1] - pair[0])));
            if are_apart && ahead[0] >= 90 && open_loop.arrived == 3000 {
                Ok(())
            } else {
                Err(format!("{ahead:?} ms before the window, {open_loop:?}"))
            }
        })
        .unwrap();
    }
    // Streams of one CPU have a thread each then; the server sends them, or the client.
    for load in [LoadKind::TcpStream, LoadKind::TcpMaerts, LoadKind::TcpRr] {
        let (lab, cell) = built("veth", load, &[("flows", "3"), ("start", "staggered:20ms")]);
        let m = proved(&lab, &cell, 150).unwrap();
        assert!(m.received.bytes + m.received.transactions > 0, "{load}");
    }
}

/// Every other datagram is held back for a known time on its way.
#[test]
fn known_delays_are_known_jitter() {
    let _beside = beside();
    let set = [("pace", "4mbit"), ("message_size", "500")];
    let (lab, cell) = built("veth", LoadKind::UdpPaced, &set);
    let mut sampler = sampler(1000, 100);
    sampler.service_time = Duration::from_micros(200);
    let at = |quantiles: &[(f64, u64)], q: f64| {
        let found = quantiles
            .iter()
            .find(|(at, _)| (at - q).abs() < 1e-9)
            .unwrap();
        float(found.1) / 1e3
    };
    mostly(|| {
        let m = sampler.measure_in(&lab, &cell, 0.0).unwrap();
        let arrivals = m.arrivals.unwrap();
        let [pdv, ipdv] = [arrivals.pdv, arrivals.ipdv].map(|times| times.unwrap().quantiles);
        let smoothed = arrivals.flows[0].jitter_rfc3550_ns.unwrap() / 1e3;
        let said = format!(
            "0 and 200 µs by turns: PDV {:.1} and {:.1} µs, |IPDV| {:.1} µs, RFC 3550 {smoothed:.1} µs",
            at(&pdv, 0.25),
            at(&pdv, 0.75),
            at(&ipdv, 0.5)
        );
        tell(&said);
        assert!(at(&pdv, 0.25) < 20.0, "{said}");
        assert!((at(&pdv, 0.75) - 200.0).abs() < 20.0, "{said}");
        assert!((at(&ipdv, 0.5) - 200.0).abs() < 10.0, "{said}");
        // A mean, which a single datagram that was held for much longer raises.
        if (smoothed - 200.0).abs() < 40.0 {
            Ok(())
        } else {
            Err(said)
        }
    })
    .unwrap();
}

#[test]
fn a_window_that_opens_with_the_traffic_has_it_from_its_start() {
    let _alone = alone();
    let set = [("flows", "3"), ("message_size", "64")];
    let (lab, cell) = built("veth", LoadKind::UdpFlood, &set);
    for (warm_up_ms, before_ns) in [(0, 0), (100, 100_000_000)] {
        let sampler = sampler(500, warm_up_ms);
        mostly(|| {
            let m = sampler.measure_in(&lab, &cell, 0.0).unwrap();
            let arrivals = m.arrivals.as_ref().unwrap();
            let series = arrivals.series.as_ref().unwrap();
            assert_eq!(
                (series.interval_ns, series.before_ns),
                (50_000_000, before_ns)
            );
            assert_eq!(series.intervals.len(), 10);
            let all: u64 = series.intervals.iter().map(|i| i.packets).sum();
            assert_eq!(all, arrivals.packets());
            assert!(arrivals.interarrival_sd_ns.unwrap() > 0.0);
            // One CPU for the senders, and the receiver's beside it.
            let (client, all) = (m.client_cpus.unwrap(), m.allowed_cpus.unwrap());
            assert!(client.cpus < all.cpus);
            for busy in [client, all] {
                assert!(busy.busy_ratio > 0.0 && busy.busy_ratio <= 1.0, "{busy:?}");
            }
            tell(&format!(
                "3 senders: their CPU {:.1} %, all {:.1} % busy",
                client.busy_ratio * 100.0,
                all.busy_ratio * 100.0
            ));
            // Senders that had no CPU for so long leave an interval empty, be it the first.
            if series.intervals.iter().all(|i| i.packets > 0) {
                Ok(())
            } else {
                Err(format!("{series:?}"))
            }
        })
        .unwrap();
    }
}

/// The known answer: of a flood that a slow wire lets through hardly anything of, the receiver's CPU is idle.
#[test]
fn the_receivers_cpu_is_told_from_the_senders() {
    let _alone = alone();
    let set = [("rate", "10mbit"), ("message_size", "1000")];
    let cell = cell("veth-route", Peer::Far, LoadKind::UdpFlood, &set);
    let lab = crate::axes::build(&cell).unwrap();
    unless_disturbed(|| {
        let m = sampler(400, 100).measure_in(&lab, &cell, 0.0).unwrap();
        let (client, server) = (m.client_cpus.unwrap(), m.server_cpus.unwrap());
        let said = format!("sender's CPU {client:?}, receiver's {server:?}");
        tell(&said);
        let is_apart = client.cpus + server.cpus <= m.allowed_cpus.unwrap().cpus;
        if is_apart && client.busy_ratio > 0.9 && server.busy_ratio < 0.5 {
            Ok(())
        } else {
            Err(said)
        }
    })
    .unwrap();
}

/// The known answer: a sender with little to do leaves its CPU idle, and one that floods does not.
#[test]
fn the_senders_cpu_is_told_from_the_receivers() {
    let _alone = alone();
    let busy = |load, set: &[(&str, &str)]| {
        let (lab, cell) = built("veth", load, set);
        measured(&lab, &cell, 400).0.client_cpus.unwrap().busy_ratio
    };
    unless_disturbed(|| {
        let paced = busy(
            LoadKind::UdpPaced,
            &[("pace", "1mbit"), ("message_size", "1000")],
        );
        let flood = busy(LoadKind::UdpFlood, &[("message_size", "64")]);
        let said = format!(
            "sender's CPU busy: paced {:.1} %, flood {:.1} %",
            paced * 100.0,
            flood * 100.0
        );
        tell(&said);
        if paced < 0.5 && flood > 0.9 {
            Ok(())
        } else {
            Err(said)
        }
    })
    .unwrap();
}

#[test]
fn a_sweep_of_flows_is_told_as_curves() {
    let _beside = beside();
    let out = tempfile::tempdir().unwrap();
    let directory = out.path().join("run").display().to_string();
    let ran = run(&[
        "run",
        "--paths",
        "bridge",
        "--loads",
        "udp_flood",
        "--set",
        "flows=1,4,16",
        "--set",
        "containers=native,own",
        "--base",
        "containers=native",
        "--warm-up",
        "0s",
        "--window",
        "100ms",
        "--blocks",
        "2",
        "--json",
        "--out",
        &directory,
    ]);
    let report = ran.exits(0).json();
    let curves = report["curves"].as_array().unwrap();
    let kinds: Vec<_> = curves
        .iter()
        .map(|c| c["axes"]["containers"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["native", "own"]);
    for curve in curves {
        assert_eq!(curve["axis"], "flows");
        assert_eq!(curve["values"], serde_json::json!([1.0, 4.0, 16.0]));
        assert!(
            curve["client_cpus_full"]["most_busy_ratio"]
                .as_f64()
                .unwrap()
                > 0.0,
            "{curve}"
        );
        let packets = &curve["quantities"]["packets_per_s"];
        assert_eq!(packets["estimates"].as_array().unwrap().len(), 3);
        assert!(
            packets["exponent"]["value"].is_number() && packets["knee"].is_null(),
            "{packets}"
        );
    }
    let series = &report["cells"][0]["series"];
    assert_eq!(series["traffic_before_s"], 0.0);
    assert_eq!(series["interarrival_sd_ns"].as_array().unwrap().len(), 10);
    let stored = hopyard::store::load(&out.path().join("run")).unwrap();
    let samples = hopyard::assess::last_attempts(&stored.samples);
    let first = samples.iter().filter(|sample| sample.cell == 0);
    let watched = first.filter(|sample| is_watched(sample)).count();
    if watched > 0 {
        assert_eq!(series["settling"]["samples"], watched);
    } else {
        tell("an interval of each sample has no jitter: nothing is said of when it settles");
        assert!(series["settling"].is_null(), "{series}");
    }
    let said = run(&["report", &directory]);
    said.exits(0).prints(&["Against flows: udp_flood · local"]);
    let settles = samples.iter().any(|sample| is_watched(sample));
    let heading = "Jitter from the start of the traffic";
    assert_eq!(said.stdout.contains(heading), settles, "{said}");
}

/// Has every interval of a sample its jitter? One in which the senders had no CPU has none.
fn is_watched(sample: &Sample) -> bool {
    let Outcome::Measured(measured) = &sample.outcome else {
        return false;
    };
    let series = measured.arrivals.as_ref().and_then(|a| a.series.as_ref());
    let mut intervals = series.unwrap().intervals.iter();
    intervals.all(|interval| interval.interarrival_sd_ns.is_some())
}
