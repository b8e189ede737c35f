//! The number of queues for a load.

/// If all attached queues are busy for more than this share of time, one more is attached.
const BUSY: f64 = 0.85;
/// If the queues would be busy for less than this share without one of them, it is detached.
const IDLE: f64 = 0.6;
/// Consecutive checks that must agree before a queue is attached or detached: attaching one too many costs little, and
/// detaching takes time.
const GROW_AFTER: u32 = 2;
const SHRINK_AFTER: u32 = 10;

/// The change to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Keep,
    Grow,
    Shrink,
}

/// Decides from check to check.
#[derive(Debug)]
pub(super) struct Scale {
    most: usize,
    grow: u32,
    shrink: u32,
}

impl Scale {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            grow: 0,
            shrink: 0,
        }
    }

    /// `busy` is the share of time, 0 to 1, for which each worker of an attached queue was busy since the last check.
    pub(super) fn look(&mut self, busy: &[f64]) -> Change {
        let attached = busy.len() as f64;
        let sum: f64 = busy.iter().sum();
        let grow = busy.len() < self.most && sum > BUSY * attached;
        let shrink = busy.len() > 1 && sum < IDLE * (attached - 1.0);
        self.grow = if grow { self.grow + 1 } else { 0 };
        self.shrink = if shrink { self.shrink + 1 } else { 0 };
        let change = if self.grow >= GROW_AFTER {
            Change::Grow
        } else if self.shrink >= SHRINK_AFTER {
            Change::Shrink
        } else {
            return Change::Keep;
        };
        (self.grow, self.shrink) = (0, 0);
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(scale: &mut Scale, busy: &[f64], count: u32) -> Vec<Change> {
        (0..count).map(|_| scale.look(busy)).collect()
    }

    #[test]
    fn queues_follow_a_load_that_lasts() {
        let mut scale = Scale::new(2);
        assert_eq!(looks(&mut scale, &[1.0], 2), [Change::Keep, Change::Grow]);
        // The maximum is reached.
        assert!(
            looks(&mut scale, &[1.0, 1.0], 20)
                .iter()
                .all(|c| *c == Change::Keep)
        );
        let falling = looks(&mut scale, &[0.2, 0.1], SHRINK_AFTER);
        assert_eq!(falling.iter().filter(|c| **c == Change::Shrink).count(), 1);
        assert_eq!(falling.last(), Some(&Change::Shrink));
        assert!(
            looks(&mut scale, &[0.0], 20)
                .iter()
                .all(|c| *c == Change::Keep)
        );
    }

    #[test]
    fn a_moment_changes_nothing() {
        let mut scale = Scale::new(8);
        for _ in 0..10 {
            assert_eq!(scale.look(&[1.0]), Change::Keep);
            assert_eq!(scale.look(&[0.5]), Change::Keep);
        }
    }

    #[test]
    fn one_flow_does_not_make_queues_come_and_go() {
        let mut scale = Scale::new(8);
        // It saturates one queue: a second one is added, stays idle, and is kept.
        assert_eq!(looks(&mut scale, &[1.0], 2)[1], Change::Grow);
        assert!(
            looks(&mut scale, &[1.0, 0.0], 100)
                .iter()
                .all(|c| *c == Change::Keep)
        );
    }
}
