//! Which pairs and which machines are the worst.
//!
//! A pair is ranked by its main figures against the medians of all pairs, a machine by the medians of its own pairs against
//! those of all: a slow machine makes all its pairs slow, and of each other machine only one. Pairs in which it is the client
//! and those in which it is the server are taken apart, since many a machine is slow in one direction only.

use hopyard_stats::median;

use crate::fleet::Fleet;
use crate::plan::Column;
use crate::schedule::Pair;

/// How a machine fared.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Its place in the list.
    pub machine: u16,
    /// Number of its pairs that were measured.
    pub measured: usize,
    /// Number of its pairs that failed.
    pub failed: usize,
    /// Number of its pairs that were not begun.
    pub skipped: usize,
    /// Medians over its pairs as the client and as the server, for each main column; absent where none was measured.
    pub medians: Vec<[Option<f64>; 2]>,
    /// The worst of these against that of all pairs; below 1 is worse than the median, however figures are counted.
    pub standing: Option<f64>,
}

/// Ranks of a fleet.
#[derive(Debug)]
pub struct Ranks {
    /// Places of the main figures among the columns.
    pub main: Vec<usize>,
    /// Median of all pairs for each of them.
    pub medians: Vec<Option<f64>>,
    /// Pairs with a figure, by place, and how they stand; the worst first.
    pub pairs: Vec<(usize, f64)>,
    /// All machines, the worst first; those without a figure before them.
    pub machines: Vec<Machine>,
}

impl Ranks {
    /// Of what is known of a fleet.
    #[must_use]
    pub fn of(fleet: &Fleet) -> Self {
        let columns = fleet.columns.iter().enumerate();
        let main: Vec<usize> = columns
            .filter(|(_, c)| c.is_main())
            .map(|(i, _)| i)
            .collect();
        let value = |place: usize, column: usize| {
            let outcome = fleet.outcomes[place].as_ref()?;
            outcome.figure(column).map(|figure| figure.value)
        };
        let all = 0..fleet.pairs.len();
        let medians: Vec<Option<f64>> = main
            .iter()
            .map(|column| {
                median(
                    all.clone()
                        .filter_map(|place| value(place, *column))
                        .collect(),
                )
            })
            .collect();
        let worst = |values: &dyn Fn(usize) -> Option<f64>| {
            let main = main.iter().enumerate();
            let standings = main.filter_map(|(i, column)| {
                standing(&fleet.columns[*column], values(i)?, medians[i]?)
            });
            standings.min_by(f64::total_cmp)
        };
        let mut pairs: Vec<(usize, f64)> = all
            .filter_map(|place| Some((place, worst(&|i| value(place, main[i]))?)))
            .collect();
        pairs.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        let of_machine = by_machine(&fleet.pairs, fleet.plan.endpoints.len());
        let mut machines: Vec<Machine> = of_machine
            .iter()
            .zip(0..)
            .map(|(places, machine)| {
                let of = |column: usize, is_client: bool| {
                    let role =
                        |place: &&usize| (fleet.pairs[**place].client == machine) == is_client;
                    let own = places.iter().filter(role);
                    median(own.filter_map(|place| value(*place, column)).collect())
                };
                let medians: Vec<[Option<f64>; 2]> = main
                    .iter()
                    .map(|column| [of(*column, true), of(*column, false)])
                    .collect();
                let standings = [0, 1].map(|role| worst(&|i| medians[i][role]));
                let begun = places.iter().filter_map(|p| fleet.outcomes[*p].as_ref());
                let measured = begun.clone().filter(|o| o.is_measured()).count();
                let failed = begun.count() - measured;
                Machine {
                    machine,
                    measured,
                    failed,
                    skipped: places.len() - measured - failed,
                    standing: standings.into_iter().flatten().min_by(f64::total_cmp),
                    medians,
                }
            })
            .collect();
        let key = |m: &Machine| m.standing.unwrap_or(f64::NEG_INFINITY);
        machines.sort_by(|a, b| key(a).total_cmp(&key(b)).then(a.machine.cmp(&b.machine)));
        Self {
            main,
            medians,
            pairs,
            machines,
        }
    }
}

fn by_machine(pairs: &[Pair], machines: usize) -> Vec<Vec<usize>> {
    let mut of = vec![Vec::new(); machines];
    for (place, pair) in pairs.iter().enumerate() {
        for machine in pair.ends() {
            of[usize::from(machine)].push(place);
        }
    }
    of
}

/// A value against the median, such that less than 1 is worse. None against a median of zero.
pub(crate) fn standing(column: &Column, value: f64, median: f64) -> Option<f64> {
    let ratio = if column.more_is_better() {
        value / median
    } else {
        median / value
    };
    ratio.is_finite().then_some(ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_of_a_rate_is_worse_and_more_of_a_time() {
        use hopyard_model::LoadKind::UdpPaced as load;
        let rate = Column {
            load,
            quantity: "goodput_bps",
        };
        let time = Column {
            load,
            quantity: "latency_p99_ns",
        };
        assert_eq!(standing(&rate, 1.0, 2.0), Some(0.5));
        assert_eq!(standing(&time, 4.0, 2.0), Some(0.5));
        assert_eq!(standing(&rate, 1.0, 0.0), None);
        assert_eq!(standing(&time, 0.0, 0.0), None);
    }
}
