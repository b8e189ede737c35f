//! The receiving end of numbered datagrams: many flows on one socket, many datagrams per call.
//!
//! One socket, so that its queue holds the order in which the datagrams of all flows came.

use std::os::fd::AsFd;

use hopyard_net::clock;
use hopyard_net::datagrams::Batch;

use super::{Context, Socket, again};
use crate::journal::{Came, Journal};
use crate::numbered::Header;
use hopyard_model::Counted;

/// Datagrams taken in one call.
pub(crate) const BATCH: usize = 64;
/// The wall clock against the monotonic one moves by no more than this, unless somebody sets it.
const CLOCK_STEP_NS: u64 = 100_000;

/// Enters every numbered datagram into the journal until traffic stops.
///
/// # Errors
/// The socket failed before the window was over, the kernel gave no receive times, or the wall clock they are taken
/// from was set meanwhile.
pub(crate) fn gather(
    socket: &Socket,
    batch: &mut Batch,
    journal: &mut Journal,
    context: Context<'_>,
) -> Result<(), String> {
    let ahead_ns = clock::realtime_ahead_ns();
    let mut counted = Counted::default();
    while !context.stopped() {
        match batch.receive(socket.0.as_fd()) {
            Ok(()) => {}
            Err(e) if again(&e) => continue,
            Err(e) => return context.ended("receive", &e),
        }
        let read_ns = clock::monotonic_ns();
        for datagram in batch.iter() {
            let Some(header) = Header::read(datagram.payload) else {
                continue;
            };
            let arrived_ns = datagram
                .arrived_ns
                .ok_or("the kernel gave a datagram no receive time (SO_TIMESTAMPNS)")?
                .wrapping_add_signed(-ahead_ns);
            let bytes = datagram.payload.len();
            counted.messages += 1;
            counted.bytes += bytes as u64;
            journal.enter(
                &header,
                bytes,
                Came {
                    arrived_ns,
                    read_ns,
                },
            );
        }
        context.tally.set_received(counted);
    }
    if clock::realtime_ahead_ns().abs_diff(ahead_ns) > CLOCK_STEP_NS {
        return Err("the wall clock was set while datagrams were timed by it".to_owned());
    }
    Ok(())
}
