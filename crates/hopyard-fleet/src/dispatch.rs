//! Which pair is next. A pair starts as soon as both its machines are free, and of several that could start, the one of the
//! earliest round does.
//!
//! Rounds with a barrier between them would be simpler, and one pair that is slow or dead would keep all machines waiting, in
//! every round anew. Without barriers it keeps two. As long as all pairs take equally long the order is that of the rounds.

use crate::schedule::Pair;

/// With so few free machines it is quicker to look at them than at the list of pairs.
const FEW: usize = 64;
const NONE: u32 = u32::MAX;

/// What is left to do, and who is free to do it.
pub(crate) struct Dispatch {
    pairs: Vec<Pair>,
    /// Doubly linked list of what is left, in the order of the rounds; the last entry is its head.
    after: Vec<u32>,
    before: Vec<u32>,
    /// Place of a pair that is left, by client and server.
    place: Vec<u32>,
    machines: usize,
    /// For each machine: those with which it has a pair left, in either role.
    partners: Vec<Bits>,
    free: Bits,
    left: usize,
    running: usize,
    at_once: usize,
}

impl Dispatch {
    /// All pairs but those that are done.
    pub(crate) fn new(
        machines: usize,
        pairs: &[Pair],
        is_done: impl Fn(usize) -> bool,
        at_once: usize,
    ) -> Self {
        let head = number(pairs.len());
        let mut new = Self {
            pairs: pairs.to_vec(),
            after: vec![NONE; pairs.len() + 1],
            before: vec![NONE; pairs.len() + 1],
            place: vec![NONE; machines * machines],
            machines,
            partners: vec![Bits::none(machines); machines],
            free: Bits::all(machines),
            left: 0,
            running: 0,
            at_once,
        };
        let mut last = head;
        for (index, pair) in pairs.iter().enumerate().filter(|(i, _)| !is_done(*i)) {
            let index = number(index);
            new.after[last as usize] = index;
            new.before[index as usize] = last;
            last = index;
            let [client, server] = pair.ends().map(usize::from);
            new.place[client * machines + server] = index;
            new.partners[client].set(server, true);
            new.partners[server].set(client, true);
            new.left += 1;
        }
        new.after[last as usize] = head;
        new.before[head as usize] = last;
        new
    }

    /// Pairs that have not been started.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Pairs that were started and have not ended.
    pub(crate) fn running(&self) -> usize {
        self.running
    }

    /// The next pair, whose machines are taken by it until [`Dispatch::end`]. None while no two machines that have a pair left
    /// are free, or as many run as may.
    pub(crate) fn start(&mut self) -> Option<usize> {
        if self.running >= self.at_once {
            return None;
        }
        let index = if self.free.count() <= FEW {
            self.earliest_of_the_free()
        } else {
            self.first_in_the_list()
        }?;
        self.take_out(index);
        for machine in self.pairs[index as usize].ends() {
            self.free.set(machine.into(), false);
        }
        self.running += 1;
        Some(index as usize)
    }

    /// A pair has ended.
    pub(crate) fn end(&mut self, index: usize) {
        for machine in self.pairs[index].ends() {
            self.free.set(machine.into(), true);
        }
        self.running -= 1;
    }

    /// A machine is lost: none of its pairs will start. Gives their places.
    pub(crate) fn lose(&mut self, machine: u16) -> Vec<usize> {
        let mut lost = Vec::new();
        let machine = usize::from(machine);
        for other in 0..self.machines {
            for place in [
                machine * self.machines + other,
                other * self.machines + machine,
            ] {
                let index = self.place[place];
                if index != NONE {
                    self.take_out(index);
                    lost.push(index as usize);
                }
            }
        }
        lost
    }

    fn take_out(&mut self, index: u32) {
        let (before, after) = (self.before[index as usize], self.after[index as usize]);
        self.after[before as usize] = after;
        self.before[after as usize] = before;
        let [client, server] = self.pairs[index as usize].ends().map(usize::from);
        self.place[client * self.machines + server] = NONE;
        if self.place[server * self.machines + client] == NONE {
            self.partners[client].set(server, false);
            self.partners[server].set(client, false);
        }
        self.left -= 1;
    }

    fn earliest_of_the_free(&self) -> Option<u32> {
        let mut earliest = NONE;
        for one in self.free.members() {
            for other in self.free.members_also_in(&self.partners[one]) {
                let there = self.place[one * self.machines + other];
                let back = self.place[other * self.machines + one];
                earliest = earliest.min(there).min(back);
            }
        }
        (earliest != NONE).then_some(earliest)
    }

    fn first_in_the_list(&self) -> Option<u32> {
        let can = |one: usize| self.free.members_also_in(&self.partners[one]).next();
        // Otherwise the whole list is searched for nothing.
        self.free.members().find_map(can)?;
        let head = number(self.pairs.len());
        let mut index = self.after[head as usize];
        while index != head {
            let ends = self.pairs[index as usize].ends();
            if ends.iter().all(|machine| self.free.has((*machine).into())) {
                return Some(index);
            }
            index = self.after[index as usize];
        }
        None
    }
}

/// The place of a pair: there are at most 4.2 million of them, [`MOST_ENDPOINTS`](crate::MOST_ENDPOINTS) squared.
fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(NONE)
}

/// A set of machines.
#[derive(Clone)]
struct Bits {
    words: Vec<u64>,
    count: usize,
}

impl Bits {
    fn none(of: usize) -> Self {
        Self {
            words: vec![0; of.div_ceil(64)],
            count: 0,
        }
    }

    fn all(of: usize) -> Self {
        let mut bits = Self::none(of);
        for member in 0..of {
            bits.set(member, true);
        }
        bits
    }

    fn count(&self) -> usize {
        self.count
    }

    fn has(&self, member: usize) -> bool {
        self.words[member / 64] >> (member % 64) & 1 == 1
    }

    fn set(&mut self, member: usize, is_in: bool) {
        if self.has(member) == is_in {
            return;
        }
        self.words[member / 64] ^= 1 << (member % 64);
        if is_in {
            self.count += 1;
        } else {
            self.count -= 1;
        }
    }

    fn members(&self) -> impl Iterator<Item = usize> {
        members(self.words.iter().copied())
    }

    fn members_also_in(&self, other: &Self) -> impl Iterator<Item = usize> {
        members(self.words.iter().zip(&other.words).map(|(a, b)| a & b))
    }
}

fn members(words: impl Iterator<Item = u64>) -> impl Iterator<Item = usize> {
    words.enumerate().flat_map(|(place, mut word)| {
        std::iter::from_fn(move || {
            let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
            word &= word - 1;
            Some(place * 64 + bit)
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::schedule::{Pairs, rounds};

    fn any_pairs() -> impl Strategy<Value = Pairs> {
        prop_oneof![Just(Pairs::All), Just(Pairs::BothWays), Just(Pairs::Ring)]
    }

    /// Carries out everything; pairs end in the order that `ends` says. Gives the starts, and checks what must hold at each moment.
    fn carried_out(
        machines: u16,
        pairs: &[Pair],
        at_once: usize,
        lost: Option<u16>,
        mut ends: impl FnMut(usize) -> usize,
    ) -> Vec<usize> {
        let mut dispatch = Dispatch::new(machines.into(), pairs, |_| false, at_once);
        let (mut running, mut started): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        loop {
            while let Some(index) = dispatch.start() {
                running.push(index);
                started.push(index);
            }
            let mut busy = BTreeSet::new();
            let mut of_running = running.iter().flat_map(|i| pairs[*i].ends());
            assert!(of_running.all(|m| busy.insert(m)), "a machine is in two");
            assert!(running.len() <= at_once && dispatch.running() == running.len());
            // No pair waits whose machines are free.
            let waits = |i: &usize| {
                !started.contains(i)
                    && pairs[*i]
                        .ends()
                        .iter()
                        .all(|m| !busy.contains(m) && Some(*m) != lost)
            };
            if running.len() < at_once && pairs.len() < 400 {
                assert_eq!((0..pairs.len()).find(waits), None);
            }
            if running.is_empty() {
                assert_eq!(dispatch.left(), 0);
                return started;
            }
            if let Some(lost) = lost.filter(|_| started.len() == pairs.len().min(3)) {
                dispatch.lose(lost);
            }
            let ended = running.swap_remove(ends(running.len()));
            dispatch.end(ended);
        }
    }

    proptest! {
        #[test]
        fn every_pair_is_started_once_and_no_machine_is_in_two(
            machines in 2_u16..24, kind in any_pairs(), at_once in 1_usize..20, seed in any::<u64>()
        ) {
            let pairs: Vec<Pair> = rounds(kind, machines).into_iter().flatten().collect();
            let mut state = seed;
            let any = |n: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as usize % n
            };
            let mut started = carried_out(machines, &pairs, at_once, None, any);
            started.sort_unstable();
            prop_assert_eq!(started, (0..pairs.len()).collect::<Vec<_>>());
        }

        #[test]
        fn with_many_machines_too(machines in 130_u16..150, at_once in 1_usize..100) {
            let pairs: Vec<Pair> = rounds(Pairs::Ring, machines).into_iter().flatten().collect();
            let started = carried_out(machines, &pairs, at_once, None, |n| n / 2);
            prop_assert_eq!(started.len(), pairs.len());
        }
    }

    #[test]
    fn pairs_that_take_equally_long_go_round_by_round() {
        for (machines, at_once) in [(8, 4), (9, 4), (8, 2)] {
            let pairs: Vec<Pair> = rounds(Pairs::All, machines).into_iter().flatten().collect();
            // All that run end together.
            let mut dispatch = Dispatch::new(machines.into(), &pairs, |_| false, at_once);
            let mut order = Vec::new();
            loop {
                let wave: Vec<usize> = std::iter::from_fn(|| dispatch.start()).collect();
                if wave.is_empty() {
                    break;
                }
                wave.iter().for_each(|index| dispatch.end(*index));
                order.extend(wave);
            }
            assert_eq!(order, (0..pairs.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn one_that_never_ends_stalls_nobody_else() {
        let pairs: Vec<Pair> = rounds(Pairs::All, 6).into_iter().flatten().collect();
        let mut dispatch = Dispatch::new(6, &pairs, |_| false, 10);
        let stuck = dispatch.start().unwrap();
        let mut ended = 0;
        while let Some(index) = dispatch.start() {
            dispatch.end(index);
            ended += 1;
        }
        // The six pairs of the other four.
        assert_eq!(ended, 6);
        dispatch.end(stuck);
        assert_eq!(std::iter::from_fn(|| dispatch.start()).count(), 2);
    }

    #[test]
    fn a_lost_machine_takes_its_own_pairs_along_and_no_other() {
        let pairs: Vec<Pair> = rounds(Pairs::BothWays, 7).into_iter().flatten().collect();
        let started = carried_out(7, &pairs, 3, Some(2), |_| 0);
        let without = pairs.iter().filter(|p| !p.ends().contains(&2)).count();
        let of_others = started.iter().filter(|i| !pairs[**i].ends().contains(&2));
        assert_eq!(of_others.count(), without);
        assert!(started.len() < pairs.len());
    }

    #[test]
    fn what_is_done_is_not_started() {
        let pairs: Vec<Pair> = rounds(Pairs::All, 5).into_iter().flatten().collect();
        let mut dispatch = Dispatch::new(5, &pairs, |index| index != 7, 2);
        assert_eq!((dispatch.start(), dispatch.start()), (Some(7), None));
    }
}
