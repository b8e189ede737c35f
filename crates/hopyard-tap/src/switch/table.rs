//! The table of MAC addresses: which port has which address, learnt from frames that ports send, and forgotten after
//! silence.
//!
//! Shared by all workers without a lock. An entry is one word, address and port together, so readers never see half of
//! it. Its age is a separate word, where a brief inconsistency does no harm.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use foldhash::quality::RandomState;

use super::frame::Mac;
use super::rules::Rules;

/// How long a silent address is remembered, seconds (IEEE 802.1Q, table 8-6: 300).
pub const AGEING_S: u32 = 300;
/// Entries of a bucket, the only ones for an address: two cache lines with their ages.
const BUCKET: usize = 8;
/// Addresses remembered at once. Frames to further ones are flooded and counted.
pub(super) const CAPACITY: usize = 8192;
/// The bit of an entry whose address was given to its port: it neither ages nor moves.
const GIVEN: u64 = 1 << 15;
/// The bit of an entry whose port is isolated.
const ISOLATED: u64 = 1 << 14;
/// The bits of an entry for the port, counted from 1.
const PORT: u64 = (1 << 14) - 1;
/// The most seeds tried to place given addresses: of [`MAX_GIVEN`](super::MAX_GIVEN), nine fall into one bucket of
/// eight under about every fourth seed.
const SEEDS: usize = 200;

/// The result of learning a source address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Learnt {
    /// It is unchanged.
    Known,
    /// It is new.
    New,
    /// It was at another port.
    Moved,
    /// There is no room for it.
    Full,
    /// The port may not send from it.
    Refused,
    /// The port would have more addresses than it may.
    OverQuota,
}

/// The place of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// At a port.
    At(usize),
    /// At a port that gets no frames from this one: the same port, or both are isolated.
    Barred(usize),
    /// Unknown.
    Nowhere,
}

/// Data of a port.
#[derive(Debug)]
struct Place {
    /// The lower bits of its entries.
    tag: u64,
    /// Bits of an entry. No frame from here goes to entries in which these bits equal those of `tag`: the port's own
    /// entries, or those of every isolated port.
    barred: u64,
    /// Entries learnt from it, and the most there may be.
    used: AtomicU32,
    most: u32,
}

impl Place {
    fn new(port: usize, rules: &Rules) -> Self {
        let given = if rules.macs.is_empty() { 0 } else { GIVEN };
        let (isolated, barred) = if rules.isolated {
            (ISOLATED, ISOLATED)
        } else {
            (0, PORT)
        };
        Self {
            tag: (port as u64 + 1) | given | isolated,
            barred,
            used: AtomicU32::new(0),
            most: rules.addresses,
        }
    }

    /// Takes one more entry; false if it has reached its limit.
    fn take(&self) -> bool {
        let took = self.used.fetch_add(1, Relaxed) < self.most;
        if !took {
            self.give_back();
        }
        took
    }

    fn give_back(&self) {
        self.used.fetch_sub(1, Relaxed);
    }
}

#[derive(Debug)]
pub(super) struct Table {
    /// Address in the upper 48 bits, then [`GIVEN`], [`ISOLATED`] and [`PORT`]; 0 is free.
    entries: Box<[AtomicU64]>,
    /// When each address was last seen, seconds.
    heard: Box<[AtomicU32]>,
    /// Seeded anew each time, so that nobody outside can target one bucket. All bits of an address matter, because
    /// addresses of one manufacturer or one lab are consecutive.
    hash: RandomState,
    /// By port.
    places: Box<[Place]>,
}

impl Table {
    /// For `capacity` addresses, a power of two from [`BUCKET`] up, and ports with these rules; `None` if there is no
    /// room for the addresses that they give.
    pub(super) fn new<'a>(
        capacity: usize,
        rules: &(impl Iterator<Item = &'a Rules> + Clone),
    ) -> Option<Self> {
        let of = |(port, rules): (usize, &'a Rules)| {
            let macs = rules.macs.iter();
            macs.map(move |mac| (port, Mac::of(*mac)))
        };
        let given: Vec<_> = rules.clone().enumerate().flat_map(of).collect();
        let mut tables = (0..SEEDS).map(|_| Self::empty(capacity, rules.clone()));
        tables.find(|table| {
            let mut each = given.iter();
            each.all(|(port, mac)| table.give(*mac, *port))
        })
    }

    fn empty<'a>(capacity: usize, rules: impl Iterator<Item = &'a Rules>) -> Self {
        debug_assert!(capacity.is_power_of_two() && capacity >= BUCKET);
        Self {
            entries: (0..capacity).map(|_| AtomicU64::new(0)).collect(),
            heard: (0..capacity).map(|_| AtomicU32::new(0)).collect(),
            hash: RandomState::default(),
            places: rules
                .enumerate()
                .map(|(port, rules)| Place::new(port, rules))
                .collect(),
        }
    }

    /// Enters an address that is given to a port, before anything is learnt; false if its bucket is full.
    fn give(&self, mac: Mac, port: usize) -> bool {
        let free = |at: &usize| self.entries[*at].load(Relaxed) == 0;
        let at = self.bucket(mac).find(free);
        at.map(|at| self.entries[at].store(self.entry(mac, port), Relaxed))
            .is_some()
    }

    /// The place of an address as seen from a port: it was given to that place, or sent from there within [`AGEING_S`].
    pub(super) fn find(&self, mac: Mac, from: usize, now_s: u32) -> Found {
        match self.position(mac) {
            Some((at, entry)) if self.is_known(at, entry, now_s) => {
                let place = &self.places[from];
                if (entry ^ place.tag) & place.barred == 0 {
                    Found::Barred(port(entry))
                } else {
                    Found::At(port(entry))
                }
            }
            _ => Found::Nowhere,
        }
    }

    /// Whether no frame may go from one port to the other.
    pub(super) fn are_apart(&self, from: usize, to: usize) -> bool {
        self.places[from].tag & self.places[to].tag & ISOLATED != 0
    }

    /// The number of ports that receive a flooded frame.
    pub(super) fn receivers(&self, from: usize) -> usize {
        let gets = |to: &usize| *to != from && !self.are_apart(from, *to);
        if self.places[from].tag & ISOLATED != 0 {
            (0..self.places.len()).filter(gets).count()
        } else {
            self.places.len() - 1
        }
    }

    /// Records that an address sent from a port.
    pub(super) fn learn(&self, mac: Mac, from: usize, now_s: u32) -> Learnt {
        let new = self.entry(mac, from);
        let Some((at, old)) = self.position(mac) else {
            return self.insert(mac, from, now_s);
        };
        if old != new {
            return self.move_to(at, old, mac, from, now_s);
        }
        let fresh = self.is_fresh(at, now_s);
        if self.heard[at].load(Relaxed) != now_s {
            self.heard[at].store(now_s, Relaxed);
        }
        if fresh { Learnt::Known } else { Learnt::New }
    }

    /// An address that belongs to another port by `old` sent from this one.
    #[cold]
    fn move_to(&self, at: usize, old: u64, mac: Mac, from: usize, now_s: u32) -> Learnt {
        let new = self.entry(mac, from);
        if (old | new) & GIVEN != 0 {
            return Learnt::Refused;
        }
        if !self.places[from].take() {
            return Learnt::OverQuota;
        }
        let fresh = self.is_fresh(at, now_s);
        self.heard[at].store(now_s, Relaxed);
        // If the entry has changed meanwhile, the next frame tries again.
        let moved = self.entries[at].compare_exchange(old, new, Relaxed, Relaxed);
        let loser = if moved.is_ok() { port(old) } else { from };
        self.places[loser].give_back();
        if fresh { Learnt::Moved } else { Learnt::New }
    }

    #[cold]
    fn insert(&self, mac: Mac, from: usize, now_s: u32) -> Learnt {
        let new = self.entry(mac, from);
        if new & GIVEN != 0 {
            return Learnt::Refused;
        }
        if !self.places[from].take() {
            return Learnt::OverQuota;
        }
        for at in self.bucket(mac) {
            let mut old = self.entries[at].load(Relaxed);
            // Somebody may take the place, and it may be for the same address, by another queue of the port.
            while old == 0 || address(old) == address(new) || !self.is_known(at, old, now_s) {
                if old != 0 && address(old) == address(new) {
                    self.places[from].give_back();
                    return Learnt::Known;
                }
                // The age first, so that the entry is never seen as old.
                self.heard[at].store(now_s, Relaxed);
                match self.entries[at].compare_exchange(old, new, Relaxed, Relaxed) {
                    Ok(_) => {
                        if old != 0 {
                            self.places[port(old)].give_back();
                        }
                        return Learnt::New;
                    }
                    Err(now) => old = now,
                }
            }
        }
        self.places[from].give_back();
        Learnt::Full
    }

    /// Forgets silent addresses, so that they count towards no port's quota.
    pub(super) fn sweep(&self, now_s: u32) {
        for (at, slot) in self.entries.iter().enumerate() {
            let old = slot.load(Relaxed);
            let stale = old != 0 && !self.is_known(at, old, now_s);
            // If the address sends at this moment, the next frame enters it again.
            if stale && slot.compare_exchange(old, 0, Relaxed, Relaxed).is_ok() {
                self.places[port(old)].give_back();
            }
        }
    }

    /// The number of addresses that were given to ports, or sent within [`AGEING_S`].
    pub(super) fn len(&self, now_s: u32) -> usize {
        let known = |at: &usize| {
            let entry = self.entries[*at].load(Relaxed);
            entry != 0 && self.is_known(*at, entry, now_s)
        };
        (0..self.entries.len()).filter(known).count()
    }

    /// Index and entry of an address. A free entry has the bits of address 0 and never matches.
    fn position(&self, mac: Mac) -> Option<(usize, u64)> {
        let entry = |at: usize| (at, self.entries[at].load(Relaxed));
        let mut entries = self.bucket(mac).map(entry);
        entries.find(|(_, entry)| address(*entry) == mac.bits() && *entry != 0)
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

    fn is_known(&self, at: usize, entry: u64, now_s: u32) -> bool {
        self.is_fresh(at, now_s) || entry & GIVEN != 0
    }

    fn entry(&self, mac: Mac, port: usize) -> u64 {
        mac.bits() << 16 | self.places[port].tag
    }
}

fn address(entry: u64) -> u64 {
    entry >> 16
}

fn port(entry: u64) -> usize {
    (entry & PORT) as usize - 1
}

#[cfg(test)]
mod tests;
