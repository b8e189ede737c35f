//! The order in which a block visits its cells.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::run::groups::Group;

/// Groups in random order. Those of one setting follow each other, and among them those of one peer, which share labs.
/// Settings and peers are in random order too.
pub(super) fn ordered(mut groups: Vec<Group>, order: &mut ChaCha8Rng) -> Vec<Group> {
    groups.shuffle(order);
    let drawn = groups.clone();
    let first_with = |same: &dyn Fn(&Group) -> bool| drawn.iter().position(same);
    groups.sort_by_key(|group| {
        let of_setting = first_with(&|other| other.setting == group.setting);
        let of_peer = first_with(&|other| other.peer == group.peer);
        (of_setting, of_peer)
    });
    groups
}

/// The random order of a block's cells. It depends only on the seed, the block and the attempt, so repeating a block
/// does not change the order of others.
pub(super) fn order(seed: u64, block: u32, attempt: u32) -> ChaCha8Rng {
    let mut order = ChaCha8Rng::seed_from_u64(seed);
    order.set_stream(u64::from(block) << 32 | u64::from(attempt));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_and_attempt_has_an_order_of_its_own() {
        let cells = |seed, block, attempt| {
            let mut cells: Vec<usize> = (0..20).collect();
            cells.shuffle(&mut order(seed, block, attempt));
            cells
        };
        assert_eq!(cells(7, 1, 0), cells(7, 1, 0));
        for other in [cells(8, 1, 0), cells(7, 0, 0), cells(7, 1, 1)] {
            assert_ne!(cells(7, 1, 0), other);
        }
    }
}
