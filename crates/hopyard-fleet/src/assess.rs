//! Estimates and verdicts of pairs from the table of samples, by [`DuckDb`].
//!
//! The engine reduces the samples of each pair to their number and to mean and standard deviation of their logarithms; the interval is
//! Student's, on the log scale. Each pair is compared with the median of all pairs, taken as known, and the differences of a load are
//! counted over all its pairs (`hopyard_stats::judge`). A pair was measured by one run, whose samples do not show how much runs differ; so
//! the standard error is at least the scatter of the pairs, and only a pair that stands out from the others is different.

use std::collections::HashMap;
use std::path::Path;

use hopyard_stats::{Comparison, Judged, Verdict, judge, log_moments_interval, median};

use crate::error::{Error, Result};
use crate::fleet::Fleet;
use crate::query::DuckDb;
use crate::samples::DIRECTORY;
use crate::schedule::Pair;

/// Of intervals.
pub const CONFIDENCE: f64 = 0.95;
/// Pairs within this of the median of all are equivalent to it.
pub const MARGIN: f64 = 0.02;

/// What the samples say of each pair against the median of all.
#[derive(Debug)]
pub struct Assessed {
    /// Number of samples that estimates rest on.
    pub samples: u64,
    /// By main column in the order of the plan's loads, then by place of the pair; absent where there are fewer than two samples.
    pub verdicts: Vec<Vec<Option<Judged>>>,
}

impl Assessed {
    /// How many pairs of a main column are different and below 1, different and above 1, equivalent, and inconclusive.
    #[must_use]
    pub fn counts(&self, main: usize) -> [usize; 4] {
        let mut counts = [0; 4];
        for judged in self.verdicts[main].iter().flatten() {
            let at = match judged.verdict {
                Verdict::Different if judged.ratio.value < 1.0 => 0,
                Verdict::Different => 1,
                Verdict::Equivalent => 2,
                Verdict::Inconclusive => 3,
            };
            counts[at] += 1;
        }
        counts
    }
}

/// Puts estimates made from the samples in the place of those that the pairs' own runs gave their main figures, and judges them.
///
/// # Errors
/// The fleet has no samples, the engine cannot read them, or it gives none of pairs that were measured.
pub fn assess(
    fleet: &mut Fleet,
    directory: &Path,
    engine: &DuckDb,
    margin: f64,
) -> Result<Assessed> {
    if !directory.join(DIRECTORY).is_dir() {
        return Err(Error::Wrong(format!(
            "{} has no samples: no pair of it was measured, or by a version that kept none; `hopyard fleet show` prints what it has",
            hopyard_model::plain::line(&directory.display().to_string())
        )));
    }
    let main: Vec<u16> = (0..)
        .zip(&fleet.columns)
        .filter(|(_, c)| c.is_main())
        .map(|(at, _)| at)
        .collect();
    let found = read(fleet, directory, engine, &main)?;
    let mut samples = 0;
    let mut verdicts = Vec::new();
    for (column, found) in main.iter().zip(&found) {
        samples += found.iter().map(|(_, m)| m.n as u64).sum::<u64>();
        for (place, moments) in found {
            let Some(outcome) = &mut fleet.outcomes[*place] else {
                continue;
            };
            outcome.figures.retain(|(at, _)| at != column);
            let estimate = log_moments_interval(moments.mean, moments.sd, moments.n, CONFIDENCE);
            outcome
                .figures
                .extend(estimate.map(|estimate| (*column, estimate)));
        }
        verdicts.push(judged(found, fleet.pairs.len(), margin));
    }
    Ok(Assessed { samples, verdicts })
}

/// Of the logarithms of a pair's samples.
#[derive(Debug, Clone, Copy)]
struct Moments {
    n: usize,
    mean: f64,
    sd: f64,
}

/// What the median of absolute deviations is multiplied by for the standard deviation of so many values of a normal distribution:
/// Croux and Rousseeuw, "Time-efficient algorithms for two highly robust estimators of scale", 1992.
fn mad_factor(values: usize) -> f64 {
    const FEW: [f64; 8] = [1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107];
    let n = values as f64;
    let of_few = values.checked_sub(2).and_then(|at| FEW.get(at));
    1.4826 * of_few.copied().unwrap_or(n / (n - 0.8))
}

/// The median of absolute deviations of so many values is less certain than their standard deviation: as uncertain as one of how many
/// values? Found by made-up fleets of 2 to 45 equal pairs, 3,000 to 6,000 of each: the most with which at most 5 % of them had a pair
/// that was called different. With the number of values itself 7 % to 13 % had one.
fn mad_values(values: usize) -> usize {
    const FEW: [usize; 11] = [1, 1, 3, 2, 4, 3, 5, 5, 6, 5, 7];
    /// Degrees of freedom of many, %.
    const OF_EACH: usize = 45;
    let of_few = values.checked_sub(2).and_then(|at| FEW.get(at));
    let of_many = values.saturating_sub(1) * OF_EACH / 100;
    1 + of_few.copied().unwrap_or(of_many)
}

fn judged(found: &[(usize, Moments)], pairs: usize, margin: f64) -> Vec<Option<Judged>> {
    let mut verdicts = vec![None; pairs];
    let Some(middle) = median(found.iter().map(|(_, m)| m.mean.exp()).collect()) else {
        return verdicts;
    };
    // Nothing to compare it with.
    if found.len() < 2 {
        return verdicts;
    }
    let deviations = found.iter().map(|(_, m)| (m.mean - middle.ln()).abs());
    let scatter = mad_factor(found.len()) * median(deviations.collect()).unwrap_or(0.0);
    let of_scatter = mad_values(found.len());
    let compared = found.iter().filter_map(|(place, m)| {
        let root = |n: usize| (n as f64).sqrt();
        // Whichever standard error is the larger, with the number of values that it comes from.
        let (sd, n) = if scatter > m.sd / root(m.n) {
            (scatter * root(of_scatter), of_scatter)
        } else {
            (m.sd, m.n)
        };
        Some((
            *place,
            Comparison::with_value(m.mean, sd, n, middle, CONFIDENCE)?,
        ))
    });
    let (places, table): (Vec<usize>, Vec<Comparison>) = compared.unzip();
    for (place, judged) in places.into_iter().zip(judge(&table, margin, CONFIDENCE)) {
        verdicts[place] = Some(judged);
    }
    verdicts
}

/// What the engine says of each main column: pairs by place.
fn read(
    fleet: &Fleet,
    directory: &Path,
    engine: &DuckDb,
    main: &[u16],
) -> Result<Vec<Vec<(usize, Moments)>>> {
    let machines: HashMap<&str, u16> = (0..)
        .zip(&fleet.plan.endpoints)
        .map(|(at, endpoint)| (&endpoint.name[..], at))
        .collect();
    let places: HashMap<Pair, usize> = fleet
        .pairs
        .iter()
        .enumerate()
        .map(|(at, pair)| (*pair, at))
        .collect();
    let loads: HashMap<&str, usize> = main
        .iter()
        .enumerate()
        .map(|(at, column)| (fleet.columns[usize::from(*column)].load.name(), at))
        .collect();
    let mut found = vec![Vec::new(); main.len()];
    engine.rows(directory, &query(fleet, main), |row| {
        let &[client, server, load, n, mean, sd] = row else {
            return Err(format!("six fields were expected, not `{}`", row.join(",")));
        };
        let number = |text: &str| text.parse::<f64>().map_err(|e| format!("`{text}`: {e}"));
        let machine = |name: &str| {
            machines
                .get(name)
                .copied()
                .ok_or_else(|| format!("a sample is of `{name}`, which the plan has not"))
        };
        let pair = Pair {
            client: machine(client)?,
            server: machine(server)?,
        };
        let place = *places
            .get(&pair)
            .ok_or("a sample is of a pair that the plan has not")?;
        let load = *loads
            .get(load)
            .ok_or("a sample is of a load that the plan has not")?;
        let moments = Moments {
            n: n.parse().map_err(|e| format!("`{n}`: {e}"))?,
            mean: number(mean)?,
            sd: number(sd)?,
        };
        found[load].push((place, moments));
        Ok(())
    })?;
    let measured = fleet.outcomes.iter().flatten();
    let measured = measured
        .filter(|outcome| outcome.figures.iter().any(|(at, _)| main.contains(at)))
        .count();
    if measured > 0 && found.iter().all(Vec::is_empty) {
        return Err(Error::Wrong(format!(
            "DuckDB gave no samples, and {measured} pairs were measured; `hopyard fleet show` prints what their own runs gave"
        )));
    }
    Ok(found)
}

/// A row for each pair and load.
fn query(fleet: &Fleet, main: &[u16]) -> String {
    let of_load: String = main
        .iter()
        .map(|column| {
            let column = &fleet.columns[usize::from(*column)];
            format!(" WHEN '{}' THEN {}", column.load, column.quantity)
        })
        .collect();
    format!(
        "SELECT client, server, load, count(*), avg(ln(value)), coalesce(stddev_samp(ln(value)), 0) FROM (\
         SELECT client, server, load, CASE load{of_load} END AS value FROM read_parquet('{DIRECTORY}/*/*/*.parquet') \
         WHERE counted) WHERE value > 0 GROUP BY client, server, load"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_far_from_the_median_is_different_and_close_ones_are_equivalent() {
        let of = |value: f64| Moments {
            n: 10,
            mean: f64::ln(value),
            sd: 0.005,
        };
        let found: Vec<(usize, Moments)> = [100.0, 100.1, 99.9, 50.0, 100.0]
            .map(of)
            .into_iter()
            .enumerate()
            .collect();
        let verdicts = judged(&found, 6, MARGIN);
        let all = Assessed {
            samples: 50,
            verdicts: vec![verdicts],
        };
        assert_eq!(all.counts(0), [1, 0, 4, 0]);
        let slow = all.verdicts[0][3].as_ref().unwrap();
        assert!((slow.ratio.value - 0.5).abs() < 0.01);
        assert!(all.verdicts[0][5].is_none());
    }

    /// Of three pairs that differ as runs do, one is seldom called different: with 1.4826 and two degrees of freedom it was one fleet in
    /// eight.
    #[test]
    fn a_few_pairs_that_differ_as_runs_do_are_seldom_different() {
        // Deviations from the median: 0, `near` and `far`.
        let of = |far: f64| {
            let one = |mean| Moments {
                n: 4,
                mean,
                sd: 1e-6,
            };
            let found = [(0, one(0.0)), (1, one(0.01)), (2, one(-0.01 * far))];
            let verdicts = judged(&found, 3, MARGIN);
            verdicts[2].as_ref().unwrap().verdict == Verdict::Different
        };
        assert!(!of(12.0) && !of(60.0) && of(120.0));
        let alone = Moments {
            n: 4,
            mean: 0.0,
            sd: 0.01,
        };
        assert!(judged(&[(0, alone)], 1, MARGIN)[0].is_none());
    }

    /// Runs differ by 3 %, the samples of one by 0.2 %.
    #[test]
    fn pairs_that_differ_as_runs_do_are_not_different() {
        let mut state = 7_u64;
        let mut uniform = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut apart = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let healthy = |place: usize, ratio: f64, apart: f64| {
            let mean = f64::ln(100.0 * ratio) + 0.03 * apart;
            (
                place,
                Moments {
                    n: 4,
                    mean,
                    sd: 0.002,
                },
            )
        };
        let mut pairs: Vec<_> = (0..500).map(|place| healthy(place, 1.0, apart())).collect();
        pairs[77] = healthy(77, 0.7, apart());
        let verdicts = judged(&pairs, 500, MARGIN);
        let different = |one: &Option<Judged>| {
            one.as_ref()
                .is_some_and(|one| one.verdict == Verdict::Different)
        };
        let found: Vec<usize> = (0..500).filter(|at| different(&verdicts[*at])).collect();
        assert_eq!(found, [77]);
    }
}
