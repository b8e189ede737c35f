//! Which CPUs the two ends run on.

use std::collections::BTreeMap;

use hopyard_net::cpu;

use crate::lab;
use crate::model::Placement;

/// CPUs of the two ends; an empty list leaves them to the scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// CPUs of the client's flows, in turn.
    pub client: Vec<usize>,
    /// CPUs of the server's flows, in turn.
    pub server: Vec<usize>,
}

impl Places {
    /// The CPUs of a client whose flows begin with number `first`.
    pub(super) fn of_client(&self, first: usize) -> Vec<usize> {
        let mut cpus = self.client.clone();
        if !cpus.is_empty() {
            let turn = first % cpus.len();
            cpus.rotate_left(turn);
        }
        cpus
    }
}

/// Assigns the CPUs that this process may use to the two ends.
///
/// # Errors
/// `split` with one CPU.
pub fn places(placement: Placement, cpus: &[usize]) -> lab::Result<Places> {
    // Where the kernel does not say, each CPU is a core.
    let core = |cpu| cpu::first_sibling(cpu).unwrap_or(cpu);
    places_by_core(placement, cpus, core)
}

/// The same of CPUs whose cores are known: `core` returns the same number for all CPUs of a core, the least of them.
///
/// # Errors
/// `split` with one CPU.
pub(super) fn places_by_core(
    placement: Placement,
    cpus: &[usize],
    core: impl Fn(usize) -> usize,
) -> lab::Result<Places> {
    match placement {
        Placement::Free => Ok(Places {
            client: Vec::new(),
            server: Vec::new(),
        }),
        Placement::Same => {
            let last: Vec<usize> = cpus.last().copied().into_iter().collect();
            Ok(Places {
                client: last.clone(),
                server: last,
            })
        }
        Placement::Split if cpus.len() < 2 => Err(lab::Error::OneCpu),
        Placement::Split => Ok(split(cpus, core)),
    }
}

/// CPUs of two ends of one machine that share at most one: of each, those that the other one may not use.
///
/// # Errors
/// Neither has a CPU of its own.
pub(super) fn split_apart(client: &[usize], server: &[usize]) -> lab::Result<Places> {
    let without = |own: &[usize], other: &[usize]| -> Vec<usize> {
        let own = own.iter().filter(|cpu| !other.contains(cpu));
        own.copied().collect()
    };
    let mut own = Places {
        client: without(client, server),
        server: without(server, client),
    };
    match (own.client.is_empty(), own.server.is_empty()) {
        (true, true) => return Err(lab::Error::OneCpu),
        // It has the one that both may use.
        (true, false) => own.client = client.to_vec(),
        (false, true) => own.server = server.to_vec(),
        (false, false) => {}
    }
    Ok(own)
}

/// Half of the CPUs for each end. No core has CPUs in both halves, because its CPUs share what executes instructions: the ends
/// would slow each other down. An odd number of equal cores gives the server one more.
fn split(cpus: &[usize], core: impl Fn(usize) -> usize) -> Places {
    let mut cores: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for cpu in cpus {
        cores.entry(core(*cpu)).or_default().push(*cpu);
    }
    if cores.len() == 1 {
        let (client, server) = cpus.split_at(cpus.len() / 2);
        return Places {
            client: client.to_vec(),
            server: server.to_vec(),
        };
    }
    let cores: Vec<Vec<usize>> = cores.into_values().collect();
    let mut of_client = 0;
    let fit = cores.iter().take_while(|core| {
        of_client += core.len();
        of_client <= cpus.len() / 2
    });
    // The first core may have most of the CPUs, and the last one too.
    let fit = fit.count().clamp(1, cores.len() - 1);
    let (client, server) = cores.split_at(fit);
    Places {
        client: each_core_first(client),
        server: each_core_first(server),
    }
}

/// The first CPU of each core, then the second of each, and so on: flows share a core only when every core has one.
fn each_core_first(cores: &[Vec<usize>]) -> Vec<usize> {
    let most = cores.iter().map(Vec::len).max().unwrap_or(0);
    let turn = |at: usize| cores.iter().filter_map(move |core| core.get(at).copied());
    (0..most).flat_map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_by(cpus: &[usize], core: impl Fn(usize) -> usize) -> [Vec<usize>; 2] {
        let places = places_by_core(Placement::Split, cpus, core).unwrap();
        [places.client, places.server]
    }

    #[test]
    fn placement_is_explicit() {
        let of = |placement, cpus: &[usize]| places_by_core(placement, cpus, |cpu| cpu);
        let split = of(Placement::Split, &[0, 1, 2, 3]).unwrap();
        assert_eq!(
            split,
            Places {
                client: vec![0, 1],
                server: vec![2, 3]
            }
        );
        let same = of(Placement::Same, &[0, 1]).unwrap();
        assert_eq!(
            same,
            Places {
                client: vec![1],
                server: vec![1]
            }
        );
        assert!(of(Placement::Split, &[3]).is_err());
        assert!(of(Placement::Free, &[3]).unwrap().client.is_empty());
    }

    #[test]
    fn ends_with_cpus_of_their_own_are_split_already() {
        let split = |client: &[usize], server: &[usize]| {
            split_apart(client, server).map(|places| [places.client, places.server])
        };
        assert_eq!(split(&[0, 1], &[2, 3]).unwrap(), [[0, 1], [2, 3]]);
        assert_eq!(split(&[0, 1, 2], &[2, 3]).unwrap(), [vec![0, 1], vec![3]]);
        assert_eq!(split(&[2], &[2, 3]).unwrap(), [[2], [3]]);
        assert_eq!(split(&[1, 2], &[2]).unwrap(), [[1], [2]]);
        assert!(matches!(split(&[2], &[2]), Err(lab::Error::OneCpu)));
    }

    #[test]
    fn without_siblings_the_numbers_decide() {
        let alone = |cpu| cpu;
        assert_eq!(split_by(&[0, 1], alone), [vec![0], vec![1]]);
        assert_eq!(split_by(&[2, 5, 7], alone), [vec![2], vec![5, 7]]);
        // Two threads of one core.
        assert_eq!(split_by(&[0, 1], |_| 0), [vec![0], vec![1]]);
    }

    #[test]
    fn siblings_are_in_one_half() {
        // Virtual CPUs: 0 and 1, 2 and 3.
        assert_eq!(
            split_by(&[0, 1, 2, 3], |cpu| cpu / 2 * 2),
            [vec![0, 1], vec![2, 3]]
        );
        // A server of four cores: i and i + 4.
        let server = |cpu| cpu % 4;
        let all: Vec<usize> = (0..8).collect();
        assert_eq!(split_by(&all, server), [vec![0, 1, 4, 5], vec![2, 3, 6, 7]]);
        // Some of its CPUs only.
        assert_eq!(split_by(&[1, 2, 5, 6], server), [vec![1, 5], vec![2, 6]]);
        assert_eq!(split_by(&[4, 5, 6, 7], server), [vec![4, 5], vec![6, 7]]);
        assert_eq!(split_by(&[0, 1, 4], server), [vec![0, 4], vec![1]]);
    }

    #[test]
    fn no_core_has_both_ends_where_their_number_is_odd() {
        let all: Vec<usize> = (0..6).collect();
        assert_eq!(
            split_by(&all, |cpu| cpu % 3),
            [vec![0, 3], vec![1, 2, 4, 5]]
        );
    }
}
