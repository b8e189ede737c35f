//! Shapes of curves against the number of senders, with answers known beforehand.

use super::*;
use crate::assess::testing::curves::{Shown, published, senders};
use crate::model::CheckReport;

/// A check of a shape of the senders' CPU or of jitter.
fn shape(shape: &str, quantity: &str, cells: &str, more: &str) -> String {
    format!(
        "judge = \"curve\"\nshape = \"{shape}\"\nquantity = \"{quantity}\"\ncells = {{ containers = \"{cells}\" }}\n{more}\n"
    )
}

const CPU: &str = "client_cpu_busy_ratio";
const JITTER: &str = "interarrival_sd_ns";

fn judged_as(check: &str, of: impl Fn(bool, f64) -> Shown) -> (ClaimVerdict, CheckReport) {
    let mut claim = judged(check, senders(of));
    (claim.verdict, claim.checks.remove(0))
}

fn value(check: &CheckReport) -> f64 {
    check.points[0].measured.value
}

/// PL4: full from 20 native senders and from the first container on; and the other way round.
#[test]
fn the_count_that_fills_a_cpu() {
    let check = shape("fullness", CPU, "own", "to = [\"native\"]\nat_most = 0.97");
    let (verdict, found) = judged_as(&check, published);
    assert_eq!(verdict, ClaimVerdict::Holds);
    assert_eq!(value(&found), 0.05);
    let (verdict, found) = judged_as(&check, |own, n| published(!own, n));
    assert_eq!((verdict, value(&found)), (ClaimVerdict::Fails, 20.0));
    // In some blocks full at 16 already: from 16 or 20 natively, from 16 in containers.
    let (verdict, found) = judged_as(&check, |own, n| Shown {
        busy: match n {
            16.0 if !own => 0.992,
            n if n >= 16.0 => 1.05,
            _ => 0.5,
        },
        ..published(own, n)
    });
    assert_eq!(verdict, ClaimVerdict::Undecided, "{found:?}");
    // Both are full at 20 and not at 16: the one may be so from 17 on and the other not before 20.
    let (verdict, found) = judged_as(&check, |_, n| published(false, n));
    assert_eq!((verdict, value(&found)), (ClaimVerdict::Undecided, 1.0));
    let measured = &found.points[0].measured;
    let ends = [measured.low / (17.0 / 20.0), measured.high / (20.0 / 17.0)];
    assert!(
        ends.iter().all(|end| (end - 1.0).abs() < 1e-9),
        "{measured:?}"
    );
    // A CPU that is never full has no such count: nothing is guessed.
    let (verdict, found) = judged_as(&check, |own, n| Shown {
        busy: if own { 1.02 } else { 0.6 },
        ..published(own, n)
    });
    assert_eq!(verdict, ClaimVerdict::Untestable);
    assert!(found.untested[0].contains("is shown"), "{found:?}");
}

/// CPU use leaps from 45 to 100 % between one native sender and two, which are next to each other.
fn leaping(own: bool, n: f64) -> Shown {
    Shown {
        busy: if own || n > 1.0 { 1.02 } else { 0.45 },
        ..published(own, n)
    }
}

/// PL5: from 45 to 100 % between two neighbouring counts.
#[test]
fn a_leap_is_the_largest_rise_between_neighbours() {
    let check = shape("leap", CPU, "native", "at_least = 0.4");
    let (verdict, found) = judged_as(&check, leaping);
    assert_eq!(verdict, ClaimVerdict::Holds);
    assert!((value(&found) - 0.55).abs() < 0.02, "{found:?}");
    // The same from 16 to 20 may be a climb.
    let (verdict, found) = judged_as(&check, published);
    assert_eq!(verdict, ClaimVerdict::Untestable);
    insta::assert_snapshot!(found.untested.join("; "), @"it rises by 55 points between 16 and 20, and whether it leaps there or climbs takes the numbers between them");
    let (verdict, found) = judged_as(&check, |own, n| Shown {
        busy: 0.3 + 0.02 * n,
        ..published(own, n)
    });
    assert_eq!(verdict, ClaimVerdict::Fails);
    // Between 24 and 32.
    assert!((value(&found) - 0.16).abs() < 0.02, "{found:?}");
    // It rises by half of the CPU from 1 to 2, and falls by more from 24 on.
    let (verdict, found) = judged_as(&check, |own, n| Shown {
        busy: match n {
            n if n < 2.0 => 0.3,
            n if n < 32.0 => 0.8,
            _ => 0.1,
        },
        ..published(own, n)
    });
    assert_eq!(verdict, ClaimVerdict::Holds, "{found:?}");
    assert!((value(&found) - 0.5).abs() < 0.02, "{found:?}");
    // It rises by a third to 12, and scatters so much at 20 that it may rise by more there.
    let mut run = senders(|own, n| Shown {
        busy: if n < 12.0 { 0.3 } else { 0.63 },
        ..published(own, n)
    });
    let at_20: Vec<bool> = run
        .header
        .cells
        .iter()
        .map(|c| c.cell.axes.flows == 20)
        .collect();
    for sample in &mut run.samples {
        let Outcome::Measured(m) = &mut sample.outcome else {
            continue;
        };
        if let (true, Some(cpus)) = (at_20[sample.cell], &mut m.client_cpus) {
            cpus.busy_ratio += if sample.block % 2 == 0 { 0.35 } else { -0.35 };
        }
    }
    let claim = judged(&check, run);
    assert_eq!(claim.verdict, ClaimVerdict::Undecided, "{claim:?}");
}

/// PL7: jitter that grows by 1 µs a sender up to 20, and by 7 past it.
#[test]
fn slopes_past_and_before_a_count() {
    let check = shape("slopes", JITTER, "native", "at_least = 0.0");
    let grows = |past: f64| {
        move |own, n: f64| Shown {
            gap_sd_ns: 1000.0 * (10.0 + n + (past - 1.0) * (n - 20.0).max(0.0)),
            ..published(own, n)
        }
    };
    let (verdict, found) = judged_as(&check, grows(7.0));
    assert_eq!(verdict, ClaimVerdict::Holds);
    assert!((value(&found) / 5000.0 - 1.0).abs() < 0.05, "{found:?}");
    let (verdict, found) = judged_as(&check, grows(1.0));
    assert_eq!(verdict, ClaimVerdict::Fails);
    assert!((value(&found) / -1000.0 - 1.0).abs() < 0.2, "{found:?}");
    assert_eq!(judged_as(&check, grows(2.0)).0, ClaimVerdict::Undecided);
}

/// PL8, the first part: knees at 12 natively and at 4 in containers.
#[test]
fn the_count_at_which_jitter_bends() {
    let check = shape("knee", JITTER, "own", "to = [\"native\"]\nat_most = 0.99");
    let (verdict, found) = judged_as(&check, published);
    assert_eq!(verdict, ClaimVerdict::Holds);
    assert!((value(&found) - 1.0 / 3.0).abs() < 0.1, "{found:?}");
    let (verdict, found) = judged_as(&check, |own, n| published(!own, n));
    assert_eq!(verdict, ClaimVerdict::Fails);
    assert!((value(&found) - 3.0).abs() < 0.6, "{found:?}");
    // A straight line has no knee.
    let (verdict, found) = judged_as(&check, |own, n| Shown {
        gap_sd_ns: 1000.0 * (10.0 + n),
        ..published(own, n)
    });
    assert_eq!(verdict, ClaimVerdict::Untestable, "{found:?}");
}

/// PL8 whole, by its own file's parts: a knee at 8 that comes at 20 natively, and jitter 10 to 22 % higher on the way.
#[test]
fn an_earlier_knee_and_more_jitter_at_every_count() {
    let report = reports().unwrap();
    let claim = choose(report, &["PL8".to_owned()]).unwrap()[0].claim;
    let mut mine = one_claim(RATIO);
    mine.claims[0].checks.clone_from(&claim.checks);
    let verdict = |of: &dyn Fn(bool, f64) -> f64| {
        let run = senders(|own, n| Shown {
            gap_sd_ns: 1000.0 * of(own, n),
            ..published(own, n)
        });
        let chosen = Chosen {
            report: &mine,
            claim: &mine.claims[0],
            by_id: true,
        };
        let evidence = Evidence {
            runs: vec![run],
            ..Evidence::default()
        };
        judge(chosen, &evidence).verdict
    };
    let bends = |at: f64, n: f64| (n - at).max(0.0);
    let holds = |own, n| {
        if own {
            110.0 + bends(8.0, n)
        } else {
            100.0 + bends(20.0, n)
        }
    };
    assert_eq!(verdict(&holds), ClaimVerdict::Holds);
    // The knee comes later.
    let late = |own, n| {
        if own {
            110.0 + bends(20.0, n)
        } else {
            100.0 + bends(8.0, n)
        }
    };
    assert_eq!(verdict(&late), ClaimVerdict::Fails);
    // Earlier, and twice the jitter.
    let twice = |own, n| if own { 2.0 } else { 1.0 } * holds(own, n);
    assert_eq!(verdict(&twice), ClaimVerdict::Fails);
}

/// PL9: proportional to the count, and all over the place.
#[test]
fn a_straight_line_has_an_r_squared_of_one() {
    let check = shape("line", JITTER, "native", "at_least = 0.95");
    let (verdict, found) = judged_as(&check, |own, n| Shown {
        gap_sd_ns: 4e6 * n,
        ..published(own, n)
    });
    assert_eq!(verdict, ClaimVerdict::Holds);
    assert!(value(&found) > 0.999, "{found:?}");
    let (verdict, found) = judged_as(&check, |own, n| Shown {
        gap_sd_ns: if n % 8.0 == 0.0 { 9e6 } else { 4e6 },
        ..published(own, n)
    });
    assert_eq!(verdict, ClaimVerdict::Fails);
    assert!(value(&found) < 0.5, "{found:?}");
}

fn measurement(run: &mut Run, at: usize) -> &mut crate::model::Measurement {
    match &mut run.samples[at].outcome {
        Outcome::Measured(m) => m,
        Outcome::Failed { cause } => panic!("{cause}"),
    }
}

/// Figures of traffic that went another way say nothing of a path, not even in one block of ten.
#[test]
fn what_went_another_way_is_no_evidence() {
    let check = "judge = \"ratio\"\nquantity = \"packets_per_s\"\ncells = { containers = \"own\", flows = 2 }\nto = [\"native\"]\nat_most = 2\n";
    assert_ne!(
        judged(check, senders(published)).verdict,
        ClaimVerdict::Untestable
    );
    let mut run = senders(published);
    let at = run.samples.iter().position(|sample| {
        let cell = &run.header.cells[sample.cell].cell;
        cell.path == "macvlan" && cell.axes.flows == 2
    });
    let way = &mut measurement(&mut run, at.unwrap()).way;
    way.proved = false;
    way.problems = vec!["hub/br0 sent 0 packets".to_owned()];
    let claim = judged(check, run);
    assert_eq!(claim.verdict, ClaimVerdict::Untestable);
    assert!(
        claim
            .sentence
            .contains("its path proof failed (hub/br0 sent 0 packets)"),
        "{}",
        claim.sentence
    );
}

/// A curve with a cell that does not count is no evidence either, and the others do not stand in for it.
#[test]
fn a_curve_with_a_cell_that_does_not_count_is_none() {
    use crate::model::{Datapath, DatapathKind, GuestUsed, Measurement, OPEN_VSWITCH};
    let to = "to = [\"native\"]\nat_most = 0.97";
    let leap = shape("leap", CPU, "native", "at_least = 0.4");
    let checks = [
        shape("fullness", CPU, "own", to),
        leap.clone(),
        shape("slopes", JITTER, "native", "at_least = 0.0"),
        shape("knee", JITTER, "own", to),
        shape("line", JITTER, "native", "at_least = 0.5"),
    ];
    type Spoil = fn(&mut Measurement);
    let spoilt: [(Spoil, &str); 3] = [
        (|m| m.way.proved = false, "its path proof failed"),
        (
            |m| {
                m.datapath = Some(Datapath {
                    switch: OPEN_VSWITCH.to_owned(),
                    version: String::new(),
                    kind: DatapathKind::Userspace,
                    hook: None,
                });
            },
            "forwarded in userspace",
        ),
        (
            |m| {
                m.guest = Some(GuestUsed {
                    kernel: "6".to_owned(),
                    cpus: 1,
                    emulated: true,
                });
            },
            "the guest was emulated",
        ),
    ];
    for check in &checks {
        let shown = || senders(if *check == leap { leaping } else { published });
        let whole = judged(check, shown()).verdict;
        assert_ne!(whole, ClaimVerdict::Untestable, "{check}");
        for (spoil, words) in spoilt {
            let mut run = shown();
            let at = run.samples.iter().position(|sample| {
                let cell = &run.header.cells[sample.cell].cell;
                cell.path == "native" && cell.axes.flows == 4
            });
            spoil(measurement(&mut run, at.unwrap()));
            let claim = judged(check, run);
            assert_eq!(claim.verdict, ClaimVerdict::Untestable, "{check}");
            assert!(claim.sentence.contains(words), "{}", claim.sentence);
        }
    }
}

/// Jitter that left its band in the last quarter took longer than the three before it: 75 of 100 s.
#[test]
fn what_did_not_settle_took_longer_than_it_was_watched() {
    let check = |most: u32| {
        format!("judge = \"level\"\nquantity = \"settling_s\"\ncells = {{}}\nat_most = {most}\n")
    };
    // All windows, or those of one block.
    let unsettled = |all: bool| {
        let mut run = senders(published);
        for at in 0..run.samples.len() {
            if !all && run.samples[at].block != 3 {
                continue;
            }
            let arrivals = measurement(&mut run, at).arrivals.as_mut().unwrap();
            let series = arrivals.series.as_mut().unwrap();
            let last = series.intervals.last_mut().unwrap();
            last.interarrival_sd_ns = last.interarrival_sd_ns.map(|sd| 3.0 * sd);
        }
        run
    };
    let claim = judged(&check(30), unsettled(true));
    assert_eq!(claim.verdict, ClaimVerdict::Fails, "{claim:#?}");
    assert!((value(&claim.checks[0]) - 75.0).abs() < 1e-9, "{claim:#?}");
    let words = "at least: jitter did not settle in 10 of 10 windows";
    assert!(claim.sentence.contains(words), "{}", claim.sentence);
    // A lower bound shows nothing of a bound above it.
    let claim = judged(&check(100), unsettled(true));
    assert_eq!(claim.verdict, ClaimVerdict::Undecided, "{claim:#?}");
    // One that is below it is shown.
    let at_least = |least: u32| check(least).replace("at_most", "at_least");
    let claim = judged(&at_least(70), unsettled(true));
    assert_eq!(claim.verdict, ClaimVerdict::Holds, "{claim:#?}");
    let claim = judged(&at_least(80), unsettled(true));
    assert_eq!(claim.verdict, ClaimVerdict::Undecided, "{claim:#?}");
    // Most settled after 25 s, and one window did not: longer than 24 s in the mean is not shown.
    for most in [24, 100] {
        let claim = judged(&check(most), unsettled(false));
        assert_eq!(claim.verdict, ClaimVerdict::Undecided, "{claim:#?}");
    }
    // 30 of 25, 25, … and 75.
    let claim = judged(&check(30), unsettled(false));
    assert!((value(&claim.checks[0]) - 30.0).abs() < 1e-9, "{claim:#?}");
}

/// The mean of those windows that settled would be too small.
#[test]
fn a_time_to_settle_is_that_of_all_windows() {
    let check = "judge = \"level\"\nquantity = \"settling_s\"\ncells = {}\nat_most = 1e6\n";
    assert_eq!(
        judged(check, senders(published)).verdict,
        ClaimVerdict::Holds
    );
    let mut run = senders(published);
    let of_a_block = (0..run.samples.len()).filter(|at| run.samples[*at].block == 3);
    for at in of_a_block.collect::<Vec<_>>() {
        measurement(&mut run, at).arrivals.as_mut().unwrap().series = None;
    }
    let claim = judged(check, run);
    assert_eq!(claim.verdict, ClaimVerdict::Untestable);
    assert!(
        claim.sentence.contains("jitter did not settle in"),
        "{}",
        claim.sentence
    );
}

/// Fewer than 8 blocks decide nothing, of a shape either, though six are enough for its interval.
#[test]
fn few_blocks_decide_no_shape() {
    let to = "to = [\"native\"]\nat_most = 0.97";
    let least = "at_least = 0.4";
    type Of = fn(bool, f64) -> Shown;
    let checks: [(String, Of); 4] = [
        (shape("fullness", CPU, "own", to), published),
        (shape("leap", CPU, "native", least), leaping),
        (shape("knee", JITTER, "own", to), published),
        (shape("line", JITTER, "native", least), published),
    ];
    for (check, of) in checks {
        for blocks in [6, 7, 8] {
            let mut run = senders(of);
            run.samples.retain(|sample| sample.block < blocks);
            let claim = judged(&check, run);
            let verdict = if blocks < 8 {
                ClaimVerdict::Undecided
            } else {
                ClaimVerdict::Holds
            };
            assert_eq!(claim.verdict, verdict, "{blocks} blocks: {claim:#?}");
            assert_eq!(claim.checks[0].points[0].measured.n, blocks as usize);
        }
    }
}
