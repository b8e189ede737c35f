use proptest::prelude::*;

use crate::model::stored::Run;
use crate::model::{
    Choice, Feature, Latency, LoadKind, OpenLoop, Outcome, RunReport, Sample, WarningCode,
};
use crate::testing::{measured, run};
use crate::{assess, assess_for};

/// The result of a path: its speed and CPU cost relative to the first, and its failure if any.
#[derive(Debug, Clone, Copy)]
struct Fate {
    speed: f64,
    cost: f64,
    fails: bool,
    unproved: bool,
    offers: [bool; 4],
}

const WELL: Fate = Fate {
    speed: 1.0,
    cost: 1.0,
    fails: false,
    unproved: false,
    offers: [true; 4],
};
const PATHS: [&str; 4] = ["veth", "bridge", "macvlan", "direct"];

/// A run whose samples spread by two per cent over blocks, the same in each run of the tests.
fn carried_out(fates: &[Fate], blocks: u32) -> Run {
    let mut run = run(&PATHS[..fates.len()]);
    for (planned, fate) in run.header.cells.iter_mut().zip(fates) {
        let offered = Feature::ALL
            .into_iter()
            .zip(fate.offers)
            .filter(|(_, offers)| *offers);
        planned.offers = Some(offered.map(|(feature, _)| feature).collect());
    }
    for block in 0..blocks {
        for (cell, fate) in fates.iter().enumerate() {
            let noise =
                1.0 + f64::from((block * 7 + u32::try_from(cell).unwrap() * 5) % 9) * 0.0025;
            let mut m = measured((12e6 * fate.speed * noise) as u64);
            m.cpu.busy_ns = (m.cpu.busy_ns - 0.15e8) * fate.cost * fate.speed + 0.15e8;
            m.way.proved = !fate.unproved;
            let outcome = if fate.fails {
                Outcome::Failed {
                    cause: "it broke".to_owned(),
                }
            } else {
                Outcome::Measured(Box::new(m))
            };
            let order = block * 4 + u32::try_from(cell).unwrap();
            run.samples.push(Sample {
                block,
                attempt: 0,
                cell,
                order,
                started_ns: 0,
                took_ns: 1,
                outcome,
            });
        }
    }
    run
}

fn choice(run: &Run, needs: &[Feature]) -> Choice {
    let report = assess_for(run, needs);
    let mut choices = report.recommendation.unwrap().choices;
    assert_eq!(choices.len(), 1);
    choices.remove(0)
}

fn best(choice: &Choice) -> Vec<&str> {
    choice.best.iter().map(|c| c.path.as_str()).collect()
}

#[test]
fn the_fastest_is_recommended_before_the_next() {
    let fates = [
        WELL,
        Fate { speed: 0.8, ..WELL },
        Fate { speed: 1.3, ..WELL },
    ];
    let choice = choice(&carried_out(&fates, 10), &[]);
    assert_eq!(best(&choice), ["macvlan"]);
    assert_eq!(choice.quantity, "goodput_bps");
    let others: Vec<_> = choice.others.iter().map(|c| c.path.as_str()).collect();
    assert_eq!(others, ["veth", "bridge"]);
    let next = &choice.others[0].versus["goodput_bps"];
    assert_eq!(next.base, "macvlan");
    assert!((next.ratio.value - 1.0 / 1.3).abs() < 0.02, "{next:?}");
}

/// A queue that drops is short: what arrives by it arrives sooner.
#[test]
fn a_path_that_loses_datagrams_is_not_chosen_for_their_latency() {
    let fastest = |lost: u64| {
        let mut run = carried_out(&[WELL, WELL], 10);
        for planned in &mut run.header.cells {
            planned.cell.load = LoadKind::UdpPaced;
        }
        for sample in &mut run.samples {
            let Outcome::Measured(m) = &mut sample.outcome else {
                panic!("it was measured");
            };
            let lossy = sample.cell == 1;
            let (p99, lost) = if lossy { (50_000, lost) } else { (80_000, 0) };
            (m.sent.messages, m.received.messages) = (100_000, 100_000 - lost);
            m.open_loop = Some(OpenLoop {
                due: 100_000,
                arrived: 100_000 - lost,
            });
            m.latency = Some(Latency {
                count: 100_000 - lost,
                min_ns: 10_000,
                mean_ns: 25_000.0,
                max_ns: 90_000,
                quantiles: vec![
                    (0.5, 20_000),
                    (0.99, p99 + u64::from(sample.block % 3) * 500),
                ],
                histogram: Vec::new(),
            });
        }
        choice(&run, &[])
    };
    assert_eq!(best(&fastest(500)), ["bridge"], "half a percent");
    let lossy = fastest(20_000);
    assert_eq!(best(&lossy), ["veth"]);
    let [left_out] = &lossy.left_out[..] else {
        panic!("{lossy:?}");
    };
    assert!(
        left_out.reason.starts_with("lost at least 2"),
        "{left_out:?}"
    );
}

#[test]
fn what_is_not_told_apart_is_a_tie_and_a_cheaper_one_wins_it() {
    let alike = [
        WELL,
        Fate {
            speed: 1.001,
            ..WELL
        },
        Fate { speed: 0.7, ..WELL },
    ];
    let tie = choice(&carried_out(&alike, 10), &[]);
    let mut paths = best(&tie);
    paths.sort_unstable();
    assert_eq!(paths, ["bridge", "veth"]);
    let cheap = [
        WELL,
        Fate {
            speed: 0.999,
            cost: 0.7,
            ..WELL
        },
    ];
    assert_eq!(best(&choice(&carried_out(&cheap, 10), &[])), ["bridge"]);
    let dear = [
        WELL,
        Fate {
            speed: 0.999,
            cost: 1.4,
            ..WELL
        },
    ];
    assert_eq!(best(&choice(&carried_out(&dear, 10), &[])), ["veth"]);
}

/// None of them was compared with another but through the fastest, so the cheapest by its figure alone would be a guess.
#[test]
fn what_costs_as_little_as_the_cheapest_is_a_tie_with_it() {
    let costs = |cost| Fate { cost, ..WELL };
    let fates = [WELL, costs(0.801), costs(0.8), costs(0.9)];
    let choice = choice(&carried_out(&fates, 10), &[]);
    let mut alike = best(&choice);
    alike.sort_unstable();
    assert_eq!(alike, ["bridge", "macvlan"]);
    let mut others: Vec<_> = choice.others.iter().map(|c| c.path.as_str()).collect();
    others.sort_unstable();
    assert_eq!(others, ["direct", "veth"]);
}

#[test]
fn needs_come_first() {
    let lacking = Fate {
        speed: 2.0,
        offers: [false, true, true, true],
        ..WELL
    };
    let run = carried_out(&[WELL, lacking], 10);
    assert_eq!(best(&choice(&run, &[])), ["bridge"]);
    let filtered = choice(&run, &[Feature::Filter]);
    assert_eq!(best(&filtered), ["veth"]);
    assert_eq!(filtered.left_out[0].reason, "lacks filter");
    let nobody = Fate {
        offers: [false; 4],
        ..WELL
    };
    let none = choice(
        &carried_out(&[nobody, nobody], 10),
        &[Feature::Vlan, Feature::Filter],
    );
    assert!(best(&none).is_empty());
    assert!(none.reason.unwrap().contains("vlan and filter are needed"));
    let mut old = run;
    old.header.cells[0].offers = None;
    assert!(
        choice(&old, &[Feature::Filter]).left_out[0]
            .reason
            .contains("older version")
    );
}

#[test]
fn nothing_is_made_of_a_quick_look_or_of_one_path() {
    let quick = choice(&carried_out(&[WELL, Fate { speed: 2.0, ..WELL }], 3), &[]);
    assert!(best(&quick).is_empty() && quick.reason.unwrap().contains("quick look"));
    assert!(assess(&carried_out(&[WELL], 10)).recommendation.is_none());
    assert!(
        assess_for(&carried_out(&[WELL], 10), &[Feature::Vlan])
            .recommendation
            .is_some()
    );
}

/// Cells that leave an axis to the kernel do not share the setting of others.
#[test]
fn a_setting_of_some_cells_is_not_that_of_all() {
    let mut run = carried_out(&[WELL, WELL, WELL, WELL], 8);
    for place in [2, 3] {
        run.header.cells[place].cell.axes.offload = Some(crate::model::Switch::Off);
    }
    let conditions = assess(&run).recommendation.unwrap().conditions;
    let setting = &conditions[0];
    assert!(setting.contains("placement=split"), "{setting}");
    assert!(!setting.contains("offload=off"), "{setting}");
}

#[test]
fn conditions_name_what_it_rests_on() {
    let mut run = carried_out(&[WELL, Fate { speed: 1.3, ..WELL }], 10);
    run.header.environment.cpu_model = "QEMU TCG".to_owned();
    run.header.cells[1].filter_sees = Some(false);
    let report: RunReport = assess(&run);
    assert!(
        report
            .warnings
            .iter()
            .any(|w| w.code == WarningCode::Emulated)
    );
    let conditions = report.recommendation.unwrap().conditions.join("\n");
    for part in [
        "placement=split",
        "message_size=",
        "emulated",
        "see nothing of bridge",
    ] {
        assert!(conditions.contains(part), "{part}: {conditions}");
    }
}

prop_compose! {
    fn fate()(
        speed in prop_oneof![Just(1.0), 0.5f64..2.0],
        cost in prop_oneof![Just(1.0), 0.5f64..2.0],
        fails in prop::bool::weighted(0.2),
        unproved in prop::bool::weighted(0.2),
        offers in any::<[bool; 4]>(),
    ) -> Fate {
        Fate { speed, cost, fails, unproved, offers }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn never_what_failed_was_not_proved_or_lacks_a_need(
        fates in prop::collection::vec(fate(), 2..5),
        wanted in any::<[bool; 4]>(),
    ) {
        let needs: Vec<Feature> =
            Feature::ALL.into_iter().zip(wanted).filter(|(_, wanted)| *wanted).map(|(need, _)| need).collect();
        let run = carried_out(&fates, 9);
        let choice = choice(&run, &needs);
        let allowed: Vec<usize> = (0..fates.len())
            .filter(|at| {
                let offers = fates[*at].offers.iter().zip(wanted).all(|(offers, wanted)| *offers || !wanted);
                !fates[*at].fails && !fates[*at].unproved && offers
            })
            .collect();
        let named = choice.best.iter().chain(&choice.others);
        for candidate in named {
            let at = PATHS.iter().position(|path| *path == candidate.path).unwrap();
            prop_assert!(allowed.contains(&at), "{} {choice:#?}", candidate.path);
        }
        // Every path is listed exactly once, and with a candidate there is a recommendation.
        prop_assert_eq!(choice.best.len() + choice.others.len(), allowed.len());
        prop_assert_eq!(choice.left_out.len(), fates.len() - allowed.len());
        prop_assert_eq!(choice.best.is_empty(), allowed.is_empty());
        prop_assert_eq!(choice.reason.is_some(), allowed.is_empty());
        // No recommended path is shown to be slower than the one with the best figure.
        for candidate in &choice.best {
            let slower = candidate.versus.get("goodput_bps").is_some_and(|v| {
                v.verdict == Some(crate::stats::Verdict::Different) && v.ratio.value < 1.0
            });
            prop_assert!(!slower, "{choice:#?}");
        }
    }
}
