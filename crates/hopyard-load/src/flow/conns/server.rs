//! The server's end: it answers one request for each connection, and closes. A request that is late, since a packet of it was lost,
//! holds up no other connection.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use nix::sys::socket::{MsgFlags, recv};
use socket2::Socket as RawSocket;

use super::super::exchange::{Account, Responder};
use super::super::{Context, Io, Socket, again, timed_out};

/// How long the next connection waits for the request of one that was accepted.
const PATIENCE: Duration = Duration::from_millis(5);

/// A connection whose request is late.
struct Late {
    socket: Socket,
    /// Bytes of the request that came.
    have: usize,
}

/// Limits how long a listener waits, and the connections that are made from then on: they have it from their listener (`sk_clone`).
///
/// # Errors
/// A sentence.
pub(crate) fn limit_waits(listener: &RawSocket) -> Result<(), String> {
    let limited = listener.set_read_timeout(Some(PATIENCE));
    limited.map_err(|e| format!("cannot limit the wait for requests: {e}"))
}

/// Answers until the listener, whose [waits are limited](limit_waits), is shut down.
///
/// # Errors
/// The listener failed before the window was over.
pub(crate) fn server(
    listener: &RawSocket,
    buffers: &mut Responder,
    context: Context<'_>,
) -> Result<(), String> {
    let mut account = Account::new(context.tally);
    let mut late: Vec<Late> = Vec::new();
    while !context.stopped() {
        match listener.accept() {
            Ok((connection, _)) => late.push(Late {
                socket: Socket(OwnedFd::from(connection)),
                have: 0,
            }),
            Err(e) if again(&e) || timed_out(&e) => {}
            Err(e) => return context.ended("accept", &e),
        }
        // The newest is waited for, the others are only looked at.
        let newest = late.len().saturating_sub(1);
        let mut place = 0;
        late.retain_mut(|one| {
            let flags = match place == newest {
                true => MsgFlags::empty(),
                false => MsgFlags::MSG_DONTWAIT,
            };
            place += 1;
            match one.answer(buffers, flags) {
                Ok(()) => account.completed(buffers.request.len()),
                Err(e) if timed_out(&e) => return true,
                // The client went away in mid-transaction; it will say why.
                Err(_) => {}
            }
            false
        });
    }
    Ok(())
}

impl Late {
    /// Takes what is missing of the request, and answers.
    ///
    /// # Errors
    /// It has not come whole; or the connection failed.
    fn answer(&mut self, buffers: &mut Responder, flags: MsgFlags) -> io::Result<()> {
        while self.have < buffers.request.len() {
            let room = &mut buffers.request[self.have..];
            match recv(self.socket.0.as_raw_fd(), room, flags).map_err(io::Error::from) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.have += n,
                Err(e) if again(&e) => {}
                Err(e) => return Err(e),
            }
        }
        self.socket.send(&buffers.response).map(drop)
    }
}
