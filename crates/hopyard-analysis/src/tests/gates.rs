//! What a gate needs to know before it passes, and figures that depend on how much was observed.

use crate::assess;
use crate::model::stored::Run;
use crate::model::{Axes, CellReport, Gate, GuestUsed, LoadKind, Outcome, Peer, TcpSummary};
use crate::testing::{compared_over, measured, push, round_trips, run};

const BLOCKS: u32 = 10;

/// Transactions of two cells; `counts` says how many round trips each block of a cell has.
fn transactions(counts: [fn(u32) -> u64; 2]) -> Run {
    let mut run = compared_over(BLOCKS, 1.0);
    for planned in &mut run.header.cells {
        planned.cell.load = LoadKind::TcpRr;
        planned.cell.axes = Axes::default().for_cell(LoadKind::TcpRr, Peer::Local, &[]);
    }
    run.header.fail_on = Some(0.2);
    for sample in &mut run.samples {
        let Outcome::Measured(m) = &mut sample.outcome else {
            panic!("nothing was measured");
        };
        let count = counts[sample.cell](sample.block);
        m.received.transactions = count;
        m.latency = Some(round_trips(count, u64::from(sample.block % 3)));
    }
    run
}

fn gate(run: &Run) -> Gate {
    assess(run).gate.unwrap()
}

/// A p99 takes 1,000 observations.
#[test]
fn a_gate_has_not_passed_where_a_percentile_is_known_of_one_cell_alone() {
    let both = gate(&transactions([|_| 1100; 2]));
    assert!(!both.undecided && !both.failed, "{both:?}");
    for counts in [[|_| 1100, |_| 990], [|_| 990, |_| 1100]] as [[fn(u32) -> u64; 2]; 2] {
        let one = gate(&transactions(counts));
        assert!(one.undecided && !one.failed, "{one:?}");
        assert_eq!((one.comparisons, one.blind), (both.comparisons, 1));
        assert_eq!((one.incomplete, both.incomplete), (1, 0));
    }
    // Of neither: a figure that nobody can have is not waited for.
    let none = gate(&transactions([|_| 990; 2]));
    assert!(!none.undecided && !none.failed, "{none:?}");
    assert_eq!(none.comparisons, both.comparisons - 1);
}

/// More blocks decide what too few did not.
#[test]
fn too_few_blocks_are_no_missing_figures() {
    let mut run = compared_over(5, 1.0);
    run.header.fail_on = Some(0.2);
    let few = gate(&run);
    assert!(few.undecided && few.blind > 0, "{few:?}");
    assert_eq!(few.incomplete, 0, "{few:?}");
}

/// Its own traffic, or that of its base, went another way.
#[test]
fn nothing_is_compared_without_a_path_proof_of_both() {
    for astray in [0, 1] {
        let mut run = compared_over(BLOCKS, 1.5);
        run.header.fail_on = Some(0.2);
        assert!(!first_other(&run).verdicts.is_empty());
        for sample in &mut run.samples {
            if let (Outcome::Measured(m), true) = (&mut sample.outcome, sample.cell == astray) {
                m.way.proved = false;
            }
        }
        assert!(first_other(&run).verdicts.is_empty(), "cell {astray}");
        let gate = gate(&run);
        assert!(gate.undecided && !gate.failed, "{gate:?}");
    }
}

/// Its CPU is a program: how much slower it is says nothing of the path.
#[test]
fn an_emulated_guest_is_compared_with_no_other() {
    let guests = |emulated: [bool; 2]| {
        let mut run = compared_over(BLOCKS, 0.5);
        run.header.fail_on = Some(0.2);
        for sample in &mut run.samples {
            if let Outcome::Measured(m) = &mut sample.outcome {
                m.guest = Some(GuestUsed {
                    kernel: "6.18.5".to_owned(),
                    cpus: 2,
                    emulated: emulated[sample.cell],
                });
            }
        }
        run
    };
    for mixed in [[true, false], [false, true]] {
        let run = guests(mixed);
        assert!(first_other(&run).verdicts.is_empty(), "{mixed:?}");
        let gate = gate(&run);
        assert!(gate.undecided && !gate.failed, "{mixed:?}: {gate:?}");
    }
    for alike in [[true; 2], [false; 2]] {
        assert!(gate(&guests(alike)).failed, "{alike:?}");
    }
}

fn first_other(run: &Run) -> CellReport {
    assess(run).cells.swap_remove(1)
}

#[test]
fn a_gate_has_not_passed_where_a_cell_has_no_base() {
    let mut run = compared_over(BLOCKS, 1.0);
    run.header.fail_on = Some(0.2);
    let known = gate(&run);
    let mut other = run.header.cells[1].clone();
    other.cell.load = LoadKind::TcpRr;
    run.header.cells.push(other);
    for block in 0..BLOCKS {
        let mut m = measured(4_000_000);
        m.received.transactions = 900 + u64::from(block);
        push(&mut run, block, 0, 2, Outcome::Measured(Box::new(m)));
    }
    // Whoever names no base gets one for each cell that has one.
    run.header.base_asked = false;
    let unasked = gate(&run);
    assert!(!unasked.undecided, "{unasked:?}");
    run.header.base_asked = true;
    let asked = gate(&run);
    assert!(asked.undecided && !asked.failed, "{asked:?}");
    // Its transactions and what they cost.
    assert_eq!((asked.comparisons, asked.blind), (known.comparisons + 2, 2));
}

/// What is left of it may be its better part, or nothing.
#[test]
fn a_gate_has_not_passed_where_a_cell_failed_or_had_no_turn() {
    let broken = |ratio: f64, is_broken: fn(u32) -> bool, is_told: bool| {
        let mut run = compared_over(BLOCKS, ratio);
        run.header.fail_on = Some(0.2);
        let is_meant = |cell: usize, block: u32| cell == 1 && is_broken(block);
        run.samples
            .retain(|sample| is_told || !is_meant(sample.cell, sample.block));
        for sample in &mut run.samples {
            if is_meant(sample.cell, sample.block) {
                let cause = "it broke".to_owned();
                sample.outcome = Outcome::Failed { cause };
            }
        }
        gate(&run)
    };
    let whole = broken(1.0, |_| false, true);
    assert!(!whole.undecided && !whole.failed, "{whole:?}");
    for is_broken in [|_| true, |block| block == 3] as [fn(u32) -> bool; 2] {
        let gate = broken(1.0, is_broken, true);
        assert!(gate.undecided && !gate.failed && gate.blind > 0, "{gate:?}");
        assert_eq!(gate.incomplete, gate.blind);
        assert_eq!(
            (gate.comparisons, gate.blocks_needed),
            (whole.comparisons, None)
        );
    }
    let never = broken(1.0, |_| true, false);
    assert!(
        never.undecided && never.comparisons == whole.comparisons,
        "{never:?}"
    );
    // One that is compared with nothing.
    let mut alone = compared_over(BLOCKS, 1.0);
    alone.header.fail_on = Some(0.2);
    let mut other = alone.header.cells[1].clone();
    other.cell.load = LoadKind::TcpRr;
    alone.header.cells.push(other);
    for block in 0..BLOCKS {
        let cause = "it broke".to_owned();
        push(&mut alone, block, 0, 2, Outcome::Failed { cause });
    }
    let found = gate(&alone);
    assert!(found.undecided && found.blind == 1, "{found:?}");
    // Also if it is the requested base, but no cell is compared with it.
    let mut asked = alone.clone();
    asked.header.base_asked = true;
    asked.header.cells[2].cell.path = "veth".to_owned();
    let found = gate(&asked);
    assert!(found.undecided && found.blind == 1, "{found:?}");
    alone.samples.retain(|sample| sample.cell != 2);
    let no_turn = gate(&alone);
    assert!(no_turn.undecided && no_turn.incomplete == 1, "{no_turn:?}");
    // A loss that is seen in spite of it is a loss.
    let slow = broken(0.5, |block| block == 3, true);
    assert!(slow.failed && !slow.undecided, "{slow:?}");
}

fn first(run: &Run) -> CellReport {
    assess(run).cells.swap_remove(0)
}

/// The samples with enough observations are the faster ones, so a percentile of those alone would be too low.
#[test]
fn a_percentile_is_not_taken_from_the_fast_samples_alone() {
    let p99 = |run: &Run| first(run).estimates.get("latency_p99_ns").map(|e| e.n);
    let even: fn(u32) -> u64 = |block| if block % 2 == 0 { 1020 } else { 980 };
    assert_eq!(p99(&transactions([even, |_| 1100])), None);
    let most: fn(u32) -> u64 = |block| if block == 3 { 980 } else { 1020 };
    assert_eq!(p99(&transactions([most, |_| 1100])), Some(9));
    let run = transactions([even, |_| 1100]);
    assert!(first(&run).estimates.contains_key("latency_p50_ns"));
    assert!(
        !assess(&run).cells[1]
            .verdicts
            .contains_key("latency_p99_ns")
    );
}

/// Turns count what TCP sent again also between their windows, and the base has more of them.
#[test]
fn retransmits_are_over_the_time_in_which_they_were_counted() {
    let mut run = run(&["veth"]);
    for (block, (retransmits, span_ns)) in [(2, 0), (8, 800_000_000)].into_iter().enumerate() {
        let mut m = measured(4_000_000);
        m.tcp = Some(TcpSummary {
            retransmits,
            span_ns,
            ..TcpSummary::default()
        });
        let block = u32::try_from(block).unwrap();
        push(&mut run, block, 0, 0, Outcome::Measured(Box::new(m)));
    }
    let found = &first(&run).estimates["retransmits_per_s"];
    assert!(
        (found.value - 10.0).abs() < 1e-9 && (found.high - found.low) < 1e-9,
        "{found:?}"
    );
}

/// What is under way at the edges of windows makes single samples lose less than nothing. Their mean shows no loss that is none.
#[test]
fn no_loss_is_made_of_what_is_under_way() {
    let lost = |received: [u64; 2]| {
        let mut run = run(&["veth"]);
        run.header.cells[0].cell.load = LoadKind::UdpStream;
        for block in 0..8 {
            let mut m = measured(4_000_000);
            m.sent.messages = 50_000;
            m.received.messages = received[block as usize % 2];
            push(&mut run, block, 0, 0, Outcome::Measured(Box::new(m)));
        }
        first(&run).estimates["lost_ratio"].clone()
    };
    let none = lost([50_050, 49_950]);
    assert!(
        none.value.abs() < 1e-12 && none.low == 0.0 && none.high > 0.0,
        "{none:?}"
    );
    let less_than_none = lost([50_050, 50_030]);
    assert!(
        less_than_none.value == 0.0 && less_than_none.high == 0.0,
        "{less_than_none:?}"
    );
    let some = lost([49_500, 49_600]);
    assert!((some.value - 0.009).abs() < 1e-12, "{some:?}");
}
