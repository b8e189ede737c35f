//! The accounting, by readings made by hand.

use proptest::prelude::*;

use super::*;
use hopyard_model::{CpuTolerance, CpuUse};

fn reading(accounting: CpuAccounting, clocks: &[(usize, u64, u64)]) -> CpuReading {
    let clock = |(cpu, at_ns, idle_ns): &(usize, u64, u64)| IdleClock {
        cpu: *cpu,
        at_ns: *at_ns,
        idle_ns: *idle_ns,
    };
    CpuReading {
        idle: clocks.iter().map(clock).collect(),
        accounting,
        stat: Stat::default(),
        foreign: Taken::default(),
        controller_ns: 0,
        kept_ns: 0,
        workers: Taken::default(),
    }
}

#[test]
fn how_full_some_cpus_are() {
    let of = |accounting, cpus: &[usize]| {
        let start = reading(accounting, &[(0, 1000, 500), (2, 1000, 0)]);
        let end = reading(accounting, &[(0, 2000, 1500), (2, 2000, 250)]);
        end.busy(&start, cpus)
            .map(|busy| (busy.cpus, busy.busy_ratio))
    };
    let exact = CpuAccounting::IdleClock;
    assert_eq!(of(exact, &[0]), Some((1, 0.0)));
    assert_eq!(of(exact, &[2]), Some((1, 0.75)));
    assert_eq!(of(exact, &[0, 2]), Some((2, 0.375)));
    // Of one that is not online, of none, and by a clock that tells of all together.
    assert_eq!(of(exact, &[0, 1]), None);
    assert_eq!(of(exact, &[]), None);
    assert_eq!(of(CpuAccounting::ProcStat, &[2]), None);
}

/// What one CPU did, ms: the load and others ran, nobody did, and the hypervisor took it from those who ran and from those who were
/// woken. What was taken from the woken is in the idle clock too.
#[derive(Debug, Clone, Copy, Default)]
struct Truth {
    load: u64,
    foreign: u64,
    idle: u64,
    stolen_busy: u64,
    stolen_idle: u64,
}

const MS: u64 = 1_000_000;

/// What the meter makes of it, with the clocks of processes read over `stretch` times the window.
fn used(cpus: &[Truth], stretch: u64) -> CpuUse {
    let sum = |of: fn(&Truth) -> u64| cpus.iter().map(of).sum::<u64>() * MS;
    let mut start = reading(CpuAccounting::IdleClock, &[]);
    let mut end = start.clone();
    for (cpu, did) in cpus.iter().enumerate() {
        let elapsed = did.load + did.foreign + did.idle + did.stolen_busy + did.stolen_idle;
        let clock = |at_ns, idle_ns| IdleClock {
            cpu,
            at_ns,
            idle_ns,
        };
        start.idle.push(clock(1000 * MS, 70 * MS));
        let idle = 70 + did.idle + did.stolen_idle;
        end.idle.push(clock((1000 + elapsed) * MS, idle * MS));
        start.foreign.at_ns = 1000 * MS;
        end.foreign.at_ns = (1000 + elapsed * stretch) * MS;
    }
    (start.workers.at_ns, end.workers.at_ns) = (start.foreign.at_ns, end.foreign.at_ns);
    start.workers.what = Some(Duration::from_millis(5));
    end.workers.what =
        Some(Duration::from_millis(5) + Duration::from_nanos(sum(|t| t.load) * stretch));
    start.foreign.what = Clocks::of(7, 3);
    end.foreign.what = Clocks::of(7, 3 + sum(|t| t.foreign) * stretch);
    end.stat.steal = sum(|t| t.stolen_busy + t.stolen_idle) / (10 * MS);
    end.since(&start)
}

#[test]
fn busy_time_lies_between_its_bounds_wherever_the_steal_fell() {
    let quiet = Truth {
        load: 120,
        foreign: 20,
        idle: 60,
        ..Truth::default()
    };
    let other = Truth {
        load: 30,
        idle: 170,
        ..Truth::default()
    };
    let stolen = |busy, idle| Truth {
        idle: other.idle - busy - idle,
        stolen_busy: busy,
        stolen_idle: idle,
        ..other
    };
    for (second, least, most) in [
        (other, 150.0, 150.0),
        // Taken from those who ran: all of it is missing in the most.
        (stolen(50, 0), 150.0, 200.0),
        // Taken from the woken: twice subtracted.
        (stolen(0, 50), 100.0, 150.0),
        (stolen(20, 30), 120.0, 170.0),
        // More than was used at all.
        (stolen(0, 170), -20.0, 150.0),
    ] {
        let net = used(&[quiet, second], 1).net();
        assert_eq!(
            (net.least_ns / 1e6, net.most_ns / 1e6),
            (least, most),
            "{second:?}"
        );
        assert!((least..=most).contains(&150.0));
    }
}

/// A controller that waits for its turn reads the processes' clocks late.
#[test]
fn clocks_of_processes_are_brought_to_the_window() {
    let both = Truth {
        load: 60,
        foreign: 90,
        idle: 50,
        ..Truth::default()
    };
    let (prompt, late) = (used(&[both; 2], 1), used(&[both; 2], 3));
    assert_eq!(prompt.workers_ns, Some(120e6));
    assert!((prompt.foreign_ns - 180e6).abs() < 1.0);
    assert_eq!(late, prompt);
}

proptest! {
    #[test]
    fn a_figure_is_near_the_truth_or_none(
        cpus in prop::collection::vec((0..200u64, 0..100u64, 0..200u64, 0..12u64, 0..12u64), 1..4),
        tolerance in 0.001..0.5f64,
    ) {
        let cpus: Vec<Truth> = cpus
            .into_iter()
            .map(|(load, foreign, idle, busy, woken)| Truth {
                load,
                foreign,
                idle: idle + 1,
                stolen_busy: busy * 10,
                stolen_idle: woken * 10,
            })
            .collect();
        // CPUs differ in what they did, not in how long.
        let longest = cpus.iter().map(|t| t.load + t.foreign + t.idle + t.stolen_busy + t.stolen_idle).max().unwrap();
        let cpus: Vec<Truth> = cpus
            .into_iter()
            .map(|t| Truth {
                idle: longest - t.load - t.foreign - t.stolen_busy - t.stolen_idle,
                ..t
            })
            .collect();
        let used = used(&cpus, 1);
        let truth = cpus.iter().map(|t| t.load as f64 * 1e6).sum::<f64>();
        let bounds = used.net();
        prop_assert!(bounds.least_ns <= truth + 1.0 && truth <= bounds.most_ns + 1.0);
        if let Some(figure) = used.net_ns(CpuTolerance(tolerance)) {
            prop_assert!((figure - truth).abs() <= tolerance * figure + 1.0, "{figure} {truth}");
            prop_assert!(figure >= used.workers_ns.unwrap() - 1.0, "below own use: {figure} {truth}");
            prop_assert!(figure <= bounds.most_ns + 1.0);
        }
    }
}
