//! When there is a figure, by CPU uses made by hand.

use proptest::prelude::*;

use super::*;

/// A load that used 300 ms of two CPUs in 200 ms, and nothing else.
fn plain() -> CpuUse {
    CpuUse {
        elapsed_ns: 2e8,
        cpus: 2,
        busy_ns: 3e8,
        closure: 1.0,
        ..CpuUse::default()
    }
}

fn within(cpu: CpuUse, tolerance: f64) -> Option<f64> {
    cpu.net_ns(CpuTolerance(tolerance)).map(|ns| ns / 1e6)
}

#[test]
fn a_figure_needs_bounds_that_are_close() {
    assert_eq!(within(plain(), 0.0), Some(300.0));
    let stolen = CpuUse {
        busy_ns: 2.9e8,
        steal_ns: 1e7,
        ..plain()
    };
    assert_eq!(within(stolen, 0.02), None);
    assert_eq!(within(stolen, 0.04), Some(295.0));
    let apart = CpuUse {
        busy_is_exact: true,
        baseline_ns: 1e7,
        baseline_most_ns: Some(2e7),
        ..stolen
    };
    assert_eq!(within(apart, 0.0), Some(280.0));
    let counted_early = CpuUse {
        workers_ns: Some(2.99e8),
        ..apart
    };
    assert_eq!(within(counted_early, 0.0), Some(280.0));
    // Uncertainty of the baseline is uncertainty of the load.
    let baseline = CpuUse {
        baseline_ns: 1e7,
        baseline_most_ns: Some(2e7),
        ..plain()
    };
    assert_eq!(within(baseline, 0.02), None);
    assert_eq!(within(baseline, 0.04), Some(285.0));
}

#[test]
fn what_the_workers_used_is_the_least() {
    let of = |workers: f64, baseline: f64| CpuUse {
        workers_ns: Some(workers * 1e6),
        baseline_ns: baseline * 1e6,
        ..plain()
    };
    // A baseline that the workers cannot have left in this window.
    assert_eq!(within(of(295.0, 20.0), 0.02), Some(295.0));
    assert_eq!(within(of(250.0, 20.0), 0.02), Some(280.0));
    // Clocks read a moment apart, and readings that contradict each other.
    assert_eq!(within(of(302.0, 0.0), 0.02), Some(300.0));
    assert_eq!(within(of(310.0, 0.0), 0.02), None);
}

#[test]
fn what_is_not_above_others_is_no_figure() {
    for foreign_ns in [3e8, 4e8] {
        let cpu = CpuUse {
            foreign_ns,
            ..plain()
        };
        assert_eq!(within(cpu, 0.02), None);
    }
}

#[test]
fn two_machines_are_as_one_with_the_cpus_of_both() {
    // Read over half the time: in the other's window it is twice as much.
    let other = CpuUse {
        elapsed_ns: 1e8,
        cpus: 4,
        busy_ns: 1e8,
        steal_ns: 1e6,
        workers_ns: Some(5e7),
        closure: 0.7,
        ..plain()
    };
    let both = CpuUse {
        workers_ns: Some(1e8),
        baseline_ns: 1e6,
        baseline_most_ns: Some(3e6),
        ..plain()
    }
    .beside(other);
    assert_eq!((both.elapsed_ns, both.cpus), (2e8, 6));
    assert_eq!((both.busy_ns, both.steal_ns), (5e8, 2e6));
    assert_eq!(both.workers_ns, Some(2e8));
    assert_eq!((both.baseline_ns, both.baseline_most_ns), (1e6, Some(3e6)));
    assert!((both.closure - 0.8).abs() < 1e-9);
    assert!(!both.is_partial);
    // If one of the two is unknown, their sum is unknown.
    assert_eq!(plain().beside(other).workers_ns, None);
}

#[test]
fn a_sample_of_an_older_version_reads() {
    let json = serde_json::to_value(plain()).unwrap();
    assert!(json.get("baseline_most_ns").is_none());
    assert_eq!(serde_json::from_value::<CpuUse>(json).unwrap(), plain());
}

proptest! {
    /// Any readings.
    #[test]
    fn no_figure_is_below_own_use_or_above_the_upper_bound(
        busy in -5e8..8e8f64,
        steal in 0.0..5e8f64,
        workers in prop::option::of(0.0..5e8f64),
        others in [0.0..4e8f64, 0.0..1e8f64],
        baseline in 0.0..2e8f64,
        unsure in prop::option::of(0.0..1e8f64),
        tolerance in 0.0..1.0f64,
    ) {
        let cpu = CpuUse {
            busy_ns: busy,
            steal_ns: steal,
            workers_ns: workers,
            foreign_ns: others[0],
            controller_ns: others[1],
            baseline_ns: baseline,
            baseline_most_ns: unsure.map(|more| baseline + more),
            ..plain()
        };
        if let Some(figure) = cpu.net_ns(CpuTolerance(tolerance)) {
            let own = workers.unwrap_or(0.0);
            let most = busy + steal - others[0] - others[1];
            prop_assert!(figure > 0.0 && figure <= most + 1e-3);
            prop_assert!(figure >= own.min(most) - 1e-3);
            prop_assert!(own <= most * (1.0 + tolerance) + 1e-3);
            let apart = steal + unsure.unwrap_or(0.0);
            prop_assert!(apart <= tolerance * figure + 1e-3);
        }
    }
}
