//! How many queues of a tap carry the data of a window.

use super::float;
use crate::model::Measurement;

/// The number of queues that would carry as much if all of them had equal shares: (Σ f)² / Σ f² over the frames f of each queue.
/// That is the number of queues times the fairness index of Jain, Chiu and Hawe (DEC-TR-301, 1984), and the inverse of Simpson's
/// index. If k queues carry the same and the others nothing, it is k. It needs no threshold above which a queue is "in use": a few
/// frames of ARP or of another flow hardly change it, while a count of the queues with any frame at all would count them.
///
/// Only the tap that gave the most bytes counts: it is where the data enter the switch. The other one gives acknowledgements, whose
/// queues would hide those of the data. `None` if no queues were counted.
pub(super) fn in_use(m: &Measurement) -> Option<f64> {
    // Of equals the first.
    let data = m.queue_frames.iter().rev().max_by_key(|tap| tap.bytes)?;
    let frames = data.frames.iter().map(|frames| float(*frames));
    let all: f64 = frames.clone().sum();
    let squares: f64 = frames.map(|frames| frames * frames).sum();
    (squares > 0.0).then(|| all * all / squares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::QueueFrames;
    use crate::testing::measured;
    use proptest::prelude::*;

    fn of(taps: &[(u64, &[u64])]) -> Option<f64> {
        let tap = |(bytes, frames): &(u64, &[u64])| QueueFrames {
            bytes: *bytes,
            frames: frames.to_vec(),
        };
        in_use(&Measurement {
            queue_frames: taps.iter().map(tap).collect(),
            ..measured(25_000_000)
        })
    }

    #[test]
    fn queues_count_by_what_they_carry() {
        assert_eq!(of(&[(1, &[700, 0])]), Some(1.0));
        assert_eq!(of(&[(1, &[700, 700])]), Some(2.0));
        assert_eq!(of(&[(1, &[0, 5, 5, 5])]), Some(3.0));
        assert_eq!(of(&[(1, &[300, 100])]), Some(1.6));
        // A stray frame is no queue in use.
        let stray = of(&[(1, &[10_000, 1])]).unwrap();
        assert!((1.0..1.001).contains(&stray), "{stray}");
    }

    #[test]
    fn acknowledgements_are_not_the_data() {
        assert_eq!(
            of(&[(1_000_000, &[700, 0]), (9_000, &[400, 400])]),
            Some(1.0)
        );
        assert_eq!(
            of(&[(9_000, &[700, 0]), (1_000_000, &[400, 400])]),
            Some(2.0)
        );
    }

    #[test]
    fn what_was_not_counted_is_not_0() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(0, &[])]), None);
        assert_eq!(of(&[(0, &[0, 0])]), None);
    }

    proptest! {
        #[test]
        fn it_is_between_one_and_all(frames in prop::collection::vec(0_u64..1 << 40, 1..9)) {
            let used = frames.iter().filter(|frames| **frames > 0).count();
            match of(&[(1, &frames[..])]) {
                Some(value) => prop_assert!(value > 1.0 - 1e-9 && value < used as f64 + 1e-9, "{}", value),
                None => prop_assert_eq!(used, 0),
            }
        }
    }
}
