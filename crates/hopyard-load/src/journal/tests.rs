use super::*;
use crate::receiver::Effort;
use hopyard_model::{Arrivals, FlowArrivals, LoadKind};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn window(open_ns: u64, close_ns: u64) -> Timetable {
    Timetable {
        start_ns: 0,
        open_ns,
        close_ns,
        stop_ns: close_ns,
        slices: 1,
        other_behind_ns: 0,
        edge_ns: 0,
    }
}

/// One that takes everything up to 10 s.
fn journal(flows: u32) -> Journal {
    Journal::new(flows, window(0, 10_000 * MS)).unwrap()
}

/// A datagram sent when it was due, read when it arrived.
fn enter(journal: &mut Journal, flow: u32, number: u64, sent_ns: u64, delay_ns: u64) {
    let header = Header {
        flow,
        number,
        due_ns: sent_ns,
        sent_ns,
    };
    let arrived_ns = sent_ns + delay_ns;
    let came = Came {
        arrived_ns,
        read_ns: arrived_ns,
    };
    journal.enter(&header, 64, came);
}

fn arrivals(journal: &Journal) -> Arrivals {
    journal
        .tell(LoadKind::UdpFlood, Effort::default())
        .unwrap()
        .arrivals
}

fn at(quantiles: &[(f64, u64)], q: f64) -> u64 {
    quantiles.iter().find(|(at, _)| *at == q).unwrap().1
}

/// Within the histogram's three digits.
fn near(seen: u64, wanted: u64) -> bool {
    seen.abs_diff(wanted) * 1000 <= wanted.max(1000) * 2
}

proptest! {
    /// The known answer: delays of 0 and D by turns over any base. PDV is 0 and D, IPDV ±D, RFC 3550 near D.
    #[test]
    fn alternating_delays(d in 1_000u64..100_000_000, base in 0u64..1_000) {
        let mut journal = journal(1);
        let count = 2_000u64;
        for number in 0..count {
            enter(&mut journal, 0, number, number * MS, base + (number % 2) * d);
        }
        let seen = arrivals(&journal);
        let pdv = seen.pdv.unwrap().quantiles;
        prop_assert_eq!(at(&pdv, 0.25), 0);
        prop_assert!(near(at(&pdv, 0.999), d), "{} {d}", at(&pdv, 0.999));
        let ipdv = seen.ipdv.unwrap();
        prop_assert_eq!(ipdv.count, count - 1);
        prop_assert!(near(ipdv.min_ns, d) && near(ipdv.max_ns, d), "{ipdv:?}");
        let flow = &seen.flows[0];
        let d = d.cast_signed();
        prop_assert_eq!((flow.ipdv_min_ns, flow.ipdv_max_ns), (Some(-d), Some(d)));
        // The mean of D (1 − (15/16)ⁿ) for n from 0 to 1,999: D (1 − 16/2000).
        let smoothed = flow.jitter_rfc3550_ns.unwrap();
        prop_assert!((smoothed / d as f64 - (1.0 - 16.0 / 2000.0)).abs() < 1e-9, "{smoothed} {d}");
    }

    /// Whatever arrives in whatever order: what came and what did not make up all numbers.
    #[test]
    fn every_number_is_accounted_for(lost in proptest::collection::vec(any::<bool>(), 2..60), seed: u64) {
        let mut numbers: Vec<u64> = (0u64..).zip(&lost).filter(|(_, lost)| !**lost).map(|(n, _)| n).collect();
        prop_assume!(numbers.len() > 1);
        // The first and the last stay where they are, which says how many there were.
        let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
        let inner = numbers.len() - 1;
        use rand::{SeedableRng, seq::SliceRandom};
        numbers[1..inner].shuffle(&mut rand_chacha::ChaCha8Rng::seed_from_u64(seed));
        let mut journal = journal(1);
        for (place, number) in (0u64..).zip(&numbers) {
            enter(&mut journal, 0, *number, place * MS, 0);
        }
        let flow = &arrivals(&journal).flows[0];
        prop_assert_eq!(flow.packets, numbers.len() as u64);
        prop_assert_eq!(flow.packets + flow.lost.unwrap(), last - first + 1);
        prop_assert_eq!(flow.duplicates, 0);
        let late = numbers.iter().enumerate().filter(|(i, n)| numbers[..*i].iter().any(|m| m > n)).count();
        prop_assert_eq!(flow.reordered, late as u64);
    }
}

#[test]
fn copies_count_once() {
    let mut journal = journal(1);
    for number in [0, 1, 1, 2, 0] {
        enter(&mut journal, 0, number, MS, 10);
    }
    let told = journal.tell(LoadKind::UdpPaced, Effort::default()).unwrap();
    let flow = &told.arrivals.flows[0];
    assert_eq!((flow.packets, flow.bytes, flow.duplicates), (3, 3 * 64, 2));
    assert_eq!((flow.lost, flow.reordered), (Some(0), 0));
    assert_eq!(told.due, Some(3));
    let times = [told.latency, told.arrivals.lateness];
    assert_eq!(times.map(|times| times.unwrap().count), [3, 3]);
}

#[test]
fn the_window_decides_what_counts() {
    let mut journal = Journal::new(1, window(100 * MS, 200 * MS)).unwrap();
    // Number 20 is lost in the warm-up, 120 in the window, and the path takes 10 ms.
    for number in (0..300).filter(|n| ![20, 120].contains(n)) {
        enter(&mut journal, 0, number, number * MS, 10 * MS);
    }
    let told = journal.tell(LoadKind::UdpPaced, Effort::default()).unwrap();
    let flow = &told.arrivals.flows[0];
    assert_eq!((flow.packets, flow.lost), (99, Some(1)));
    assert_eq!(flow.longest_gap_ns, Some(2 * MS));
    assert_eq!(told.arrivals.interarrival.unwrap().count, 99);
    // Those that were to be sent in it, the last of which came after it.
    assert_eq!(told.latency.unwrap().count, 99);
}

/// Number 50 is 50 ms late, and so the first in the window; number 150 is lost.
#[test]
fn what_came_before_the_window_is_not_lost_in_it() {
    let mut journal = Journal::new(1, window(100 * MS, 200 * MS)).unwrap();
    for number in (0..100).filter(|n| *n != 50) {
        enter(&mut journal, 0, number, number * MS, 0);
    }
    enter(&mut journal, 0, 50, 50 * MS, 50 * MS);
    for number in (100..200).filter(|n| *n != 150) {
        enter(&mut journal, 0, number, number * MS, 0);
    }
    let flow = &arrivals(&journal).flows[0];
    assert_eq!((flow.packets, flow.reordered, flow.lost), (100, 1, Some(1)));
}

#[test]
fn each_flow_has_its_own_least_delay() {
    let mut journal = journal(2);
    for number in 0..1000 {
        enter(&mut journal, 0, number, number * MS, 5 * MS);
        enter(&mut journal, 1, number, number * MS, 50 * MS);
    }
    let seen = arrivals(&journal);
    assert_eq!(seen.pdv.unwrap().max_ns, 0);
    assert_eq!(seen.flows[1].delay_min_ns, Some(50 * MS));
}

#[test]
fn what_was_not_measured_is_absent() {
    let mut journal = journal(2);
    let nothing = arrivals(&journal);
    assert!(nothing.pdv.is_none() && nothing.ipdv.is_none() && nothing.runs.is_none());
    assert_eq!(
        nothing.flows,
        [FlowArrivals::default(), FlowArrivals::default()]
    );
    enter(&mut journal, 1, 0, MS, 10);
    let one = arrivals(&journal);
    assert!(one.ipdv.is_none() && one.interarrival.is_none() && one.lateness.is_none());
    assert_eq!(one.flows[1].jitter_rfc3550_ns, None);
    // A flow that nobody announced is no business of ours.
    enter(&mut journal, 7, 0, MS, 10);
    assert_eq!(arrivals(&journal), one);
}

#[test]
fn bursts_are_runs() {
    let mut journal = journal(2);
    for number in 0..240 {
        enter(
            &mut journal,
            u32::from(number / 24 % 2 == 1),
            number,
            MS * number,
            0,
        );
    }
    let runs = arrivals(&journal).runs.unwrap();
    assert_eq!((runs.count, runs.max), (9, 24));
    assert_eq!(at(&runs.quantiles, 0.5), 24);
}

#[test]
fn sockets_are_put_together() {
    let [mut one, mut other] = [journal(2), journal(1)];
    enter(&mut one, 1, 0, MS, 10);
    enter(&mut other, 0, 0, MS, 10);
    one.absorb(other).unwrap();
    let packets: Vec<u64> = arrivals(&one)
        .flows
        .iter()
        .map(|flow| flow.packets)
        .collect();
    assert_eq!(packets, [0, 1, 1]);
}

/// The known answer: datagrams a millisecond apart whose delay is steady in the first half of the window and goes up and down
/// by 200 µs in the second.
#[test]
fn the_series_shows_when_jitter_changed() {
    let mut journal = Journal::new(1, window(0, 1_000 * MS)).unwrap();
    for number in 0..1_000 {
        let swing = if number >= 500 {
            number % 2 * MS / 5
        } else {
            0
        };
        enter(&mut journal, 0, number, number * MS, 1_000 + swing);
    }
    let seen = arrivals(&journal);
    let series = seen.series.unwrap();
    assert_eq!((series.interval_ns, series.intervals.len()), (100 * MS, 10));
    for (i, interval) in series.intervals.iter().enumerate() {
        assert!((99..=101).contains(&interval.packets), "{interval:?}");
        // Gaps of 0.8 and 1.2 ms by turns deviate by 0.2.
        let expected = if i < 5 { 0.0 } else { 200_000.0 };
        let sd = interval.interarrival_sd_ns.unwrap();
        assert!((sd - expected).abs() < 4_000.0, "{i}: {sd}");
        let smoothed = interval.jitter_rfc3550_ns.unwrap();
        // It takes some 16 datagrams to get there.
        let near = if i == 5 {
            160_000.0..200_000.0
        } else {
            expected - 100.0..expected + 100.0
        };
        assert!(near.contains(&smoothed), "{i}: {smoothed}");
    }
    let whole = seen.interarrival_sd_ns.unwrap();
    assert!(
        (whole - 200_000.0 / 2.0f64.sqrt()).abs() < 3_000.0,
        "{whole}"
    );
}

#[test]
fn intervals_of_a_series() {
    let of = |window_ms: u64| {
        let journal = Journal::new(1, window(0, window_ms * MS)).unwrap();
        let series = arrivals(&journal).series.unwrap();
        assert!(
            series
                .intervals
                .iter()
                .all(|i| i.interarrival_sd_ns.is_none())
        );
        (series.interval_ns / MS, series.intervals.len())
    };
    assert_eq!(of(600_000), (5_000, 120));
    assert_eq!(of(52_000), (5_000, 10));
    assert_eq!(of(20_000), (2_000, 10));
    assert_eq!(of(50), (5, 10));
}

/// Two sockets of the same load are one series.
#[test]
fn series_of_two_sockets() {
    let mut one = Journal::new(1, window(0, 100 * MS)).unwrap();
    let mut other = Journal::new(1, window(0, 100 * MS)).unwrap();
    for number in 0..100 {
        enter(&mut one, 0, number, number * MS, 10);
        enter(&mut other, 0, number, number * MS, 10);
    }
    one.absorb(other).unwrap();
    let series = arrivals(&one).series.unwrap();
    assert!(
        series.intervals.iter().all(|i| i.packets == 20),
        "{series:?}"
    );
}

/// Delays of 20 and 60 µs by turns, which seem to be −30 and 10 µs if the clocks are 50 µs farther apart than was thought:
/// how they differ is told all the same.
#[test]
fn delays_of_clocks_that_are_not_quite_known_differ_as_they_do() {
    let told = |error_ns: i64| {
        let mut journal = journal(1);
        for number in 0..200u64 {
            let sent_ns = 1_000 * MS + number * MS;
            let header = Header {
                flow: 0,
                number,
                due_ns: sent_ns.wrapping_add_signed(error_ns),
                sent_ns: sent_ns.wrapping_add_signed(error_ns),
            };
            let arrived_ns = sent_ns + if number % 2 == 0 { 20_000 } else { 60_000 };
            let came = Came {
                arrived_ns,
                read_ns: arrived_ns,
            };
            journal.enter(&header, 64, came);
        }
        arrivals(&journal)
    };
    let (known, off) = (told(0), told(50_000));
    assert_eq!(known.flows[0].ipdv_max_ns, Some(40_000));
    assert_eq!(off.ipdv, known.ipdv);
    let figures = |of: &FlowArrivals| (of.ipdv_min_ns, of.ipdv_max_ns, of.jitter_rfc3550_ns);
    assert_eq!(figures(&off.flows[0]), figures(&known.flows[0]));
}

/// The sender's clock is 3 s behind, or two hours ahead: what is due, and how long it took, is as by one clock.
#[test]
fn instants_of_another_clock_are_brought_to_this_one() {
    let told = |behind_ns: i64| {
        let timetable = Timetable {
            other_behind_ns: behind_ns,
            ..window(10_000 * MS, 10_100 * MS)
        };
        let mut journal = Journal::new(1, timetable).unwrap();
        for number in 0..100u64 {
            let sent_ns = 10_000 * MS + number * 2 * MS;
            let header = Header {
                flow: 0,
                number,
                due_ns: sent_ns.wrapping_add_signed(-behind_ns),
                sent_ns: sent_ns.wrapping_add_signed(-behind_ns),
            };
            let arrived_ns = sent_ns + 70_000;
            let came = Came {
                arrived_ns,
                read_ns: arrived_ns,
            };
            journal.enter(&header, 64, came);
        }
        let told = journal.tell(LoadKind::UdpPaced, Effort::default());
        let told = told.unwrap();
        (told.due, told.latency, told.arrivals)
    };
    let by_one_clock = told(0);
    assert_eq!(by_one_clock.0, Some(50));
    assert!(near(by_one_clock.1.as_ref().unwrap().max_ns, 70_000));
    for behind_ns in [3_000, -7_200_000].map(|ms: i64| ms * MS.cast_signed()) {
        assert_eq!(told(behind_ns), by_one_clock, "{behind_ns}");
    }
}
