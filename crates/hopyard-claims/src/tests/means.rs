//! The geometric mean over an axis: what is one figure, of what, and how sure it is.

use super::*;
use crate::model::{Axes, Cell, CheckReport};
use crate::stats::Estimate;

const FLOWS: [u32; 3] = [2, 4, 8];
const BLOCKS: u32 = 10;

/// `tcp_stream` over `tap-mq` to far and host, messages of 512 B and 16 KiB, 2, 4 and 8 flows, one queue and two: what
/// a cell moves in a block, bytes; nothing where it was not measured.
fn taps(bytes: impl Fn(&Cell, u32) -> Option<f64>) -> Run {
    let mut run = hand_made(&["veth"]);
    let planned = run.header.cells.remove(0);
    let own = crate::lab::path("tap-mq").unwrap().axes;
    let load = LoadKind::TcpStream;
    for peer in [Peer::Far, Peer::Host] {
        for size in [512, 16384] {
            for (flows, queues) in FLOWS.iter().flat_map(|f| [(*f, 1), (*f, 2)]) {
                let axes = Axes {
                    flows,
                    queues: Some(queues),
                    message_size_bytes: Some(size),
                    ..Axes::default()
                };
                let mut planned = planned.clone();
                planned.cell = Cell {
                    path: "tap-mq".to_owned(),
                    peer,
                    load,
                    axes: axes.for_cell(load, peer, own),
                };
                run.header.cells.push(planned);
            }
        }
    }
    let cells: Vec<Cell> = run.header.cells.iter().map(|c| c.cell.clone()).collect();
    for block in 0..BLOCKS {
        for (place, cell) in cells.iter().enumerate() {
            if let Some(bytes) = bytes(cell, block) {
                let outcome = Outcome::Measured(Box::new(measured(bytes as u64)));
                push(&mut run, block, 0, place, outcome);
            }
        }
    }
    run
}

/// The part of MQ1 to MQ7: two queues over one, the mean over flows.
fn over_flows(more: &str) -> String {
    format!(
        "judge = \"ratio\"\nquantity = \"rate\"\ncells = {{ queues = 2, {more} }}\nto = [\"queues=1\"]\nat_least = 1.05\n\
         mean_over = [\"flows\"]\n"
    )
}

fn check(check: &str, run: Run) -> CheckReport {
    judged(check, run).checks.remove(0)
}

/// What two queues are of one: another figure for each peer, size and number of flows.
fn gain(cell: &Cell) -> f64 {
    let of_flows = match cell.axes.flows {
        2 => 6.0,
        4 => 0.5,
        _ => 0.4,
    };
    let of_size = if cell.axes.message_size_bytes == Some(512) {
        1.0
    } else {
        1.5
    };
    let of_peer = if cell.peer == Peer::Far { 1.0 } else { 2.0 };
    of_flows * of_size * of_peer
}

/// Cells differ by a thousandth from block to block, more flows move more.
fn moved(cell: &Cell, block: u32) -> f64 {
    let wobble = 1.0 + 0.001 * f64::from((block + cell.axes.flows) % 3);
    let one = 1e9 * f64::from(cell.axes.flows) * wobble;
    if cell.axes.queues == Some(2) {
        one * gain(cell)
    } else {
        one
    }
}

#[test]
fn all_numbers_of_flows_are_one_figure() {
    let found = check(
        &over_flows(""),
        taps(|cell, block| Some(moved(cell, block))),
    );
    let figures: Vec<(&str, f64)> = found
        .points
        .iter()
        .map(|point| (point.at.as_str(), point.measured.value))
        .collect();
    // (6 · 0.5 · 0.4)^(1/3).
    let mean = 1.2_f64.cbrt();
    let right = [
        ("far · message size 512 B", mean),
        ("far · message size 16 KiB", 1.5 * mean),
        ("host · message size 512 B", 2.0 * mean),
        ("host · message size 16 KiB", 3.0 * mean),
    ];
    assert_eq!(figures.len(), right.len(), "{figures:?}");
    for ((at, value), (right_at, right)) in figures.iter().zip(right) {
        assert_eq!(*at, right_at);
        assert!(
            (value / right - 1.0).abs() < 0.002,
            "{at}: {value}, not {right}"
        );
    }
    assert_eq!(
        found.what,
        "goodput, queues 2 / 1, geometric mean over flows 2, 4, 8"
    );
    assert_eq!(found.verdict, ClaimVerdict::Holds, "{found:?}");
}

/// The mean is taken within each block, the interval over blocks: what one number of flows gains in a block and another
/// loses in the same is not in the interval; what all have in common is.
#[test]
fn the_interval_is_over_blocks() {
    let interval = |wobble: fn(u32, f64) -> f64| -> Estimate {
        let run = taps(|cell, block| {
            let side = if block % 2 == 0 { 1.0 } else { -1.0 };
            let is_two = cell.axes.queues == Some(2);
            let factor = if is_two {
                wobble(cell.axes.flows, side)
            } else {
                1.0
            };
            Some(1e9 * factor)
        });
        let cells = "peer = \"far\", message_size = 512";
        check(&over_flows(cells), run).points.remove(0).measured
    };
    let apart = interval(|flows, side| match flows {
        2 => (0.4 * side).exp(),
        4 => (-0.4 * side).exp(),
        _ => 1.0,
    });
    assert!(apart.low > 0.999 && apart.high < 1.001, "{apart:?}");
    assert_eq!(apart.n, BLOCKS as usize);
    let together = interval(|_, side| (0.4 * side).exp());
    // t(0.975, 9) = 2.262, standard deviation of ±0.4 in 10 blocks 0.4216.
    let half = 2.262 * 0.4216 / 10.0_f64.sqrt();
    assert!((together.high.ln() - half).abs() < 0.001, "{together:?}");
    assert!((together.low.ln() + half).abs() < 0.001, "{together:?}");
}

/// Blocks that one number of flows lacks do not shift the others: a block counts where all of them have it.
#[test]
fn a_block_counts_where_all_flows_have_it() {
    let run = taps(|cell, block| {
        let lacks = match cell.axes.flows {
            2 => block == 0,
            4 => block == 9,
            _ => false,
        };
        // The machine gets faster by a half from block to block; each cell goes along.
        let drift = 1.5_f64.powi(block.cast_signed());
        let is_two = cell.axes.queues == Some(2);
        // In each block one number of flows gains what another loses; only blocks by their number match.
        let turn = match (is_two, cell.axes.flows) {
            (true, 2) => drift,
            (true, 4) => 1.0 / drift,
            _ => 1.0,
        };
        (!lacks).then_some(1e8 * drift * turn)
    });
    let found = check(&over_flows("peer = \"far\", message_size = 512"), run);
    let measured = &found.points[0].measured;
    assert_eq!(measured.n, 8);
    assert!(
        measured.low > 0.999 && measured.high < 1.001,
        "{measured:?}"
    );
}

/// A mean over other flows than the rule names is another figure.
#[test]
fn a_mean_that_lacks_a_cell_is_none() {
    let run = taps(|cell, block| {
        let lacks = cell.axes.flows == 4 && cell.axes.message_size_bytes == Some(512);
        (!lacks).then_some(moved(cell, block))
    });
    let found = check(&over_flows("peer = \"far\""), run);
    assert_eq!(found.points.len(), 1);
    assert_eq!(
        found.untested,
        [
            "message size 512 B: tap-mq: it was never measured (flows 4), so there is no geometric mean over flows"
        ]
    );
}

/// Of a quantity by itself too.
#[test]
fn a_level_has_a_mean_too() {
    let check_text = "judge = \"level\"\nquantity = \"rate\"\ncells = { queues = 1, peer = \"far\", message_size = 512 }\n\
                      at_least = 1.0\nmean_over = [\"flows\"]\n";
    let found = check(
        check_text,
        taps(|cell, _| Some(1e6 * f64::from(cell.axes.flows))),
    );
    let [point] = &found.points[..] else {
        panic!("{found:?}");
    };
    // 4 MB in 0.2 s.
    assert!(
        (point.measured.value / 1.6e8 - 1.0).abs() < 0.001,
        "{point:?}"
    );
}

/// Windows have 1 or 100 MB. The interval of their arithmetic mean reaches down to 0, that of their geometric mean does not.
#[test]
fn a_level_of_what_differs_by_factors_has_a_geometric_mean() {
    let found = |geometric| {
        let text = format!(
            "judge = \"level\"\nquantity = \"rate\"\ncells = {{ queues = 1, flows = 2, peer = \"far\", message_size = 512 }}\n\
             at_least = 1e7\ngeometric = {geometric}\n"
        );
        let bytes = |_: &Cell, block| Some(if block % 4 == 0 { 1e8 } else { 1e6 });
        check(&text, taps(bytes))
    };
    let [arithmetic, geometric] = [false, true].map(found);
    assert_eq!(arithmetic.verdict, ClaimVerdict::Undecided);
    assert_eq!(geometric.verdict, ClaimVerdict::Holds, "{geometric:?}");
    assert_eq!(geometric.what, "goodput, geometric mean over blocks");
    let value = |of: &CheckReport| of.points[0].measured.value;
    // Three of ten windows of 0.2 s have 4 Gbit/s, the others 40 Mbit/s.
    assert!((value(&arithmetic) / 1.228e9 - 1.0).abs() < 0.001);
    assert!((value(&geometric) / (4e7 * 100_f64.powf(0.3)) - 1.0).abs() < 0.001);
}

/// Where numbers of flows differ from place to place, each place says its own.
#[test]
fn places_say_their_own_flows_where_they_differ() {
    let mut run = taps(|cell, block| Some(moved(cell, block)));
    let left_out = |cell: &Cell| cell.axes.flows == 4 && cell.axes.message_size_bytes == Some(512);
    let kept: Vec<usize> = (0..run.header.cells.len())
        .filter(|place| !left_out(&run.header.cells[*place].cell))
        .collect();
    run.header.cells.retain(|planned| !left_out(&planned.cell));
    run.samples.retain_mut(|sample| {
        let place = kept.iter().position(|place| *place == sample.cell);
        sample.cell = place.unwrap_or(usize::MAX);
        place.is_some()
    });
    let found = check(&over_flows("peer = \"far\""), run);
    assert_eq!(
        found.what,
        "goodput, queues 2 / 1, geometric mean over flows"
    );
    let places: Vec<&str> = found.points.iter().map(|p| p.at.as_str()).collect();
    assert_eq!(
        places,
        [
            "message size 512 B · flows 2, 8",
            "message size 16 KiB · flows 2, 4, 8"
        ]
    );
}
