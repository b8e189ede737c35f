//! How often to repeat at which level, if generations differ and rounds within them differ too.

use super::moments::{mean, sd};

/// Variances of one value per round, at the two levels of replication.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Between the rounds of one generation.
    pub within: f64,
    /// Between generations, beyond what their rounds contribute; 0 if the rounds explain all of it.
    pub between: f64,
}

/// The variances of generations of rounds (Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013,
/// section 6.1): the variance of the generations' means less what the rounds contribute to it. `None` without two
/// generations of two rounds each.
#[must_use]
pub fn spread(generations: &[Vec<f64>]) -> Option<Spread> {
    let whole: Vec<&Vec<f64>> = generations
        .iter()
        .filter(|rounds| rounds.len() > 1)
        .collect();
    let variance = |values: &[f64]| Some(sd(values)?.powi(2));
    let within: Vec<f64> = whole.iter().filter_map(|rounds| variance(rounds)).collect();
    let means: Vec<f64> = whole.iter().filter_map(|rounds| mean(rounds)).collect();
    let shares: Vec<f64> = whole
        .iter()
        .zip(&within)
        .map(|(rounds, v)| v / rounds.len() as f64)
        .collect();
    let between = variance(&means)? - mean(&shares)?;
    Some(Spread {
        within: mean(&within)?,
        between: between.max(0.0),
    })
}

impl Spread {
    /// The number of rounds in a generation that gives the narrowest interval for the time it takes, if a round costs
    /// `round` and a generation costs `generation` besides (the same source, section 6.2). Infinite if generations do
    /// not differ.
    #[must_use]
    pub fn rounds(self, generation: f64, round: f64) -> f64 {
        (generation / round * self.within / self.between).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Approximately normal, with the given standard deviation.
    fn noise(random: &mut ChaCha8Rng, sd: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| random.random::<f64>()).sum();
        (sum - 6.0) * sd
    }

    fn generations(between: f64, within: f64) -> Vec<Vec<f64>> {
        let random = &mut ChaCha8Rng::seed_from_u64(3);
        let generation = |random: &mut ChaCha8Rng| {
            let centre = noise(random, between);
            (0..20).map(|_| centre + noise(random, within)).collect()
        };
        (0..400).map(|_| generation(random)).collect()
    }

    #[test]
    fn variances_are_told_apart() {
        let spread = spread(&generations(0.02, 0.1)).unwrap();
        assert!((spread.within / 0.01 - 1.0).abs() < 0.1, "{spread:?}");
        assert!((spread.between / 0.0004 - 1.0).abs() < 0.4, "{spread:?}");
        let alike = super::spread(&generations(0.0, 0.1)).unwrap();
        assert!(alike.between < 0.0001, "{alike:?}");
    }

    #[test]
    fn dear_generations_get_more_rounds_and_uneven_ones_fewer() {
        let spread = |between| Spread {
            within: 0.01,
            between,
        };
        assert!((spread(0.01).rounds(4.0, 1.0) - 2.0).abs() < 1e-9);
        assert!((spread(0.01).rounds(16.0, 1.0) - 4.0).abs() < 1e-9);
        assert!((spread(0.0001).rounds(4.0, 1.0) - 20.0).abs() < 1e-9);
        assert_eq!(spread(0.0).rounds(4.0, 1.0), f64::INFINITY);
    }

    #[test]
    fn too_little_to_tell() {
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[vec![1.0, 2.0]]), None);
        assert_eq!(spread(&[vec![1.0], vec![2.0]]), None);
    }
}
