use super::*;

const QUIET: Bursts = Bursts {
    share: 0.0,
    hit: 0.5,
    length: 1.0,
    noticed: 0.0,
    slowdown: 0.0,
    shared: 0.0,
};
const SETUP: TurnsSetup = TurnsSetup {
    generations: 8,
    rounds: 8,
    base_turns: 1,
    log_ratio: -0.1,
    between: 0.01,
    within: 0.03,
    rho: 0.0,
    bursts: QUIET,
};

#[test]
fn generations_of_rounds_are_covered() {
    let bursts = |noticed, slowdown| Bursts {
        share: 0.4,
        length: 6.0,
        noticed,
        slowdown,
        shared: 0.1,
        ..QUIET
    };
    for setup in [
        SETUP,
        TurnsSetup { rho: 0.8, ..SETUP },
        TurnsSetup {
            rounds: 4,
            base_turns: 3,
            bursts: bursts(0.0, 0.3),
            ..SETUP
        },
        TurnsSetup {
            between: 0.0,
            rho: 0.5,
            bursts: bursts(0.5, 0.2),
            ..SETUP
        },
        TurnsSetup {
            between: 0.03,
            bursts: bursts(f64::INFINITY, 0.1),
            ..SETUP
        },
    ] {
        let c = simulate_turns(setup, 500, 42);
        // Three standard errors below 95 % are 92.1 %; `make verify` simulates enough runs to check 93 %.
        assert!(c.covered * 1000 >= 921 * c.runs, "{setup:?}: {c:?}");
        assert!(c.covered * 1000 <= 985 * c.runs, "{setup:?}: {c:?}");
    }
}

/// Mean and standard error of some values.
fn located(values: &[f64]) -> (f64, f64) {
    let error = stats::sd(values).unwrap() / (values.len() as f64).sqrt();
    (stats::mean(values).unwrap(), error)
}

fn log_rate(measured: &Measurement) -> f64 {
    let rate = quantity(FIGURE)
        .unwrap()
        .value(measured, HOW.0, HOW.1)
        .unwrap();
    (rate / TYPICAL).ln()
}

fn ratios(setup: TurnsSetup) -> Vec<f64> {
    let random = &mut ChaCha8Rng::seed_from_u64(7);
    (0..3000)
        .map(|_| setup.log_ratio_seen(random).unwrap())
        .collect()
}

/// Turns are disturbed often, but the disturbances are unrelated to their figures.
const UNRELATED: Bursts = Bursts {
    share: 0.5,
    length: 5.0,
    ..QUIET
};

#[test]
fn retaking_moves_no_mean_where_disturbances_have_nothing_to_do_with_the_figure() {
    let setup = TurnsSetup {
        rho: 0.6,
        bursts: UNRELATED,
        ..SETUP
    };
    let (mean, error) = located(&ratios(setup));
    assert!(
        (mean - setup.log_ratio).abs() < 4.0 * error,
        "{mean} ± {error}"
    );
    // The figure of a single cell does not move either: the geometric mean of the kept turns is that of all turns.
    let random = &mut ChaCha8Rng::seed_from_u64(8);
    let mut retaken = 0;
    let moved: Vec<f64> = (0..3000)
        .map(|_| {
            let [_, base] = setup.generation(random);
            retaken += usize::from(base.turns.len() > setup.rounds as usize);
            let all = TurnsSetup::unmarked(base.turns.clone());
            log_rate(&base) - log_rate(&together(all))
        })
        .collect();
    let (mean, error) = located(&moved);
    assert!(retaken > 1000, "{retaken}");
    assert!(error > 0.0 && mean.abs() < 4.0 * error, "{mean} ± {error}");
}

/// Half of the scatter of a ratio is that of its base.
#[test]
fn more_turns_of_the_base_make_ratios_closer() {
    let setup = TurnsSetup {
        between: 0.0,
        ..SETUP
    };
    let three = TurnsSetup {
        base_turns: 3,
        ..setup
    };
    let [(_, one), (mean, three)] = [setup, three].map(|setup| located(&ratios(setup)));
    assert!(
        (mean - setup.log_ratio).abs() < 4.0 * three,
        "{mean} ± {three}"
    );
    // The variance is that of the cell and a third of that of the base: 4/3 of 2.
    let share = (three / one).powi(2);
    assert!((0.60..0.73).contains(&share), "{share}");
}

/// Unnoticed disturbances slow single turns by much, of a cell and of its base alike.
#[test]
fn more_turns_of_the_base_move_no_ratio() {
    let setup = TurnsSetup {
        base_turns: 3,
        between: 0.0,
        rounds: 4,
        bursts: Bursts {
            noticed: f64::INFINITY,
            slowdown: 0.2,
            ..UNRELATED
        },
        ..SETUP
    };
    let (mean, error) = located(&ratios(setup));
    assert!(
        (mean - setup.log_ratio).abs() < 4.0 * error,
        "{mean} ± {error}"
    );
}

/// Nearly all turns are disturbed and slow: the base, which has more of them, is not taken from those that were not.
#[test]
fn more_turns_of_the_base_move_no_ratio_where_few_are_undisturbed() {
    for hit in [0.8, 0.95] {
        let setup = TurnsSetup {
            base_turns: 3,
            between: 0.0,
            bursts: Bursts {
                share: 0.95,
                hit,
                slowdown: 0.2,
                ..UNRELATED
            },
            ..SETUP
        };
        let (mean, error) = located(&ratios(setup));
        let off = (mean - setup.log_ratio).abs();
        assert!(off < 4.0 * error, "{hit}: {mean} ± {error}");
    }
}

#[test]
fn retaking_moves_no_ratio_where_figures_change_with_the_disturbance() {
    for (rho, noticed, slowdown) in [(0.0, 0.0, 0.0), (0.8, 0.0, 0.2), (0.8, 1.0, 0.2)] {
        let setup = TurnsSetup {
            rho,
            bursts: Bursts {
                noticed,
                slowdown,
                shared: 0.3,
                ..UNRELATED
            },
            ..SETUP
        };
        let (mean, error) = located(&ratios(setup));
        let off = (mean - setup.log_ratio).abs();
        assert!(off < 4.0 * error, "{setup:?}: {mean} ± {error}");
    }
}

/// Counter-test: if turns were chosen by their figure, the tests above would fail.
#[test]
fn choosing_by_the_figure_would_move_the_ratio() {
    let random = &mut ChaCha8Rng::seed_from_u64(9);
    let rate = quantity(FIGURE).unwrap();
    let chosen: Vec<f64> = (0..3000)
        .map(|_| {
            let [mut own, base] = SETUP.generation(random);
            let typical = log_rate(&own);
            for turn in &mut own.turns {
                let is_slow = log_rate(&turn.measurement()) < typical;
                turn.disturbance = is_slow.then_some(Disturbance::Steal);
            }
            let (own, base) = rounds::pair(&own, &base, rate, HOW).unwrap();
            (own / base).ln()
        })
        .collect();
    let (mean, error) = located(&chosen);
    assert!(mean - SETUP.log_ratio > 20.0 * error, "{mean} ± {error}");
}

impl TurnsSetup {
    /// The same turns as if nothing had been noticed.
    fn unmarked(mut turns: Vec<Turn>) -> Vec<Turn> {
        for turn in &mut turns {
            turn.disturbance = None;
        }
        turns
    }
}
