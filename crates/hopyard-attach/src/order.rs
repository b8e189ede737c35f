//! The order of visits, from a seed.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// One stream of random orders.
pub(crate) struct Order(ChaCha8Rng);

impl Order {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// The same things in another order.
    pub(crate) fn of<T: Clone>(&mut self, things: &[T]) -> Vec<T> {
        let mut things = things.to_vec();
        things.shuffle(&mut self.0);
        things
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_order_and_every_place_is_as_likely() {
        let things: Vec<u32> = (0..4).collect();
        assert_eq!(Order::new(7).of(&things), Order::new(7).of(&things));
        let mut order = Order::new(1);
        let mut first = [0_u32; 4];
        for _ in 0..4000 {
            first[order.of(&things)[0] as usize] += 1;
        }
        assert!(first.iter().all(|n| (880..1120).contains(n)), "{first:?}");
    }
}
