//! Figures along curves, and pictures with the printed points.

use super::super::evidence::Evidence;
use super::{evidence, file, text};
use crate::assess::testing::curves::{Shown, senders};
use crate::assess::{assess_for, observations};
use crate::model::stored::Run;
use crate::model::{Containers, FullInterval, Outcome};
use crate::plot::{Curves, Drawing};

/// A core that is full from 20 senders on natively and from the first in containers, whose jitter is an eighth higher.
fn run() -> Run {
    let mut run = senders(|own, n| Shown {
        packets: 100_000.0,
        busy: if own || n > 18.0 { 1.02 } else { 0.45 },
        gap_sd_ns: 1000.0 * (10.0 + n + 6.0 * (n - 12.0).max(0.0)) * if own { 1.125 } else { 1.0 },
        switches: 250.0,
    });
    run.header.plan = "planetlab-containers-2007".to_owned();
    for planned in &mut run.header.cells {
        planned.cell.axes.message_size_bytes = Some(256);
    }
    run
}

#[test]
fn places_along_the_curves() {
    let (file, run) = (file("planetlab-containers-2007"), run());
    let (report, seen) = (assess_for(&run, &[]), observations(&run));
    let evidence = Evidence {
        seen: &seen,
        ..evidence(&file, &report, &run)
    };
    insta::assert_snapshot!(text(&evidence, "One core and its senders"), @r"
    One core and its senders (text of the message)
                                                                     figure
    figure                      senders     messages     print         here  same?
    ────────────────────────────────────────────────────────────────────────────────
    senders that fill the core  native      1024 B         19             –  ¹
    senders that fill the core  native      256 B          19      17 to 20  ? 1.05×
    senders that fill the core  native      64 B           19             –  ²
    senders that fill the core  OpenVZ                      7             –  ³
    senders that fill the core  namespaces  1024 B          1             –  ¹
    senders that fill the core  namespaces  256 B           1             1  = 1.00×
    senders that fill the core  namespaces  64 B            1             –  ²
    senders just before         native      1024 B         18             –  ¹
    senders just before         native      256 B          18      16 to 19  ? 1.06×
    senders just before         native      64 B           18             –  ²
    senders just before         OpenVZ                      6             –  ³
    % of the core just before   native      1024 B    about 45            –  ¹
    % of the core just before   native      256 B     about 45   45.0 ±0.5%  =
    % of the core just before   native      64 B      about 45            –  ²
    % of the core just before   OpenVZ                about 45            –  ³
    % of the core then          native      1024 B        100             –  ¹
    % of the core then          native      256 B         100   100   ±0.0%  = 1.00×
    % of the core then          native      64 B          100             –  ²
    % of the core then          OpenVZ                    100             –  ³
    ¹ message_size=1 KiB is not in this run
    ² message_size=64 B is not in this run
    ³ OpenVZ has a kernel of its own
    The message has no table, and does not say which size of message its figures are of; throughput has
      no figure in it.
    ");
    insta::assert_snapshot!(text(&evidence, "Jitter and bursts"), @r"
    Jitter and bursts (text of the message)
                                                                                  figure
    figure                              senders        messages        print        here  same?
    ───────────────────────────────────────────────────────────────────────────────────────────
    senders from which jitter bends up  native         1024 B       about 20           –  ¹
    senders from which jitter bends up  native         256 B        about 20          12  ≠
    senders from which jitter bends up  native         64 B         about 20           –  ²
    % more jitter than native           containers     1024 B       10 to 15           –  ¹
    % more jitter than native           containers     256 B        10 to 15  12.5 ±0.9%  =
    % more jitter than native           containers     64 B         10 to 15           –  ²
    s until jitter settles              2 native       64 B        30 to 420           –  ³
    s until jitter settles              8 native       64 B        30 to 420           –  ³
    s until jitter settles              32 native      64 B        30 to 420           –  ³
    s until jitter settles              2 containers   64 B        30 to 420           –  ³
    s until jitter settles              8 containers   64 B        30 to 420           –  ³
    s until jitter settles              32 containers  64 B        30 to 420           –  ³
    packets of a time slice             2 containers   1024 B    a few dozen           –  ¹
    packets of a time slice             32 containers  1024 B    a few dozen           –  ¹
    ¹ message_size=1 KiB is not in this run
    ² message_size=64 B is not in this run
    ³ a run of plan planetlab-settling-2007 has it
    Jitter is not defined in the message; here it is the standard deviation of the time between two
      arrivals of a flow.
    ");
}

/// If it is full at 20 and may have been at 19, of which nobody knows, it may be so from 17 on, whatever the interval's own end is.
#[test]
fn a_core_may_be_full_from_behind_the_last_number_at_which_it_was_not() {
    let (file, run) = (file("planetlab-containers-2007"), run());
    let (report, seen) = (assess_for(&run, &[]), observations(&run));
    let line = |low: Option<f64>, has_interval: bool| {
        let mut report = report.clone();
        let curves = report.curves.iter_mut();
        for full in curves.filter_map(|curve| curve.client_cpus_full.as_mut()) {
            if full.first_full == Some(20.0) {
                full.interval = has_interval.then_some(FullInterval {
                    low,
                    high: Some(24.0),
                });
            }
        }
        let evidence = Evidence {
            seen: &seen,
            ..evidence(&file, &report, &run)
        };
        let text = text(&evidence, "One core and its senders");
        let mut lines = text.lines().map(str::to_owned);
        lines
            .find(|line| line.contains("fill the core  native      256 B"))
            .unwrap()
    };
    assert!(line(Some(20.0), true).contains("17 to 24  ?"));
    assert!(line(Some(16.0), true).contains("13 to 24  ?"));
    let none = line(None, false);
    assert!(none.contains('–') && !none.contains('?'), "{none}");
}

#[test]
fn a_curve_with_traffic_that_went_another_way_is_not_compared() {
    let (file, mut run) = (file("planetlab-containers-2007"), run());
    let astray = run.samples.iter_mut().find_map(|sample| {
        let cell = &run.header.cells[sample.cell].cell;
        let is_it = cell.axes.flows == 8 && cell.axes.containers == Some(Containers::Own);
        match &mut sample.outcome {
            Outcome::Measured(measured) if is_it => Some(measured),
            _ => None,
        }
    });
    astray.unwrap().way.proved = false;
    let (report, seen) = (assess_for(&run, &[]), observations(&run));
    let evidence = Evidence {
        seen: &seen,
        ..evidence(&file, &report, &run)
    };
    let text = text(&evidence, "Jitter and bursts");
    let mut lines = text.lines();
    let line = lines.find(|line| line.contains("more jitter") && line.contains("256 B"));
    assert!(line.unwrap().contains('–'), "{text}");
    assert!(text.contains("its path proof failed"), "{text}");
}

#[test]
fn pictures_have_the_printed_points() {
    let (file, run) = (file("planetlab-containers-2007"), run());
    let (report, seen) = (assess_for(&run, &[]), observations(&run));
    let evidence = Evidence {
        seen: &seen,
        ..evidence(&file, &report, &run)
    };
    let plots = evidence.pictures();
    // Pictures of one size only; jitter over time belongs to another plan.
    let titles: Vec<&str> = plots.iter().map(|plot| plot.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "CPU of the senders · 256 B messages",
            "Jitter · 256 B messages · print: from about 20 senders on",
            "Jitter in containers over native · 256 B messages"
        ]
    );
    let curves = |at: usize| -> &Curves {
        match &plots[at].drawing {
            Drawing::Curves(curves) => curves,
            other => panic!("{other:?}"),
        }
    };
    let cpu = curves(0);
    let points = |name: &str| -> Vec<(String, f64)> {
        let curve = cpu.curves.iter().find(|curve| curve.name == name).unwrap();
        assert!(curve.is_points, "{name}");
        let ticks = cpu.across.ticks.iter().zip(&curve.marks);
        ticks
            .filter_map(|(tick, mark)| Some((tick.name.clone(), mark.as_ref()?.value)))
            .collect()
    };
    assert_eq!(
        points("print: native"),
        [("18".to_owned(), 45.0), ("19".to_owned(), 100.0)]
    );
    assert_eq!(
        points("print: OpenVZ"),
        [("6".to_owned(), 45.0), ("7".to_owned(), 100.0)]
    );
    assert_eq!(points("print: namespaces"), [("1".to_owned(), 100.0)]);
    let native = cpu
        .curves
        .iter()
        .find(|curve| curve.name == "native")
        .unwrap();
    assert_eq!(native.marks.iter().flatten().count(), 9);
    assert!(!native.is_points);
    let knee = &curves(1).found[0];
    assert_eq!(
        (knee.what, knee.span.0),
        ("print", curves(1).across.place(20.0))
    );
    let ratio = curves(2);
    let band = ratio
        .curves
        .iter()
        .find(|curve| curve.name.starts_with("print"))
        .unwrap();
    assert!(
        band.marks
            .iter()
            .all(|mark| mark.as_ref().unwrap().interval == Some((1.10, 1.15)))
    );
    let own = ratio.curves[0].marks.iter().flatten();
    assert!(own.clone().count() == 9 && own.clone().all(|mark| (mark.value - 1.125).abs() < 0.01));
    // The page draws them.
    let page =
        crate::printed::render(crate::export("html").unwrap(), &run, &report, &seen).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert_eq!(page.matches("<svg").count(), plots.len());
    assert!(
        page.contains("print: OpenVZ by senders: 1 none, 2 none, 4 none, 6 45.0, 7 100"),
        "{page}"
    );
}
