//! Bulk transfer: one end sends without pause, the other counts.

use std::io;

use nix::libc;

use super::{Context, Io, again};
use crate::model::Counted;

/// Bytes taken per receive call of a TCP stream, as iperf3 and iperf do by default.
pub(crate) const RECEIVE_BYTES: usize = 128 * 1024;

/// Sends messages of `message.len()` bytes until told to stop.
///
/// # Errors
/// The socket failed before the window was over.
pub(crate) fn transmit(io: &impl Io, message: &[u8], context: Context<'_>) -> Result<(), String> {
    let mut counted = Counted::default();
    while !context.stopped() {
        match io.send(message) {
            Ok(n) => {
                counted.bytes += n as u64;
                counted.messages += 1;
                context.tally.set_sent(counted);
            }
            Err(e) if again(&e) => {}
            Err(e) if no_buffers(&e) => context.tally.send_error(),
            Err(e) => return context.ended("send", &e),
        }
    }
    Ok(())
}

/// Receives until the other end closes or traffic stops.
///
/// # Errors
/// The socket failed, or the other end closed, before the window was over.
pub(crate) fn receive(io: &impl Io, buffer: &mut [u8], context: Context<'_>) -> Result<(), String> {
    let mut counted = Counted::default();
    while !context.stopped() {
        match io.recv(buffer) {
            Ok(0) => return context.closed(),
            Ok(n) => {
                counted.bytes += n as u64;
                counted.messages += 1;
                context.tally.set_received(counted);
            }
            Err(e) if again(&e) => {}
            Err(e) => return context.ended("receive", &e),
        }
    }
    Ok(())
}

/// The kernel has no room for another datagram now: netperf counts these as failed sends and goes on.
fn no_buffers(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}
