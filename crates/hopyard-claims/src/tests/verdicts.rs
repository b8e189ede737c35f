//! Known figures have known verdicts, and sentences that say so.

use super::*;

#[test]
fn known_figures_have_known_verdicts() {
    for (bridge, direct, spread, blocks, verdict) in [
        (1e9, 1.01e9, 0.001, 10, ClaimVerdict::Holds),
        (0.8e9, 1e9, 0.001, 10, ClaimVerdict::Fails),
        (0.95e9, 1e9, 0.02, 10, ClaimVerdict::Undecided),
        // Within the rule, and outside it: too few blocks to say so.
        (1e9, 1e9, 0.001, 7, ClaimVerdict::Undecided),
        (0.5e9, 1e9, 0.001, 7, ClaimVerdict::Undecided),
    ] {
        let run = made(
            &[("veth", 1e9), ("bridge", bridge), ("direct", direct)],
            blocks,
            spread,
        );
        let claim = judged(RATIO, run);
        assert_eq!(
            claim.verdict, verdict,
            "{bridge} {direct} {spread} {blocks}"
        );
        assert_eq!(claim.checks[0].points.len(), 2);
        assert_eq!(
            verdict == ClaimVerdict::Undecided,
            claim.checks[0].smallest_effect.is_some()
        );
    }
}

#[test]
fn sentences_can_be_quoted() {
    let at = |bridge, spread| {
        judged(
            RATIO,
            made(
                &[("veth", 1e9), ("bridge", bridge), ("direct", 1e9)],
                10,
                spread,
            ),
        )
        .sentence
    };
    insta::assert_snapshot!(at(1e9, 0.002), @"X1 holds: goodput over veth is 1.00 (0.997 to 1.00) at bridge, as the rule has it: 0.95 to 1.05; the nearest to it of 2.");
    insta::assert_snapshot!(at(0.8e9, 0.002), @"X1 fails: goodput over veth is 0.800 (0.798 to 0.802) at bridge where the rule asks for 0.95 to 1.05; outside at 1 of 2.");
    let nearly = at(0.918e9, 0.02);
    assert!(
        nearly.starts_with("X1 undecided: goodput over veth is 0.918 (0.891 to 0.946)"),
        "{nearly}"
    );
    assert!(
        nearly.contains(", outside what the rule asks for, 0.95 to 1.05, but not as surely"),
        "{nearly}"
    );
    insta::assert_snapshot!(at(0.96e9, 0.02), @"X1 undecided: goodput over veth is 0.960 (0.931 to 0.989) at bridge, across what the rule asks for, 0.95 to 1.05; 1 of 2 are within, 0 outside; 4.3 % within a bound would have shown four times out of five.");
}

#[test]
fn published_ratios_come_from_the_plan() {
    let mut run = made(
        &[("veth", 1e9), ("bridge", 1e9), ("direct", 1e9)],
        10,
        0.001,
    );
    let figure = |path: &str, value| PublishedFigure {
        path: path.to_owned(),
        load: LoadKind::TcpStream,
        peer: Some(Peer::Local),
        set: std::collections::BTreeMap::new(),
        called: path.to_owned(),
        value,
        half_width: None,
    };
    run.header.published = vec![crate::model::Published {
        source: "s".to_owned(),
        quantity: "goodput_bps".to_owned(),
        what: "Gbit/s".to_owned(),
        remark: "r".to_owned(),
        figures: vec![figure("veth", 40.0), figure("bridge", 30.0)],
    }];
    let points = judged(RATIO, run).checks.remove(0).points;
    let published: Vec<Option<f64>> = points.iter().map(|p| p.published).collect();
    assert_eq!(published, [Some(0.75), None]);
}

#[test]
fn the_share_of_a_difference() {
    let check = "judge = \"share\"\nquantity = \"cost\"\ncells = { path = \"bridge-nf\" }\nwithout = \"bridge\"\nbase = \"direct\"\nat_least = 0.5\n";
    // The cost is the same CPU time over other numbers of bytes: 10, 7 and 6 units.
    let run = |without: f64| {
        made(
            &[
                ("bridge-nf", 1e9),
                ("bridge", 10e9 / without),
                ("direct", 10e9 / 6.0),
            ],
            10,
            0.001,
        )
    };
    let claim = judged(check, run(7.0));
    assert_eq!(claim.verdict, ClaimVerdict::Holds);
    let share = &claim.checks[0].points[0].measured;
    assert!((share.value - 0.75).abs() < 0.01, "{share:?}");
    assert_eq!(judged(check, run(9.0)).verdict, ClaimVerdict::Fails);
}

#[test]
fn what_is_missing_is_said() {
    let run = made(&[("veth", 1e9), ("direct", 1e9)], 10, 0.001);
    let mut claim = judged(RATIO, run.clone());
    assert_eq!(
        claim.verdict,
        ClaimVerdict::Untestable,
        "it holds on half of its rule"
    );
    insta::assert_snapshot!(claim.sentence, @"X1 cannot be tested here: bridge: not in the run of plan plan; what can be tested of it holds.");
    let mut none = run;
    none.header.cells.clear();
    none.samples.clear();
    none.header.left_out = vec![("bridge".to_owned(), "no module".to_owned())];
    claim = judged(RATIO, none);
    assert_eq!(claim.verdict, ClaimVerdict::Untestable);
    assert_eq!(
        claim.sentence,
        "X1 cannot be tested here: bridge: no module; direct, veth: not in the run of plan plan."
    );
}

/// "G < 1 holds; < 0.95 clearly": the same figures, and another verdict.
#[test]
fn a_further_grade_is_judged_beside_the_rule() {
    let check = "judge = \"ratio\"\nquantity = \"rate\"\ncells = { path = \"bridge\" }\nto = [\"veth\"]\nat_most = 1.0\ngrade = { called = \"Clearly\", at_most = 0.95 }\n";
    use ClaimVerdict::{Fails, Holds, Undecided};
    for (bridge, spread, verdict, grade) in [
        (0.9e9, 0.001, Holds, Holds),
        (0.98e9, 0.001, Holds, Fails),
        (0.95e9, 0.01, Holds, Undecided),
        (1.1e9, 0.001, Fails, Fails),
    ] {
        let claim = judged(
            check,
            made(&[("veth", 1e9), ("bridge", bridge)], 10, spread),
        );
        let graded = claim.checks[0].grade.as_ref().map(|grade| grade.verdict);
        assert_eq!(
            (claim.verdict, graded),
            (verdict, Some(grade)),
            "{bridge} {spread}"
        );
        let said = format!(" Clearly, at most 0.95: {}.", grade.words());
        assert!(claim.sentence.ends_with(&said), "{}", claim.sentence);
    }
    // Of two paths one could not be measured: neither the rule nor the grade can hold.
    let both = check.replace("\"bridge\"", "[\"bridge\", \"vxlan\"]");
    let mut run = made(&[("veth", 1e9), ("bridge", 0.9e9)], 10, 0.001);
    run.header.left_out = vec![("vxlan".to_owned(), "no module".to_owned())];
    let claim = judged(&both, run);
    let graded = claim.checks[0].grade.as_ref().map(|grade| grade.verdict);
    assert_eq!(graded, Some(ClaimVerdict::Untestable), "{}", claim.sentence);
}

/// Half of a rule cannot make a claim hold; it can make it fail, or leave it undecided.
#[test]
fn what_is_tested_in_part_can_fail_and_cannot_hold() {
    for (direct, spread, verdict) in [
        (1e9, 0.001, ClaimVerdict::Untestable),
        (0.8e9, 0.001, ClaimVerdict::Fails),
        (0.95e9, 0.02, ClaimVerdict::Undecided),
    ] {
        let mut run = made(&[("veth", 1e9), ("direct", direct)], 10, spread);
        run.header.left_out = vec![("bridge".to_owned(), "no module".to_owned())];
        let claim = judged(RATIO, run.clone());
        assert_eq!(claim.verdict, verdict, "{}", claim.sentence);
        assert!(claim.was_tested());
        // More blocks cannot make it hold, and the reader should not wait for that.
        let says = claim.sentence.contains("It can only fail here");
        assert_eq!(
            says,
            verdict == ClaimVerdict::Undecided,
            "{}",
            claim.sentence
        );
        // The same where a part of the rule has no cells at all.
        let other = "[[claim.check]]\njudge = \"level\"\nquantity = \"rate\"\ncells = { path = \"bridge\" }\nat_least = 1.0\n";
        let own = RATIO.replace("[\"bridge\", \"direct\"]", "\"direct\"");
        let claim = judged(&format!("{own}\n{other}"), run);
        assert_eq!(claim.verdict, verdict, "{}", claim.sentence);
        assert_eq!(
            claim.checks[1].verdict,
            ClaimVerdict::Untestable,
            "{}",
            claim.sentence
        );
    }
}

#[test]
fn a_deed_is_pass_or_fail() {
    let report = one_claim("judge = \"does\"\ndoes = \"twelve-uplinks\"\n");
    let chosen = Chosen {
        report: &report,
        claim: &report.claims[0],
        by_id: true,
    };
    let with = |done: Option<bench::Done>| {
        let mut evidence = Evidence::default();
        evidence
            .done
            .extend(done.map(|done| ("twelve-uplinks".to_owned(), done)));
        judge(chosen, &evidence)
    };
    let deed = |passed| {
        Some(Ok(bench::FunctionalCheck {
            passed,
            seen: "12 of 12 work".to_owned(),
        }))
    };
    assert_eq!(with(deed(true)).sentence, "X1 holds: 12 of 12 work.");
    assert_eq!(with(deed(false)).verdict, ClaimVerdict::Fails);
    let lacking = with(Some(Err("no tcx".to_owned())));
    assert_eq!(lacking.sentence, "X1 cannot be tested here: no tcx.");
    assert_eq!(with(None).verdict, ClaimVerdict::Untestable);
}

/// A figure without an interval says why: values that are not known, nothing to compare with, or too few blocks.
#[test]
fn a_figure_without_an_interval_says_why() {
    let of = |quantity: &str, run: Run| {
        let check = format!(
            "judge = \"ratio\"\nquantity = \"{quantity}\"\ncells = {{ path = \"bridge\" }}\nto = [\"veth\"]\nat_most = 1.0\n"
        );
        let claim = judged(&check, run);
        assert_eq!(claim.verdict, ClaimVerdict::Untestable, "{claim:#?}");
        claim.sentence
    };
    let both = |blocks| made(&[("veth", 1e9), ("bridge", 1e9)], blocks, 0.001);
    // Each has softirq time in some blocks, and no block has that of both.
    let mut apart = both(10);
    for sample in &mut apart.samples {
        if let Outcome::Measured(m) = &mut sample.outcome
            && (sample.cell == 0) == (sample.block == 0)
        {
            m.cpu.closure = 0.9;
        }
    }
    insta::assert_snapshot!(of("softirq_ratio", apart), @"X1 cannot be tested here: softirq time, bridge / veth: known in 0 of 10 blocks: the columns of /proc/stat do not add up, and the run took no profiles that would tell softirq time.");
    for (quantity, blocks, words) in [
        (
            "send_error_ratio",
            10,
            "nothing of it was seen in 10 of 10 blocks of what it is compared with",
        ),
        ("rate", 1, "one block has it, and an interval takes two"),
    ] {
        let sentence = of(quantity, both(blocks));
        assert!(sentence.contains(words), "{sentence}");
    }
}
