//! What people are shown of claims.

use super::*;
use crate::model::ClaimsReport;
use crate::report::export;

fn render(document: &ClaimsReport, format: &str, detail: Detail) -> String {
    (export(format).unwrap().claims.unwrap())(document, detail)
}

#[test]
fn a_report_reads_well() {
    let report = one_claim(RATIO);
    let evidence = Evidence {
        runs: vec![made(
            &[("veth", 1e9), ("bridge", 0.8e9), ("direct", 1e9)],
            10,
            0.002,
        )],
        ..Evidence::default()
    };
    let chosen = [Chosen {
        report: &report,
        claim: &report.claims[0],
        by_id: true,
    }];
    let document = document(&chosen, &evidence);
    insta::assert_snapshot!(render(&document, "text", Detail::Parts), @"
    hopyard claims · 1 claim: 0 hold, 1 fail, 0 undecided, 0 cannot be tested here
    Linux 6 · cpu, 2 CPUs · hopyard 0
    plan plan: 10 blocks × 0.2 s, 95 % confidence

    Of mine (mine)
    claim  verdict  what is measured           rule       published  measured
    ─────────────────────────────────────────────────────────────────────────────────────────
    X1     fails    goodput over veth: bridge  0.95…1.05  –          0.800 (0.798 to 0.802) ✗

    - bridge is fast. X1 fails: goodput over veth is 0.800 (0.798 to 0.802) at bridge where the rule
      asks for 0.95 to 1.05; outside at 1 of 2.

    Published: nobody.

    measured: of the places that a rule covers, the one that decides; --points shows all · ✓ the
      interval is within the rule · ✗ wholly outside · ? across a bound, or too few blocks

    Warnings
    - plan: 10 blocks of so few cells do not show whether neighbouring blocks are alike; if they are,
      intervals are narrower than they should be. 15 blocks show it (--blocks 15..20).
    ");
    insta::assert_snapshot!(render(&document, "markdown", Detail::Points), @"
    # hopyard claims

    1 claim: 0 hold, 1 fail, 0 undecided, 0 cannot be tested here

    Linux 6 · cpu, 2 CPUs · hopyard 0

    plan plan: 10 blocks × 0.2 s, 95 % confidence

    ## Of mine (mine)

    | claim | verdict | what is measured          | rule      | published | measured                 |
    | ----- | ------- | ------------------------- | --------- | --------- | ------------------------ |
    | X1    | fails   | goodput over veth: bridge | 0.95…1.05 | –         | 0.800 (0.798 to 0.802) ✗ |
    |       |         | goodput over veth: direct | 0.95…1.05 | –         | 1.00 (1.00 to 1.00) ✓    |

    - bridge is fast. X1 fails: goodput over veth is 0.800 (0.798 to 0.802) at bridge where the rule asks for 0.95 to 1.05; outside at 1 of 2.

    Published: nobody.

    - measured: every place that a rule covers · ✓ the interval is within the rule · ✗ wholly outside · ? across a bound, or too few blocks

    ## Warnings

    - plan: 10 blocks of so few cells do not show whether neighbouring blocks are alike; if they are, intervals are narrower than they should be. 15 blocks show it (--blocks 15..20).
    ");
    let json: serde_json::Value =
        serde_json::from_str(&render(&document, "json", Detail::Parts)).unwrap();
    assert_eq!(json["schema"], "hopyard/claims/1");
    let claim = &json["reports"][0]["claims"][0];
    assert_eq!(claim["verdict"], "fails");
    assert_eq!(claim["checks"][0]["points"][0]["lies"], "outside");
}

/// A row or a sentence for each claim, with where and when.
#[test]
fn a_page_has_a_row_for_each_claim() {
    let mut report = one_claim(RATIO);
    let mut untestable = report.claims[0].clone();
    untestable.id = "X2".to_owned();
    untestable.checks.clear();
    untestable.missing = Some("a kernel | of another time".to_owned());
    report.claims.push(untestable);
    let mut run = made(
        &[("veth", 1e9), ("bridge", 0.8e9), ("direct", 1e9)],
        10,
        0.002,
    );
    run.header.left_out = vec![("direct".to_owned(), "no eBPF".to_owned())];
    let evidence = Evidence {
        runs: vec![run],
        ..Evidence::default()
    };
    let chosen: Vec<Chosen<'_>> = report
        .claims
        .iter()
        .map(|claim| Chosen {
            report: &report,
            claim,
            by_id: true,
        })
        .collect();
    let document = document(&chosen, &evidence);
    insta::assert_snapshot!(render(&document, "markdown", Detail::Brief), @r"
    2 claims: 0 hold, 1 fail, 0 undecided, 1 cannot be tested here. Linux 6 · cpu, 2 CPUs · hopyard 0, 2026-01-01.

    Measured by plan plan: 10 blocks × 0.2 s, 95 % confidence.

    | claim | what is claimed | published | measured here                                                | verdict               |
    | ----- | --------------- | --------- | ------------------------------------------------------------ | --------------------- |
    | X1    | bridge is fast  | none      | goodput over veth (bridge): 0.800 (0.798 to 0.802); not tested: direct: no eBPF | fails                 |
    | X2    | bridge is fast  | none      | a kernel \| of another time                                  | cannot be tested here |
    ");
    insta::assert_snapshot!(render(&document, "text", Detail::Brief), @"
    2 claims: 0 hold, 1 fail, 0 undecided, 1 cannot be tested here. Linux 6 · cpu, 2 CPUs · hopyard 0,
    2026-01-01.

    Measured by plan plan: 10 blocks × 0.2 s, 95 % confidence.

    - bridge is fast. X1 fails: goodput over veth is 0.800 (0.798 to 0.802) at bridge where the rule
      asks for 0.95 to 1.05; outside at 1 of 2. Not tested: direct: no eBPF.
    - bridge is fast. X2 cannot be tested here: a kernel | of another time.
    ");
    // Who reads that it is undecided sees what would have been decided.
    let mut open = one_claim(RATIO);
    open.claims[0].checks[0].at_least = Some(0.8);
    let chosen_open = Chosen {
        report: &open,
        claim: &open.claims[0],
        by_id: true,
    };
    let open = super::document(&[chosen_open], &evidence);
    let text = render(&open, "markdown", Detail::Brief);
    assert!(
        text.contains("0.800 (0.798 to 0.802), 0.5 % off a bound would have shown"),
        "{text}"
    );
    let nothing = super::document(&chosen, &Evidence::default());
    assert!(render(&nothing, "markdown", Detail::Brief).contains("No plan was run."));
}
