//! Delay variation of one flow, by three definitions.

/// One-way delays of a flow in the order of arrival.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Jitter {
    last: Option<(u64, i64)>,
    smoothed_ns: f64,
}

/// What one more delay says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    /// IPDV (RFC 3393): this delay minus that of the datagram numbered one less, where that one came just
    /// before. A lost or reordered datagram leaves it undefined.
    pub(crate) ipdv_ns: Option<i64>,
    /// J of RFC 3550, 6.4.1, this datagram included: J += (|D| − J) / 16 over neighbours in arrival.
    pub(crate) smoothed_ns: f64,
}

impl Jitter {
    /// All delays may be off by the same amount, even below 0: only their differences count.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "delays are far below 2^53 ns")]
    pub(crate) fn enter(&mut self, number: u64, delay_ns: i64) -> Step {
        let mut ipdv_ns = None;
        if let Some((before, delay_before)) = self.last.replace((number, delay_ns)) {
            let difference = delay_ns.wrapping_sub(delay_before);
            self.smoothed_ns += (difference.unsigned_abs() as f64 - self.smoothed_ns) / 16.0;
            ipdv_ns = (number == before.wrapping_add(1)).then_some(difference);
        }
        Step {
            ipdv_ns,
            smoothed_ns: self.smoothed_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn steps(delays: &[(u64, i64)]) -> Vec<Step> {
        let mut jitter = Jitter::default();
        delays
            .iter()
            .map(|(number, delay)| jitter.enter(*number, *delay))
            .collect()
    }

    #[test]
    fn rfc_3550_by_hand() {
        // Delays 100, 260, 180: J = 160/16 = 10, then 10 + (80 − 10)/16 = 14.375.
        let seen: Vec<f64> = steps(&[(0, 100), (1, 260), (2, 180)])
            .iter()
            .map(|s| s.smoothed_ns)
            .collect();
        assert_eq!(seen, [0.0, 10.0, 14.375]);
    }

    #[test]
    fn ipdv_needs_its_neighbour() {
        let ipdv: Vec<_> = steps(&[(7, 10), (8, 30), (10, 90), (9, 20), (10, 20), (11, 5)])
            .iter()
            .map(|step| step.ipdv_ns)
            .collect();
        assert_eq!(ipdv, [None, Some(20), None, None, Some(0), Some(-15)]);
    }

    proptest! {
        /// Delays of 0 and D by turns: IPDV is ±D, and J = D (1 − (15/16)ⁿ) after n differences.
        #[test]
        fn alternating_delays(d in 1i64..1_000_000_000, base in -1_000_000_000i64..1_000_000_000, count in 2u64..500) {
            let delays: Vec<_> = (0..count).map(|n| (n, if n % 2 == 0 { base } else { base + d })).collect();
            let mut n = 0;
            for step in &steps(&delays)[1..] {
                n += 1;
                let sign = if n % 2 == 1 { 1 } else { -1 };
                prop_assert_eq!(step.ipdv_ns, Some(sign * d));
                let expected = d as f64 * (1.0 - (15.0f64 / 16.0).powi(n));
                prop_assert!((step.smoothed_ns - expected).abs() <= 1e-9 * d as f64, "{} {expected}", step.smoothed_ns);
            }
        }

        /// A delay that does not vary has no jitter, however long it is.
        #[test]
        fn steady_delays(delay: i64, count in 2u64..50) {
            let delays: Vec<_> = (0..count).map(|n| (n, delay)).collect();
            for step in &steps(&delays)[1..] {
                prop_assert_eq!(*step, Step { ipdv_ns: Some(0), smoothed_ns: 0.0 });
            }
        }
    }
}
