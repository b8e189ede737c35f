//! Sweeps made by hand, with answers known beforehand.

use crate::assess;
use crate::model::stored::Run;
use crate::model::{
    LoadKind, OffloadChange, OffloadFlag, OffloadReport, Outcome, RunReport, Switch,
};
use crate::testing::offloads::{Speed, VETH, segments, sweep};
use OffloadFlag::{Gro, Gso, Tso};

fn offloads(report: &RunReport) -> &OffloadReport {
    report.offloads.as_ref().unwrap()
}

/// The finding of the only load, a line for each sentence.
fn found(run: &Run) -> String {
    let report = assess(run);
    let [finding] = &offloads(&report).findings[..] else {
        panic!("one load, one finding");
    };
    let name = finding.flag.map_or("none", OffloadFlag::name);
    let mut lines = vec![format!("flag: {name}"), finding.sentence.clone()];
    lines.extend(finding.remarks.iter().cloned());
    lines.join("\n")
}

#[test]
fn one_flag_decides_and_another_matters_once_it_is_off() {
    insta::assert_snapshot!(found(&sweep(&VETH, 10, 0.002, segments)), @"
    flag: tso
    tso decides: switching it off alone takes goodput to 0.400× (0.398 to 0.402) and CPU per byte to 2.50× (2.49 to 2.51); gso or gro off alone changes nothing (equivalent within 2 %).
    tx_checksum off takes tso off with it; beyond that it takes goodput to 0.901× (0.896 to 0.906) and CPU per byte to 1.11× (1.10 to 1.12).
    gso changes nothing once tso is off, either (equivalent within 2 %).
    gro matters only once tso is off: switching it off as well takes goodput to 0.700× (0.697 to 0.704) and CPU per byte to 1.43× (1.42 to 1.44) of that with tso off alone.
    All off takes goodput to 0.252× (0.251 to 0.253) and CPU per byte to 3.97× (3.95 to 3.99).
    ");
}

#[test]
fn equal_flags_are_said_to_be_equivalent() {
    insta::assert_snapshot!(found(&sweep(&VETH, 10, 0.002, |_| 1.0)), @"
    flag: none
    no flag is shown to matter when it alone is switched off; tso, gso or gro off alone changes nothing (equivalent within 2 %).
    tx_checksum off takes tso off with it; beyond that it changes nothing (equivalent within 2 %).
    All off changes nothing (equivalent within 2 %).
    ");
}

#[test]
fn without_a_verdict_the_smallest_detectable_effect_is_said() {
    insta::assert_snapshot!(found(&sweep(&VETH, 10, 0.02, |_| 1.0)), @"
    flag: none
    no flag is shown to matter when it alone is switched off; of tso, gso or gro off a difference of 10 % would have shown.
    tx_checksum off takes tso off with it; beyond that it is not shown to matter (a difference of 14 % would have shown).
    All off is not shown to matter (a difference of 11 % would have shown).
    ");
}

#[test]
fn two_flags_that_do_as_much_are_not_ranked() {
    let speed: Speed = |off| {
        let each = |flag| if off.contains(&flag) { 0.8 } else { 1.0 };
        each(Tso) * each(Gro)
    };
    let run = sweep(&[Tso, Gso, Gro], 10, 0.004, speed);
    insta::assert_snapshot!(found(&run), @"
    flag: gro
    gro and tso matter and are not told apart: switching gro off alone takes goodput to 0.800× (0.793 to 0.808) and CPU per byte to 1.25× (1.24 to 1.26); tso off alone takes goodput to 0.801× (0.795 to 0.808) and CPU per byte to 1.25× (1.24 to 1.26); gso off alone changes nothing (equivalent within 2 %).
    tso matters once gro is off, too: switching it off as well takes goodput to 0.799× (0.794 to 0.804) and CPU per byte to 1.25× (1.24 to 1.26) of that with gro off alone.
    gso changes nothing once gro is off, either (equivalent within 2 %).
    All off takes goodput to 0.641× (0.635 to 0.647) and CPU per byte to 1.56× (1.55 to 1.58).
    ");
    let report = assess(&run);
    assert_eq!(offloads(&report).findings[0].not_told_apart.len(), 1);
}

#[test]
fn the_flag_that_does_most_comes_first() {
    let speed: Speed = |off| {
        let gro = if off.contains(&Gro) { 1.2 } else { 1.0 };
        gro * if off.contains(&Tso) { 0.5 } else { 1.0 }
    };
    insta::assert_snapshot!(found(&sweep(&[Tso, Gso, Gro], 10, 0.002, speed)), @"
    flag: tso
    tso matters most: switching it off alone takes goodput to 0.500× (0.498 to 0.503) and CPU per byte to 2.00× (1.99 to 2.01); gro off alone takes goodput to 1.20× (1.19 to 1.21) and CPU per byte to 0.833× (0.829 to 0.837); gso off alone changes nothing (equivalent within 2 %).
    gso changes nothing once tso is off, either (equivalent within 2 %).
    gro matters once tso is off, too: switching it off as well takes goodput to 1.20× (1.19 to 1.20) and CPU per byte to 0.834× (0.831 to 0.838) of that with tso off alone.
    All off takes goodput to 0.600× (0.597 to 0.603) and CPU per byte to 1.67× (1.66 to 1.67).
    ");
}

#[test]
fn a_quick_look_names_no_flag() {
    insta::assert_snapshot!(found(&sweep(&VETH, 3, 0.002, segments)), @"
    flag: none
    no flag is named: verdicts need 8 blocks, and this is a quick look of 3.
    ");
}

#[test]
fn without_figures_of_all_on_there_is_no_finding() {
    let mut run = sweep(&VETH, 10, 0.002, segments);
    for sample in run.samples.iter_mut().filter(|s| s.cell == 0) {
        sample.outcome = Outcome::Failed {
            cause: "no room".to_owned(),
        };
    }
    insta::assert_snapshot!(found(&run), @"
    flag: none
    no flag is named: there are no figures of one alone beside those of all on.
    ");
}

#[test]
fn a_flag_whose_way_was_not_proved_is_not_named() {
    let mut run = sweep(&[Gso, Gro], 10, 0.002, |off| {
        if off.contains(&Gso) { 0.5 } else { 1.0 }
    });
    let gso = OffloadChange::but(Switch::On, &[Gso]);
    let cell = run
        .header
        .cells
        .iter()
        .position(|c| OffloadChange::of(&c.cell.axes).as_ref() == Some(&gso));
    for sample in run.samples.iter_mut().filter(|s| Some(s.cell) == cell) {
        if let Outcome::Measured(m) = &mut sample.outcome {
            m.way.proved = false;
        }
    }
    insta::assert_snapshot!(found(&run), @"
    flag: none
    no flag is shown to matter when it alone is switched off; gro off alone changes nothing (equivalent within 2 %); of gso off there is no verdict.
    All off takes goodput to 0.500× (0.498 to 0.503) and CPU per byte to 2.00× (1.99 to 2.01).
    ");
}

/// A contrast is judged in one table with all comparisons.
#[test]
fn contrasts_carry_verdicts_and_name_their_base() {
    let report = assess(&sweep(&VETH, 10, 0.002, segments));
    let contrasts = &offloads(&report).contrasts;
    let told: Vec<String> = contrasts
        .iter()
        .map(|c| {
            let goodput = &c.verdicts["goodput_bps"];
            format!(
                "{} given {}: {:.2} {:?} vs {}",
                c.flag.name(),
                c.given.name(),
                goodput.ratio.value,
                goodput.verdict.unwrap(),
                goodput.base
            )
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    tx_checksum given tso: 0.90 Different vs tso off, rest on
    tso given gso: 0.40 Different vs gso off, rest on
    gso given tso: 1.00 Equivalent vs tso off, rest on
    tso given gro: 0.28 Different vs gro off, rest on
    gro given tso: 0.70 Different vs tso off, rest on
    gso given gro: 1.00 Equivalent vs gro off, rest on
    gro given gso: 1.00 Equivalent vs gso off, rest on
    ");
}

#[test]
fn a_run_that_is_no_sweep_has_no_findings() {
    let report = assess(&crate::testing::compared_over(8, 0.9));
    assert_eq!(report.offloads, None);
}

#[test]
fn every_figure_that_a_finding_is_about_has_words_of_its_own() {
    for load in LoadKind::ALL {
        for name in super::quantities(load) {
            assert_ne!(
                super::sentence::words(name),
                super::sentence::OTHER,
                "{load}: {name}"
            );
        }
    }
}
