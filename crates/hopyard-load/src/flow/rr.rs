//! Request/response over a standing connection or over datagrams: one transaction at a time.

use hdrhistogram::Histogram;
use hopyard_net::clock;

use super::{Context, Io, again, timed_out};
use crate::spec::LoadSpec;

/// Round trips that began and ended inside the window.
pub(crate) struct Times {
    pub(crate) histogram: Histogram<u64>,
    pub(crate) open_ns: u64,
    pub(crate) close_ns: u64,
}

impl Times {
    /// None yet, of a window.
    pub(crate) fn new(open_ns: u64, close_ns: u64) -> Result<Self, String> {
        Ok(Self {
            histogram: crate::summary::histogram()?,
            open_ns,
            close_ns,
        })
    }

    #[inline]
    pub(crate) fn record(&mut self, began_ns: u64, ended_ns: u64) {
        if began_ns >= self.open_ns && ended_ns < self.close_ns {
            self.histogram.saturating_record(ended_ns - began_ns);
        }
    }
}

/// One end's buffers and whether messages keep their bounds.
pub(crate) struct Responder {
    pub(crate) request: Vec<u8>,
    pub(crate) response: Vec<u8>,
    /// Datagrams: a message is one call, may be lost, and carries a number in its first byte.
    pub(crate) datagrams: bool,
    /// Self-timed work before each response, ns.
    pub(crate) service_time_ns: u64,
    /// Self-timed work before each request, outside the round trip, ns.
    pub(crate) pause_ns: u64,
}

impl Responder {
    /// The buffers of a load.
    pub(crate) fn of(spec: &LoadSpec) -> Self {
        Self {
            request: vec![0x5a; spec.request_size as usize],
            response: vec![0x5a; spec.response_size as usize],
            datagrams: !spec.kind.is_tcp(),
            service_time_ns: spec.service_time_ns,
            pause_ns: spec.pause_ns,
        }
    }
}

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
    while !context.stopped() {
        match take(io, &mut buffers.request, None) {
            Taken::Whole => {}
            Taken::Lost => continue,
            Taken::Closed => return context.closed(),
            Taken::Failed(e) => return context.ended("receive a request", &e),
        }
        if buffers.datagrams {
            buffers.response[0] = buffers.request[0];
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

/// Burns CPU for a span measured by its own clock.
pub(super) fn work_for(span_ns: u64) {
    let until = clock::monotonic_ns() + span_ns;
    while clock::monotonic_ns() < until {
        std::hint::spin_loop();
    }
}
