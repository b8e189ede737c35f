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
    // A CPU that is never full has no such count: nothing is guessed.
    let (verdict, found) = judged_as(&check, |own, n| Shown {
        busy: if own { 1.02 } else { 0.6 },
        ..published(own, n)
    });
    assert_eq!(verdict, ClaimVerdict::Untestable);
    assert!(found.untested[0].contains("is shown"), "{found:?}");
}

/// PL5: from 45 to 100 % between two neighbouring counts.
#[test]
fn a_leap_is_the_largest_change_between_neighbours() {
    let check = shape("leap", CPU, "native", "at_least = 0.4");
    let (verdict, found) = judged_as(&check, published);
    assert_eq!(verdict, ClaimVerdict::Holds);
    assert!((value(&found) - 0.55).abs() < 0.02, "{found:?}");
    let (verdict, found) = judged_as(&check, |own, n| Shown {
        busy: 0.3 + 0.02 * n,
        ..published(own, n)
    });
    assert_eq!(verdict, ClaimVerdict::Fails);
    // Between 24 and 32.
    assert!((value(&found) - 0.16).abs() < 0.02, "{found:?}");
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

/// NS10: the best value below the number of CPUs, and the last over it.
#[test]
fn the_peak_below_the_number_of_cpus() {
    let check = "judge = \"peak\"\nquantity = \"packets_per_s\"\ncells = { containers = \"native\" }\naxis = \"flows\"\nlast = 32\nat_most = 0.8\n";
    let with = |cpus: u32, at: fn(f64) -> f64| {
        let mut run = senders(|own, n| Shown {
            packets: 1e5 * at(n),
            ..published(own, n)
        });
        run.header.environment.cpus = cpus;
        judged(check, run)
    };
    let falls = |n: f64| match n {
        2.0 => 1.0,
        32.0 => 0.5,
        _ => 0.9,
    };
    let claim = with(4, falls);
    assert_eq!(claim.verdict, ClaimVerdict::Holds);
    let point = &claim.checks[0].points[0];
    assert!((point.measured.value - 0.5).abs() < 0.01 && point.at == "flows 32 / 2");
    // Higher with as many senders as CPUs.
    let late = with(4, |n| if n == 4.0 { 1.2 } else { 1.0 / n });
    assert_eq!(late.verdict, ClaimVerdict::Fails);
    assert!(
        late.sentence.contains("it is higher at flows 4"),
        "{}",
        late.sentence
    );
    // In too few blocks to tell.
    let mut few = senders(|own, n| Shown {
        packets: if n == 4.0 { 1.2e5 } else { 1e5 / n },
        ..published(own, n)
    });
    few.header.environment.cpus = 4;
    few.samples.retain(|sample| sample.block < 7);
    assert_eq!(judged(check, few).verdict, ClaimVerdict::Undecided);
    // A report of four CPUs cannot be tested on two: neither holds nor fails.
    let check = format!("{check}cpus = 4\n");
    for cpus in [1, 2, 3, 4, 8] {
        let mut run = senders(|own, n| Shown {
            packets: 1e5 * falls(n),
            ..published(own, n)
        });
        run.header.environment.cpus = cpus;
        let claim = judged(&check, run);
        let tested = claim.verdict != ClaimVerdict::Untestable;
        assert_eq!(tested, cpus >= 4, "{claim:?}");
        let why = format!("4 CPUs or more, and this machine has {cpus}");
        assert_eq!(claim.sentence.contains(&why), !tested, "{}", claim.sentence);
    }
    // There is nothing below one CPU.
    let none = with(1, falls);
    assert_eq!(none.verdict, ClaimVerdict::Untestable);
    assert!(
        none.sentence.contains("no value of flows below"),
        "{}",
        none.sentence
    );
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
    for (check, decided) in [
        (shape("fullness", CPU, "own", to), ClaimVerdict::Holds),
        (
            shape("leap", CPU, "native", "at_least = 0.4"),
            ClaimVerdict::Holds,
        ),
        (shape("knee", JITTER, "own", to), ClaimVerdict::Holds),
        (
            shape("line", JITTER, "native", "at_least = 0.5"),
            ClaimVerdict::Holds,
        ),
    ] {
        for blocks in [6, 7, 8] {
            let mut run = senders(published);
            run.samples.retain(|sample| sample.block < blocks);
            let claim = judged(&check, run);
            let verdict = if blocks < 8 {
                ClaimVerdict::Undecided
            } else {
                decided
            };
            assert_eq!(claim.verdict, verdict, "{blocks} blocks: {claim:#?}");
            assert_eq!(claim.checks[0].points[0].measured.n, blocks as usize);
        }
    }
}

/// Cells that differ in more than the axis have peaks of their own: 16 senders of 1 kB are not compared with 2 of 64 B.
#[test]
fn each_curve_has_its_own_peak() {
    let check = "judge = \"peak\"\nquantity = \"packets_per_s\"\ncells = {}\naxis = \"flows\"\nlast = 32\nat_most = 0.8\n";
    let mut run = senders(|own, n| Shown {
        packets: match (own, n) {
            (true, 1.0) => 3e5,
            (true, _) => 2e5,
            (false, 2.0) => 1e5,
            (false, _) => 0.7e5,
        },
        ..published(own, n)
    });
    run.header.environment.cpus = 4;
    let claim = judged(check, run);
    assert_eq!(claim.verdict, ClaimVerdict::Holds);
    let points = &claim.checks[0].points;
    let places: Vec<&str> = points.iter().map(|point| point.at.as_str()).collect();
    assert_eq!(
        places,
        [
            "native · containers native · flows 32 / 2",
            "macvlan · containers own · flows 32 / 1"
        ]
    );
    assert!((points[0].measured.value - 0.7).abs() < 0.01);
    assert!((points[1].measured.value - 2.0 / 3.0).abs() < 0.01);
}
