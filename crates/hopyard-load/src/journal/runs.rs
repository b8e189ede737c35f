//! Runs: consecutive datagrams of one flow, as the receiver's queue holds them.

/// The run that is under way.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    flow: Option<u32>,
    length: u64,
}

impl Runs {
    /// Enters the flow of the next datagram; gives the length of the run that it ends.
    #[inline]
    pub(crate) fn enter(&mut self, flow: u32) -> Option<u64> {
        if self.flow == Some(flow) {
            self.length += 1;
            return None;
        }
        let ended = self.flow.replace(flow).map(|_| self.length);
        self.length = 1;
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_change_of_flow_ends_a_run() {
        let mut runs = Runs::default();
        let ended: Vec<_> = [3, 3, 3, 1, 3, 3]
            .iter()
            .map(|flow| runs.enter(*flow))
            .collect();
        assert_eq!(ended, [None, None, None, Some(3), Some(1), None]);
    }

    proptest! {
        #[test]
        fn lengths_are_given_back(lengths in proptest::collection::vec(1u64..50, 1..50)) {
            let mut runs = Runs::default();
            let mut ended = Vec::new();
            for (flow, length) in lengths.iter().enumerate() {
                for _ in 0..*length {
                    ended.extend(runs.enter(u32::try_from(flow % 3).unwrap()));
                }
            }
            prop_assert_eq!(&ended[..], &lengths[..lengths.len() - 1]);
        }
    }
}
