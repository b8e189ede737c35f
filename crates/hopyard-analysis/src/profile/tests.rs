//! Profiles made by hand, with answers known beforehand.

use crate::assess;
use crate::model::stored::Run;
use crate::model::{CellReport, GuestUsed, Outcome, ProfileReport, ProfileWindow};
use crate::testing::{compared_over, profile_window};

/// Veth and bridge over some blocks, the bridge at half the speed; a tenth of its time is in the bridge.
fn run(blocks: u32) -> Run {
    let mut run = compared_over(blocks, 0.5);
    for block in 0..blocks {
        let jitter = u64::from(block % 2) * 10;
        let stack = [
            ("tcp_ack", 300 + jitter),
            ("veth_xmit.isra.0", 100 - jitter),
        ];
        run.profiles.push(profile_window(0, block, &stack));
        let stack = [
            ("tcp_ack", 300 + jitter),
            ("tcp_v4_rcv", 60 - jitter),
            ("br_handle_frame", 40),
        ];
        run.profiles.push(profile_window(1, block, &stack));
    }
    run
}

fn profile(cell: &CellReport) -> &ProfileReport {
    cell.profile.as_ref().unwrap()
}

fn cost(profile: &ProfileReport, name: &str) -> f64 {
    let found = profile.subsystems.iter().find(|s| s.name == name);
    found.map_or(0.0, |s| s.cost.value)
}

/// Shares and costs sum to the whole, and functions to their subsystem.
fn sums_up(cell: &CellReport) {
    let profile = profile(cell);
    let whole = &cell.estimates[&profile.quantity];
    let costs: f64 = profile.subsystems.iter().map(|s| s.cost.value).sum();
    assert!((costs / whole.value - 1.0).abs() < 1e-12, "{profile:?}");
    let shares: f64 = profile.subsystems.iter().map(|s| s.share_ratio).sum();
    assert!((shares - 1.0).abs() < 1e-12);
    for subsystem in &profile.subsystems {
        let functions: f64 = subsystem.functions.iter().map(|f| f.cost).sum();
        assert!((functions / subsystem.cost.value - 1.0).abs() < 1e-12);
        let cost = &subsystem.cost;
        assert!(0.0 <= cost.low && cost.low <= cost.value && cost.value <= cost.high);
    }
}

#[test]
fn a_cost_is_split_by_shares_and_the_parts_sum_to_it() {
    let report = assess(&run(8));
    report.cells.iter().for_each(sums_up);
    let (veth, bridge) = (&report.cells[0], &report.cells[1]);
    let whole = veth.estimates["cpu_ns_per_byte"].value;
    // 95 of 400 samples on average; the blocks differ by 10.
    assert!((cost(profile(veth), "veth") / whole - 95.0 / 400.0).abs() < 1e-3);
    assert_eq!(profile(veth).subsystems[1].functions[0].name, "veth_xmit");
    assert!(profile(veth).subsystems[0].cost.high > cost(profile(veth), "tcp"));
    let whole = bridge.estimates["cpu_ns_per_byte"].value;
    assert!((cost(profile(bridge), "bridge") / whole - 0.1).abs() < 1e-9);
    let seen = profile(bridge);
    assert_eq!((seen.windows, seen.thin_windows), (8, 0));
    assert_eq!((seen.busy_samples, seen.idle_samples), (3200, 400));
    assert_eq!((seen.elsewhere_samples, seen.lost_samples), (8, 0));
    assert_eq!(seen.quantity, "cpu_ns_per_byte");
}

#[test]
fn differences_are_against_the_base_and_sum_to_the_whole_one() {
    let report = assess(&run(8));
    let (veth, bridge) = (&report.cells[0], &report.cells[1]);
    assert!(profile(veth).difference.is_none(), "the base itself");
    let difference = profile(bridge).difference.as_ref().unwrap();
    assert_eq!(difference.base, "veth");
    let of = |cell: &CellReport| cell.estimates["cpu_ns_per_byte"].value;
    assert!((difference.total.value - (of(bridge) - of(veth))).abs() < 1e-12);
    let sum: f64 = difference.subsystems.iter().map(|s| s.cost.value).sum();
    assert!((sum - difference.total.value).abs() < 1e-12);
    for part in &difference.subsystems {
        let (own, base) = (
            cost(profile(bridge), &part.name),
            cost(profile(veth), &part.name),
        );
        assert!((part.cost.value - (own - base)).abs() < 1e-12, "{part:?}");
    }
    assert!(
        difference
            .subsystems
            .iter()
            .any(|s| s.name == "veth" && s.cost.high < 0.0)
    );
}

#[test]
fn a_cost_of_another_way_is_compared_with_none() {
    for astray in [0, 1] {
        let mut run = run(8);
        let sample = run.samples.iter_mut().find(|sample| sample.cell == astray);
        let Outcome::Measured(m) = &mut sample.unwrap().outcome else {
            panic!("nothing was measured");
        };
        m.way.proved = false;
        let report = assess(&run);
        assert!(profile(&report.cells[1]).difference.is_none(), "{astray}");
    }
}

#[test]
fn a_block_without_a_window_is_split_as_the_others() {
    let mut run = run(8);
    run.profiles.retain(|w| (w.block, w.cell) != (3, 1));
    // A window without a busy sample is useless too, and one of another attempt does not belong to this block.
    run.profiles.retain(|w| (w.block, w.cell) != (4, 1));
    run.profiles.push(profile_window(1, 4, &[]));
    run.profiles.push(ProfileWindow {
        attempt: 1,
        ..profile_window(1, 3, &[("udp_rcv", 1000)])
    });
    let report = assess(&run);
    sums_up(&report.cells[1]);
    let seen = profile(&report.cells[1]);
    assert_eq!((seen.windows, seen.thin_windows), (7, 1));
    assert_eq!(cost(seen, "udp").to_bits(), 0.0_f64.to_bits());
}

#[test]
fn without_profiles_or_a_cost_there_is_nothing_to_say() {
    let mut unprofiled = run(8);
    unprofiled.profiles.clear();
    let report = assess(&unprofiled);
    assert!(report.cells.iter().all(|c| c.profile.is_none()));
    let mut one = run(8);
    one.profiles.retain(|w| w.cell == 1);
    let report = assess(&one);
    assert!(report.cells[0].profile.is_none());
    let bridge = profile(&report.cells[1]);
    assert!(bridge.difference.is_none(), "the base has none");
    assert!(assess(&run(1)).cells.iter().all(|c| c.profile.is_none()));
    let mut empty = run(8);
    for window in &mut empty.profiles {
        window.stacks.clear();
    }
    assert!(assess(&empty).cells.iter().all(|c| c.profile.is_none()));
}

#[test]
fn a_block_without_cpu_time_is_split_among_none() {
    let mut run = run(10);
    let n = |run: &Run| {
        let report = assess(run);
        sums_up(&report.cells[0]);
        profile(&report.cells[0]).subsystems[0].cost.n
    };
    assert_eq!(n(&run), 10);
    let Outcome::Measured(m) = &mut run.samples[0].outcome else {
        panic!("it was measured");
    };
    m.cpu.steal_ns = 1e8;
    m.cpu.busy_ns -= 1e8;
    assert_eq!(n(&run), 9);
}

/// Emulated CPU time is not comparable.
#[test]
fn the_cost_of_an_emulated_guest_is_not_subtracted_from_a_real_one() {
    let difference = |emulated: bool| {
        let mut run = run(8);
        for sample in run.samples.iter_mut().filter(|sample| sample.cell == 1) {
            let Outcome::Measured(measured) = &mut sample.outcome else {
                panic!("all are measured");
            };
            measured.guest = Some(GuestUsed {
                kernel: "6.18.5".to_owned(),
                cpus: 2,
                emulated,
            });
        }
        profile(&assess(&run).cells[1]).difference.is_some()
    };
    assert!(difference(false));
    assert!(!difference(true));
}
