//! Shaping a device by pauses: frames leave at full speed until they are worth a pause at the rate.
//!
//! A token bucket starts a timer for each frame that has to wait, and the timer's interrupt takes CPU time of whoever
//! sends. Here frames pay nothing, and frames that stand for a pause pay for all since the last one, so that there is a timer for
//! each pause. What a frame pays is in the size table of the queueing discipline (`struct qdisc_size_table`): it goes by the
//! frame's length, and one length is kept for pauses. Who puts pauses among the frames, and takes them out at the other end, is
//! a program at the device's classifier hooks.

use std::time::Duration;

use netlink_packet_route::tc::TcAttribute;

use super::Shape;
use crate::error::{Error, Result};
use crate::handle::Handle;

const TCA_STAB_BASE: u16 = 1;
const TCA_STAB_DATA: u16 = 2;
/// What the queue holds at most, and at least so many pauses: whoever puts them there may have to make up for frames that passed ahead
/// of the first that waits.
const QUEUE: Duration = Duration::from_millis(15);
const LEAST_QUEUED: u32 = 4;
/// Bytes per second beyond which the kernel's rates lose precision (`psched_ratecfg_precompute`).
const MOST_SCALED: u64 = 1_000_000_000_000;

/// How a device is shaped by pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pauses {
    /// Bytes of frames after which there has to be a pause, so that the rate is kept.
    pub batch_bytes: u32,
    /// Bytes that a device may send without a pause after it has rested: those of a pause and a half, because a timer may be late.
    pub saved_bytes: u32,
    /// Pauses that the queue holds; a frame that would take another one is to be dropped.
    pub queued: u32,
    /// The kernel counts bytes of frames and pauses as so much more, so that a frame, which it counts as one byte at least, pays
    /// next to nothing.
    scale: u32,
}

impl Pauses {
    /// Length of a frame that stands for a pause, bytes. It is longer than the headers of tunnels, which a program cannot cut off.
    pub const FRAME_BYTES: u32 = 397;
    /// Entries of the size table. The kernel takes the length of a longer frame modulo this.
    pub const TABLE: u32 = 2048;

    /// Pauses of a time at a rate in bit/s.
    #[must_use]
    pub fn new(rate_bps: u64, pause: Duration) -> Self {
        let rate = rate_bps / 8;
        let worth = u128::from(rate) * pause.as_nanos() / 1_000_000_000;
        let worth = u32::try_from(worth).unwrap_or(u32::MAX >> 6).max(1);
        // The table has 16 bits for each length, and one shift for all.
        let shift = (u32::BITS - worth.leading_zeros()).saturating_sub(16);
        let batch_bytes = worth >> shift << shift;
        let queued = (QUEUE.as_nanos() / pause.as_nanos().max(1)).max(LEAST_QUEUED.into());
        let queued = u32::try_from(queued).unwrap_or(u32::MAX);
        let most = u64::from(u32::MAX) / (u64::from(queued) + 1) / u64::from(batch_bytes);
        let scale = most.min(MOST_SCALED / rate.max(1)).clamp(1, 1 << 12);
        Self {
            batch_bytes,
            saved_bytes: batch_bytes.saturating_add(batch_bytes / 2),
            queued,
            // The power of two below.
            scale: 1 << scale.ilog2(),
        }
    }

    /// What the kernel counts a pause as.
    fn counted(self) -> u64 {
        u64::from(self.batch_bytes) * u64::from(self.scale)
    }

    /// `struct tc_sizespec`: cell_log, size_log, cell_align, overhead, linklayer, mpu, mtu, tsize. Then the table.
    fn table(self) -> Vec<u8> {
        let counted = self.counted();
        let shift = (u64::BITS - counted.leading_zeros()).saturating_sub(16);
        let mut base = vec![0, u8::try_from(shift).unwrap_or_default(), 0, 0];
        for field in [0, 1, 0, Self::TABLE, Self::TABLE] {
            base.extend(field.to_ne_bytes());
        }
        let cell = |length: u32| match length {
            Self::FRAME_BYTES => u16::try_from(counted >> shift).unwrap_or(u16::MAX),
            _ => 0,
        };
        let cells: Vec<u8> = (0..Self::TABLE)
            .flat_map(|length| cell(length).to_ne_bytes())
            .collect();
        [(TCA_STAB_BASE, base), (TCA_STAB_DATA, cells)]
            .into_iter()
            .flat_map(|(kind, value)| nested(kind, &value))
            .collect()
    }
}

/// An attribute within another one. Both values here are multiples of four bytes long.
fn nested(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
    let mut attribute = Vec::from(length.to_ne_bytes());
    attribute.extend(kind.to_ne_bytes());
    attribute.extend(value);
    attribute
}

impl Handle {
    /// Has a device rest wherever a frame of [`Pauses::FRAME_BYTES`] bytes is among those that it sends, and send all others at once:
    /// a root tbf whose size table has such frames alone. Replaces a rate set before.
    ///
    /// # Errors
    /// [`Error::Unsupported`] without `sch_tbf`, [`Error::Missing`] for the device,
    /// [`Error::Invalid`] for a rate outside 8 kbit/s to 100 Gbit/s.
    pub fn shape_by_pauses(&self, name: &str, rate_bps: u64, pause: Duration) -> Result<Pauses> {
        let what = format!("shape `{name}` to {rate_bps} bit/s by pauses");
        if !(8_000..=100_000_000_000).contains(&rate_bps) {
            let why = "the rate must be between 8 kbit/s and 100 Gbit/s";
            return Err(Error::invalid(what, why));
        }
        let pauses = Pauses::new(rate_bps, pause);
        let counted = pauses.counted();
        let clamp = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let shape = Shape {
            rate_bps: rate_bps * u64::from(pauses.scale),
            burst_bytes: clamp(u64::from(pauses.saved_bytes) * u64::from(pauses.scale)),
            largest_packet_bytes: 0,
            limit_bytes: clamp(counted * u64::from(pauses.queued) + counted / 2),
        };
        let table = TcAttribute::Stab(pauses.table());
        self.set_tbf(what, name, &shape, Some(table))?;
        Ok(pauses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_worth_its_time_and_fits_the_kernels_numbers() {
        for (rate_bps, pause_us) in [
            (1_000_000, 20_000),
            (10_000_000, 2000),
            (100_000_000, 50),
            (100_000_000, 5000),
            (1_000_000_000, 50),
            (1_000_000_000, 2000),
            (10_000_000_000, 500),
            (100_000_000_000, 20_000),
        ] {
            let pause = Duration::from_micros(pause_us);
            let pauses = Pauses::new(rate_bps, pause);
            let wanted = rate_bps as f64 / 8e6 * pause_us as f64;
            let off = f64::from(pauses.batch_bytes) / wanted - 1.0;
            assert!(
                (-1e-4..=1e-9).contains(&off),
                "{rate_bps} {pause_us}: {pauses:?}, {off}"
            );
            let counted = pauses.counted();
            let shift = (u64::BITS - counted.leading_zeros()).saturating_sub(16);
            assert_eq!(counted >> shift << shift, counted, "{pauses:?}");
            assert!(
                shift < 30 && counted * (u64::from(pauses.queued) + 1) <= u64::from(u32::MAX),
                "{pauses:?}"
            );
            let queue = pause * pauses.queued;
            assert!(
                queue <= QUEUE.max(pause * LEAST_QUEUED) && queue + pause > QUEUE,
                "{pauses:?}"
            );
        }
    }

    #[test]
    fn frames_pay_nothing_and_pauses_all() {
        let pauses = Pauses::new(1_000_000_000, Duration::from_millis(2));
        let table = pauses.table();
        let size_log = table[4 + 1];
        let cells = &table[4 + 24 + 4..];
        assert_eq!(cells.len(), 2 * Pauses::TABLE as usize);
        for (length, cell) in cells.chunks_exact(2).enumerate() {
            let cell = u64::from(u16::from_ne_bytes([cell[0], cell[1]])) << size_log;
            let wanted = if length == Pauses::FRAME_BYTES as usize {
                pauses.counted()
            } else {
                0
            };
            assert_eq!(cell, wanted, "{length}");
        }
    }
}
