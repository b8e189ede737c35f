//! Several requests of a flow in flight, as netperf's burst mode has them: each response makes room for the next request.
//!
//! A response is that of the oldest request over a connection, which keeps the order. A datagram carries its number, since it may be
//! lost, and others may pass it.

use std::collections::VecDeque;
use std::time::Duration;

use hopyard_net::clock;

use super::exchange::{Account, Responder, Times, begin, first_number};
use super::{Context, Io, again, timed_out};
use crate::socket::DATAGRAM_PATIENCE;
use hopyard_model::MOST_OUTSTANDING;

/// After this a request without a response is taken for lost, ns.
pub(super) const PATIENCE_NS: u64 = nanoseconds(DATAGRAM_PATIENCE);

const fn nanoseconds(span: Duration) -> u64 {
    span.as_secs() * 1_000_000_000 + span.subsec_nanos() as u64
}

/// Keeps so many requests in flight until told to stop, and then takes the responses that are still to come: a connection has nothing
/// on its way between two turns.
///
/// # Errors
/// The socket failed, or the other end closed, before the window was over.
pub(super) fn client(
    io: &impl Io,
    buffers: &mut Responder,
    times: &mut Times,
    context: Context<'_>,
) -> Result<(), String> {
    if buffers.datagrams {
        by_number(io, buffers, times, context)
    } else {
        in_order(io, buffers, times, context)
    }
}

/// Over a connection.
///
/// A request waits for room only while none is in flight. Otherwise both ends could wait for each other: the server for room for
/// its responses, which nobody takes.
fn in_order(
    io: &impl Io,
    buffers: &mut Responder,
    times: &mut Times,
    context: Context<'_>,
) -> Result<(), String> {
    let mut account = Account::new(context.tally);
    let most = buffers.outstanding as usize;
    // Of the requests that were sent whole, the oldest first.
    let mut began: VecDeque<u64> = VecDeque::with_capacity(most);
    // Of the request that was not, bytes that were, and when it began.
    let (mut sent, mut sent_ns) = (0, 0);
    let mut have = 0;
    let mut now_ns = None;
    loop {
        while began.len() < most && (sent > 0 || !context.stopped()) {
            if sent == 0 {
                sent_ns = begin(buffers.pause_ns, &mut now_ns);
            }
            let rest = &buffers.request[sent..];
            let handed = if began.is_empty() {
                io.send(rest)
            } else {
                io.send_now(rest)
            };
            now_ns = None;
            match handed {
                Ok(bytes) => sent += bytes,
                Err(e) if again(&e) => {}
                Err(e) if timed_out(&e) => break,
                Err(e) => return context.ended("send a request", &e),
            }
            if sent == buffers.request.len() {
                began.push_back(sent_ns);
                sent = 0;
            }
        }
        let Some(&oldest_ns) = began.front() else {
            return Ok(());
        };
        match io.recv(&mut buffers.response[have..]) {
            Ok(0) => {
                times.cut_off(began);
                return context.closed();
            }
            Ok(bytes) => have += bytes,
            Err(e) if again(&e) => continue,
            Err(e) => return context.ended("receive a response", &e),
        }
        if have == buffers.response.len() {
            let ended_ns = clock::monotonic_ns();
            times.record(oldest_ns, ended_ns);
            account.completed(have);
            began.pop_front();
            have = 0;
            now_ns = Some(ended_ns);
        }
    }
}

/// A request in flight; in its slot, where its number's low byte leads.
#[derive(Debug, Clone, Copy)]
struct Slot {
    number: u64,
    began_ns: u64,
}

/// Requests in flight by their numbers.
pub(super) struct InFlight {
    slots: Vec<Option<Slot>>,
    count: u32,
    /// Number of the next request.
    next: u64,
    /// No request in flight has a lower number.
    oldest: u64,
    /// The part of a number that a datagram has room for.
    mask: u64,
}

impl InFlight {
    pub(super) fn new(number_bytes: usize) -> Self {
        Self::beginning_with(first_number(), number_bytes)
    }

    fn beginning_with(first: u64, number_bytes: usize) -> Self {
        Self {
            slots: vec![None; MOST_OUTSTANDING as usize],
            count: 0,
            next: first,
            oldest: first,
            mask: u64::MAX >> (64 - 8 * number_bytes.clamp(1, 8)),
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Place of a number's slot.
    fn place(number: u64) -> usize {
        usize::from(number.to_le_bytes()[0])
    }

    /// A number that no request in flight has. There is one as long as fewer than all slots are taken.
    pub(super) fn number(&mut self) -> u64 {
        while self.slots[Self::place(self.next)].is_some() {
            self.next += 1;
        }
        self.next += 1;
        self.next - 1
    }

    pub(super) fn add(&mut self, number: u64, began_ns: u64) {
        self.slots[Self::place(number)] = Some(Slot { number, began_ns });
        self.count += 1;
    }

    /// When the request of a response began; `None` where it was given up, or is nobody's.
    pub(super) fn answered(&mut self, number: u64) -> Option<u64> {
        let slot = &mut self.slots[Self::place(number)];
        let began_ns = slot
            .filter(|one| one.number & self.mask == number)?
            .began_ns;
        *slot = None;
        self.count -= 1;
        Some(began_ns)
    }

    /// Gives up what has waited too long, and tells of each when it began. Those in flight began in the order of their numbers.
    pub(super) fn give_up(&mut self, now_ns: u64, mut lost: impl FnMut(u64)) {
        while self.oldest < self.next {
            let slot = &mut self.slots[Self::place(self.oldest)];
            if let Some(one) = slot.filter(|one| one.number == self.oldest) {
                if now_ns.saturating_sub(one.began_ns) < PATIENCE_NS {
                    break;
                }
                *slot = None;
                self.count -= 1;
                lost(one.began_ns);
            }
            self.oldest += 1;
        }
    }
}

/// In datagrams. One that is lost holds up nothing but its own place.
fn by_number(
    io: &impl Io,
    buffers: &mut Responder,
    times: &mut Times,
    context: Context<'_>,
) -> Result<(), String> {
    let mut account = Account::new(context.tally);
    let bytes = buffers.number_bytes();
    let mut flying = InFlight::new(bytes);
    let mut now_ns = None;
    loop {
        while flying.count < buffers.outstanding && !context.stopped() {
            let number = flying.number();
            buffers.request[..bytes].copy_from_slice(&number.to_le_bytes()[..bytes]);
            let began_ns = begin(buffers.pause_ns, &mut now_ns);
            match io.send(&buffers.request) {
                Ok(_) => flying.add(number, began_ns),
                Err(e) if again(&e) => {}
                Err(e) => return context.ended("send a request", &e),
            }
        }
        if flying.count == 0 {
            return Ok(());
        }
        let size = match io.recv(&mut buffers.response) {
            Ok(0) => {
                // Lost requests are given up when the next answer comes; after the last one none comes.
                flying.give_up(clock::monotonic_ns(), |began_ns| {
                    context.tally.timed_out(times.has(began_ns));
                });
                return context.closed();
            }
            Ok(size) => size,
            Err(e) if again(&e) || timed_out(&e) => 0,
            Err(e) => return context.ended("receive a response", &e),
        };
        let ended_ns = clock::monotonic_ns();
        if size == buffers.response.len() {
            let mut number = [0; 8];
            number[..bytes].copy_from_slice(&buffers.response[..bytes]);
            if let Some(began_ns) = flying.answered(u64::from_le_bytes(number)) {
                times.record(began_ns, ended_ns);
                account.completed(size);
            }
        }
        flying.give_up(ended_ns, |began_ns| {
            context.tally.timed_out(times.has(began_ns));
        });
        now_ns = Some(ended_ns);
    }
}

#[cfg(test)]
mod tests;
