//! Sweeps made by hand, with answers known beforehand.

use crate::assess::assess;
use crate::assess::tests::{measured, push, run};
use crate::model::{
    Axes, FixedOffload, LoadKind, OffloadChange, OffloadCombination, OffloadFlag, OffloadNow,
    OffloadReport, OffloadSurvey, Outcome, Peer, RunReport, Switch,
};
use crate::plan;
use crate::report::{TEXT, export};
use crate::store::Run;
use OffloadFlag::{Gro, Gso, Lro, Tso, TxChecksum};

/// How fast a combination is: (flags that are off, what that takes goodput to).
type Speed = fn(&[OffloadFlag]) -> f64;

/// What is off with these flags changeable, on a kernel where TSO needs checksums.
fn off(flags: &[OffloadFlag], change: &OffloadChange) -> Vec<OffloadFlag> {
    let asked = |flag| change.flags.contains(&flag) == (change.rest == Switch::On);
    let is_off = |flag: &&OffloadFlag| {
        asked(**flag) || **flag == Tso && flags.contains(&TxChecksum) && asked(TxChecksum)
    };
    flags.iter().filter(is_off).copied().collect()
}

fn survey(flags: &[OffloadFlag]) -> OffloadSurvey {
    let mut combinations: Vec<OffloadCombination> = Vec::new();
    for change in plan::offload_changes(flags) {
        let changed = off(flags, &change);
        let same = combinations
            .iter()
            .find(|c| c.same_as.is_none() && c.changed == changed);
        combinations.push(OffloadCombination {
            same_as: same.map(|c| c.change.clone()),
            change,
            changed,
            refused: None,
        });
    }
    let fixed = OffloadFlag::ALL.into_iter().filter(|f| !flags.contains(f));
    OffloadSurvey {
        now: Vec::new(),
        fixed: fixed
            .map(|flag| FixedOffload {
                flag,
                state: if flag == Lro { "off" } else { "on" }.to_owned(),
            })
            .collect(),
        combinations,
    }
}

/// So many blocks of every combination, its goodput spread by `noise` around what `speed` says.
fn sweep(flags: &[OffloadFlag], blocks: u32, noise: f64, speed: Speed) -> Run {
    let survey = survey(flags);
    let mut run = run(&[]);
    let template = crate::assess::tests::run(&["bridge"])
        .header
        .cells
        .remove(0);
    let (load, peer) = (LoadKind::TcpStream, Peer::Local);
    let mut factors = Vec::new();
    for combination in survey.combinations.iter().filter(|c| c.is_measured()) {
        let mut planned = template.clone();
        let axes = combination.change.with(&Axes::default());
        planned.cell.axes = axes.for_cell(load, peer, &[]);
        run.header.cells.push(planned);
        factors.push(speed(&combination.changed));
    }
    run.header.base = Some("offload".to_owned());
    run.header.offloads = Some(survey);
    for block in 0..blocks {
        for (cell, factor) in factors.iter().enumerate() {
            let turn = u32::try_from(cell).unwrap() * 3 + block * 5;
            let wobble = 1.0 + noise * (f64::from(turn % 7) - 3.0);
            let bytes = 4e8 * factor * wobble;
            push(&mut run, block, 0, cell, measured_bytes(bytes));
        }
    }
    run
}

fn measured_bytes(bytes: f64) -> Outcome {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count"
    )]
    Outcome::Measured(Box::new(measured(bytes as u64)))
}

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

const VETH: [OffloadFlag; 4] = [TxChecksum, Tso, Gso, Gro];

/// Segments that nobody makes, and that GRO puts together again.
fn segments(off: &[OffloadFlag]) -> f64 {
    let tso = if off.contains(&Tso) { 0.4 } else { 1.0 };
    let gro = off.contains(&Tso) && off.contains(&Gro);
    let checksum = if off.contains(&TxChecksum) { 0.9 } else { 1.0 };
    tso * if gro { 0.7 } else { 1.0 } * checksum
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
fn the_page_has_the_finding_first_and_a_line_for_each_combination() {
    let run = sweep(&VETH, 10, 0.002, segments);
    let observations = crate::assess::observations(&run);
    let page = export("html")
        .unwrap()
        .render(&assess(&run), &observations)
        .unwrap();
    let page = String::from_utf8(page).unwrap();
    let finding = page.find("Which offload matters</h2>").unwrap();
    let picture = page.find("role=\"img\"").unwrap();
    assert!(finding < picture);
    for name in ["bridge · offload on", "tso off"] {
        assert!(page[picture..].contains(name), "{name}");
    }
    assert!(
        !page.contains("Recommendation"),
        "no path is chosen among offloads of one"
    );
}

/// How the report begins where these flags are off now.
fn beginning(run: &mut Run, off: &[OffloadFlag]) -> String {
    let now = |flag: OffloadFlag| OffloadNow {
        flag,
        state: match off.contains(&flag) {
            true => "off".to_owned(),
            false => "on".to_owned(),
        },
    };
    run.header.offloads.as_mut().unwrap().now = OffloadFlag::ALL.map(now).to_vec();
    let mut report = assess(run);
    report.run.measured_s = Some(100.0);
    let text = String::from_utf8(TEXT.render(&report, &[]).unwrap()).unwrap();
    let to = text.find("hopyard run").unwrap();
    text[..to].trim_end().to_owned()
}

#[test]
fn a_sweep_begins_with_how_things_are_now() {
    let mut run = sweep(&VETH, 10, 0.002, segments);
    insta::assert_snapshot!(beginning(&mut run, &[Gro, Lro]), @"
    bridge now has gro off, and tx_checksum, tso and gso on; lro is fixed off.

    - gro is off; on: no difference (equivalent within 2 %).
    - tx_checksum is on; off (tso goes off with it): goodput 0.360×, CPU cost 2.78×. Measured with gro
      on.
    - tso is on; off: goodput 0.280×, CPU cost 3.57×.
    - gso is on; off: no difference (equivalent within 2 %).
    ");
    insta::assert_snapshot!(beginning(&mut run, &[Lro]), @"
    bridge now has tx_checksum, tso, gso and gro on; lro is fixed off.

    - tx_checksum is on; off (tso goes off with it): goodput 0.360×, CPU cost 2.78×.
    - tso is on; off: goodput 0.400×, CPU cost 2.50×.
    - gso is on; off: no difference (equivalent within 2 %).
    - gro is on; off: no difference (equivalent within 2 %).
    ");
    insta::assert_snapshot!(beginning(&mut run, &[Tso, Gso, Lro]), @"
    bridge now has tso and gso off, and tx_checksum and gro on; lro is fixed off.

    - tso is off; on: goodput 2.50×, CPU cost 0.400×.
    - gso is off; on: no difference (equivalent within 2 %).
    - tx_checksum is on; off (tso goes off with it): goodput 0.360×, CPU cost 2.78×. Measured with gso
      on.
    - gro is on; off: no difference (equivalent within 2 %). Measured with tso and gso on.
    ");
}

#[test]
fn what_is_undecided_says_how_much_longer_it_takes() {
    let noisy = |off: &[OffloadFlag]| if off.contains(&Gro) { 0.95 } else { 1.0 };
    insta::assert_snapshot!(beginning(&mut sweep(&VETH, 10, 0.03, noisy), &[Gro, Lro]), @"
    bridge now has gro off, and tx_checksum, tso and gso on; lro is fixed off.

    - gro is off; on: goodput 1.04×, CPU cost 0.959×, undecided, needs about 12 more minutes.
    - tx_checksum is on; off (tso goes off with it): goodput 1.01×, CPU cost 0.988×, undecided, needs
      about 2 more hours. Measured with gro on.
    - tso is on; off: goodput 0.991×, CPU cost 1.01×, undecided, needs about 59 more minutes.
    - gso is on; off: goodput 0.994×, CPU cost 1.01×, undecided, needs about 3 more hours.
    ");
    insta::assert_snapshot!(beginning(&mut sweep(&VETH, 3, 0.03, noisy), &[Gro, Lro]), @"
    bridge now has gro off, and tx_checksum, tso and gso on; lro is fixed off.

    - gro is off; on: goodput 1.02×, CPU cost 0.979×, too few blocks for a verdict.
    - tx_checksum is on; off (tso goes off with it): goodput 1.04×, CPU cost 0.960×, too few blocks for
      a verdict. Measured with gro on.
    - tso is on; off: goodput 0.970×, CPU cost 1.03×, too few blocks for a verdict.
    - gso is on; off: goodput 0.981×, CPU cost 1.02×, too few blocks for a verdict.
    ");
}

#[test]
fn the_tables_say_what_was_changed_and_what_that_did() {
    let mut run = sweep(&VETH, 10, 0.002, segments);
    let survey = run.header.offloads.as_mut().unwrap();
    survey.combinations[4].refused = Some("a/eth0 has gso fixed on".to_owned());
    let text = String::from_utf8(TEXT.render(&assess(&run), &[]).unwrap()).unwrap();
    let from = text.find("tcp_stream").unwrap();
    let to = text.find("The way was").unwrap();
    insta::assert_snapshot!(text[from..to].trim_end(), @"
    tcp_stream · local · 16 KiB messages (bulk TCP, client to server)
    offloads               goodput                CPU cost               bytes
    (rest on)               Gbit/s  vs all on      ns/byte  vs all on  per skb
    ──────────────────────────────────────────────────────────────────────────
    all on             16.0  ±0.3%  base       0.750 ±0.3%  base         60000
    tx_checksum off ¹   5.76 ±0.3%  0.360× ≠   2.08  ±0.3%  2.78×  ≠     60000
    tso off             6.40 ±0.3%  0.400× ≠   1.88  ±0.3%  2.50×  ≠     60000
    gso off            not to be had: a/eth0 has gso fixed on
    gro off            16.0  ±0.3%  1.00×  =   0.750 ±0.3%  0.999× =     60000
    tso and gso off     6.40 ±0.3%  0.400× ≠   1.88  ±0.3%  2.50×  ≠     60000
    tso and gro off     4.48 ±0.3%  0.280× ≠   2.68  ±0.3%  3.57×  ≠     60000
    all off             4.03 ±0.3%  0.252× ≠   2.98  ±0.3%  3.97×  ≠     60000

    offloads                    goodput                 CPU cost                bytes
    (rest off)                   Gbit/s  vs all off      ns/byte  vs all off  per skb
    ─────────────────────────────────────────────────────────────────────────────────
    all off                  4.03 ±0.3%  base        2.98  ±0.3%  base          60000
    tx_checksum on           4.48 ±0.3%  1.11× ≠     2.68  ±0.3%  0.900× ≠      60000
    tso on                  changes nothing here: reads back like all off
    gso on                   4.03 ±0.3%  1.00× =     2.97  ±0.3%  1.00×  =      60000
    gro on                   5.76 ±0.3%  1.43× ≠     2.08  ±0.3%  0.700× ≠      60000
    tx_checksum and tso on  16.0  ±0.3%  3.97× ≠     0.750 ±0.3%  0.252× ≠      60000
    ¹ tso off with tx_checksum

    Not measured, since no device of the way lets it be changed: lro is fixed off.

    ± half-width at 95 % confidence · ≠ different · = equivalent within ±2 %

    Which offload matters
    - tcp_stream · local: tso decides: switching it off alone takes goodput to 0.400× (0.398 to 0.402)
      and CPU per byte to 2.50× (2.49 to 2.51); gso or gro off alone changes nothing (equivalent within
      2 %).
    - tx_checksum off takes tso off with it; beyond that it takes goodput to 0.901× (0.896 to 0.906) and
      CPU per byte to 1.11× (1.10 to 1.12).
    - gso changes nothing once tso is off, either (equivalent within 2 %).
    - gro matters only once tso is off: switching it off as well takes goodput to 0.700× (0.697 to
      0.704) and CPU per byte to 1.43× (1.42 to 1.44) of that with tso off alone.
    - All off takes goodput to 0.252× (0.251 to 0.253) and CPU per byte to 3.97× (3.95 to 3.99).
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
    let report = assess(&crate::assess::tests::compared_over(8, 0.9));
    assert_eq!(report.offloads, None);
}
