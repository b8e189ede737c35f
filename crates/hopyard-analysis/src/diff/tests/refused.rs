//! Runs that cannot be compared, and the errors about them.

use super::*;

/// A run of one cell, with load, peer and axes chosen by the test.
fn of_cell(id: &str, change: impl FnOnce(&mut crate::model::Cell)) -> Run {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut run = made(id, &[1.0], 0.005, &mut rng);
    change(&mut run.header.cells[0].cell);
    run
}

#[test]
fn runs_without_a_common_cell_are_told_what_differs_and_what_to_do() {
    let said = |a: &Run, b: &Run| of_two(a, b, &Ask::default()).unwrap_err().to_string();
    let one = of_cell("a", |_| {});
    let four = of_cell("b", |cell| cell.axes.flows = 4);
    assert_eq!(
        said(&one, &four),
        "the runs have no cell in common: the nearest are veth/local/tcp_stream of A and of B, which differ in flows \
         (1 in A, 4 in B); measure both runs with the same value (--set flows=1), or compare the values in one run \
         (--set flows=1,4 --base flows=1)"
    );
    let bridge = of_cell("b", |cell| cell.path = "bridge".to_owned());
    assert_eq!(
        said(&one, &bridge),
        "the runs have no cell in common: the nearest are veth/local/tcp_stream of A and bridge/local/tcp_stream of B; \
         measure both runs with the same --paths, or compare the paths in one run (--paths veth,bridge --base veth)"
    );
    let rules = of_cell("b", |cell| {
        cell.axes.rules = Some(20);
        cell.axes.mtu_bytes = 9000;
    });
    assert_eq!(
        said(&one, &rules),
        "the runs have no cell in common: the nearest are veth/local/tcp_stream of A and of B, which differ in mtu \
         (1500 in A, 9000 in B) and rules (none in A, 20 in B); measure both runs with the same values (--set)"
    );
    let mut nothing = of_cell("b", |_| {});
    nothing.header.cells.clear();
    nothing.samples.clear();
    assert_eq!(
        said(&one, &nothing),
        "the runs have no cell in common: run B has no cells; measure both with the same plan"
    );
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let [a, b] = singles(&[1.0; 2], &[1.0; 2], 0.01, 1);
    let refused = |a: &Run, b: &Run, ask: &Ask| of_two(a, b, ask).unwrap_err();
    let same = || Refused::SameRun("a".to_owned());
    assert_eq!(refused(&a, &a.clone(), &Ask::default()), same());
    let both = [a.clone(), b.clone()];
    let many = |a: &[Run], b: &[Run], repeats: &[Vec<Run>]| {
        diff(a, b, repeats, &Ask::default()).unwrap_err()
    };
    assert_eq!(many(&both, &both[..1], &[]), same());
    assert_eq!(many(&both[..1], &both[1..], &[both.to_vec()]), same());
    assert_eq!(many(&[], &both, &[]), Refused::NoRuns("A"));
    let mut lone = b.clone();
    lone.header.id = "c".into();
    assert_eq!(
        many(&both[..1], &both[1..], &[vec![lone]]),
        Refused::LoneRepeat("c".to_owned())
    );
    let mut other = b.clone();
    other
        .header
        .cells
        .iter_mut()
        .for_each(|c| c.cell.path = format!("{}-2", c.cell.path));
    let why = refused(&a, &other, &Ask::default()).to_string();
    assert!(
        why.contains("veth/local/tcp_stream of A and veth-2/local/tcp_stream of B"),
        "{why}"
    );
    let mut empty = b.clone();
    empty.samples.clear();
    assert!(matches!(
        refused(&a, &empty, &Ask::default()),
        Refused::NoFigures(_)
    ));
    let mut single = a.clone();
    single.header.id = "c".into();
    single.header.cells.truncate(1);
    single.samples.retain(|s| s.cell == 0);
    let relative = Ask {
        relative: true,
        fail_on: None,
    };
    assert!(matches!(
        refused(&a, &single, &relative),
        Refused::NoFigures(_)
    ));
}
