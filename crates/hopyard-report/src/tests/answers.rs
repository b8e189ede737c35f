use super::recommendations::{candidate, recommended, versus};
use super::{fixture, page, text};
use crate::TEXT;
use crate::model::{Feature, LoadKind, NoCandidate, Peer, RunReport, WarningCode};
use crate::stats::Verdict;

/// The sentence that a report begins with.
fn answer(report: &RunReport) -> String {
    let text = text(report);
    let sentence = text.split("\n\n").next().unwrap().replace('\n', " ");
    assert!(page(report, "html").contains("<p class=\"answer\">"));
    sentence
}

const MATRIX: &str = "Speed and CPU cost relative to veth";

#[test]
fn one_table_has_all_comparisons() {
    let mut report = fixture::paths();
    // A path that failed under one load, and one whose path proof failed.
    report.cells[1] = fixture::cell("bridge", report.cells[1].peer, LoadKind::TcpStream)
        .failed("no")
        .build();
    report.cells[3].way.proved = false;
    let text = text(&report);
    let matrix = text[text.find(MATRIX).unwrap()..]
        .split("\n\n")
        .next()
        .unwrap();
    insta::assert_snapshot!(matrix, @r"
    Speed and CPU cost relative to veth
               tcp_stream     tcp_rr         tcp_crr        udp_stream     udp_rr
    path       speed / CPU    speed / CPU    speed / CPU    speed / CPU    speed / CPU
    ────────────────────────────────────────────────────────────────────────────────────
    veth       base           base           base           base           base
    bridge     no figures     0.91≠ / 1.10≠  0.91≠ / 1.10≠  0.91≠ / 1.10≠  0.91≠ / 1.10≠
    bridge-nf  0.77≠ / 1.31≠  0.77≠ / 1.31≠  0.77≠ / 1.31≠  0.77≠ / 1.31≠  0.77≠ / 1.31≠
    macvlan    not proved     1.12≠ / 0.91≠  1.12≠ / 0.91≠  1.12≠ / 0.91≠  1.12≠ / 0.91≠
    ipvlan     1.12≠ / 0.90≠  1.12≠ / 0.90≠  1.12≠ / 0.90≠  1.12≠ / 0.90≠  1.12≠ / 0.90≠
    netkit     ?2.2% / ?2.2%  1.00= / 0.99=  ?5.0% / ?5.0%  1.00= / 0.99=  1.00= / 0.99=
    ");
    let markdown = page(&report, "markdown");
    assert!(markdown.starts_with("# hopyard run: paths\n\n**"));
    assert!(markdown.contains("| bridge    | no figures"), "{markdown}");
}

#[test]
fn there_is_no_such_table_of_few_cells_or_of_a_sweep() {
    let mut report = fixture::paths();
    report.cells.truncate(2);
    assert!(!text(&report).contains(MATRIX), "one load, two paths");
    let mut report = fixture::paths();
    report.cells[0].axes.flows = 4;
    assert!(!text(&report).contains(MATRIX), "a sweep");
    let mut report = fixture::paths();
    report.run.quick_look = true;
    assert!(!text(&report).contains(MATRIX), "a quick look");
    report.run.quick_look = false;
    report.cells.truncate(3);
    assert!(text(&report).contains(MATRIX), "three paths");
}

#[test]
fn what_is_not_told_apart_says_how_long_it_would_take() {
    let mut report = recommended(
        |report, choice| {
            let rate = versus("macvlan", "goodput_bps", 0.97, Verdict::Inconclusive);
            choice.best = vec![
                candidate(report, "macvlan", Vec::new()),
                candidate(report, "veth", vec![rate]),
            ];
            // Twice 5 % on the log scale: four times as long.
            let open = choice.best[1].versus.get_mut("goodput_bps").unwrap();
            open.smallest_detectable = Some(0.1025);
        },
        &[],
        &[],
    );
    report.run.measured_s = Some(120.0);
    assert_eq!(
        answer(&report),
        "No path can be recommended: differences under 10 % cannot be seen here yet; about 6 more minutes would show 5 %."
    );
    let open = &mut report.recommendation.as_mut().unwrap().choices[0].best[1];
    open.versus.get_mut("goodput_bps").unwrap().verdict = Some(Verdict::Equivalent);
    assert_eq!(
        answer(&report),
        "macvlan and veth are the best choice under tcp_stream, and not told apart."
    );
}

#[test]
fn one_load_under_two_conditions_is_not_called_two_loads() {
    let best = |second: LoadKind| {
        let mut report = recommended(
            |report, choice| choice.best = vec![candidate(report, "macvlan", Vec::new())],
            &[],
            &[],
        );
        let choices = &mut report.recommendation.as_mut().unwrap().choices;
        let mut other = choices[0].clone();
        other.load = second;
        choices.truncate(1);
        choices.push(other);
        answer(&report)
    };
    let same = best(LoadKind::TcpStream);
    assert!(
        same.contains("the best choice under both conditions"),
        "{same}"
    );
    let other = best(LoadKind::TcpRr);
    assert!(
        other.contains("the best choice under both loads"),
        "{other}"
    );
    // What has no table of all comparisons has no empty part for it in a comment either.
    let mut report = fixture::paths();
    assert!(page(&report, "comment").contains("<summary>All comparisons in one table"));
    report.cells[0].axes.flows = 4;
    assert!(!page(&report, "comment").contains("<summary>All comparisons in one table"));
}

#[test]
fn the_one_that_is_best_is_held_against_the_base() {
    let report = |needs: &[Feature], path: &str| {
        recommended(
            |report, choice| {
                choice.best = vec![candidate(report, path, Vec::new())];
                if needs.is_empty() {
                    let rate = versus(path, "goodput_bps", 0.9, Verdict::Different);
                    choice.others = vec![candidate(report, "netkit", vec![rate])];
                } else {
                    choice.left_out = vec![NoCandidate {
                        path: "netkit".to_owned(),
                        reason: "lacks filter".to_owned(),
                    }];
                }
            },
            needs,
            &[],
        )
    };
    assert_eq!(
        answer(&report(&[], "macvlan")),
        "macvlan is the best choice under tcp_stream: 12 % faster than veth."
    );
    assert_eq!(
        answer(&report(&[], "veth")),
        "veth is the best choice under tcp_stream: no other path is shown to be better."
    );
    // One that has figures, and a sample that failed, is no candidate.
    let mut failed = report(&[], "veth");
    let cells = &mut failed.cells;
    let netkit = cells.iter_mut().find(|cell| cell.path == "netkit").unwrap();
    netkit.status = crate::model::CellStatus::Failed;
    assert_eq!(
        answer(&failed),
        "veth is the best choice under tcp_stream: no other candidate is shown to be better (netkit failed)."
    );
    assert_eq!(
        answer(&report(&[Feature::Filter], "bridge")),
        "bridge is 8.8 % slower than veth and the only one your filter sees."
    );
    assert_eq!(
        answer(&report(&[Feature::Vlan, Feature::Filter], "veth")),
        "veth is the only one that offers vlan and filter."
    );
}

#[test]
fn colours_change_nothing_but_colours() {
    let mut report = fixture::paths();
    report.cells[1].path = "\u{1b}[2Jbridge".to_owned();
    let seen = (TEXT.coloured.unwrap())(&report);
    let mut rest = String::new();
    for (place, piece) in seen.split('\u{1b}').enumerate() {
        let Some(code) = piece.find('m').filter(|_| place > 0) else {
            rest.push_str(piece);
            continue;
        };
        assert!(
            ["[0", "[1", "[31", "[32", "[33", "[36"].contains(&&piece[..code]),
            "{piece}"
        );
        rest.push_str(&piece[code + 1..]);
    }
    assert_eq!(rest, text(&report));
    assert!(seen.contains("\u{1b}[31m0.77≠\u{1b}[0m") && seen.contains("\u{1b}[32m1.12≠\u{1b}[0m"));
}

#[test]
fn warnings_stand_once_by_what_they_are_about() {
    let mut report = fixture::paths();
    fixture::warn(
        &mut report,
        WarningCode::Closure,
        "The columns do not add up.",
    );
    fixture::warn(
        &mut report,
        WarningCode::Closure,
        "The columns do not add up.",
    );
    let text = text(&report);
    assert!(
        text.contains(
            "- the machine: The hypervisor took 1.4 % of the CPU time. The columns do not add up.\n"
        ),
        "{text}"
    );
    let html = page(&report, "html");
    assert!(html.contains("<summary>the machine (2)</summary>"));
}

#[test]
fn a_column_of_nothing_is_a_note() {
    let mut report = fixture::paths();
    report.cells.retain(|cell| cell.load == LoadKind::UdpStream);
    for cell in &mut report.cells {
        cell.estimates
            .insert("lost_ratio".to_owned(), fixture::estimate(0.0, 0.0));
        cell.estimates.remove("cpu_ns_per_packet");
        cell.verdicts.remove("cpu_ns_per_packet");
    }
    let text = text(&report);
    assert!(
        text.contains("\nNot measured: CPU cost.\nZero everywhere: loss.\n"),
        "{text}"
    );
    assert!(!text.contains("CPU cost  "), "{text}");
}

/// Paths that are as fast as the base; of each the verdict on its CPU cost.
fn as_fast(costs: &[(&str, f64, Option<Verdict>)]) -> RunReport {
    let mut report = fixture::run();
    let base = fixture::cell("veth", Peer::Local, LoadKind::TcpStream);
    report
        .cells
        .push(base.estimate("goodput_bps", 20e9, 0.002).build());
    for (path, ratio, verdict) in costs {
        let cell = fixture::cell(path, Peer::Local, LoadKind::TcpStream)
            .estimate("goodput_bps", 20e9, 0.002)
            .verdict("goodput_bps", 1.001, 0.003, Some(Verdict::Equivalent))
            .verdict("cpu_ns_per_byte", *ratio, 0.01, *verdict);
        report.cells.push(cell.build());
    }
    report
}

#[test]
fn a_cost_that_differs_is_no_equivalence() {
    let same = ("macvlan", 1.002, Some(Verdict::Equivalent));
    let dear = ("bridge", 1.31, Some(Verdict::Different));
    let cheap = ("direct", 0.9, Some(Verdict::Different));
    for (costs, expected) in [
        (
            &[same][..],
            "No difference from veth that matters: all are equivalent within 2 %.",
        ),
        (
            &[same, dear],
            "All are as fast as veth within 2 %; bridge costs 31 % more CPU time than veth.",
        ),
        (
            &[same, cheap],
            "All are as fast as veth within 2 %; direct costs 10 % less CPU time than veth.",
        ),
    ] {
        assert_eq!(answer(&as_fast(costs)), expected);
    }
    for open in [Some(Verdict::Inconclusive), None] {
        let text = answer(&as_fast(&[same, ("vxlan", 1.05, open)]));
        let beginning = "All are as fast as veth within 2 %; no difference in CPU cost is shown: ";
        assert!(text.starts_with(beginning), "{text}");
    }
}

#[test]
fn every_path_is_not_said_of_those_without_a_verdict() {
    let same = |path| (path, 1.0, Some(Verdict::Equivalent));
    let text = |costs: &[(&str, f64, Option<Verdict>)]| {
        let text = text(&as_fast(costs)).replace("\n  ", " ");
        let from = text.find("What the verdicts support").unwrap();
        text[from..].split("\n\n").next().unwrap().to_owned()
    };
    let all = text(&[same("bridge"), same("macvlan")]);
    assert!(
        all.contains("; every path costs as much CPU per byte."),
        "{all}"
    );
    let but_one = text(&[same("bridge"), same("macvlan"), ("vxlan", 1.5, None)]);
    assert!(
        but_one.contains("every path but vxlan (no verdict) costs as much CPU per byte"),
        "{but_one}"
    );
}
