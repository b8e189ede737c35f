use super::*;

#[test]
fn the_program_is_set_by_what_it_lacks() {
    let done = |extra_ns| Done {
        extra_ns,
        runs: 2.0,
        demand_ns: 2000.0,
    };
    for (extra_ns, slowdown, lacking_ns) in [(0.0, 0.0, 30.0), (40.0, 0.04, -10.0)] {
        assert!((done(extra_ns).slowdown() - slowdown).abs() < 1e-12);
        assert!((done(extra_ns).lacking_ns() - lacking_ns).abs() < 1e-9);
    }
}

#[test]
fn the_known_answer_is_checked() {
    let row = |true_ratios: &[f64]| {
        let tally = Tally {
            true_ratios: true_ratios.to_vec(),
            ..Tally::default()
        };
        tally.known_answer(LoadKind::UdpRr)
    };
    assert_eq!(row(&[1.029, 1.031]).verdict, Verdict::Within);
    for true_ratios in [&[][..], &[1.0], &[1.026], &[1.034]] {
        let verdict = row(true_ratios).verdict;
        assert!(
            matches!(verdict, Verdict::Failed(_)),
            "{true_ratios:?}: {verdict:?}"
        );
    }
}
