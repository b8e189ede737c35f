//! Internals of the switch for `fuzz/`.

use super::flows::flow;
use super::join::frames::{check, new};

/// Bytes that describe one frame.
const STEP: usize = 6;

/// Joins whatever can be joined of any frames, and checks that cutting it again gives the originals.
///
/// # Panics
/// It does not.
pub fn join_any(frames: &[Vec<u8>]) {
    check(frames);
    for frame in frames {
        let _ = flow(frame);
    }
}

/// Joins a TCP stream's frames. `bytes` decide the length of each, its marks, and which of its bytes is altered.
///
/// # Panics
/// Cutting the result again does not give the originals.
pub fn join_stream(bytes: &[u8]) {
    let [head, unit, steps @ ..] = bytes else {
        return;
    };
    let unit = u16::from(*unit) * 6 + 1;
    let mut next = new(head & 1 == 1);
    let mut frames = Vec::new();
    for step in steps.chunks_exact(STEP) {
        let [packets, lack, marks, at, value, alter] = [0, 1, 2, 3, 4, 5].map(|at| step[at]);
        let length = (usize::from(packets % 12) * usize::from(unit)).saturating_sub(lack.into());
        next.payload = (0..length).map(|place| place as u8 ^ lack).collect();
        next.cut = (length > usize::from(unit)).then_some(unit);
        (next.tcp.psh, next.tcp.fin) = (marks & 7 == 1, marks & 7 == 2);
        (next.tcp.ece, next.tcp.cwr) = (marks & 7 == 3, marks & 7 == 4);
        if marks & 7 == 5 {
            next.tcp.sequence_number = next.tcp.sequence_number.wrapping_add(value.into());
        }
        if marks & 7 == 6 {
            next.id = next.id.wrapping_add(value.into());
        }
        let mut frame = next.frame();
        match alter & 7 {
            1 => frame
                .iter_mut()
                .skip(at.into())
                .take(1)
                .for_each(|byte| *byte = value),
            2 => frame.truncate(at.into()),
            3 => frame.extend_from_slice(&[value; 3]),
            _ => {}
        }
        frames.push(frame);
        if marks & 0x80 == 0 && !next.payload.is_empty() {
            next = next.next();
        }
    }
    check(&frames);
}
