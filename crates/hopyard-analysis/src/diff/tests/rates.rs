//! How often a comparison is wrong, and how often it finds a true difference: many sets of runs, with the code of
//! `hopyard diff --fail-on`.

use super::*;

const ANY_LOSS: Ask = Ask {
    relative: false,
    fail_on: Some(0.0),
};

/// Runs of each side, and additional runs of one thing.
type Counts = (usize, usize, usize);

/// How many of `times` comparisons of one thing with itself call something different, and how many fail a gate that
/// allows no loss. Without a margin, so that *equivalent* hides no alarm.
fn alarms_of_one_thing(world: World, (a, b, repeats): Counts, times: u64) -> (u64, u64) {
    let (mut verdicts, mut gates) = (0, 0);
    for seed in 0..times {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut runs = |name: &str, count| {
            let mut runs = world.runs(name, count, &[1.0; 3], &mut rng);
            runs.iter_mut().for_each(|run| run.header.margin = 0.0);
            runs
        };
        let (a, b, same) = (runs("a", a), runs("b", b), runs("same", repeats));
        let same = Some(same).filter(|runs| !runs.is_empty());
        let report = diff(&a, &b, &same.into_iter().collect::<Vec<_>>(), &ANY_LOSS).unwrap();
        verdicts += u64::from(alarms(&report));
        gates += u64::from(report.gate.unwrap().failed);
    }
    (verdicts, gates)
}

/// Scatter between runs that blocks do not show, and blocks that resemble their neighbours.
const WORLDS: [(&str, World); 3] = [
    (
        "runs differ by 10 %",
        World {
            blocks: 4,
            sigma: 0.02,
            alike: 0.0,
            between: 0.1,
            machine: 0.0,
        },
    ),
    (
        "whole runs differ by 10 %",
        World {
            blocks: 4,
            sigma: 0.02,
            alike: 0.0,
            between: 0.0,
            machine: 0.1,
        },
    ),
    (
        "blocks are like their neighbours",
        World {
            blocks: 12,
            sigma: 0.03,
            alike: 0.8,
            between: 0.0,
            machine: 0.0,
        },
    ),
];

/// With verdicts from the blocks of two single runs, 199 of 200 pairs of one thing were called different if runs differ
/// by 10 % (four cells, 10 blocks), and 175 of 200 if blocks resemble their neighbours (60 blocks).
#[test]
fn runs_of_one_thing_rarely_alarm() {
    const TIMES: u64 = 100;
    for (name, world) in WORLDS {
        let (mut verdicts, mut gates, mut all) = (0, 0, 0);
        for counts in [(3, 3, 0), (5, 5, 0), (1, 5, 0), (1, 1, 5)] {
            let (v, g) = alarms_of_one_thing(world, counts, TIMES);
            eprintln!("{name}, {counts:?}: {v} tables, {g} gates of {TIMES}");
            (verdicts, gates, all) = (verdicts + v, gates + g, all + TIMES);
        }
        let likely = all / 100..=all * 7 / 100;
        assert!(likely.contains(&verdicts), "{name}: {verdicts} of {all}");
        assert!(likely.contains(&gates), "{name}: {gates} gates of {all}");
    }
}

/// Two single runs never alarm, and never pass.
#[test]
fn single_runs_are_never_decided() {
    for (_, world) in WORLDS {
        assert_eq!(alarms_of_one_thing(world, (1, 1, 0), 20), (0, 0));
    }
}

/// Of the differences that a table states it can find, how many it found.
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

/// One cell of forty that is slower by 3 %, and one by so much that a gate at 3 % states it catches that.
#[test]
fn slow_cells_of_forty_are_found() {
    const TABLES: u64 = 20;
    const SLOW: usize = 7;
    const SLOWER: usize = 23;
    let world = World {
        blocks: 3,
        sigma: 0.006,
        between: 0.004,
        ..World::default()
    };
    let mut speeds = [1.0; 40];
    (speeds[SLOW], speeds[SLOWER]) = (0.97, 0.93);
    let (mut verdicts, mut gates, mut false_alarms) = (Power::default(), Power::default(), 0);
    for seed in 0..TABLES {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let a = world.runs("a", 6, &[1.0; 40], &mut rng);
        let b = world.runs("b", 6, &speeds, &mut rng);
        let report = between(&a, &b, &GATE);
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
    eprintln!("verdicts {verdicts:?}, gates {gates:?}");
    verdicts.is_kept();
    gates.is_kept();
    assert_eq!(false_alarms, 0, "of cells that are as they were");
}

/// A loss that the tables state they find is found, if runs scatter by 10 %.
#[test]
fn a_large_loss_is_found_through_strong_scatter() {
    let world = WORLDS[0].1;
    let mut power = Power::default();
    for seed in 0..60 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let a = world.runs("a", 6, &[1.0; 2], &mut rng);
        let b = world.runs("b", 6, &[1.0, 0.75], &mut rng);
        let report = between(&a, &b, &Ask::default());
        let q = &report.cells[1].comparisons["goodput_bps"];
        // Slower by a quarter is a ratio of 4/3 in the other direction, in which the detectable difference is stated.
        power.add(
            q.smallest_detectable.unwrap() <= 1.0 / 3.0,
            q.change == Some(Change::Worse),
        );
    }
    eprintln!("{power:?}");
    power.is_kept();
}

/// A loss as large as the gate states it catches is caught as often as stated.
#[test]
fn the_gate_knows_its_power() {
    let [a, b] = pair(&[1.0; 4], &[1.0; 4], 0.01, 9);
    let stated =
        |report: &DiffReport| report.cells[1].comparisons["goodput_bps"].gate_catches_ratio;
    let loss = stated(&between(&a, &b, &GATE)).unwrap();
    assert!(loss > 0.03 && loss < 0.08, "{loss}");
    let (mut able, mut caught) = (0, 0);
    for seed in 100..200 {
        let [a, b] = pair(&[1.0; 4], &[1.0, 1.0 - loss, 1.0, 1.0], 0.01, seed);
        let report = between(&a, &b, &GATE);
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
