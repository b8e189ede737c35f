//! Comparison of a measured figure with a printed one.

use super::super::print::{Print, Rules, Says};
use crate::stats::Estimate;

const RULES: Rules = Rules {
    margin: 0.02,
    decides: true,
};

fn here(value: f64, low: f64, high: f64) -> Estimate {
    Estimate {
        value,
        low,
        high,
        confidence: 0.95,
        n: 8,
    }
}

fn says(print: &str, here: &Estimate) -> Says {
    Print::of(print).compared(here, RULES).unwrap().says
}

#[test]
fn the_interval_decides_with_the_margin() {
    assert_eq!(says("100", &here(100.0, 99.0, 101.0)), Says::Same);
    assert_eq!(
        says("100", &here(101.0, 100.5, 101.5)),
        Says::Same,
        "different, and by less than matters"
    );
    assert_eq!(says("100", &here(100.0, 97.0, 103.0)), Says::Open);
    assert_eq!(says("100", &here(105.0, 101.0, 109.0)), Says::Different);
    assert_eq!(says("100", &here(90.0, 85.0, 95.0)), Says::Different);
    // The uncertainty of the printed figure counts against equality and against difference.
    assert_eq!(says("100 ±4", &here(100.0, 99.0, 101.0)), Says::Open);
    assert_eq!(says("100 ±4", &here(105.0, 103.0, 107.0)), Says::Open);
    assert_eq!(says("100 ±4", &here(107.0, 105.0, 109.0)), Says::Different);
    assert_eq!(says("0", &here(0.0, 0.0, 0.0)), Says::Same);
    assert_eq!(says("0", &here(2.0, 1.0, 3.0)), Says::Different);
}

#[test]
fn ranges_and_about() {
    assert_eq!(says("10 to 15", &here(12.0, 11.0, 13.0)), Says::Same);
    assert_eq!(says("10 to 15", &here(12.0, 9.0, 13.0)), Says::Open);
    assert_eq!(says("10 to 15", &here(20.0, 16.0, 24.0)), Says::Different);
    assert_eq!(says("10 to 15", &here(2.0, 1.0, 9.9)), Says::Different);
    assert_eq!(says("about 20", &here(21.0, 18.5, 21.5)), Says::Same);
    assert_eq!(says("about 20", &here(24.0, 23.0, 25.0)), Says::Different);
}

#[test]
fn what_has_no_figure_has_no_verdict() {
    let mut unknown = Print::of("-1");
    unknown.is_unknown_if("-1");
    assert_eq!(unknown, Print::Unknown("-1".to_owned()));
    for print in [unknown, Print::of("a few dozen"), Print::of("")] {
        assert_eq!(print.compared(&here(1.0, 1.0, 1.0), RULES), None);
        assert_eq!(print.is(1.0), None);
    }
    // A quick look or a single block decides nothing either.
    let quick = Rules {
        decides: false,
        ..RULES
    };
    let print = Print::of("100");
    assert_eq!(
        print.compared(&here(5.0, 4.0, 6.0), quick).unwrap().says,
        Says::Nothing
    );
    let one = Estimate {
        n: 1,
        ..here(5.0, 5.0, 5.0)
    };
    assert_eq!(print.compared(&one, RULES).unwrap().says, Says::Nothing);
}

#[test]
fn settings_are_the_same_or_not() {
    assert_eq!(Print::of("1400").is(1400.0).unwrap().says, Says::Same);
    assert_eq!(Print::of("20.03").is(0.6).unwrap().says, Says::Different);
}

#[test]
fn ratios_of_print_know_their_half_width() {
    let ratio = Print::of("72.17 ±0.56")
        .over(&Print::of("85.00 ±0.38"))
        .unwrap();
    let Print::Figure {
        value, half_width, ..
    } = ratio
    else {
        panic!("{ratio:?}");
    };
    assert!((value - 0.849).abs() < 1e-3);
    // 0.849 · √((0.56 / 72.17)² + (0.38 / 85)²)
    assert!((half_width.unwrap() - 0.007_6).abs() < 1e-4);
    assert_eq!(Print::of("1").over(&Print::of("0")), None);
    assert_eq!(Print::of("1").over(&Print::of("")), None);
}
