//! Which undecided claim is measured further, and what comes of it.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::further::{Further, further};
use crate::kept::{Asked, Place};
use crate::store::{End, Record, Writer};

/// X1 asks for more than `bridge` moves, X2 for a little more than `macvlan` does.
const X1: &str = "judge = \"ratio\"\nquantity = \"rate\"\ncells = { path = \"bridge\" }\nto = [\"veth\"]\nat_least = 0.95\n";

fn both() -> String {
    let x2 = X1.replace("bridge", "macvlan");
    text_of("paths", &[("X1", X1), ("X2", &x2)])
}

const PATHS: [(&str, f64); 4] = [
    ("veth", 1e9),
    ("bridge", 0.93e9),
    ("direct", 1e9),
    ("macvlan", 0.945e9),
];

/// A run in which each cell took a second in each block.
fn timed(blocks: u32, spread: f64) -> Run {
    timed_of(&PATHS, blocks, spread)
}

fn timed_of(paths: &[(&str, f64)], blocks: u32, spread: f64) -> Run {
    let mut run = made(paths, blocks, spread);
    run.header.plan = "paths".to_owned();
    for sample in &mut run.samples {
        sample.took_ns = 1_000_000_000;
        sample.started_ns = u64::from(sample.order) * sample.took_ns;
    }
    run
}

fn next(text: &str, run: Run, left: u64) -> Option<Further> {
    next_after(text, run, left, 0)
}

/// The same after so many seconds were spent on X1.
fn next_after(text: &str, run: Run, left: u64, spent: u64) -> Option<Further> {
    let report = [parse("mine.toml", text).unwrap()];
    let chosen = choose(&report, &[]).unwrap();
    let evidence = Evidence {
        runs: vec![run],
        ..Evidence::default()
    };
    let spent = |claim: &str| Duration::from_secs(if claim == "X1" { spent } else { 0 });
    further(&chosen, &evidence, Duration::from_secs(left), &spent).unwrap()
}

fn paths(next: &Further) -> Vec<String> {
    let parts = next.demand.plan.parts.iter();
    let names = parts.map(|part| match &part.paths {
        Paths::Named(names) => names.concat(),
        other => panic!("{other:?}"),
    });
    names.collect()
}

#[test]
fn the_claim_that_is_decided_soonest_has_more_of_its_cells() {
    let one = next(&both(), timed(8, 0.01), 3600).unwrap();
    assert_eq!(
        (one.claim.as_str(), paths(&one)),
        ("X1", vec!["veth".to_owned(), "bridge".to_owned()])
    );
    let blocks = one.demand.plan.blocks;
    assert_eq!((blocks.min, blocks.max), (8, 8));
    assert!(
        !one.demand.profile && (16..20).contains(&one.takes.as_secs()),
        "{one:?}"
    );
    let other = next_after(&both(), timed(8, 0.01), 3600, 3000).unwrap();
    assert_eq!(other.claim, "X2");
    // Its interval at 95 % is outside, which is not enough before the end.
    let report = parse("mine.toml", &both()).unwrap();
    let evidence = Evidence {
        runs: vec![timed(8, 0.01)],
        ..Evidence::default()
    };
    let first = choose(std::slice::from_ref(&report), &[]).unwrap()[0];
    assert_eq!(judge(first, &evidence).verdict, ClaimVerdict::Fails);
    // After more of the same it is sure, and the other one's turn. That is known roughly: it gets twice what there is.
    let two = next(&both(), timed(16, 0.01), 3600).unwrap();
    assert_eq!((two.claim.as_str(), two.demand.plan.blocks.max), ("X2", 32));
    let later = next(&both(), timed(90, 0.01), 3600).unwrap();
    assert_eq!(
        (later.claim.as_str(), later.demand.plan.blocks.max),
        ("X2", 45)
    );
    assert!(two.takes > Duration::from_secs(100), "{two:?}");
}

#[test]
fn what_is_decided_or_takes_too_long_is_left_alone() {
    assert!(next(&both(), timed(8, 0.0001), 3600).is_none());
    // X1 takes 16 to 18 s, and may take less than it seems to.
    assert!(next(&both(), timed(8, 0.01), 5).is_some());
    assert!(next(&both(), timed(8, 0.01), 3).is_none());
    // What would refute it says nothing.
    let weaker = both().replace(
        "at_least = 0.95\n",
        "at_least = 0.95\nweaker = \"something is lost\"\n",
    );
    assert!(next(&weaker, timed(8, 0.01), 3600).is_none());
    let stronger = weaker.replace("weaker", "stronger");
    assert!(next(&stronger, timed(8, 0.01), 3600).is_some());
    // A value on the bound is never decided.
    let mut even = timed(8, 0.01);
    for sample in &mut even.samples {
        let factor = if sample.cell == 1 { 0.95 / 0.93 } else { 1.0 };
        if let Outcome::Measured(m) = &mut sample.outcome {
            m.received.bytes = (m.received.bytes as f64 * factor) as u64;
        }
    }
    assert_eq!(
        next(&both(), even, 3600).map(|one| one.claim),
        Some("X2".to_owned())
    );
}

/// One block of eight that the machine disturbed moves the mean to the bound, where no number of blocks seems to decide. Further ones
/// that are as the other seven do, after as many times as a claim gets more.
#[test]
fn a_disturbed_block_does_not_make_a_claim_hopeless() {
    let of = |disturbed: f64, blocks: u32| {
        let mut run = timed_of(&[("veth", 1e9), ("bridge", 0.99e9)], blocks, 0.01);
        let in_block = |sample: &&mut crate::model::Sample| sample.cell == 1 && sample.block == 7;
        for sample in run.samples.iter_mut().filter(in_block) {
            if let Outcome::Measured(m) = &mut sample.outcome {
                m.received.bytes = (m.received.bytes as f64 * disturbed) as u64;
            }
        }
        run
    };
    let text = text_of("paths", &[("X1", X1)]);
    for (disturbed, times) in [(1.0, 0), (0.8, 1), (0.6, 2)] {
        let mut blocks = 8;
        for _ in 0..times {
            let further = next(&text, of(disturbed, blocks), 120).unwrap();
            blocks += further.demand.plan.blocks.max;
        }
        assert!(times <= crate::further::MOST_TIMES);
        let report = parse("mine.toml", &text).unwrap();
        let evidence = Evidence {
            runs: vec![of(disturbed, blocks)],
            ..Evidence::default()
        };
        let chosen = choose(std::slice::from_ref(&report), &[]).unwrap()[0];
        let point = judge(chosen, &evidence).checks[0].points[0].clone();
        let within = BoundPosition::Inside;
        assert_eq!(point.lies, within, "{disturbed}, {blocks}: {point:?}");
        assert!(blocks < 80, "{disturbed}: {blocks} blocks");
    }
}

/// Where most of the points decide, it takes those alone that make most of them.
#[test]
fn of_most_points_the_nearest_decide() {
    let most = X1
        .replace(
            "\"bridge\"",
            "[\"bridge\", \"macvlan\", \"ipvlan\", \"vxlan\"]",
        )
        .replace("at_least", "over = \"most\"\nat_least");
    let most = text_of("paths", &[("X1", &most)]);
    // Two of four outside refute it. One is, one nearly so, one lies on the bound.
    let of = |vxlan| {
        let paths = [
            ("veth", 1e9),
            ("bridge", 0.93e9),
            ("direct", 1e9),
            ("macvlan", 0.949e9),
            ("tap-mq", 1e9),
            ("ipvlan", 0.8e9),
            ("native", 1e9),
            ("vxlan", vxlan),
        ];
        timed_of(&paths, 8, 0.01)
    };
    let one = next(&most, of(1.2e9), 3600).unwrap();
    assert_eq!(paths(&one), ["veth", "bridge"]);
    // Two are.
    assert!(next(&most, of(0.8e9), 3600).is_none());
}

fn keep(run: &Run, directory: &Path) {
    let mut writer = Writer::create(directory, &run.header).unwrap();
    for sample in &run.samples {
        writer.append(sample).unwrap();
    }
    writer.finish(End::Complete).unwrap();
}

#[test]
fn later_blocks_count_with_the_first_ones() {
    let home = tempfile::tempdir().unwrap();
    let place = Place::create(&home.path().join("claims"), Asked::new(&[], false)).unwrap();
    keep(&timed(8, 0.05), &place.of_plan("paths"));
    // Of other cells, in another order, and twice.
    for before in 0..2 {
        let mut later = timed(16, 0.05);
        later.header.blocks_max = 16;
        later.header.cells = [1, 0].map(|at| later.header.cells[at].clone()).into();
        later.samples.retain(|sample| sample.cell < 2);
        for sample in &mut later.samples {
            sample.cell = 1 - sample.cell;
        }
        keep(&later, &place.of_further(before, "X1"));
    }
    assert_eq!(place.further().unwrap(), ["X1", "X1"]);
    let evidence = place.evidence().unwrap();
    let report = parse("mine.toml", &both()).unwrap();
    let chosen = choose(std::slice::from_ref(&report), &[]).unwrap();
    let counts = chosen.iter().map(|one| {
        let judged = judge(*one, &evidence);
        let point = &judged.checks[0].points[0];
        (point.measured.n, (point.measured.value * 100.0).round())
    });
    assert_eq!(counts.collect::<Vec<_>>(), [(40, 93.0), (8, 94.0)]);
    let told = document(&chosen, &evidence);
    let later = told.runs[0].further.as_ref().unwrap();
    assert_eq!((told.runs[0].blocks, later.blocks, later.cells), (8, 32, 2));
    let text = (crate::report::export("text").unwrap().claims.unwrap())(&told, Detail::Parts);
    assert!(
        text.contains("8 blocks and 32 of 2 cells only × 0.2 s"),
        "{text}"
    );
}
