//! Reports of offload sweeps.

use crate::assess::testing::offloads::{VETH, segments, sweep};
use crate::assess::{assess, observations};
use crate::model::stored::Run;
use crate::model::{OffloadFlag, OffloadNow, Outcome};
use crate::{TEXT, export};
use OffloadFlag::{Gro, Gso, Lro, Tso};

#[test]
fn the_page_has_the_finding_first_and_a_line_for_each_combination() {
    let run = sweep(&VETH, 10, 0.002, segments);
    let observations = observations(&run);
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

/// The beginning of the report if these flags are off now.
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

/// Under steal a cost may be known in too few blocks, while goodput is judged.
#[test]
fn a_cost_without_a_verdict_is_not_no_difference() {
    let mut run = sweep(&VETH, 10, 0.002, |_| 1.0);
    for sample in run.samples.iter_mut().filter(|sample| sample.block < 3) {
        if let Outcome::Measured(m) = &mut sample.outcome {
            m.cpu.steal_ns = 0.5e8;
            m.cpu.busy_ns -= 0.5e8;
        }
    }
    let text = beginning(&mut run, &[Gro, Lro]);
    assert!(
        text.contains("gro is off; on: goodput") && text.contains(", undecided"),
        "{text}"
    );
    assert!(!text.contains("no difference"), "{text}");
}

#[test]
fn the_tables_say_what_was_changed_and_what_that_did() {
    let mut run = sweep(&VETH, 10, 0.002, segments);
    let survey = run.header.offloads.as_mut().unwrap();
    survey.combinations[4].refused = Some("a/eth0 has gso fixed on".to_owned());
    let text = String::from_utf8(TEXT.render(&assess(&run), &[]).unwrap()).unwrap();
    let from = text.find("tcp_stream").unwrap();
    let to = text.find("Path proof passed").unwrap();
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

    Not measured, since no device of the path lets it be changed: lro is fixed off.

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
