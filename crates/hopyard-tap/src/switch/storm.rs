//! Limit of the frames that a port may send to several others.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const SECOND_NS: u64 = 1_000_000_000;
/// The unused allowance of this many seconds may be sent at once.
const BURST_S: u64 = 10;

/// A token bucket that holds the tokens of [`BURST_S`], shared by all workers without a lock.
///
/// It stores the time at which it will be full again (the generic cell rate algorithm, ITU-T I.371): taking a token
/// postpones that by the interval of one token.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Interval between tokens; `None` without a limit.
    interval_ns: Option<u64>,
    full_at_ns: AtomicU64,
}

impl Bucket {
    pub(super) fn new(per_s: Option<u32>) -> Self {
        Self {
            interval_ns: per_s.map(|per_s| SECOND_NS.checked_div(per_s.into()).unwrap_or(u64::MAX)),
            full_at_ns: AtomicU64::new(0),
        }
    }

    /// Takes a token; false if there is none.
    pub(super) fn take(&self, now_ns: impl FnOnce() -> u64) -> bool {
        let Some(interval_ns) = self.interval_ns else {
            return true;
        };
        let now_ns = now_ns();
        let taken = |full_at_ns: u64| {
            let full_at_ns = full_at_ns.max(now_ns).saturating_add(interval_ns);
            (full_at_ns <= now_ns + BURST_S * SECOND_NS).then_some(full_at_ns)
        };
        self.full_at_ns
            .fetch_update(Relaxed, Relaxed, taken)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_burst_at_once_then_one_by_one() {
        let bucket = Bucket::new(Some(10));
        let at = |now_ns| bucket.take(|| now_ns);
        let taken = (0..200).filter(|_| at(1)).count();
        assert_eq!(taken, 100);
        assert!(!at(SECOND_NS / 10));
        assert!(at(SECOND_NS / 10 + 1) && !at(SECOND_NS / 10 + 1));
        let taken = (0..200).filter(|_| at(100 * SECOND_NS)).count();
        assert_eq!(taken, 100, "it holds no more than the burst");
    }

    #[test]
    fn a_limit_of_none_lets_none_pass() {
        assert!(!Bucket::new(Some(0)).take(|| 7));
    }

    #[test]
    fn without_a_limit_no_clock_is_read() {
        assert!(Bucket::new(None).take(|| unreachable!()));
    }

    #[test]
    fn workers_share_one_limit() {
        let bucket = Bucket::new(Some(100));
        let take = || (0..2000).filter(|_| bucket.take(|| 7)).count();
        let taken: usize = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            workers.into_iter().map(|w| w.join().unwrap()).sum()
        });
        assert_eq!(taken, 1000);
    }

    proptest! {
        #[test]
        fn never_more_than_the_rate_and_the_burst(per_s in 1_u32..100_000, steps in prop::collection::vec(0_u64..50_000_000, 1..500)) {
            let bucket = Bucket::new(Some(per_s));
            let (mut now_ns, mut taken) = (0, 0_u64);
            for step in steps {
                now_ns += step;
                taken += u64::from(bucket.take(|| now_ns));
                let most = u128::from(now_ns + BURST_S * SECOND_NS) * u128::from(per_s) / u128::from(SECOND_NS);
                // The interval is rounded down to a nanosecond: one in 10,000 more at the highest rate.
                prop_assert!(u128::from(taken) <= most + most / 10_000 + 1);
            }
        }
    }
}
