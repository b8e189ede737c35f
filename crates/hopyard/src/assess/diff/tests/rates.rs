//! How often a comparison is wrong, and how often it finds what there is to find: many pairs of runs, through the very
//! code of `hopyard diff --fail-on`.

use super::*;

const ANY_LOSS: Ask = Ask {
    relative: false,
    fail_on: Some(0.0),
};

/// How many of so many pairs of runs of one thing are called different, and how many fail a gate that lets no loss
/// through. Without a margin, so that no alarm hides behind *equivalent*.
fn alarms_of_one_thing(pairs: u64, blocks: u32, sigma: f64) -> (u64, u64) {
    let (mut verdicts, mut gates) = (0, 0);
    for seed in 0..pairs {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let [a, b] = ["a", "b"].map(|id| {
            let mut run = made(id, &[1.0; 4], blocks, sigma, &mut rng);
            run.header.margin = 0.0;
            run
        });
        let report = diff(&a, &b, &ANY_LOSS).unwrap();
        verdicts += u64::from(alarms(&report));
        gates += u64::from(report.gate.unwrap().failed);
    }
    (verdicts, gates)
}

#[test]
fn runs_of_one_thing_rarely_alarm() {
    for (pairs, blocks, sigma) in [(200, 10, 0.02), (400, 8, 0.04)] {
        let (verdicts, gates) = alarms_of_one_thing(pairs, blocks, sigma);
        let likely = pairs / 100..=pairs * 7 / 100;
        assert!(likely.contains(&verdicts), "{verdicts} of {pairs} pairs");
        assert!(likely.contains(&gates), "{gates} gates of {pairs} pairs");
    }
}

/// Of what a table states that it can find, how much did it?
#[derive(Debug, Default)]
struct Power {
    stated: u32,
    found: u32,
}

impl Power {
    fn add(&mut self, able: bool, found: bool) {
        self.stated += u32::from(able);
        self.found += u32::from(able && found);
    }

    fn is_kept(&self) {
        assert!(self.stated >= 8, "too few to tell: {self:?}");
        assert!(self.found * 100 >= 80 * self.stated, "{self:?}");
    }
}

/// One cell of 200 that is slower by 3 %, and one by so much that a gate at 3 % says it catches that.
#[test]
fn slow_cells_of_two_hundred_are_found() {
    const TABLES: u64 = 20;
    const SLOW: usize = 77;
    const SLOWER: usize = 123;
    let mut speeds = [1.0; 200];
    (speeds[SLOW], speeds[SLOWER]) = (0.97, 0.93);
    let (mut verdicts, mut gates, mut false_alarms) = (Power::default(), Power::default(), 0);
    for seed in 0..TABLES {
        let [a, b] = pair(&[1.0; 200], &speeds, 0.01, seed);
        let report = diff(&a, &b, &GATE).unwrap();
        for (at, cell) in report.cells.iter().enumerate() {
            let q = &cell.comparisons["goodput_bps"];
            let worse = q.change == Some(Change::Worse);
            let trips = q.trips_gate.unwrap();
            match at {
                SLOW => verdicts.add(q.smallest_detectable.unwrap() <= 0.03, worse),
                SLOWER => gates.add(q.gate_catches_ratio.unwrap() <= 0.07, trips),
                _ => false_alarms += u32::from(trips),
            }
        }
    }
    verdicts.is_kept();
    gates.is_kept();
    assert_eq!(false_alarms, 0, "of cells that are as they were");
}

/// A loss as large as the gate says that it catches is caught as often as it says.
#[test]
fn the_gate_knows_its_power() {
    let [a, b] = pair(&[1.0; 4], &[1.0; 4], 0.01, 9);
    let stated =
        |report: &DiffReport| report.cells[1].comparisons["goodput_bps"].gate_catches_ratio;
    let loss = stated(&diff(&a, &b, &GATE).unwrap()).unwrap();
    assert!(loss > 0.03 && loss < 0.08, "{loss}");
    let (mut able, mut caught) = (0, 0);
    for seed in 100..200 {
        let [a, b] = pair(&[1.0; 4], &[1.0, 1.0 - loss, 1.0, 1.0], 0.01, seed);
        let report = diff(&a, &b, &GATE).unwrap();
        if stated(&report).unwrap() <= loss {
            able += 1;
            caught +=
                u32::from(report.cells[1].comparisons["goodput_bps"].trips_gate == Some(true));
        }
    }
    assert!(
        able >= 20 && caught * 100 >= 80 * able,
        "{caught} of {able}"
    );
}
