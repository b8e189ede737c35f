//! Two cells within one block: compared round by round if they took turns.

use std::collections::{BTreeMap, BTreeSet};

use super::base::bases;
use super::cells::{self, measurements, of_block};
use super::{Quantity, main_figure, quantity};
use crate::model::stored::Header;
use crate::model::{CpuTolerance, LoadKind, Measurement, Sample, Turn, TurnsReport, kept};
use crate::stats::{self, Spread};
use crate::units::seconds;

/// The values of two cells in one block. If both took turns, their ratio is located among the ratios of the rounds, so
/// that changes from one moment to the next cancel; the second value is that of the block.
pub(super) fn pair(
    one: &Measurement,
    other: &Measurement,
    quantity: &Quantity,
    (load, tolerance): (LoadKind, CpuTolerance),
) -> Option<(f64, f64)> {
    let value = |m: &Measurement| quantity.value(m, load, tolerance);
    let (own, base) = (value(one)?, value(other)?);
    let ratio = log_ratio(one, other, |turn| value(&turn.measurement()));
    Some((ratio.map_or(own, |log| base * log.exp()), base))
}

/// The values of two cells in one block, compared by rounds only if those were side by side.
fn pair_in_block(
    one: &Sample,
    other: &Sample,
    quantity: &Quantity,
    how: (LoadKind, CpuTolerance),
) -> Option<(f64, f64)> {
    let (own, base) = (one.measurement()?, other.measurement()?);
    if share_rounds(one, other) {
        return pair(own, base, quantity, how);
    }
    let value = |m: &Measurement| quantity.value(m, how.0, how.1);
    Some((value(own)?, value(base)?))
}

/// Whether two samples are of one generation, whose samples all have its start. The rounds of two groups have the same numbers, but
/// were at other times, as they are if there are too many cells for one group.
fn share_rounds(one: &Sample, other: &Sample) -> bool {
    one.started_ns == other.started_ns
}

/// The values of two cells in each block that has both; none if the quantity is not known in one of the cells. Of cells that took
/// turns, the first one's value is the second one's times the ratio of their rounds.
#[must_use]
pub fn paired(
    header: &Header,
    samples: &[&Sample],
    [one, other]: [usize; 2],
    quantity: &Quantity,
) -> BTreeMap<u32, (f64, f64)> {
    let how = (header.cells[one].cell.load, header.cpu_tolerance());
    let is_known = |cell: &usize| quantity.is_known_in(cells::measured(samples, *cell));
    if ![one, other].iter().all(is_known) {
        return BTreeMap::new();
    }
    let own = samples.iter().filter(|sample| sample.cell == one);
    let blocks: BTreeSet<u32> = own.map(|sample| sample.block).collect();
    let in_block = |block: u32| {
        let both = [one, other].map(|cell| of_block(samples, cell, block));
        pair_in_block(both[0]?, both[1]?, quantity, how)
    };
    let both = blocks
        .into_iter()
        .filter_map(|block| Some((block, in_block(block)?)));
    both.collect()
}

/// The location of ln(one/other) over the rounds in which both had a turn; `None` if most turns have no such value.
fn log_ratio(
    one: &Measurement,
    other: &Measurement,
    value: impl Fn(&Turn) -> Option<f64>,
) -> Option<f64> {
    let rounds = log_ratios(one, other, value)?;
    let all: Vec<f64> = rounds.into_iter().flatten().collect();
    stats::hodges_lehmann(&all).filter(|log| log.is_finite())
}

/// ln(one/other) for every two turns of a round, for rounds in which both had a turn; `None` if most of these rounds
/// have no such value.
///
/// Each turn of a base with several turns is paired by itself. Their mean would have fewer outliers than the single
/// turn of the other cell, so the ratios of two equal cells would lean to one side, and their location would not be 1.
///
/// Where too few rounds have an undisturbed turn on both sides, all turns of all rounds count. The undisturbed ones of a side alone
/// would not do: a base with several turns has one more often than the cell that is compared with it.
fn log_ratios(
    one: &Measurement,
    other: &Measurement,
    value: impl Fn(&Turn) -> Option<f64>,
) -> Option<Vec<Vec<f64>>> {
    let mut others = by_round(other);
    let rounds = by_round(one).into_iter();
    let pairs = rounds.filter_map(|(round, own)| Some((own, others.remove(&round)?)));
    let any_quiet = |turns: &[&Turn]| turns.iter().any(|turn| turn.is_quiet());
    let are_quiet = |(own, theirs): &(Vec<&Turn>, Vec<&Turn>)| any_quiet(own) && any_quiet(theirs);
    let pairs = kept(pairs.collect(), are_quiet);
    let (all, only_quiet) = (pairs.len(), pairs.iter().all(are_quiet));
    let rounds = pairs.into_iter().map(|(own, theirs)| {
        let [own, theirs] = [own, theirs].map(|turns| logs(turns, only_quiet, &value));
        let with = |log: &f64| theirs.iter().map(|other| log - other).collect::<Vec<f64>>();
        own.iter().flat_map(with).collect::<Vec<f64>>()
    });
    let rounds: Vec<Vec<f64>> = rounds.filter(|logs| !logs.is_empty()).collect();
    // CPU time is not known precisely enough in every turn.
    (!rounds.is_empty() && rounds.len() * 2 >= all).then_some(rounds)
}

fn by_round(measurement: &Measurement) -> BTreeMap<u32, Vec<&Turn>> {
    let mut rounds: BTreeMap<u32, Vec<&Turn>> = BTreeMap::new();
    for turn in &measurement.turns {
        rounds.entry(turn.round).or_default().push(turn);
    }
    rounds
}

/// The logarithms of the turns of a round, or of the undisturbed ones.
fn logs(turns: Vec<&Turn>, only_quiet: bool, value: impl Fn(&Turn) -> Option<f64>) -> Vec<f64> {
    let counting = turns
        .into_iter()
        .filter(|turn| !only_quiet || turn.is_quiet());
    counting
        .filter_map(|turn| Some(value(turn)?.ln()))
        .collect()
}

/// How a group of cells should share its time between rounds and generations, by its samples so far: the number of
/// rounds in a generation that gives the best comparisons of main figures, if a generation costs `cost` rounds besides.
/// `None` while there are too few samples.
#[must_use]
pub fn rounds_worth(
    header: &Header,
    samples: &[&Sample],
    group: &[usize],
    generation_cost: f64,
) -> Option<f64> {
    const ENOUGH_GENERATIONS: usize = 3;
    let mut spreads = Vec::new();
    let bases = bases(header);
    for &cell in group {
        let Some((_, base)) = bases[cell] else {
            continue;
        };
        let planned = &header.cells[cell].cell;
        let Ok(figure) = quantity(main_figure(planned.load, &planned.axes)) else {
            continue;
        };
        let value =
            |turn: &Turn| figure.value(&turn.measurement(), planned.load, header.cpu_tolerance());
        let generations = samples
            .iter()
            .filter(|sample| sample.cell == cell)
            .filter_map(|sample| {
                let own = of_block(samples, cell, sample.block)?;
                let other = of_block(samples, base, sample.block)?;
                let is_paired = share_rounds(own, other);
                let other = other.measurement().filter(|_| is_paired)?;
                let rounds = log_ratios(own.measurement()?, other, value)?;
                rounds
                    .iter()
                    .map(|logs: &Vec<f64>| stats::mean(logs))
                    .collect::<Option<Vec<f64>>>()
            });
        let generations: Vec<Vec<f64>> = generations
            .filter(|logs| logs.iter().all(|log| log.is_finite()))
            .collect();
        if generations.len() >= ENOUGH_GENERATIONS {
            spreads.extend(stats::spread(&generations));
        }
    }
    // One or two comparisons vary much more than the others: those of user-space switches.
    let middle =
        |of: fn(&Spread) -> f64| stats::hodges_lehmann(&spreads.iter().map(of).collect::<Vec<_>>());
    let pooled = Spread {
        within: middle(|spread| spread.within)?,
        between: middle(|spread| spread.between)?,
    };
    Some(pooled.rounds(generation_cost, 1.0))
}

/// The turns of a run and their disturbances; `None` if no cell took any.
pub(super) fn report(header: &Header, samples: &[&Sample]) -> Option<TurnsReport> {
    let longest_ns = header.turn_ns?;
    let turns: Vec<&Vec<Turn>> = measurements(samples)
        .map(|m| &m.turns)
        .filter(|turns| !turns.is_empty())
        .collect();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let mut disturbed = BTreeMap::new();
    for disturbance in turns
        .iter()
        .flat_map(|turns| turns.iter())
        .filter_map(|turn| turn.disturbance)
    {
        *disturbed.entry(disturbance).or_default() += 1;
    }
    let rounds = turns.iter().map(|turns| {
        let numbers: BTreeSet<u32> = turns.iter().map(|turn| turn.round).collect();
        count(numbers.len())
    });
    Some(TurnsReport {
        window_s: seconds(longest_ns),
        shortest_window_s: header.shortest_turn_ns.map(seconds),
        taken: turns.iter().map(|turns| count(turns.len())).sum(),
        disturbed,
        rounds: (rounds.clone().min()?, rounds.max()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::stored::Run;
    use crate::model::{Counted, Disturbance, Outcome};
    use crate::quantity;
    use crate::testing::{measured, push, run};

    const HOW: (LoadKind, CpuTolerance) = (LoadKind::TcpRr, CpuTolerance(0.02));

    /// Turns of 1 s with these numbers of transactions; the second figure says whether the turn was disturbed.
    fn with_turns(counts: &[(u64, bool)]) -> Measurement {
        let mut whole = measured(1);
        let turn = |(round, (transactions, quiet)): (usize, &(u64, bool))| Turn {
            round: u32::try_from(round).unwrap(),
            window_ns: 1_000_000_000,
            received: Counted {
                transactions: *transactions,
                ..Counted::default()
            },
            sent: Counted::default(),
            cpu: whole.cpu,
            disturbance: (!quiet).then_some(Disturbance::Steal),
        };
        whole.turns = counts.iter().enumerate().map(turn).collect();
        whole.received.transactions = counts.iter().map(|(count, _)| count).sum();
        whole.window_ns = 1_000_000_000 * counts.len() as u64;
        whole
    }

    fn ratio(one: &[(u64, bool)], other: &[(u64, bool)]) -> f64 {
        let rate = quantity("transactions_per_s").unwrap();
        let (own, base) = pair(&with_turns(one), &with_turns(other), rate, HOW).unwrap();
        own / base
    }

    #[test]
    fn what_changes_from_round_to_round_is_paired_away() {
        let base = [(100, true), (400, true), (50, true), (200, true)];
        let own = base.map(|(count, quiet)| (count * 9 / 10, quiet));
        assert!((ratio(&own, &base) - 0.9).abs() < 1e-9);
    }

    #[test]
    fn a_disturbed_turn_takes_its_round_out_on_both_sides() {
        let base = [(100, true), (400, true), (50, false), (200, true)];
        let own = [(90, true), (36, false), (45, true), (180, true)];
        assert!((ratio(&own, &base) - 0.9).abs() < 1e-9);
    }

    /// Turns of 1 s in these rounds.
    fn in_rounds(turns: &[(u32, u64, bool)]) -> Measurement {
        let counts: Vec<(u64, bool)> = turns.iter().map(|t| (t.1, t.2)).collect();
        let mut whole = with_turns(&counts);
        for (turn, (round, ..)) in whole.turns.iter_mut().zip(turns) {
            turn.round = *round;
        }
        whole
    }

    #[test]
    fn several_turns_of_a_round_are_paired_each() {
        let rate = quantity("transactions_per_s").unwrap();
        let of = |one, base| {
            let (own, base) = pair(&in_rounds(one), &in_rounds(base), rate, HOW).unwrap();
            own / base
        };
        let one = [(0, 90, true), (1, 360, true)];
        let base = [(0, 50, true), (0, 200, true), (1, 400, true)];
        assert!((of(&one, &base) - 0.9).abs() < 1e-9);
        // If a disturbed turn was repeated at once, the repeated one counts in its round.
        let again = [(0, 7, false), (0, 100, true), (1, 400, true)];
        assert!((of(&one, &again) - 0.9).abs() < 1e-9);
        assert!((of(&again, &one) - 1.0 / 0.9).abs() < 1e-9);
    }

    /// Where quiet pairs are too few, no side's quiet turns are chosen for themselves.
    #[test]
    fn without_quiet_pairs_every_turn_counts_on_both_sides() {
        let rate = quantity("transactions_per_s").unwrap();
        let base = in_rounds(&[
            (0, 100, true),
            (0, 50, false),
            (1, 100, true),
            (1, 50, false),
        ]);
        let cell = in_rounds(&[(0, 50, false), (1, 50, false)]);
        let (own, base) = pair(&cell, &base, rate, HOW).unwrap();
        assert!((own / base - 0.5_f64.sqrt()).abs() < 1e-9, "{own} {base}");
    }

    #[test]
    fn rounds_of_two_generations_are_not_paired() {
        // The ratios of the rounds are 4 and 1/3, that of the block is 1.25.
        let counts = [[(400, true), (100, true)], [(100, true), (300, true)]];
        let mut run = run(&["veth", "bridge"]);
        for (cell, counts) in counts.iter().enumerate() {
            let measured = Outcome::Measured(Box::new(with_turns(counts)));
            push(&mut run, 0, 0, cell, measured);
        }
        for planned in &mut run.header.cells {
            planned.cell.load = LoadKind::TcpRr;
        }
        let rate = quantity("transactions_per_s").unwrap();
        let ratio = |run: &Run| {
            let samples: Vec<&Sample> = run.samples.iter().collect();
            let (own, base) = paired(&run.header, &samples, [0, 1], rate)[&0];
            own / base
        };
        let of_rounds = (4.0 / 3.0_f64).sqrt();
        assert!((ratio(&run) - of_rounds).abs() < 1e-9);
        run.samples[1].started_ns += 1;
        assert!((ratio(&run) - 1.25).abs() < 1e-9);
    }

    #[test]
    fn without_turns_it_is_the_ratio_of_the_block() {
        let rate = quantity("transactions_per_s").unwrap();
        let (mut one, mut other) = (measured(1), measured(1));
        (one.received.transactions, other.received.transactions) = (300, 200);
        let (own, base) = pair(&one, &other, rate, HOW).unwrap();
        assert!((own / base - 1.5).abs() < 1e-9);
    }
}
