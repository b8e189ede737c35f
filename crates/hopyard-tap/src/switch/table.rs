//! Which port has which MAC address: learnt from what ports send, forgotten when they fall silent.
//!
//! Shared by all workers without a lock. An entry is one word, address and port together, so that readers
//! see it whole or not at all; its age is a word of its own, where a moment's disagreement does no harm.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use foldhash::quality::RandomState;

use super::frame::Mac;

/// How long a silent address is remembered, seconds (IEEE 802.1Q, table 8-6: 300).
pub const AGEING_S: u32 = 300;
/// Entries of the buckets that an address can be in, side by side: two cache lines with their ages.
const BUCKET: usize = 8;
/// Addresses remembered at once; more are flooded to and counted.
pub(super) const CAPACITY: usize = 8192;

/// What became of a source address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Learnt {
    /// It is where it was.
    Known,
    /// It was not there.
    New,
    /// It was at another port.
    Moved,
    /// There is no room for it.
    Full,
}

#[derive(Debug)]
pub(super) struct Table {
    /// Address in the upper 48 bits, port + 1 in the lower 16; 0 is free.
    entries: Box<[AtomicU64]>,
    /// When each was last heard, seconds.
    heard: Box<[AtomicU32]>,
    /// Seeded anew each time: nobody outside can aim at one bucket. All bits of an address decide, since
    /// those of one maker, or one lab, are consecutive numbers.
    hash: RandomState,
}

impl Table {
    /// For `capacity` addresses, a power of two from [`BUCKET`] up.
    pub(super) fn new(capacity: usize) -> Self {
        debug_assert!(capacity.is_power_of_two() && capacity >= BUCKET);
        Self {
            entries: (0..capacity).map(|_| AtomicU64::new(0)).collect(),
            heard: (0..capacity).map(|_| AtomicU32::new(0)).collect(),
            hash: RandomState::default(),
        }
    }

    /// The port of an address heard within [`AGEING_S`].
    pub(super) fn find(&self, mac: Mac, now_s: u32) -> Option<usize> {
        let at = self.position(mac)?;
        let entry = self.entries[at].load(Relaxed);
        let fresh = self.is_fresh(at, now_s) && address(entry) == mac.bits();
        fresh.then(|| port(entry))
    }

    /// Takes note that an address sent from a port.
    pub(super) fn learn(&self, mac: Mac, from: usize, now_s: u32) -> Learnt {
        let new = entry(mac, from);
        let Some(at) = self.position(mac) else {
            return self.insert(mac, new, now_s);
        };
        let old = self.entries[at].load(Relaxed);
        let fresh = self.is_fresh(at, now_s);
        if self.heard[at].load(Relaxed) != now_s {
            self.heard[at].store(now_s, Relaxed);
        }
        if old == new {
            return if fresh { Learnt::Known } else { Learnt::New };
        }
        // Should the entry have become somebody else's meanwhile, the next frame tries again.
        let _ = self.entries[at].compare_exchange(old, new, Relaxed, Relaxed);
        if fresh { Learnt::Moved } else { Learnt::New }
    }

    fn insert(&self, mac: Mac, new: u64, now_s: u32) -> Learnt {
        for at in self.bucket(mac) {
            let old = self.entries[at].load(Relaxed);
            if old != 0 && self.is_fresh(at, now_s) {
                continue;
            }
            // Its age first: the entry must not be found old.
            self.heard[at].store(now_s, Relaxed);
            if self.entries[at]
                .compare_exchange(old, new, Relaxed, Relaxed)
                .is_ok()
            {
                return Learnt::New;
            }
        }
        Learnt::Full
    }

    /// Addresses heard within [`AGEING_S`].
    pub(super) fn len(&self, now_s: u32) -> usize {
        let known = |at: &usize| self.entries[*at].load(Relaxed) != 0 && self.is_fresh(*at, now_s);
        (0..self.entries.len()).filter(known).count()
    }

    fn position(&self, mac: Mac) -> Option<usize> {
        self.bucket(mac).find(|at| {
            let entry = self.entries[*at].load(Relaxed);
            entry != 0 && address(entry) == mac.bits()
        })
    }

    fn bucket(&self, mac: Mac) -> std::ops::Range<usize> {
        let buckets = self.entries.len() / BUCKET;
        let hash = self.hash.hash_one(mac.bits()) as usize;
        let first = (hash & (buckets - 1)) * BUCKET;
        first..first + BUCKET
    }

    fn is_fresh(&self, at: usize, now_s: u32) -> bool {
        now_s.wrapping_sub(self.heard[at].load(Relaxed)) <= AGEING_S
    }
}

fn entry(mac: Mac, port: usize) -> u64 {
    mac.bits() << 16 | (port as u64 + 1)
}

fn address(entry: u64) -> u64 {
    entry >> 16
}

fn port(entry: u64) -> usize {
    (entry & 0xffff) as usize - 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::frame::addresses;
    use super::*;

    fn mac(number: u64) -> Mac {
        let mut frame = [0; 14];
        frame[..6].copy_from_slice(&(number | 2 << 40).to_be_bytes()[2..]);
        addresses(&frame).unwrap().0
    }

    #[test]
    fn what_is_learnt_is_found_until_it_is_old() {
        let table = Table::new(CAPACITY);
        assert_eq!(table.find(mac(1), 0), None);
        assert_eq!(table.learn(mac(1), 3, 0), Learnt::New);
        assert_eq!(table.learn(mac(1), 3, 1), Learnt::Known);
        assert_eq!(table.find(mac(1), 1 + AGEING_S), Some(3));
        assert_eq!(table.find(mac(1), 2 + AGEING_S), None);
        assert_eq!(table.len(2 + AGEING_S), 0);
        assert_eq!(table.learn(mac(1), 5, 2 + AGEING_S), Learnt::New);
        assert_eq!(table.find(mac(1), 2 + AGEING_S), Some(5));
    }

    #[test]
    fn an_address_that_moves_is_followed() {
        let table = Table::new(CAPACITY);
        table.learn(mac(1), 0, 0);
        for round in 0..100 {
            let port = 1 - round % 2;
            assert_eq!(table.learn(mac(1), port, 0), Learnt::Moved);
            assert_eq!(table.find(mac(1), 0), Some(port));
        }
        assert_eq!(table.len(0), 1);
    }

    #[test]
    fn a_full_table_keeps_what_it_has_and_takes_new_ones_when_those_are_old() {
        let table = Table::new(BUCKET);
        for number in 0..BUCKET as u64 {
            assert_eq!(table.learn(mac(number), 1, 0), Learnt::New);
        }
        assert_eq!(table.learn(mac(99), 2, 0), Learnt::Full);
        assert_eq!(table.find(mac(99), 0), None);
        assert!((0..BUCKET as u64).all(|number| table.find(mac(number), 0) == Some(1)));
        assert_eq!(table.learn(mac(99), 2, AGEING_S + 1), Learnt::New);
        assert_eq!(table.find(mac(99), AGEING_S + 1), Some(2));
    }

    /// Under any seed: a hash that only multiplies puts nine neighbours into one bucket of eight with one seed in
    /// a thousand.
    #[test]
    fn consecutive_addresses_do_not_crowd_one_bucket() {
        for _ in 0..10_000 {
            let table = Table::new(CAPACITY / 8);
            for number in 0..32 {
                assert_eq!(table.learn(mac(number), 0, 0), Learnt::New);
            }
        }
    }

    #[test]
    fn workers_learn_side_by_side() {
        let table = Table::new(CAPACITY);
        std::thread::scope(|scope| {
            for port in 0..4 {
                let table = &table;
                scope.spawn(move || {
                    for number in 0..20_000 {
                        table.learn(mac(number % 64), port, 0);
                        let found = table.find(mac(number % 64), 0);
                        assert!(found.is_some_and(|port| port < 4));
                    }
                });
            }
        });
        // Two that insert the same address at once may do so twice; no more than each once.
        assert!((64..=4 * 64).contains(&table.len(0)));
    }

    proptest! {
        #[test]
        fn the_last_port_heard_is_the_one_found(heard in prop::collection::vec((0u64..32, 0usize..300), 1..200)) {
            let table = Table::new(CAPACITY);
            let mut last = std::collections::HashMap::new();
            for (number, port) in heard {
                prop_assert_ne!(table.learn(mac(number), port, 7), Learnt::Full);
                last.insert(number, port);
            }
            for (number, port) in last {
                prop_assert_eq!(table.find(mac(number), 7), Some(port));
            }
        }
    }
}
