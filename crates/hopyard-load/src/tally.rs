//! A flow's counters: written by its thread alone with plain stores, read by anyone.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hopyard_model::{Counted, ZeroCopied};

/// Counters of one flow, on cache lines of their own.
///
/// The owner keeps its counts in registers and stores them after each call: no read-modify-write
/// instruction, no lock, nothing shared between flows.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Tally {
    received: Cells,
    sent: Cells,
    send_errors: AtomicU64,
    timeouts: AtomicU64,
    lost_of_window: AtomicU64,
    answered: AtomicU64,
    copied: AtomicU64,
}

#[derive(Debug, Default)]
struct Cells {
    bytes: AtomicU64,
    messages: AtomicU64,
    transactions: AtomicU64,
}

impl Cells {
    fn set(&self, counted: Counted) {
        self.bytes.store(counted.bytes, Relaxed);
        self.messages.store(counted.messages, Relaxed);
        self.transactions.store(counted.transactions, Relaxed);
    }

    fn get(&self) -> Counted {
        Counted {
            bytes: self.bytes.load(Relaxed),
            messages: self.messages.load(Relaxed),
            transactions: self.transactions.load(Relaxed),
        }
    }
}

/// All counters at one instant.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) received: Counted,
    pub(crate) sent: Counted,
    pub(crate) send_errors: u64,
    pub(crate) timeouts: u64,
    /// Those of `timeouts` that began in a window.
    pub(crate) lost_of_window: u64,
    pub(crate) zero_copy: ZeroCopied,
}

impl Tally {
    pub(crate) fn set_received(&self, counted: Counted) {
        self.received.set(counted);
    }

    pub(crate) fn set_sent(&self, counted: Counted) {
        self.sent.set(counted);
    }

    /// Rare, so a read-modify-write is fine.
    pub(crate) fn send_error(&self) {
        self.send_errors.fetch_add(1, Relaxed);
    }

    /// A request was given up, which may have begun in the window. Rare, so a read-modify-write is fine.
    pub(crate) fn timed_out(&self, is_of_window: bool) {
        self.timeouts.fetch_add(1, Relaxed);
        self.lost_of_window
            .fetch_add(u64::from(is_of_window), Relaxed);
    }

    pub(crate) fn set_zero_copy(&self, sends: ZeroCopied) {
        self.answered.store(sends.answered, Relaxed);
        self.copied.store(sends.copied, Relaxed);
    }

    pub(crate) fn read(&self) -> Reading {
        Reading {
            received: self.received.get(),
            sent: self.sent.get(),
            send_errors: self.send_errors.load(Relaxed),
            timeouts: self.timeouts.load(Relaxed),
            lost_of_window: self.lost_of_window.load(Relaxed),
            // In the order in which they are not more than what there is of the other.
            zero_copy: ZeroCopied {
                copied: self.copied.load(Relaxed),
                answered: self.answered.load(Relaxed),
            },
        }
    }
}

impl Reading {
    /// All flows of an end together.
    pub(crate) fn total<'a>(tallies: impl Iterator<Item = &'a Tally>) -> Self {
        tallies
            .map(Tally::read)
            .fold(Self::default(), |sum, one| Self {
                received: sum.received.plus(one.received),
                sent: sum.sent.plus(one.sent),
                send_errors: sum.send_errors + one.send_errors,
                timeouts: sum.timeouts + one.timeouts,
                lost_of_window: sum.lost_of_window + one.lost_of_window,
                zero_copy: sum.zero_copy.plus(one.zero_copy),
            })
    }

    /// What came between two readings.
    pub(crate) fn since(self, start: Self) -> Self {
        Self {
            received: self.received.since(start.received),
            sent: self.sent.since(start.sent),
            send_errors: self.send_errors - start.send_errors,
            timeouts: self.timeouts - start.timeouts,
            lost_of_window: self.lost_of_window - start.lost_of_window,
            zero_copy: self.zero_copy.since(start.zero_copy),
        }
    }
}
