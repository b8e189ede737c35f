//! Peaks along an axis, with answers known beforehand.

use super::*;
use crate::assess::testing::curves::{Shown, published, senders};

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
    // The best of those with 1 and 2 senders.
    assert!(
        (point.measured.confidence - 0.975).abs() < 1e-9,
        "{point:?}"
    );
    // Higher with as many senders as CPUs.
    let late = with(4, |n| if n == 4.0 { 1.2 } else { 1.0 / n });
    assert_eq!(late.verdict, ClaimVerdict::Fails);
    assert!(
        late.sentence.contains("it is higher at flows 4"),
        "{}",
        late.sentence
    );
    // As high with as many senders as CPUs: that the peak is below their number is not shown, and not refuted.
    let flat = with(4, |n| if n == 32.0 { 0.5 } else { 1.0 });
    assert_eq!(flat.verdict, ClaimVerdict::Undecided, "{flat:#?}");
    let words = "it is not shown to be lower at flows 4 than at ";
    assert!(flat.sentence.contains(words), "{}", flat.sentence);
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
