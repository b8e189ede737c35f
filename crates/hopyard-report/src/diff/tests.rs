mod made;

use serde_json::Value;

use super::schema;
use crate::export;
use crate::fixture::estimate;
use crate::model::{Change, DiffReport, Gate, IntervalFrom};
use crate::stats::Estimate;

use self::made::{report, rr, runs};

fn render(report: &DiffReport, format: &str) -> String {
    (export(format).unwrap().diff.unwrap())(report)
}

#[test]
fn a_message() {
    let text = render(&report(), "text");
    assert!(text.is_ascii());
    assert!(text.lines().all(|line| line.len() <= 76), "{text}");
    insta::assert_snapshot!(text, @"
    hopyard diff: paths - B against A

    Linux 6.18.5, AMD EPYC 7B13, 2 CPUs, under KVM
    A: 20260301T101500Z-paths, 10 blocks of 0.3 s, begun 2026-03-01T10:15:00Z
    A: 20260301T111500Z-paths, 10 blocks of 0.3 s, begun 2026-03-01T11:15:00Z
    A: 20260301T121500Z-paths, 10 blocks of 0.3 s, begun 2026-03-01T12:15:00Z
    B: 20260302T101500Z-paths, 10 blocks of 0.3 s, begun 2026-03-02T10:15:00Z
    B: 20260302T111500Z-paths, 10 blocks of 0.3 s, begun 2026-03-02T11:15:00Z
    B: 20260302T121500Z-paths, 10 blocks of 0.3 s, begun 2026-03-02T12:15:00Z
    every cell: 1 flow, TCP cubic, ends on different CPUs, IPv4, MTU 1500

    What differs, A -> B
    - kernel: 6.18.5 -> 6.19.0-rc1+
    - mitigation of retbleed: (nothing) -> Mitigation: untrained return thunk;
      SMT enabled with STIBP protection

    Intervals and verdicts come from how much runs of the same thing differ
    here: one standard deviation is 0.5% in the steadiest comparison, 1.6% in
    the most uneven.

    tcp_stream, local
    goodput                       A       B
    path                     Gbit/s  Gbit/s    B/A  95 % interval   verdict
    --------------------------------------------------------------------------
    bridge, 64 B messages      21.4    21.4  1.000  0.988 to 1.012  equivalent
    bridge, 16 KiB messages    21.4    19.5  0.910  0.891 to 0.929  worse

    CPU cost                       A        B
    path                     ns/byte  ns/byte    B/A  95 % interval   verdict
    ----------------------------------------------------------------------------
    bridge, 64 B messages      0.612    0.612  1.000  0.988 to 1.012  equivalent
    bridge, 16 KiB messages    0.612    0.612  1.000  0.979 to 1.021  ? 3.1%

    tcp_rr, local, 1 B requests, 1 B responses
    transactions     A     B
    path           k/s   k/s    B/A  95 % interval   verdict
    -----------------------------------------------------------
    veth          13.1  13.1  1.002  0.991 to 1.013  equivalent
    bridge        13.1  12.9  0.982  0.952 to 1.012  ? 4.7%

    CPU cost               A               B
    path      us/transaction  us/transaction    B/A  95 % interval   verdict
    ------------------------------------------------------------------------
    veth                62.9            69.8  1.110  1.098 to 1.122  worse
    bridge              62.9            59.8  0.950  0.921 to 0.979  better

    Intervals at 95 %, each by itself. worse, better: different after correction
    for all 10 comparisons (Benjamini-Hochberg). equivalent: within 2 %. ? x%:
    inconclusive; a difference of x % would have been found with a probability
    of 80 %.

    What the verdicts support, B against A
    - bridge, tcp_stream, local, 16 KiB messages: goodput worse, -9.0 % (-11 to
      -7.1 %), 21.4 -> 19.5 Gbit/s; trips the gate.
    - veth, tcp_rr, local: CPU cost worse, +11 % (+9.8 to +12 %), 62.9 -> 69.8
      us/transaction; trips the gate.
    - veth, tcp_rr, local: latency p99 worse, +11 % (+9.8 to +12 %), 132 -> 146
      us; trips the gate.
    - bridge, tcp_rr, local: CPU cost better, -5.0 % (-7.9 to -2.1 %), 62.9 ->
      59.8 us/transaction.
    - bridge, tcp_rr, local: latency p99 better, -5.0 % (-7.9 to -2.1 %), 132 ->
      125 us.
    - Of 10 comparisons 5 are different, 3 equivalent, 2 inconclusive.

    Gate: FAILED. 3 of 10 comparisons are shown to be worse by more than 3 %.
    Four times out of five it catches a loss of 4.5 % where it sees best, of 7.3
    % where worst.

    In B only
    - netkit, tcp_rr, local: A: not in its plan

    Warnings
    - In B only: the kernel carries CONFIG_PROVE_LOCKING, which slows it down.
    ");
}

#[test]
fn ratios_to_the_base() {
    let mut report = report();
    report.relative = true;
    report.gate = None;
    report.differences.clear();
    report.warnings.clear();
    report.left_out.clear();
    report.cells.truncate(2);
    for cell in &mut report.cells {
        cell.base = Some("veth".to_owned());
        cell.comparisons.remove("cpu_ns_per_byte");
        for q in cell.comparisons.values_mut() {
            (q.a, q.b) = (estimate(0.92, 0.01), estimate(0.92 * q.ratio.value, 0.01));
            q.trips_gate = None;
        }
    }
    insta::assert_snapshot!(render(&report, "text"), @"
    hopyard diff: paths - B against A

    Linux 6.18.5, AMD EPYC 7B13, 2 CPUs, under KVM
    A: 20260301T101500Z-paths, 10 blocks of 0.3 s, begun 2026-03-01T10:15:00Z
    A: 20260301T111500Z-paths, 10 blocks of 0.3 s, begun 2026-03-01T11:15:00Z
    A: 20260301T121500Z-paths, 10 blocks of 0.3 s, begun 2026-03-01T12:15:00Z
    B: 20260302T101500Z-paths, 10 blocks of 0.3 s, begun 2026-03-02T10:15:00Z
    B: 20260302T111500Z-paths, 10 blocks of 0.3 s, begun 2026-03-02T11:15:00Z
    B: 20260302T121500Z-paths, 10 blocks of 0.3 s, begun 2026-03-02T12:15:00Z
    every cell: 1 flow, TCP cubic, ends on different CPUs, IPv4, MTU 1500

    Of what was recorded, nothing differs between the two but the time.

    Intervals and verdicts come from how much runs of the same thing differ
    here: one standard deviation is 0.6% in the steadiest comparison, 1.1% in
    the most uneven.

    Ratios to the base within each run: what made the machine faster or slower
    as a whole cancels, and so does whatever changed in the base and the cell
    alike.

    tcp_stream, local
    goodput                       A       B
    path                     x base  x base    B/A  95 % interval   verdict
    --------------------------------------------------------------------------
    bridge, 64 B messages     0.920   0.920  1.000  0.988 to 1.012  equivalent
    bridge, 16 KiB messages   0.920   0.837  0.910  0.891 to 0.929  worse

    Intervals at 95 %, each by itself. worse, better: different after correction
    for all 2 comparisons (Benjamini-Hochberg). equivalent: within 2 %. ? x%:
    inconclusive; a difference of x % would have been found with a probability
    of 80 %.

    What the verdicts support, B against A
    - bridge, tcp_stream, local, 16 KiB messages: goodput over veth's worse,
      -9.0 % (-11 to -7.1 %), 0.920 -> 0.837.
    - Of 2 comparisons 1 are different, 1 equivalent, 0 inconclusive.
    ");
}

/// Removes the verdicts, as if each side were one run.
fn without_scatter(report: &mut DiffReport) {
    report.a.truncate(1);
    report.b.truncate(1);
    for q in report
        .cells
        .iter_mut()
        .flat_map(|c| c.comparisons.values_mut())
    {
        (q.runs_a, q.runs_b) = (1, 1);
        (q.verdict, q.change, q.smallest_detectable) = (None, None, None);
        (q.trips_gate, q.gate_catches_ratio, q.run_scatter) = (None, None, None);
        q.interval_from = IntervalFrom::Blocks;
    }
    report.gate = Some(Gate {
        fail_on_ratio: 0.03,
        failed: false,
        comparisons: 10,
        tripped: 0,
        blind: 10,
        incomplete: 0,
        undecided: true,
        blocks_needed: None,
        runs_needed: Some(4),
    });
}

#[test]
fn two_single_runs_have_no_verdicts() {
    let mut report = report();
    report.cells.truncate(1);
    report.differences.clear();
    report.left_out.clear();
    report.warnings.clear();
    without_scatter(&mut report);
    insta::assert_snapshot!(render(&report, "text"), @"
    hopyard diff: paths - B against A

    Linux 6.18.5, AMD EPYC 7B13, 2 CPUs, under KVM
    A: 20260301T101500Z-paths, 10 blocks of 0.3 s, begun 2026-03-01T10:15:00Z
    B: 20260302T101500Z-paths, 10 blocks of 0.3 s, begun 2026-03-02T10:15:00Z
    every cell: 1 flow, 64 B messages, TCP cubic, ends on different CPUs, IPv4,
      MTU 1500

    Of what was recorded, nothing differs between the two but the time.

    Intervals are within these runs; how much two runs of the same thing differ
    here is not known, so there is no verdict between runs: repeat each at least
    three times, or compare both in one run with --a/--b.

    tcp_stream, local
    goodput       A       B
    path     Gbit/s  Gbit/s    B/A  95 % interval   verdict
    -------------------------------------------------------
    bridge     21.4    21.4  1.000  0.988 to 1.012  none

    CPU cost        A        B
    path      ns/byte  ns/byte    B/A  95 % interval   verdict
    ----------------------------------------------------------
    bridge      0.612    0.612  1.000  0.988 to 1.012  none

    Intervals at 95 %, within these runs only; no verdicts.

    Gate: UNDECIDED. None of 10 comparisons is shown to be worse by more than 3
    %, but 10 leave that open. How much two runs of the same thing differ here
    is not known: it takes at least 4 runs of each side. It could have caught
    none.
    ");
}

/// Runs that only show scatter are named, and so are comparisons that have no verdict despite them.
#[test]
fn a_borrowed_scatter_is_told() {
    let mut report = report();
    report.repeats = vec![runs(3)];
    let q = report.cells[2]
        .comparisons
        .get_mut("latency_p99_ns")
        .unwrap();
    (q.verdict, q.change, q.run_scatter) = (None, None, None);
    q.interval_from = IntervalFrom::Blocks;
    let text = render(&report, "text");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "for the scatter: 3 runs of one thing, 20260303T101500Z-paths",
        "Where there is no verdict, the interval is within these runs",
        "correction for all 9 comparisons",
        "2 inconclusive, 1 without a verdict",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

/// Only shown differences are not folded, the greatest loss first.
#[test]
fn a_comment_answers_first() {
    let text = render(&report(), "markdown");
    assert_eq!(text, render(&report(), "comment"));
    let answer = "**B is worse in 3 and better in 2 of 10 comparisons; the greatest loss: CPU cost of veth, tcp_rr, local, \
                  +11 % (+9.8 to +12 %).**\n";
    assert!(text.starts_with(answer), "{text}");
    let (open, folded) = text.split_once("<details>").unwrap();
    let rows: Vec<&str> = open.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(rows.len(), 2 + 5, "{text}");
    let first = "| veth, tcp_rr, local | CPU cost | 62.9 µs/transaction | 69.8 µs/transaction | 1.110 | 1.098 to 1.122 | worse, \
                 trips the gate |";
    assert_eq!(rows[2], first);
    assert!(
        rows[4].contains("worse") && rows[5].contains("better"),
        "{text}"
    );
    assert!(open.contains("Gate: FAILED"), "{text}");
    for name in [
        "All 10 comparisons",
        "2 facts differ",
        "1 comparison not made",
        "1 warning",
    ] {
        assert!(folded.contains(name), "{name}: {text}");
    }
}

/// With any number of cells, a comment is short enough for GitHub, and states how many rows it lacks.
#[test]
fn a_comment_is_never_too_long() {
    let mut many = report();
    for n in 0..300 {
        many.cells.push(rr(&format!("path{n}"), 0.8, 1.2, 0.01));
    }
    many.differences[0].b = "long ".repeat(50_000);
    let text = render(&many, "markdown");
    assert!((60_000..65_536).contains(&text.chars().count()));
    assert!(text.contains("**Left out: "), "{text}");
    assert_eq!(
        text.matches("<details>").count(),
        text.matches("</details>").count()
    );
}

#[test]
fn markdown_says_the_same() {
    let text = render(&report(), "markdown");
    for said in [
        "# hopyard diff: paths",
        "- kernel: 6.18.5 -> 6.19.0-rc1+",
        "| 0.910 |",
        "Gate: FAILED",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn json_reads_back_and_the_schema_names_what_it_has() {
    let report = report();
    let text = render(&report, "json");
    let again: DiffReport = serde_json::from_str(&text).unwrap();
    assert_eq!(again, report);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["cells"][1]["path"], "bridge");
    assert_eq!(
        json["cells"][1]["comparisons"]["goodput_bps"]["change"],
        "worse"
    );
    assert_eq!(json["warnings"][0]["code"]["only_b"], "debug_kernel");
    let schema = schema();
    assert_eq!(schema["title"], "hopyard/diff/2");
    for key in json.as_object().unwrap().keys() {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
    for key in json["cells"][1].as_object().unwrap().keys() {
        assert!(
            schema["$defs"]["CellDiff"]["properties"][key].is_object(),
            "{key}"
        );
    }
}

/// Names from a run directory are not trusted.
#[test]
fn foreign_text_stays_in_its_line() {
    let mut report = report();
    report.b[1].id = "evil\n\u{1b}[31m".to_owned();
    report.differences[0].b = "6\u{7}\nµ".to_owned();
    let text = render(&report, "text");
    assert!(
        text.is_ascii() && !text.contains('\u{1b}') && !text.contains('\u{7}'),
        "{text}"
    );
}

/// The answer names the greatest loss, also where a smaller one trips the gate and stands first.
#[test]
fn the_greatest_loss_is_the_greatest() {
    let mut report = report();
    let mut all = report.cells.iter_mut().flat_map(|c| &mut c.comparisons);
    let (_, q) = all
        .find(|(_, q)| q.change == Some(Change::Worse) && q.trips_gate == Some(true))
        .unwrap();
    q.trips_gate = Some(false);
    q.ratio = Estimate {
        value: 1.5,
        low: 1.01,
        high: 2.2,
        ..q.ratio.clone()
    };
    let text = render(&report, "comment");
    assert!(text.contains("the greatest loss: "), "{text}");
    let answer = text.lines().next().unwrap();
    assert!(answer.contains("+50 %"), "{answer}");
}
