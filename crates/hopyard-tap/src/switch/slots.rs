//! A worker's record of the frames in its buffers.

use std::iter;
use std::ops::Range;

/// By buffer.
#[derive(Debug)]
pub(super) struct Slots(Vec<Slot>);

#[derive(Debug, Clone, Default)]
struct Slot {
    /// Bytes in the buffer.
    length: usize,
    /// Bytes before this offset are not written, because the frame is part of one in another buffer.
    from: usize,
    /// Ports that must still take it; 0 is a free buffer.
    left: usize,
    /// The buffer that is written after it as part of the same frame.
    next: Option<u16>,
}

impl Slots {
    pub(super) fn new(buffers: u16) -> Self {
        Self(vec![Slot::default(); usize::from(buffers)])
    }

    fn slot(&self, buffer: u16) -> &Slot {
        &self.0[usize::from(buffer)]
    }

    fn slot_mut(&mut self, buffer: u16) -> &mut Slot {
        &mut self.0[usize::from(buffer)]
    }

    /// A frame arrived in a buffer, for one port.
    pub(super) fn fill(&mut self, buffer: u16, length: usize) {
        *self.slot_mut(buffer) = Slot {
            length,
            left: 1,
            ..Slot::default()
        };
    }

    /// This many ports must take it.
    pub(super) fn spread(&mut self, buffer: u16, ports: usize) {
        self.slot_mut(buffer).left = ports;
    }

    /// Buffer `next`, from byte `from` on, is written after buffer `last`.
    pub(super) fn join(&mut self, last: u16, next: u16, from: usize) {
        self.slot_mut(last).next = Some(next);
        self.slot_mut(next).from = from;
    }

    /// A port has taken the frame. Returns whether it was the last one.
    pub(super) fn take(&mut self, buffer: u16) -> bool {
        let slot = self.slot_mut(buffer);
        slot.left -= 1;
        slot.left == 0
    }

    /// Frees the first buffer of a frame, and returns the next one.
    pub(super) fn free(&mut self, buffer: u16) -> Option<u16> {
        let slot = self.slot_mut(buffer);
        slot.left = 0;
        slot.next.take()
    }

    /// Whether no buffer is free.
    pub(super) fn is_full(&self) -> bool {
        self.0.iter().all(|slot| slot.left > 0)
    }

    /// Bytes in a buffer.
    pub(super) fn length(&self, buffer: u16) -> usize {
        self.slot(buffer).length
    }

    /// The parts of one frame: buffers and the range of each.
    pub(super) fn pieces(&self, first: u16) -> impl Iterator<Item = (u16, Range<usize>)> {
        iter::successors(Some(first), |buffer| self.slot(*buffer).next).map(|buffer| {
            let slot = self.slot(buffer);
            (buffer, slot.from..slot.length)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_of_several_buffers_is_written_in_their_order_and_frees_them_all() {
        let mut slots = Slots::new(3);
        for (buffer, length) in [(2, 100), (0, 80), (1, 70)] {
            slots.fill(buffer, length);
        }
        slots.join(2, 0, 66);
        slots.join(0, 1, 66);
        let pieces: Vec<_> = slots.pieces(2).collect();
        assert_eq!(pieces, [(2, 0..100), (0, 66..80), (1, 66..70)]);
        assert!(slots.is_full());
        assert!(slots.take(2));
        let freed: Vec<_> = iter::successors(Some(2), |buffer| slots.free(*buffer)).collect();
        assert_eq!(freed, [2, 0, 1]);
        assert!(!slots.is_full());
    }

    #[test]
    fn a_frame_for_several_ports_stays_until_all_have_it() {
        let mut slots = Slots::new(1);
        slots.fill(0, 60);
        slots.spread(0, 2);
        assert!(!slots.take(0) && slots.take(0));
        slots.free(0);
        slots.fill(0, 61);
        assert_eq!(slots.pieces(0).collect::<Vec<_>>(), [(0, 0..61)]);
    }
}
