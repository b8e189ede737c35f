//! Which CPUs the two ends run on.

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
        Placement::Split => {
            let (client, server) = cpus.split_at(cpus.len() / 2);
            Ok(Places {
                client: client.to_vec(),
                server: server.to_vec(),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placement_is_explicit() {
        let of = |placement, cpus: &[usize]| places(placement, cpus);
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
}
