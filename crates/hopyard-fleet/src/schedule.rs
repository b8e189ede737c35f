//! Which pairs are measured, in rounds of pairs that share no machine.

use std::fmt;
use std::str::FromStr;

use hopyard_model::UnknownName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which pairs of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pairs {
    /// Every machine with every other, once.
    All,
    /// Every machine with every other, once as the client and once as the server.
    BothWays,
    /// Every machine with the next one of the list, the last with the first.
    Ring,
}

impl Pairs {
    const ALL: [Self; 3] = [Self::All, Self::BothWays, Self::Ring];

    fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::BothWays => "both-ways",
            Self::Ring => "ring",
        }
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Pairs {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|pairs| pairs.name() == text);
        found.ok_or_else(|| UnknownName::new("choice of pairs", text, Self::ALL.map(Self::name)))
    }
}

/// Two machines by their places in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    /// Place of the machine that connects, among the endpoints.
    pub client: u16,
    /// Place of the machine that listens.
    pub server: u16,
}

impl Pair {
    /// Client and server.
    #[must_use]
    pub fn ends(self) -> [u16; 2] {
        [self.client, self.server]
    }

    fn reversed(self) -> Self {
        Self {
            client: self.server,
            server: self.client,
        }
    }
}

/// The pairs of so many machines, round by round. In a round each machine is at most once.
#[must_use]
pub fn rounds(pairs: Pairs, machines: u16) -> Vec<Vec<Pair>> {
    match pairs {
        Pairs::All => all(machines),
        Pairs::BothWays => {
            let there = all(machines);
            let back: Vec<Vec<Pair>> = there
                .iter()
                .map(|round| round.iter().map(|pair| pair.reversed()).collect())
                .collect();
            there.into_iter().chain(back).collect()
        }
        Pairs::Ring => ring(machines),
    }
}

/// The circle method for round-robin tournaments: one place stands still, the others move on by one each round. Of an odd
/// number one machine rests in each round.
fn all(machines: u16) -> Vec<Vec<Pair>> {
    if machines < 2 {
        return Vec::new();
    }
    let places = machines + machines % 2;
    let moving = places - 1;
    let round = |turn: u16| {
        let at = |place: u16| (place + turn) % moving;
        let standing = std::iter::once((at(0), moving));
        let others = (1..places / 2).map(move |i| (at(i), at(moving - i)));
        let there = |&(a, b): &(u16, u16)| a < machines && b < machines;
        let mut pairs: Vec<Pair> = standing
            .chain(others)
            .filter(there)
            .map(|(a, b)| directed(a, b))
            .collect();
        pairs.sort_unstable();
        pairs
    };
    (0..moving).map(round).collect()
}

/// Who is the client: each machine is in about half of its pairs, so that none is judged by one role.
fn directed(a: u16, b: u16) -> Pair {
    let (low, high) = (a.min(b), a.max(b));
    let pair = Pair {
        client: low,
        server: high,
    };
    if (high - low) % 2 == 1 {
        pair
    } else {
        pair.reversed()
    }
}

/// Every other pair of neighbours in the first round, the rest in the second; of an odd number the last pair has a third.
fn ring(machines: u16) -> Vec<Vec<Pair>> {
    if machines == 2 {
        return vec![vec![Pair {
            client: 0,
            server: 1,
        }]];
    }
    let mut rounds = vec![Vec::new(), Vec::new()];
    for client in 0..machines {
        let pair = Pair {
            client,
            server: (client + 1) % machines,
        };
        if machines % 2 == 1 && client == machines - 1 {
            rounds.push(vec![pair]);
        } else {
            rounds[usize::from(client % 2)].push(pair);
        }
    }
    rounds.retain(|round| !round.is_empty());
    rounds
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn disjoint(round: &[Pair]) -> bool {
        let mut seen = BTreeSet::new();
        round.iter().flat_map(|p| p.ends()).all(|m| seen.insert(m))
    }

    proptest! {
        #[test]
        fn all_pairs_come_once_in_rounds_of_disjoint_ones(machines in 2_u16..120) {
            let rounds = rounds(Pairs::All, machines);
            let odd = machines % 2;
            prop_assert_eq!(rounds.len(), usize::from(machines - 1 + odd));
            let mut seen = BTreeSet::new();
            for round in &rounds {
                prop_assert!(disjoint(round));
                prop_assert_eq!(round.len(), usize::from(machines / 2));
                for pair in round {
                    let [a, b] = pair.ends();
                    prop_assert!(a < machines && b < machines && a != b);
                    prop_assert!(seen.insert((a.min(b), a.max(b))));
                }
            }
            let n = usize::from(machines);
            prop_assert_eq!(seen.len(), n * (n - 1) / 2);
            // Nobody is mostly the client or mostly the server.
            for machine in 0..machines {
                let as_client = rounds.iter().flatten().filter(|p| p.client == machine).count();
                let half = (n - 1) / 2;
                prop_assert!(as_client.abs_diff(half) <= 1, "{machine}: {as_client} of {}", n - 1);
            }
        }

        #[test]
        fn both_ways_is_each_ordered_pair_once(machines in 2_u16..60) {
            let rounds = rounds(Pairs::BothWays, machines);
            prop_assert!(rounds.iter().all(|round| disjoint(round)));
            let pairs: Vec<Pair> = rounds.into_iter().flatten().collect();
            let seen: BTreeSet<Pair> = pairs.iter().copied().collect();
            let n = usize::from(machines);
            prop_assert_eq!(pairs.len(), n * (n - 1));
            prop_assert_eq!(seen.len(), pairs.len());
        }

        #[test]
        fn a_ring_is_each_neighbour_once(machines in 2_u16..500) {
            let rounds = rounds(Pairs::Ring, machines);
            prop_assert!(rounds.iter().all(|round| disjoint(round)));
            prop_assert!(rounds.len() <= 2 + usize::from(machines % 2));
            let pairs: BTreeSet<(u16, u16)> = rounds.iter().flatten()
                .map(|p| (p.client.min(p.server), p.client.max(p.server))).collect();
            let count: usize = rounds.iter().map(Vec::len).sum();
            prop_assert_eq!(count, pairs.len());
            prop_assert_eq!(count, if machines == 2 { 1 } else { usize::from(machines) });
        }
    }

    #[test]
    fn a_thousand_machines_take_999_rounds() {
        let rounds = rounds(Pairs::All, 1000);
        assert_eq!(rounds.len(), 999);
        assert_eq!(rounds.iter().map(Vec::len).sum::<usize>(), 499_500);
    }
}
