//! Request/response over a standing connection or over datagrams: one transaction at a time, or several ([`super::burst`]).

use hopyard_net::clock;

use super::exchange::{Responder, Times, work_for};
use super::{Context, Io, again, burst, timed_out};

/// Sends requests and waits for their responses until told to stop.
///
/// # Errors
/// The socket failed, or the other end closed, before the window was over.
pub(crate) fn client(
    io: &impl Io,
    buffers: &mut Responder,
    times: &mut Times,
    context: Context<'_>,
) -> Result<(), String> {
    if buffers.outstanding > 1 {
        return burst::client(io, buffers, times, context);
    }
    let mut counted = context.tally.read().received;
    let mut began = clock::monotonic_ns();
    while !context.stopped() {
        if buffers.pause_ns > 0 {
            work_for(buffers.pause_ns);
            began = clock::monotonic_ns();
        }
        if buffers.datagrams {
            buffers.request[0] = buffers.request[0].wrapping_add(1);
        }
        if let Err(e) = io.send(&buffers.request) {
            return context.ended("send a request", &e);
        }
        match take(
            io,
            &mut buffers.response,
            buffers.datagrams.then(|| buffers.request[0]),
        ) {
            Taken::Whole => {}
            Taken::Lost => {
                context.tally.timed_out();
                began = clock::monotonic_ns();
                continue;
            }
            Taken::Closed => return context.closed(),
            Taken::Failed(e) => return context.ended("receive a response", &e),
        }
        let ended = clock::monotonic_ns();
        times.record(began, ended);
        counted.transactions += 1;
        counted.messages += 1;
        counted.bytes += buffers.response.len() as u64;
        context.tally.set_received(counted);
        began = ended;
    }
    Ok(())
}

/// Answers requests until the other end closes or traffic stops.
///
/// # Errors
/// The socket failed, or the other end closed, before the window was over.
pub(crate) fn server(
    io: &impl Io,
    buffers: &mut Responder,
    context: Context<'_>,
) -> Result<(), String> {
    let mut counted = context.tally.read().received;
    let number = buffers.number_bytes();
    while !context.stopped() {
        match take(io, &mut buffers.request, None) {
            Taken::Whole => {}
            Taken::Lost => continue,
            Taken::Closed => return context.closed(),
            Taken::Failed(e) => return context.ended("receive a request", &e),
        }
        if buffers.datagrams {
            buffers.response[..number].copy_from_slice(&buffers.request[..number]);
        }
        if buffers.service_time_ns > 0 {
            work_for(buffers.service_time_ns);
        }
        if let Err(e) = io.send(&buffers.response) {
            return context.ended("send a response", &e);
        }
        counted.transactions += 1;
        counted.messages += 1;
        counted.bytes += buffers.request.len() as u64;
        context.tally.set_received(counted);
    }
    Ok(())
}

enum Taken {
    Whole,
    Lost,
    Closed,
    Failed(std::io::Error),
}

/// Takes one whole message; of datagrams, only the one numbered `wanted` (late ones are passed over).
#[inline]
fn take(io: &impl Io, message: &mut [u8], wanted: Option<u8>) -> Taken {
    let mut have = 0;
    loop {
        match io.recv(&mut message[have..]) {
            Ok(0) => return Taken::Closed,
            Ok(n) => have += n,
            Err(e) if again(&e) => continue,
            Err(e) if timed_out(&e) => return Taken::Lost,
            Err(e) => return Taken::Failed(e),
        }
        if have < message.len() {
            continue;
        }
        if wanted.is_none_or(|number| message[0] == number) {
            return Taken::Whole;
        }
        have = 0;
    }
}
