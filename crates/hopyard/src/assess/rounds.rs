//! Two cells within one block: compared round by round where they took turns.

use std::collections::HashMap;

use super::Quantity;
use crate::model::{LoadKind, Measurement, Turn, kept};
use crate::stats;

/// The values of two cells in one block. Where both took turns, the ratio of the first to the second is located among those
/// of the rounds, which pairs away what changes from one moment to the next; the second value is that of the block.
pub(super) fn pair(
    one: &Measurement,
    other: &Measurement,
    quantity: &Quantity,
    load: LoadKind,
) -> Option<(f64, f64)> {
    let (own, base) = (quantity.value(one, load)?, quantity.value(other, load)?);
    let ratio = log_ratio(one, other, |turn| quantity.value(&turn.measurement(), load));
    Some((ratio.map_or(own, |log| base * log.exp()), base))
}

/// Where ln(one/other) lies among the rounds that both had a turn in; `None` where a turn has no such value.
fn log_ratio(
    one: &Measurement,
    other: &Measurement,
    value: impl Fn(&Turn) -> Option<f64>,
) -> Option<f64> {
    let others: HashMap<u32, &Turn> = other.turns.iter().map(|turn| (turn.round, turn)).collect();
    let pairs = one
        .turns
        .iter()
        .filter_map(|turn| Some((turn, *others.get(&turn.round)?)));
    let pairs = kept(pairs.collect(), |(own, theirs)| {
        own.is_quiet() && theirs.is_quiet()
    });
    let logs = pairs
        .into_iter()
        .map(|(own, theirs)| Some((value(own)? / value(theirs)?).ln()));
    let logs: Vec<f64> = logs.collect::<Option<_>>()?;
    stats::hodges_lehmann(&logs).filter(|log| log.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assess::quantity;
    use crate::assess::tests::measured;
    use crate::model::{Counted, Disturbance};

    /// Turns of 1 s with these transactions; a second figure says in which of them something else was at work.
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
        let (own, base) =
            pair(&with_turns(one), &with_turns(other), rate, LoadKind::TcpRr).unwrap();
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

    #[test]
    fn without_turns_it_is_the_ratio_of_the_block() {
        let rate = quantity("transactions_per_s").unwrap();
        let (mut one, mut other) = (measured(1), measured(1));
        (one.received.transactions, other.received.transactions) = (300, 200);
        let (own, base) = pair(&one, &other, rate, LoadKind::TcpRr).unwrap();
        assert!((own / base - 1.5).abs() < 1e-9);
    }
}
