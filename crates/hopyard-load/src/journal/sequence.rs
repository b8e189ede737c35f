//! Which numbers of a flow have come, in RFC 4737's terms.

/// How a datagram's number stands to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// At least `NextExp`: everything from there to it is missing so far.
    InOrder,
    /// Below `NextExp` (Type-P-Reordered, RFC 4737, 3.3).
    Reordered,
    /// It came before; only the first copy counts.
    Duplicate,
}

/// The numbers of one flow: `NextExp`, and which of the last 64 before it have come. A second copy that comes
/// later than that is taken for a reordered datagram.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Sequence {
    next: u64,
    seen: u64,
}

impl Sequence {
    /// The number expected next.
    pub(crate) fn next(self) -> u64 {
        self.next
    }

    #[inline]
    pub(crate) fn enter(&mut self, number: u64) -> Place {
        if number >= self.next {
            let ahead = (number - self.next).saturating_add(1);
            let seen = u32::try_from(ahead)
                .ok()
                .and_then(|n| self.seen.checked_shl(n));
            self.seen = seen.unwrap_or(0) | 1;
            self.next = number.saturating_add(1);
            return Place::InOrder;
        }
        let back = self.next - 1 - number;
        let bit = u32::try_from(back)
            .ok()
            .and_then(|n| 1u64.checked_shl(n))
            .unwrap_or(0);
        if self.seen & bit != 0 {
            return Place::Duplicate;
        }
        self.seen |= bit;
        Place::Reordered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Place::{Duplicate, InOrder, Reordered};
    use proptest::prelude::*;

    fn places(numbers: &[u64]) -> Vec<Place> {
        let mut sequence = Sequence::default();
        numbers.iter().map(|n| sequence.enter(*n)).collect()
    }

    #[test]
    fn as_rfc_4737_says() {
        // The example of its section 3.4: 4 comes late.
        assert_eq!(
            places(&[1, 2, 3, 5, 6, 7, 8, 4, 9, 10]),
            [
                InOrder, InOrder, InOrder, InOrder, InOrder, InOrder, InOrder, Reordered, InOrder,
                InOrder
            ]
        );
        assert_eq!(
            places(&[0, 0, 2, 1, 1, 2]),
            [InOrder, Duplicate, InOrder, Reordered, Duplicate, Duplicate]
        );
        // Too long ago to know.
        assert_eq!(places(&[0, 100, 0]), [InOrder, InOrder, Reordered]);
        assert_eq!(places(&[u64::MAX, 5]), [InOrder, Reordered]);
    }

    proptest! {
        #[test]
        fn near_numbers_are_told_apart(numbers in proptest::collection::vec(0u64..64, 1..200)) {
            let mut known = std::collections::BTreeSet::new();
            for (number, place) in numbers.iter().zip(places(&numbers)) {
                let largest = known.last().copied();
                let first = known.insert(*number);
                prop_assert_eq!(place == Duplicate, !first);
                prop_assert_eq!(place == InOrder, largest.is_none_or(|largest| *number > largest));
            }
        }
    }
}
